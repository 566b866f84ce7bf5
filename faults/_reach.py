"""Which functions of the user's own modules a kernel reaches: the ones that mutants are made of."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal

import trivet

Kind = Literal["kernel", "host"]
_MACHINERY = Path(trivet.__file__).resolve().parent
# Where a module made of edited source keeps the path of the file that was edited.
EDITED = "__edited__"


@dataclass(frozen=True, slots=True)
class Reached:
    """A function: what the module holds it as (``value``), its Python function, where it runs."""

    value: Any
    function: FunctionType
    kind: Kind

    @property
    def module(self) -> str:
        """The name of the module that defines it."""
        return self.function.__module__

    @property
    def qualified(self) -> str:
        """Its name inside the module."""
        return self.function.__qualname__


def reached_from(kernel: Callable[..., Any]) -> list[Reached]:
    """Return the kernel's host function and every function of the user's that it can call.

    Followed are names in the code, also of classes, wrappers and modules of the same folder; not
    Triton, torch, other packages or trivet's machinery.
    """
    start = _unwrapped(kernel)
    if start is None:
        return []
    folder = _home(start.module)
    found: dict[FunctionType, Reached] = {}
    pending = [start]
    while pending:
        item = pending.pop()
        if item.function not in found and _is_own(item, folder):
            found[item.function] = item
            pending.extend(_called(item.function, folder))
    return sorted(
        found.values(), key=lambda each: (each.module, each.function.__code__.co_firstlineno)
    )


def _home(module: str) -> Path | None:
    """Return the folder that holds the user's modules: of the package, or of the one file."""
    path = _file(module)
    if path is None:
        return None
    depth = module.count(".") + (path.name == "__init__.py")
    if "." not in module and depth == 0:
        return path.parent
    parts = module.split(".")
    if parts[0] == "trivet":  # a shipped family: its folder among the kernels
        return _MACHINERY / "impl"
    return path.parents[depth - 1]


def _file(module: str) -> Path | None:
    found = sys.modules.get(module)
    path = getattr(found, EDITED, None) or getattr(found, "__file__", None)
    return Path(path) if path else None


def _is_own(item: Reached, folder: Path | None) -> bool:
    path = _file(item.module)
    if path is None or folder is None or "<" in item.qualified:
        return False
    own = path.is_relative_to(folder) or path.resolve().is_relative_to(folder)
    installed = "site-packages" in path.parts and "site-packages" not in folder.parts
    # What checks arguments for every family is no part of one; device functions are.
    private = item.module.startswith("trivet.") and item.module.rpartition(".")[2].startswith("_")
    return own and not installed and (item.kind == "kernel" or not private)


def _unwrapped(value: Any) -> Reached | None:
    """Return the Python function inside wrappers: jit, autotune, partial, cache, staticmethod."""
    kind: Kind = "host"
    outer = value
    for _ in range(16):
        if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
            return Reached(outer, value, kind)
        if hasattr(value, "fn") and type(value).__module__.startswith("triton."):
            kind, value = "kernel", value.fn
        elif isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, MethodType | staticmethod | classmethod):
            value = value.__func__
        elif hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        else:
            return None
    return None


def _called(function: FunctionType, folder: Path | None) -> Iterator[Reached]:
    names = set(_names(function.__code__))
    for value in _values(function, names):
        yield from _functions_in(value, names, folder)


def _values(function: FunctionType, names: set[str]) -> Iterator[Any]:
    scope = function.__globals__
    yield from (scope[name] for name in names if name in scope)
    for cell in function.__closure__ or ():
        yield cell.cell_contents


def _functions_in(value: Any, names: set[str], folder: Path | None) -> Iterator[Reached]:
    if isinstance(value, ModuleType):
        path = _file(value.__name__)
        if path is not None and folder is not None and path.is_relative_to(folder):
            parts = [vars(value)[name] for name in names if name in vars(value)]
            for part in parts:
                if not isinstance(part, ModuleType):
                    yield from _functions_in(part, names, folder)
    elif inspect.isclass(value):
        members = (_unwrapped(member) for member in vars(value).values())
        yield from (member for member in members if member is not None)
    elif isinstance(value, dict | list | tuple):
        held = value.values() if isinstance(value, dict) else value
        yield from (item for item in map(_unwrapped, held) if item is not None)
    elif (item := _unwrapped(value)) is not None:
        yield item


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
