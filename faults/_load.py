"""Loading a fault: a replacement kernel, or the kernel from its source with one text edited.

The user's files stay as they are: the edited source lives in memory, under the same file name in
a folder named after the fault, so that Triton, ``inspect`` and failures show its lines.
"""

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import itertools
import linecache
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from trivet.faults._reach import EDITED
from trivet.properties._law import Fault

Kernel = Callable[..., Any]
Edit = Callable[..., Kernel]
_NUMBERS = itertools.count(1)


class FaultError(ValueError):
    """A fault that cannot be made: its text is not found once, or its kernel has no source."""


def kernel_of(fault: Fault, original: Kernel) -> Kernel:
    """Return the kernel of ``fault``: its replacement, or the original from edited source.

    Raises FaultError.
    """
    if not fault.is_edit:
        return fault.make

    def edit(old: str, new: str, module: str | None = None) -> Kernel:
        return edited(original, old, new, module=module, fault=fault.name)

    kernel: object = fault.make(edit)
    if not callable(kernel):
        raise FaultError(f"fault {fault.name}: returned {kernel!r}, expected the edited kernel")
    return kernel


def edited(
    original: Kernel, old: str, new: str, *, module: str | None = None, fault: str = "edit"
) -> Kernel:
    """Return ``original`` loaded from source in which ``old``, found exactly once, is ``new``."""
    where = f"fault {fault}"
    target = _module_to_edit(original, module, where)
    path = _file_of(target, where)
    text = _replaced(Path(path).read_text(), old, new, f"{where}: {path}")
    try:
        return _loaded(original, target, text, where)
    except Exception as error:
        raise FaultError(f"{where}: the edit fails: {type(error).__name__}: {error}") from error


def edited_at(
    original: Kernel, module: str, span: tuple[int, int], new: str, *, label: str = "edit"
) -> Kernel:
    """Return ``original`` from source in which the characters ``span`` of ``module`` are ``new``.

    Edits of one file and label share a file name, so that what an edit leaves as it is compiles
    once for all of them; of two in one process, ``linecache`` knows the latter's lines. Raises
    FaultError where there is no source, and whatever the edited source raises.
    """
    target = _module_to_edit(original, module, label)
    text = Path(_file_of(target, label)).read_text()
    return _loaded(original, target, text[: span[0]] + new + text[span[1] :], label, numbered=False)


def _module_to_edit(original: Kernel, module: str | None, where: str) -> ModuleType:
    """Return the module whose source is edited: the kernel's own, or the one named."""
    home = sys.modules.get(getattr(original, "__module__", "") or "")
    if home is None or "<" in getattr(original, "__qualname__", "<locals>"):
        raise FaultError(f"{where}: the kernel must be a function of a module, to be edited")
    if module is None or module == home.__name__:
        return home
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise FaultError(f"{where}: {module} cannot be imported: {error}") from error


def _file_of(module: ModuleType, where: str) -> str:
    path = inspect.getsourcefile(module)
    if path is None:
        raise FaultError(f"{where}: {module.__name__} has no source file")
    return path


def _loaded(
    original: Kernel, target: ModuleType, text: str, where: str, *, numbered: bool = True
) -> Kernel:
    """Return the function that stands in the edited module where ``original`` stands."""
    home = sys.modules[original.__module__]
    path = _file_of(target, where)
    place = f"{where} {next(_NUMBERS)}" if numbered else where
    source = _Source(f"<{place}>/{Path(path).name}", text, path)
    fresh = _executed(home, source) if target is home else _imported(home, target, source)
    kernel: object = fresh
    for part in original.__qualname__.split("."):
        kernel = getattr(kernel, part)
    assert callable(kernel)
    return kernel


class _Source(importlib.abc.Loader):
    """Source text under a file name of its own, known to ``linecache``."""

    def __init__(self, filename: str, text: str, edited: str) -> None:
        self.filename = filename
        self.text = text
        self.edited = edited
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)

    def code(self) -> CodeType:
        return compile(self.text, self.filename, "exec")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self.filename
        setattr(module, EDITED, self.edited)
        exec(self.code(), module.__dict__)


