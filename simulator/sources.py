"""Names for functions that another process can follow: a module or a file, and a variable."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


class SourceError(ValueError):
    """A function has no name that another process could import it by."""


@dataclass(frozen=True)
class Source:
    """Where a function stands: its module's name, the module's file, the name inside it."""

    module: str
    path: str
    variable: str

    def load(self) -> Any:
        """Import the module, by name where that works and else by its file, and return the value.

        A contract stands for its kernel. Raises SourceError when there is nothing of that name.
        """
        value: Any = self._module()
        for part in self.variable.split("."):
            if not hasattr(value, part):
                raise SourceError(f"{self.path or self.module} has no {self.variable}")
            value = getattr(value, part)
        return getattr(value, "kernel", value)

    def _module(self) -> ModuleType:
        if self.module in sys.modules and self.module != "__main__":
            return sys.modules[self.module]
        if self.module != "__main__" and _importable(self.module):
            return importlib.import_module(self.module)
        return _load_file(Path(self.path), f"_trivet_source_{Path(self.path).stem}")


def source_of(kernel: Callable[..., object]) -> Source:
    """Name a function by its module and qualified name.

    Raises SourceError for lambdas, functions inside functions and other callables that their
    module does not hold under their own name.
    """
    module = sys.modules.get(getattr(kernel, "__module__", None) or "")
    variable = getattr(kernel, "__qualname__", "")
    value: Any = module
    for part in variable.split("."):
        value = getattr(value, part, None)
    if module is None or value is not kernel:
        raise SourceError(
            f"{variable or kernel!r} cannot be imported by another process: "
            "it must be a function at the top of a module"
        )
    return Source(module.__name__, str(getattr(module, "__file__", "") or ""), variable)


def parse_source(text: str) -> Source:
    """Read ``path.py:variable`` or ``module:variable``; raises SourceError for anything else."""
    place, colon, variable = text.rpartition(":")
    if not colon or not variable:
        raise SourceError(f"{text!r}: expected path.py:variable or module:variable")
    if place.endswith(".py"):
        return Source("__main__", str(Path(place).resolve()), variable)
    return Source(place, "", variable)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _load_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise SourceError(f"{path}: is no Python file")
    if name in sys.modules and getattr(sys.modules[name], "__file__", "") == str(path):
        return sys.modules[name]
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
