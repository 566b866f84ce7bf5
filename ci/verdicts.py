"""The store of an audit's verdicts: by content, so that unchanged code is not audited again."""

import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import trivet
from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError
from trivet.simulator.cache import cache_folder

if TYPE_CHECKING:
    from trivet.properties._collect import Found


class Store:
    """Verdicts in one SQLite file; each is written when it is known, so an audit can resume."""

    def __init__(self, path: Path | None = None) -> None:
        path = path or cache_folder("audit") / "verdicts.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=60, isolation_level=None)
            for table in ("verdicts", "experience"):
                columns = "key TEXT PRIMARY KEY, entry TEXT NOT NULL"
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        except (OSError, sqlite3.Error) as error:
            raise CannotJudgeError(
                f"verdicts cannot be kept in {path}: {error}; TRIVET_CACHE names another folder"
            ) from error

    def experience(self, contract: str) -> Any:
        """Return what was learned of a contract's gates, None where nothing was."""
        row = self._connection.execute(
            "SELECT entry FROM experience WHERE key = ?", (contract,)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def learn(self, contract: str, entry: Document) -> None:
        """Keep what an audit learned of a contract's gates; only an order of work hangs on it."""
        text = json.dumps(entry)
        self._connection.execute(
            "INSERT OR REPLACE INTO experience VALUES (?, ?)", (contract, text)
        )

    def get(self, key: str) -> Any:
        """Return what was stored under ``key``, None where nothing was."""
        row = self._connection.execute(
            "SELECT entry FROM verdicts WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, entry: Document) -> None:
        """Store one entry; it survives the end of this process at any moment."""
        text = json.dumps(entry)
        self._connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (key, text))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def content_of(found: "Found", seed: int) -> str:
    """Return a digest of all that a verdict on this contract depends on.

    That is trivet itself, Triton, torch and NumPy, the seed, and the text of every module of the
    user's that the contract's module reaches.
    """
    parts = [_machinery(), str(seed), found.variable]
    if found.source != found.name:
        parts += [digest for _, digest in sorted(_user_files(found))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _machinery() -> str:
    """Return a digest of trivet's own files and the versions of what computes."""
    folder = Path(trivet.__file__).parent
    tops = [folder, *(child.resolve() for child in folder.iterdir() if child.is_dir())]
    files = sorted({file for top in tops for file in top.rglob("*.py")})
    versions = [f"{name} {metadata.version(name)}" for name in ("torch", "triton", "numpy")]
    return _digest(*versions, sys.version, *(_of_file(file) for file in files))


def _user_files(found: "Found") -> Iterator[tuple[str, str]]:
    from trivet.properties._collect import load_file

    if found.source.startswith(f"{found.path}:"):
        start = load_file(found.path)
    else:
        start = sys.modules[found.source.rpartition(":")[0]]
    seen: set[str] = set()
    pending: list[ModuleType] = [start]
    while pending:
        module = pending.pop()
        file = getattr(module, "__file__", None)
        if module.__name__ in seen or not file or _is_foreign(Path(file)):
            continue
        seen.add(module.__name__)
        yield file, _of_file(Path(file))
        pending.extend(_modules_in(module))


def _modules_in(module: ModuleType) -> Iterator[ModuleType]:
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else _home(value)
        if name in sys.modules:
            yield sys.modules[name]


def _home(value: object) -> str:
    inner = getattr(value, "fn", value)
    name = getattr(inner, "__module__", "")
    return name if isinstance(name, str) else ""


def _is_foreign(file: Path) -> bool:
    """Whether a file belongs to an installed package, Python itself or trivet."""
    own = Path(trivet.__file__).parent
    places = [own, *(child.resolve() for child in own.iterdir()), Path(sys.base_prefix) / "lib"]
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    return bool(installed) or any(file.is_relative_to(place) for place in places)


def _of_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
