"""Performance locks: the metrics that a contract's launches had when somebody last agreed to them.

One file a contract. Values are kept by target and by what compiled them, since another compiler
gives other numbers: ``{"version": 1, "contract": .., "locks": {target: {toolchain: {sample:
{"specialisation": .., "metrics": {..}}}}}}``.
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trivet
from trivet.simulator.cache import write_whole
from trivet.simulator.compiled import Value

VERSION = 1
DEFAULT_FOLDER = "perf_locks"
_elsewhere: ContextVar[Path | None] = ContextVar("trivet_locks", default=None)


class LockError(ValueError):
    """A lock file, or the setting that says where they lie, cannot be read."""


@dataclass(frozen=True, slots=True)
class Locked:
    """What one sample of a contract was when it was locked."""

    specialisation: str
    metrics: Mapping[str, Value]


@dataclass
class Lock:
    """The locks of one contract, by target, toolchain and sample."""

    contract: str
    path: Path
    entries: dict[str, dict[str, dict[str, Locked]]] = field(default_factory=dict)

    def of(self, target: str, toolchain: str) -> dict[str, Locked] | None:
        """Return the samples locked for a target by one toolchain; None where there are none."""
        return self.entries.get(target, {}).get(toolchain)

    def toolchains(self, target: str) -> list[str]:
        """Return the toolchains that a target is locked by."""
        return list(self.entries.get(target, {}))

    def replace(self, target: str, toolchain: str, samples: Mapping[str, Locked]) -> None:
        """Lock the samples of one target and toolchain; those of others stay."""
        self.entries.setdefault(target, {})[toolchain] = dict(samples)

    def write(self) -> None:
        """Write the file whole, in an order that does not depend on the run."""
        locks = {
            target: {
                toolchain: {name: _plain(locked) for name, locked in samples.items()}
                for toolchain, samples in by_toolchain.items()
            }
            for target, by_toolchain in self.entries.items()
        }
        content = {"version": VERSION, "contract": self.contract, "locks": locks}
        write_whole(self.path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def _plain(locked: Locked) -> dict[str, Any]:
    return {"specialisation": locked.specialisation, "metrics": dict(locked.metrics)}


def lock_of(name: str, source: str) -> Lock:
    """Return the lock of the contract ``name``, which ``find`` finds by ``source``.

    It is empty where nothing is locked. Raises LockError for a file that is none.
    """
    path = lock_path(name, source)
    lock = Lock(name, path)
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return lock
    except (OSError, ValueError) as error:
        raise LockError(f"{path}: is no lock file: {error}") from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise LockError(f"{path}: is no lock file of version {VERSION}: run trivet bench --update")
    for target, by_toolchain in content["locks"].items():
        lock.entries[target] = {
            toolchain: {key: Locked(**value) for key, value in samples.items()}
            for toolchain, samples in by_toolchain.items()
        }
    return lock


def lock_path(name: str, source: str) -> Path:
    """Return the file of a contract's lock.

    Shipped contracts have theirs in the package's fixtures; any other in the folder that
    ``[tool.trivet] locks`` names, ``perf_locks`` by default, by its path and variable.
    """
    folder = _elsewhere.get()
    file, colon, variable = source.rpartition(":")
    if not colon:
        shipped = (Path(trivet.__file__).parent / "fixtures" / "perf").resolve()
        return (folder or _shown(shipped)) / f"{name}.lock.json"
    place = os.path.relpath(file) if file.endswith(".py") else file
    parts = Path(place).with_suffix("").parts if file.endswith(".py") else (place,)
    inside = [part for part in parts if part not in ("..", os.sep)]
    stem = ".".join([*inside, variable])
    return (folder or _folder()) / f"{stem}.lock.json"


def _shown(folder: Path) -> Path:
    """Return a folder as people name it: from here, where it is inside."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _folder() -> Path:
    project = Path("pyproject.toml")
    try:
        settings = tomllib.loads(project.read_text()).get("tool", {}).get("trivet", {})
    except FileNotFoundError:
        return Path(DEFAULT_FOLDER)
    except tomllib.TOMLDecodeError as error:
        raise LockError(f"{project}: {error}") from error
    folder = settings.get("locks", DEFAULT_FOLDER)
    if not isinstance(folder, str):
        raise LockError(f"{project}: [tool.trivet] locks = {folder!r}: expected a folder's path")
    return Path(folder)


@contextmanager
def locks_in(folder: Path) -> Iterator[None]:
    """Keep every lock of this context in ``folder``: to judge against one just recorded."""
    token = _elsewhere.set(folder)
    try:
        yield
    finally:
        _elsewhere.reset(token)
