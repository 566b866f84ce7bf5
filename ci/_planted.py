"""One run of somebody's tests on a kernel file whose text is another one, in a child process.

The file on disk stays as it is: whoever imports it, by name, by path or through pytest, gets the
planted text; `inspect`, Triton and tracebacks read its lines from ``linecache``.
"""

import importlib.util
import linecache
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import trivet

PYTHONS = ("python", "python3")
_FAMILIES = ("impl", "oracles", "properties", "faults")
# One failure is enough; nothing is written; that trivet is there already is no fault of the tests.
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


def plant(path: str, text: str, loaded: Callable[[], None]) -> MetaPathFinder:
    """Give ``text`` to every later import of the file ``path``; ``loaded`` is told of each.

    Returns the finder that stands first; tools that put their own before it ask it again.
    """
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    original = SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> CodeType | None:
        if os.path.realpath(self.path) != path:
            return original(self, name)
        loaded()
        linecache.cache[self.path] = linecache.cache[path]
        return compile(text, self.path, "exec", dont_inherit=True)

    setattr(SourceFileLoader, "get_code", get_code)  # noqa: B010
    finder = _Finder(path)
    sys.meta_path.insert(0, finder)
    return finder


class _Finder(MetaPathFinder):
    """Finds the planted file with Python's own loader, before pytest rewrites its asserts."""

    def __init__(self, path: str) -> None:
        self.path = path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Return the file's specification, None for every other module."""
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.origin is None or os.path.realpath(spec.origin) != self.path:
            return None
        return importlib.util.spec_from_file_location(
            name, spec.origin, submodule_search_locations=spec.submodule_search_locations
        )


class First:
    """A pytest plugin that keeps a finder the first one."""

    def __init__(self, finder: MetaPathFinder) -> None:
        self._finder = finder

    def _put_first(self) -> None:
        sys.meta_path.remove(self._finder)
        sys.meta_path.insert(0, self._finder)

    def pytest_load_initial_conftests(self) -> None:
        """Stand before pytest's own hook when the first conftest is imported."""
        self._put_first()

    def pytest_collection(self) -> None:
        """Stand before whatever was put first in between."""
        self._put_first()


def installed_modules() -> list[str]:
    """Return the modules of this process that are installed or trivet's machinery: no user's.

    Those of a shipped kernel family count as a user's, since mutants may be planted there.
    """
    machinery = Path(trivet.__file__).parent
    families = [(machinery / folder).resolve() for folder in _FAMILIES]
    found = []
    for name, module in list(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or "/")
        installed = "site-packages" in path.parts or "dist-packages" in path.parts
        ours = name.startswith("trivet.") and not _is_family(name, path, families)
        if (installed or ours) and getattr(module, "__spec__", None) is not None:
            found.append(name)
    return found


def _is_family(name: str, path: Path, families: Sequence[Path]) -> bool:
    parts = name.split(".")
    inside = any(path.resolve().is_relative_to(family) for family in families)
    return inside and (parts[1] == "impl" or not parts[min(2, len(parts) - 1)].startswith("_"))


def run_suite(command: Sequence[str], home: Path, finder: MetaPathFinder | None) -> int:
    """Run ``pytest ...`` or ``python ...`` in this process; return its exit status.

    Paths among the arguments are those of the folder ``home``; pytest ends at its first failure.
    """
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(home))
    program, *rest = [_absolute(word, home) for word in command]
    if Path(program).name in PYTHONS and rest[:2] == ["-m", "pytest"]:
        program, rest = "pytest", rest[2:]
    if Path(program).name not in PYTHONS:
        import pytest

        plugins = [] if finder is None else [First(finder)]
        return int(pytest.main([*rest, *_OPTIONS], plugins=plugins))
    try:
        if rest[0] == "-m":
            sys.argv = rest[1:]
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = rest
            sys.path.insert(0, str(Path(rest[0]).parent))
            runpy.run_path(rest[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _absolute(word: str, home: Path) -> str:
    path, separator, test = word.partition("::")
    if word.startswith("-") or not (home / path).exists():
        return word
    return f"{home / path}{separator}{test}"
