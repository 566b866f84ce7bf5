"""Where mutants run: a seat belt against accidents of edited code, no wall against malice."""

import os
import resource
import sys
import tempfile
from pathlib import Path


def enter(root: Path) -> None:
    """Give this process an empty folder as cwd, HOME and cache, its own group, no core, no output.

    Whatever it starts can be ended with it; what it writes below ``root`` goes with that folder.
    """
    folder = own_folder(root)
    os.chdir(folder)
    os.environ.update(HOME=folder, TMPDIR=folder, TRIVET_CACHE=os.path.join(folder, "cache"))
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    os.close(silent)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def own_folder(root: Path) -> str:
    """Return a new empty folder below ``root``."""
    return tempfile.mkdtemp(dir=root)
