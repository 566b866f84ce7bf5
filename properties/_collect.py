"""Finding contracts by name: shipped ones, globs, files, folders and ``module:contract``."""

import difflib
import fnmatch
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import trivet.properties
from trivet.properties._contract import Contract


class UnknownNameError(ValueError):
    """No contract has this name; the message lists the nearest ones."""


class UnreadableFileError(ValueError):
    """A file that should hold contracts cannot be imported; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Found:
    """A contract and where it stands.

    ``name`` is what people call it (``routing.tau_sort``, or the variable's name), ``path`` the
    file, ``variable`` the name in it, ``source`` what ``find`` takes to find exactly this one.
    """

    name: str
    contract: Contract
    path: Path
    variable: str
    source: str


def find(names: Sequence[str] = ()) -> list[Found]:
    """Return the contracts called ``names``, each once, in order.

    Without names: every shipped contract and those of the paths in ``[tool.trivet]`` of the
    pyproject.toml here. Raises UnknownNameError and UnreadableFileError.
    """
    if not names:
        found = [*shipped(), *configured()]
    else:
        found = [f for name in names for f in _named(name)]
    kept: dict[tuple[Path, str], Found] = {}
    for each in found:
        kept.setdefault((each.path.resolve(), each.variable), each)
    return list(kept.values())


def configured() -> list[Found]:
    """Return the contracts of the paths in ``[tool.trivet]`` of the pyproject.toml here."""
    project = Path("pyproject.toml")
    if not project.exists():
        return []
    try:
        settings = tomllib.loads(project.read_text()).get("tool", {}).get("trivet", {})
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFileError(f"{project}: {error}") from error
    paths = settings.get("paths", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise UnreadableFileError(f"{project}: [tool.trivet] paths = {paths!r}: expected a list")
    missing = next((path for path in paths if not Path(path).exists()), None)
    if missing is not None:
        raise UnreadableFileError(f"{project}: [tool.trivet] paths: {missing}: no such path")
    return [found for path in paths for found in in_path(Path(path))]


def _named(name: str) -> list[Found]:
    path = Path(name)
    if path.suffix == ".py" or path.is_dir():
        return _in_existing(path)
    file, colon, variable = name.rpartition(":")
    if colon:
        held = _in_existing(Path(file)) if file.endswith(".py") else _in_module(file)
        return _matching(held, variable, name)
    known = shipped()
    exact = [f for f in known if f.name == name]
    if exact:  # asked for by its full name: nobody's files need to be imported
        return exact
    return _matching([*known, *configured()], name, name)


def _in_existing(path: Path) -> list[Found]:
    if not path.exists():
        raise UnknownNameError(f"{path}: no such file or folder")
    found = in_path(path)
    if not found:
        raise UnknownNameError(f"{path}: holds no Contract")
    return found


def _matching(candidates: list[Found], pattern: str, asked: str) -> list[Found]:
    matches = [f for f in candidates if fnmatch.fnmatchcase(f.name, pattern)]
    if matches:
        return matches
    known = [f.name for f in candidates]
    near = difflib.get_close_matches(pattern, known, n=3, cutoff=0.4) or known[:3]
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise UnknownNameError(f"{asked}: no contract has this name{hint}")


def shipped() -> list[Found]:
    """Return the contracts of trivet's own kernel families, named ``<stem>.<kernel>``."""
    found = []
    for module in pkgutil.iter_modules(trivet.properties.__path__):
        if module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"trivet.properties.{module.name}")
        for variable, contract in _contracts(loaded):
            name = f"{module.name}.{variable.removeprefix(module.name + '_')}"
            path = Path(str(loaded.__file__))
            found.append(Found(name, contract, path, variable, name))
    return found


def in_path(path: Path) -> list[Found]:
    """Return the contracts of a file, or of every file of a folder that speaks of a Contract."""
    if path.is_dir():
        files = [file for file in _files(path) if _may_hold_contracts(file)]
        return [found for file in files for found in in_path(file)]
    module = load_file(path)
    return [
        Found(variable, contract, path, variable, f"{path}:{variable}")
        for variable, contract in _contracts(module)
    ]


def _files(folder: Path) -> Iterator[Path]:
    """Yield the Python files of a folder in order, but none of environments and hidden folders."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix == ".py":
            yield path
        foreign = path.name.startswith(".") or (path / "pyvenv.cfg").exists()
        if path.is_dir() and not path.is_symlink() and not foreign:
            yield from _files(path)


def _may_hold_contracts(file: Path) -> bool:
    return "Contract(" in file.read_text(errors="replace")


def load_file(path: Path) -> ModuleType:
    """Import a file as a module of its own, its folder on the path as a script's would be."""
    resolved = path.resolve()
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:8]
    name = f"_trivet_{resolved.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise UnreadableFileError(f"{path}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    if str(resolved.parent) not in sys.path:
        sys.path.insert(0, str(resolved.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        del sys.modules[name]
        raise
    except BaseException as error:  # sys.exit() and pytest.skip() are no verdict either
        del sys.modules[name]
        raise UnreadableFileError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def _in_module(name: str) -> list[Found]:
    here = str(Path.cwd())
    if here not in sys.path:  # the console script's path begins in its own folder
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(name)
    except (ImportError, ValueError) as error:
        raise UnknownNameError(f"{name}: cannot be imported: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UnreadableFileError(f"{name}: {type(error).__name__}: {error}") from error
    path = Path(str(module.__file__))
    return [Found(v, c, path, v, f"{name}:{v}") for v, c in _contracts(module)]


def _contracts(module: ModuleType) -> Iterator[tuple[str, Contract]]:
    for variable, value in vars(module).items():
        if isinstance(value, Contract) and not variable.startswith("_"):
            yield variable, value
