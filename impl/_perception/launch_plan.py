"""A sequence of launches kept and run again: a CUDA graph on a GPU, a recorded list elsewhere.

Host values decide what is launched and with which numbers, and a kept sequence has them frozen. So
it is kept under all of them, and recorded anew when one is another.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

HostValue = int | float | bool | str | None
Replay = Callable[[], None]
_UNDEFINED = ("aten::empty", "aten::new_empty")


class LaunchPlan:
    """Runs a sequence, keeping it for as long as every host value it depends on stays.

    The sequence is a function without arguments that launches kernels and torch operations on
    tensors which stay where they are; it may run twice when it is recorded (once for real, once
    for a CUDA graph), so it changes nothing of the host. Its argument checks read values when it is
    recorded alone. What it returns is returned again: the same tensors, with new contents.
    `device` is where it launches: a GPU of its own, or the CPU for every executor without one.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        built = torch.backends.cuda.is_built()  # type: ignore[no-untyped-call]
        self._on_gpu = built and torch.device(device).type == "cuda"
        self.recordings = 0
        self._key: tuple[str, ...] | None = None
        self._replay: Replay | None = None
        self._result: Any = None

    def run(self, key: tuple[HostValue, ...], sequence: Callable[[], Any]) -> Any:
        """Run the sequence, or what was recorded of it under the same key; return its result.

        key: every host value that decides what is launched, or is handed to a launch. 1, 1.0 and
        True are different, and so are 0.0 and -0.0. Raises TypeError for anything but numbers,
        text and None, and whatever the sequence raises; nothing is kept then.
        """
        exact = tuple(map(_exact, key))
        if self._replay is not None and exact == self._key:
            self._replay()
            return self._result
        self.forget()
        self._result, self._replay = _graph(sequence) if self._on_gpu else _list(sequence)
        self._key = exact
        self.recordings += 1
        return self._result

    def forget(self) -> None:
        """Record anew next time: for tensors that moved."""
        self._key = self._replay = self._result = None


def _exact(value: object) -> str:
    if value is not None and not isinstance(value, int | float | bool | str):
        raise TypeError(
            f"a key holds host values: numbers, text or None, got {type(value).__name__}"
        )
    return f"{type(value).__name__} {value!r}"


def _list(sequence: Callable[[], Any]) -> tuple[Any, Replay]:
    """Run a sequence; its result, and what runs its launches and operations again."""
    steps: list[Replay] = []
    with _launches_to(steps), _Operations(steps):
        result = sequence()

    def replay() -> None:
        for step in steps:
            step()

    return result, replay


def _graph(sequence: Callable[[], Any]) -> tuple[Any, Replay]:
    """Run for real, which compiles and checks, then capture: a capture runs nothing."""
    sequence()
    graph = torch.cuda.CUDAGraph()
    # Other threads, the drainer of the trace for one, go on copying meanwhile.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = sequence()
    return result, graph.replay


class _Runnable(Protocol):
    def run(self, *arguments: Any, **options: Any) -> object: ...


@contextmanager
def _launches_to(steps: list[Replay]) -> Iterator[None]:
    """Append to `steps` every launch of this thread, while it is done."""
    owner = threading.get_ident()
    kinds: tuple[Any, ...] = (JITFunction, InterpretedFunction)
    originals = {kind: kind.__dict__["run"] for kind in kinds}

    def recording(original: Callable[..., object]) -> Callable[..., object]:
        def run(kernel: _Runnable, *arguments: Any, **options: Any) -> object:
            if threading.get_ident() == owner and not options.get("warmup"):
                steps.append(lambda: _launch(kernel, arguments, options))
            return original(kernel, *arguments, **options)

        return run

    for kind, original in originals.items():
        kind.run = recording(original)
    try:
        yield
    finally:
        for kind, original in originals.items():
            kind.run = original


def _launch(kernel: _Runnable, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    kernel.run(*arguments, **options)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Appends to `steps` every torch operation that writes, while it is done."""

    def __init__(self, steps: list[Replay]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps = steps

    def __torch_dispatch__(
        self, operator: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        options = options or {}
        result = operator(*arguments, **options)
        schema = operator._schema
        views = any(each.alias_info is not None for each in schema.returns)
        if schema.is_mutable:
            self.steps.append(lambda: operator(*arguments, **options))
        elif not views and not schema.name.startswith(_UNDEFINED):
            self.steps.append(lambda: _renew(result, operator(*arguments, **options)))
        return result


def _renew(kept: Any, fresh: Any) -> None:
    """Give the tensors of a kept result the contents of a fresh one."""
    if isinstance(kept, torch.Tensor):
        kept.copy_(fresh)
    elif isinstance(kept, tuple | list):
        for old, new in zip(kept, fresh, strict=True):
            _renew(old, new)
