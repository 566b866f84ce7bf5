"""Routing: for the time of a context, launches of unmodified user code go to a handler.

`JITFunction.run`, `InterpretedFunction.run` and `Autotuner.run` are replaced while any route is
open and restored when the last one closes; heuristics reach them by themselves. A thread uses the
handler of its own innermost route, a thread without one that of the latest route of the process.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from trivet.simulator.binding import Call, Launch, bind
from trivet.simulator.device import SimulatedDriver
from trivet.simulator.rebuild import compiled
from trivet.simulator.standin import SimulatedKernel

__all__ = ["Call", "Handler", "Launch", "route"]


class Handler(Protocol):
    """Where routed launches go."""

    configuration: int
    cold: bool

    def launch(self, call: Call) -> object:
        """Run one launch; what it returns is what `kernel[grid](...)` returns."""
        ...

    def refused(self, error: Exception) -> None:
        """Be told that a launch could not even be bound or lowered: ``error`` is then raised."""
        ...

    def forgiven(self, error: Exception) -> None:
        """Be told that ``error`` of the last launch only ruled out one configuration."""
        ...

    def tuned(self, configurations: int, key: object) -> bool:
        """Be told how many configurations a tuned launch has; return whether ``key`` is new."""
        ...


@dataclass(frozen=True, eq=False)
class _Route:
    handler: Handler
    device: bool


_local: ContextVar[tuple[_Route, ...]] = ContextVar("trivet_routes", default=())
_all: list[_Route] = []
_lock = threading.RLock()
_originals: dict[type, Any] = {}
_previous_driver: list[Any] = []


@contextmanager
def route(handler: Handler, *, device: bool = True) -> Iterator[None]:
    """Send every launch of this context, on any thread, to ``handler``.

    ``device`` also shows Triton a simulated sm_90 device, so that code which asks for the current
    target or the number of multiprocessors runs where there is no GPU.
    """
    entry = _Route(handler, device)
    token = _local.set((*_local.get(), entry))
    _open(entry)
    try:
        yield
    finally:
        _local.reset(token)
        _close(entry)


def _open(entry: _Route) -> None:
    with _lock:
        if not _all:
            for owner, replacement in _REPLACEMENTS.items():
                _originals[owner] = owner.__dict__["run"]
                owner.run = replacement  # type: ignore[attr-defined]
        _all.append(entry)
        if entry.device:
            _previous_driver.append(driver._active)
            driver.set_active(SimulatedDriver())


def _close(entry: _Route) -> None:
    with _lock:
        _all.remove(entry)
        if entry.device:
            driver.set_active(_previous_driver.pop())
        if not _all:
            for owner, original in _originals.items():
                owner.run = original  # type: ignore[attr-defined]


def _handler() -> Handler | None:
    routes = _local.get() or _all
    return routes[-1].handler if routes else None


def _run_compiled(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> object:
    return _run(self, _originals[JITFunction], self, args, grid, warmup, kwargs)


def _run_interpreted(
    self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any
) -> object:
    return _run(self, _originals[InterpretedFunction], compiled(self), args, grid, warmup, kwargs)


def _run(
    owner: Any,
    original: Callable[..., object],
    function: Any,
    args: tuple[Any, ...],
    grid: Any,
    warmup: bool,
    kwargs: dict[str, Any],
) -> object:
    handler = _handler()

    def proceed() -> object:
        return original(owner, *args, grid=grid, warmup=warmup, **kwargs)

    if handler is None:
        return proceed()
    if warmup:
        names = function.signature.parameters
        return SimulatedKernel(owner, {k: v for k, v in kwargs.items() if k not in names})

    def run_hooks() -> None:
        for hook in owner.pre_run_hooks:
            hook(*args, **kwargs)

    try:
        call = bind(function, grid, args, kwargs, proceed, run_hooks)
    except Exception as error:
        handler.refused(error)
        raise
    return handler.launch(call)


def _run_tuned(self: Any, *args: Any, **kwargs: Any) -> object:
    handler = _handler()
    if handler is None:
        return _originals[Autotuner](self, *args, **kwargs)
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    configurations = self.configs if len(self.configs) == 1 else self.prune_configs(kwargs)
    new = handler.tuned(len(configurations), (id(self), _tuning_key(self, kwargs)))
    if handler.cold and new and len(configurations) > 1:
        _tune(self, handler, configurations, args, kwargs)
    first = handler.configuration % len(configurations)
    result = _run_first_possible(
        self, handler, [*configurations[first:], *configurations[:first]], args, kwargs
    )
    self.nargs = None
    return result


def _run_first_possible(
    tuner: Any, handler: Handler, candidates: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    """Launch with the first configuration that the kernel's static assertions allow.

    Tuning on a GPU gives such a configuration an endless time; the last one's error stands.
    """
    for chosen in candidates:
        tuner.best_config = chosen
        if chosen.pre_hook is not None:
            chosen.pre_hook({**tuner.nargs, **kwargs, **chosen.all_kwargs()})
        try:
            return tuner.fn.run(*args, **kwargs, **chosen.all_kwargs())
        except CompileTimeAssertionFailure as error:
            if chosen is candidates[-1]:
                raise
            handler.forgiven(error)
    return None


def _tuning_key(tuner: Any, kwargs: dict[str, Any]) -> tuple[object, ...]:
    given = {**tuner.nargs, **kwargs}
    values = [given[name] for name in tuner.keys if name in given]
    dtypes = [str(value.dtype) for value in given.values() if hasattr(value, "dtype")]
    return (*map(str, values), *dtypes)


def _tune(
    tuner: Any,
    handler: Handler,
    configurations: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Launch the configurations on the caller's own buffers, as a first call on a GPU does.

    Each runs again and again there, so that hooks run around each launch as Triton runs them, and
    the buffers are reset once at the end.
    """
    for configuration in _tuning_runs(configurations):
        current = {**kwargs, **configuration.all_kwargs()}
        named = {**tuner.nargs, **current}
        if configuration.pre_hook:
            configuration.pre_hook(named)
        tuner.pre_hook(named)
        try:
            tuner.fn.run(*args, **current)
        except Exception as error:
            tuner.post_hook(named, exception=error)
            if not isinstance(error, CompileTimeAssertionFailure):
                raise
            handler.forgiven(error)
        else:
            tuner.post_hook(named, exception=None)
    tuner.pre_hook({**tuner.nargs, **kwargs}, reset_only=True)


def _tuning_runs(configurations: Sequence[Any]) -> list[Any]:
    """Every configuration at least once, one after another: five runs or a larger prime in all.

    A kernel that undoes itself (negating in place) is back at its start after an even number of
    runs; a prime number of runs leaves a trace of every period but that number itself.
    """
    runs = next(n for n in count(max(5, len(configurations))) if all(n % k for k in range(2, n)))
    return [configurations[step * len(configurations) // runs] for step in range(runs)]


_REPLACEMENTS: dict[type, Callable[..., object]] = {
    JITFunction: _run_compiled,
    InterpretedFunction: _run_interpreted,
    Autotuner: _run_tuned,
}
