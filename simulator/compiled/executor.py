"""The compiler as an executor: host functions run as ever, and their launches are kept."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from trivet.simulator.executors import Run, Simulator


@dataclass(frozen=True, kw_only=True)
class Compile:
    """Records launches, to be compiled for GPUs by ``measure``.

    The simulator gives the host function the numbers it may ask for; nothing of them is judged,
    but for the memory traffic, which it counts on the way. ``source`` is taken for symmetry with
    the interpreter and not needed.
    """

    source: str = ""
    configuration: int = 0

    name = "compile"

    def variant(self, **options: Any) -> Self:
        """Return this executor with other options; those it cannot judge by are ignored."""
        return replace(self, **{k: v for k, v in options.items() if hasattr(self, k)})

    def run(
        self,
        kernel: Callable[..., object],
        args: Mapping[str, object],
        *,
        read_only: Collection[str] = (),
        unwritten: Collection[str] = (),
        whole_storage: Collection[str] = (),
    ) -> Run:
        """Call ``kernel(**args)`` and record its launches and their traffic; see Executor."""
        simulator = Simulator(configuration=self.configuration, sanitize=False, meter=True)
        return simulator.run(
            kernel,
            args,
            read_only=read_only,
            unwritten=unwritten,
            whole_storage=whole_storage,
        )
