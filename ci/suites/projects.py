"""The projects whose kernels are run, and how they come to this machine: never into the checkout.

A project's source distribution and what its tests need lie under a folder of their own, which
git ignores, and are fetched from the package index once.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

HOME = Path(".trivet") / "suites"
_CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"


class UnavailableError(Exception):
    """A project cannot be had here; the message is the reason, for people."""


@dataclass(frozen=True)
class Project:
    """A project on the package index.

    ``requirement`` pins its source distribution, where its tests are carried; ``needs`` are what
    the tests and the kernels import besides torch and Triton; ``tests`` are the folders of tests,
    relative to the source. A project without tests of its own is only installed.
    """

    name: str
    requirement: str
    needs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Everything of the project on this machine."""
        kind = "" if self.tests else "kernels-"
        return (HOME / f"{kind}{self.requirement.replace('==', '-')}").resolve()

    @property
    def packages(self) -> Path:
        """What was installed for the project alone."""
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.folder / "installed" / "lib" / version / "site-packages"

    @property
    def source(self) -> Path:
        """The unpacked source distribution."""
        return self.folder / "source"

    def fetch(self) -> None:
        """Fetch, unpack and install whatever is not there yet; raises UnavailableError."""
        if (self.folder / "ready").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._install()
        if self.tests:
            self._unpack()
        (self.folder / "ready").touch()

    def _install(self) -> None:
        wanted = [*self.needs, *(() if self.tests else (self.requirement,))]
        constraints = ["--constraint", str(_CONSTRAINTS)] if _CONSTRAINTS.exists() else []
        prefix = ["--prefix", str(self.folder / "installed")]
        _pip("install", *prefix, *constraints, *wanted)

    def _unpack(self) -> None:
        archives = self.folder / "archive"
        # Nothing is built, but pip asks the source for its metadata.
        source = ["--no-binary", ":all:", "--no-deps", "--dest", str(archives)]
        _pip("download", *source, self.requirement)
        (archive,) = archives.glob("*.tar.gz")
        shutil.rmtree(self.folder / "unpacked", ignore_errors=True)
        with tarfile.open(archive) as file:
            file.extractall(self.folder / "unpacked", filter="data")
        (inner,) = (self.folder / "unpacked").iterdir()
        inner.rename(self.source)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    ended = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")]
        told = lines[-1] if lines else f"pip ended with {ended.returncode}"
        raise UnavailableError(f"{' '.join(arguments[-1:])} cannot be fetched: {told}")


def environment(project: Project) -> dict[str, str]:
    """Return the environment in which the project's kernels and tests are imported."""
    paths = [str(project.packages), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        # Weights and data sets of the hub are no part of a kernel's tests.
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
    }


LIGER = Project(
    name="liger",
    requirement="liger-kernel==0.8.5",
    needs=("transformers==5.24.0", "pytest-timeout==2.4.0"),
    tests=("test",),
)
PROJECTS = {project.name: project for project in (LIGER,)}
# Without tests and what only they need: the kernels alone.
LIGER_KERNELS = Project(name="liger", requirement=LIGER.requirement)
FLA_KERNELS = Project(name="fla", requirement="fla-core==0.6.0", needs=("einops==0.8.1",))
