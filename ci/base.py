"""The base of a comparison: another revision's files beside the work tree, which stays as it is."""

import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.ci.errors import CannotJudgeError

if TYPE_CHECKING:
    from trivet.ci.measuring import Row
    from trivet.properties._collect import Found

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from trivet.ci._base_child import main; main()"
)
_TOLD = 600


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one revision: ``root`` stands for the repository's ``top`` folder."""

    revision: str
    top: Path
    root: Path

    def counterpart(self, path: Path) -> Path:
        """Return where a path of the repository lies in this tree; any other as it is.

        What the revision does not have stays: an environment beside the files, for one.
        """
        if not path.is_relative_to(self.top):
            return path
        other = self.root / path.relative_to(self.top)
        return other if other.exists() else path


@contextmanager
def checkout(revision: str) -> Iterator[Tree]:
    """Give the files of ``revision`` in a folder that is removed afterwards.

    Raises CannotJudgeError outside a repository and for a revision that is none.
    """
    top = Path(_git("rev-parse", "--show-toplevel").decode().strip())
    commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", says=revision)
    content = _git("-C", str(top), "archive", "--format=tar", commit.decode().strip())
    with tempfile.TemporaryDirectory(prefix="trivet-base-") as folder:
        root = Path(folder).resolve()
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(root, filter="data")
        yield Tree(revision, top, root)


def _git(*arguments: str, says: str = "") -> bytes:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True)
    except FileNotFoundError as error:
        raise CannotJudgeError("--against needs git, which is not installed") from error
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip() or f"no such revision: {says}"
        raise CannotJudgeError(f"--against: {told}")
    return done.stdout


def measure_base(found: "Sequence[Found]", tree: Tree, workers: int) -> "list[Row]":
    """Measure the kernels of ``found`` as they were in ``tree``, in a process of their own.

    trivet itself stays the one that runs; a contract that the tree does not have, or that does not
    load there, has no rows. Raises CannotJudgeError where the process ends without an answer.
    """
    asked = {
        "top": str(tree.top),
        "root": str(tree.root),
        "workers": workers,
        "contracts": [
            {"name": f.name, "source": f.source, "variable": f.variable, "path": str(f.path)}
            for f in found
        ],
    }
    path = [os.path.abspath(entry) for entry in sys.path]
    with tempfile.TemporaryDirectory(prefix="trivet-base-") as folder:
        request, answer = Path(folder) / "asked.json", Path(folder) / "rows"
        request.write_text(json.dumps(asked))
        done = subprocess.run(
            [sys.executable, "-c", _START, json.dumps(path), str(request), str(answer)],
            cwd=_folder_of(tree),
            env={**os.environ, "TRIVET_CACHE": os.path.abspath(_cache())},
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode or not answer.exists():
            told = done.stderr.strip()[-_TOLD:]
            raise CannotJudgeError(f"{tree.revision} cannot be measured: {told}")
        rows: list[Row] = pickle.loads(answer.read_bytes())
        return rows


def _cache() -> str:
    return os.environ.get("TRIVET_CACHE") or ".trivet"


def _folder_of(tree: Tree) -> Path:
    """Return where we stand in the other tree, or its top where it has no such folder."""
    here = tree.counterpart(Path.cwd())
    return here if here.is_relative_to(tree.root) else tree.root
