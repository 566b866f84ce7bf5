"""A kernel of another revision beside today's, in one process: both must share its clocks."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import trivet

_PACKAGE = "trivet.impl"


class Files(Protocol):
    """Another revision's files."""

    def counterpart(self, path: Path) -> Path:
        """Return where a path of the repository lies there."""
        ...


def base_kernel(kernel: Callable[..., Any], files: Files) -> Callable[..., Any]:
    """Return the host function that stands where ``kernel`` does in another revision.

    A kernel of the package comes with all modules of its package from there, any other with its own
    file alone. Raises ValueError where that revision has no such function.
    """
    name = kernel.__module__
    with _set_aside(_PACKAGE):
        if name == _PACKAGE or name.startswith(f"{_PACKAGE}."):
            module = _from_package(name, files)
        else:
            module = _from_file(name, files.counterpart(_file_of(kernel)))
    found: Any = module
    for part in kernel.__qualname__.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"the base has no {kernel.__qualname__} in {name}")
    base: Callable[..., Any] = found
    return base


def _file_of(kernel: Callable[..., Any]) -> Path:
    return Path(inspect.getsourcefile(inspect.unwrap(kernel)) or "").resolve()


def _from_package(name: str, files: Files) -> ModuleType:
    home = Path(trivet.__file__).resolve().parent / "impl"
    folder = files.counterpart(home.resolve())
    package = _executed(_PACKAGE, folder / "__init__.py", [str(folder)])
    if name == _PACKAGE:
        return package
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"the base has no module {name}") from error


def _from_file(name: str, path: Path) -> ModuleType:
    return _executed(f"{name} of the base", path, None)


def _executed(name: str, path: Path, folders: list[str] | None) -> ModuleType:
    if not path.exists():
        raise ValueError(f"the base has no {path.name}")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _set_aside(package: str) -> Iterator[None]:
    """Take today's modules of ``package`` out of ``sys.modules``; put them back after."""
    prefix = f"{package}."
    kept = {n: m for n, m in sys.modules.items() if n == package or n.startswith(prefix)}
    attribute = package.rpartition(".")[2]
    before = getattr(trivet, attribute, None)
    for name in kept:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in [n for n in sys.modules if n == package or n.startswith(prefix)]:
            del sys.modules[name]
        sys.modules.update(kept)
        if before is not None:
            setattr(trivet, attribute, before)
