"""Functions decorated while TRITON_INTERPRET=1 was set, seen as compiled ones.

`triton.jit` returns an InterpretedFunction under that variable, which Triton's frontend refuses.
`compiled` rebuilds the JITFunction from its source; `compiled_view` puts rebuilt functions in the
place of every interpreted one that a kernel reaches, for as long as the kernel is being lowered.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from triton.runtime.jit import JITCallable, JITFunction

from trivet.simulator._torch import triton

LOCK = threading.RLock()
_rebuilt: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_open = False
_Undo = Callable[[], None]


def is_interpreted(value: object) -> bool:
    """Return whether ``value`` is a function that was decorated under TRITON_INTERPRET=1."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    return interpreter is not None and isinstance(value, interpreter.InterpretedFunction)


def compiled(value: Any) -> Any:
    """Return the JITFunction of an interpreted function; anything else as it is."""
    if not is_interpreted(value):
        return value
    if value not in _rebuilt:
        _rebuilt[value] = JITFunction(value.fn, **value.kwargs)
    return _rebuilt[value]


@contextmanager
def compiled_view(function: Any) -> Iterator[None]:
    """Let Triton's frontend lower ``function``: every callee it reaches is a JITFunction inside.

    Holds a lock: globals, closures and modules are changed while it is open and restored after.
    """
    global _open
    with LOCK:
        undo: list[_Undo] = []
        outermost = not _open
        _open = True
        variable = os.environ.pop("TRITON_INTERPRET", None)
        try:
            if "triton.runtime.interpreter" in sys.modules:
                if outermost:
                    _swap_library(undo)
                _swap_reached(function, undo, set())
            yield
        finally:
            for step in reversed(undo):
                step()
            _open = not outermost
            if variable is not None:
                os.environ["TRITON_INTERPRET"] = variable


def reached(function: Any) -> list[Any]:
    """Return ``function`` and every jit function it calls, directly or not, each once."""
    found: dict[int, Any] = {}
    pending = [function]
    while pending:
        current = pending.pop()
        if id(current) in found or not isinstance(getattr(current, "fn", None), FunctionType):
            continue
        found[id(current)] = current
        pending += [value for value in _references(current.fn) if isinstance(value, JITCallable)]
    return list(found.values())


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _references(function: FunctionType) -> Iterator[object]:
    names = _names(function.__code__)
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        yield from _members(value, names)
    yield from (cell.cell_contents for cell in _filled(function))
    yield from function.__defaults__ or ()


def _members(value: object, names: set[str]) -> Iterator[object]:
    if not _is_container(value):
        return
    for name in names & vars(value).keys():
        member = vars(value)[name]
        yield member
        yield from _members(member, names)


def _is_container(value: object) -> bool:
    """Tell modules of the user's, where a kernel may find the functions it calls."""
    if not isinstance(value, ModuleType):
        return False
    return value.__name__.partition(".")[0] not in ("triton", "torch", "numpy", "builtins")


def _filled(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            cell.cell_contents  # noqa: B018
        except ValueError:
            continue
        yield cell


def _swap_reached(function: Any, undo: list[_Undo], seen: set[int]) -> None:
    plain = getattr(function, "fn", None)
    if not isinstance(plain, FunctionType) or id(plain) in seen:
        return
    seen.add(id(plain))
    names = _names(plain.__code__)
    _swap_names(plain.__globals__, names, undo, seen)
    for cell in _filled(plain):
        _swap_cell(cell, undo, seen)


def _swap_names(
    scope: MutableMapping[str, Any], names: set[str], undo: list[_Undo], seen: set[int]
) -> None:
    for name in names & scope.keys():
        value = scope[name]
        if is_interpreted(value):
            undo.append(partial(scope.__setitem__, name, value))
            scope[name] = compiled(value)
            _swap_reached(value, undo, seen)
        elif isinstance(value, JITCallable):
            _swap_reached(value, undo, seen)
        elif _is_container(value) and id(value) not in seen:
            seen.add(id(value))
            _swap_names(vars(value), names, undo, seen)


def _swap_cell(cell: Any, undo: list[_Undo], seen: set[int]) -> None:
    value = cell.cell_contents
    if is_interpreted(value):
        undo.append(lambda: setattr(cell, "cell_contents", value))
        cell.cell_contents = compiled(value)
    _swap_reached(value, undo, seen)


def _swap_library(undo: list[_Undo]) -> None:
    """Rebuild Triton's own functions (tl.sum, x.sum, ...) where it was imported interpreted."""
    for owner, name, value in _library():
        undo.append(partial(setattr, owner, name, value))
        setattr(owner, name, compiled(_interpreted_inside(value)))


_library_places: list[tuple[Any, str, Any]] = []
_library_modules = 0


def _library() -> list[tuple[Any, str, Any]]:
    """List where triton.language holds interpreted functions; again only after new imports."""
    global _library_modules
    modules = [m for n, m in sys.modules.copy().items() if n.startswith("triton.language")]
    if len(modules) != _library_modules:
        _library_modules = len(modules)
        owners = [*modules, triton.language.tensor]
        _library_places[:] = [
            (owner, name, value)
            for owner in owners
            for name, value in list(vars(owner).items())
            if _interpreted_inside(value) is not None
        ]
    return _library_places


def _interpreted_inside(value: object) -> object | None:
    """Return the interpreted function that ``value`` is, or that a tensor method forwards to."""
    if is_interpreted(value):
        return value
    if isinstance(value, FunctionType) and value.__module__ == "triton.language.core":
        insides = [cell.cell_contents for cell in _filled(value)]
        return next((inside for inside in insides if is_interpreted(inside)), None)
    return None