def _replaced(text: str, old: str, new: str, where: str) -> str:
    """Replace the one occurrence of ``old`` outside the faults' own definitions."""
    spans = list(_fault_spans(text))
    starts = [at for at in _occurrences(text, old) if not any(lo <= at < hi for lo, hi in spans)]
    if len(starts) != 1:
        raise FaultError(f"{where}: {old!r} occurs {len(starts)} times, expected once")
    return text[: starts[0]] + new + text[starts[0] + len(old) :]


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _fault_spans(text: str) -> Iterator[tuple[int, int]]:
    """Return the character ranges of functions decorated with ``<contract>.fault(...)``."""
    lines = [f"{line}\n" for line in text.split("\n")]  # as ast counts: a form feed ends none
    starts = [0, *itertools.accumulate(len(line) for line in lines)]
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and any(map(_is_fault, node.decorator_list)):
            first = min(decorator.lineno for decorator in node.decorator_list)
            yield starts[first - 1], starts[node.end_lineno or node.lineno]


def _is_fault(decorator: ast.expr) -> bool:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(call, ast.Attribute) and call.attr == "fault"


def _executed(home: ModuleType, source: _Source) -> ModuleType:
    """Execute the edited source as a new module beside ``home``."""
    fresh = ModuleType(f"{home.__name__}__fault{next(_NUMBERS)}")
    fresh.__package__ = home.__package__
    sys.modules[fresh.__name__] = fresh  # dataclasses and pickles look their module up
    try:
        source.exec_module(fresh)
    except BaseException:
        del sys.modules[fresh.__name__]
        raise
    return fresh


class _Finder(importlib.abc.MetaPathFinder):
    """Serves one module from edited source."""

    def __init__(self, name: str, source: _Source, paths: Sequence[str] | None) -> None:
        self.name, self.source, self.paths = name, source, paths

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = importlib.util.spec_from_loader(
            fullname, self.source, is_package=self.paths is not None
        )
        if spec is not None and self.paths is not None:
            spec.submodule_search_locations = list(self.paths)
        return spec


def _imported(home: ModuleType, target: ModuleType, source: _Source) -> ModuleType:
    """Import ``home`` anew, its family with it, ``target`` served from the edited source."""
    finder = _Finder(target.__name__, source, getattr(target, "__path__", None))
    with _family_set_aside(home, target):
        sys.meta_path.insert(0, finder)
        try:
            return _import_again(home)
        finally:
            sys.meta_path.remove(finder)


def _import_again(home: ModuleType) -> ModuleType:
    """Import a module anew: by its name, or from its file where it was loaded from one."""
    spec = importlib.util.find_spec(home.__name__)
    if spec is not None or home.__spec__ is None or home.__spec__.loader is None:
        return importlib.import_module(home.__name__)
    fresh = importlib.util.module_from_spec(home.__spec__)
    sys.modules[home.__name__] = fresh
    home.__spec__.loader.exec_module(fresh)
    return fresh


@contextmanager
def _family_set_aside(home: ModuleType, target: ModuleType) -> Iterator[None]:
    """Take the modules of both packages out of ``sys.modules`` and put them back after."""
    roots = {m.__package__ or m.__name__ for m in (home, target)} | {home.__name__, target.__name__}
    aside = {name: sys.modules.pop(name) for name in _members(roots)}
    try:
        yield
    finally:
        for name in _members(roots):
            del sys.modules[name]  # what the edited import brought stays private to the fault
        for name, module in aside.items():
            sys.modules[name] = module
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], child, module)


def _members(roots: Collection[str]) -> list[str]:
    return [
        name
        for name in sys.modules
        if name in roots or any(name.startswith(f"{root}.") for root in roots)
    ]
