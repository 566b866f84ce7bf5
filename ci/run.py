"""`trivet run`: any Python command, unmodified, with its Triton launches routed to an executor.

The command's processes find a `sitecustomize` of ours first on their path; it waits for Triton and
routes the first launch and all later ones. Faults are appended to a file as they are found, so
they survive however a process ends.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.simulator.binding import Call
    from trivet.simulator.session import Session

_HOOK = Path(__file__).resolve().parent / "_hook"
REPORT = "TRIVET_RUN_REPORT"
_COUNT_WIDTH = 16
_for_the_process = ExitStack()


def run_command(command: list[str], on: str = "simulator") -> int:
    """Run ``command`` with its launches on ``simulator``, ``interpreter`` or ``gpu``.

    Prints each fault found on one line of standard error when the command has ended. Returns its
    exit status, or 1 where that is 0 and there were faults, 2 where it cannot be started.
    """
    program = _program(command)
    if program is None:
        _say(f"{command[0] if command else 'no command'}: not found")
        return 2
    with tempfile.TemporaryDirectory(prefix="trivet-run-") as folder:
        try:
            environment = _environment(on, folder)
        except (ValueError, RuntimeError) as error:
            _say(str(error))
            return 2
        status = _finish(subprocess.Popen([program, *command[1:]], env=environment))
        return _conclude(status, on, Path(folder))


def install(poison: str = "nan") -> None:
    """Route every later launch of this process to the simulator; called at its first launch."""
    from trivet.simulator.executors import Simulator
    from trivet.simulator.host import HostWatch
    from trivet.simulator.launch import route

    session = Simulator(poison=poison).session(HostWatch())
    handler = _Reporting(session, Path(os.environ[REPORT]))
    _for_the_process.enter_context(route(handler))


def stand_in() -> None:
    """Answer for a CUDA device in this process where torch has none; called once it is there."""
    import torch

    if torch.cuda.is_available():
        return
    from trivet.simulator.cuda import cuda_on_cpu

    _for_the_process.enter_context(cuda_on_cpu())


@dataclass
class _Reporting:
    """Launches on the simulator and writes down what it finds; a finding counts once a process."""

    session: "Session"
    folder: Path
    configuration: int = 0
    cold: bool = False
    launches: int = 0
    _seen: set[tuple[str, ...]] = field(default_factory=set)

    def launch(self, call: "Call") -> object:
        """Run one launch and append its new faults to the report."""
        self.launches += 1
        count = self.folder / f"launches-{os.getpid()}"
        count.write_text(str(self.launches).rjust(_COUNT_WIDTH))
        from trivet.simulator.cuda import plain_torch

        try:
            with plain_torch():
                return self.session.launch(call)
        finally:
            self._report()

    def refused(self, error: Exception) -> None:
        """Leave an error of the launch itself to the command."""

    def forgiven(self, error: Exception) -> None:
        """Nothing was kept of the launch."""

    def tuned(self, configurations: int, key: object) -> bool:
        """Run one configuration, as if tuning had been done before."""
        return self.session.tuned(configurations, key)

    def _report(self) -> None:
        found, self.session.faults = self.session.faults, []
        self.session.launches.clear()
        with open(self.folder / f"faults-{os.getpid()}", "a") as file:
            for fault in found:
                key = (fault.kind, fault.kernel, fault.argument, fault.line)
                if key not in self._seen:
                    self._seen.add(key)
                    file.write(json.dumps(asdict(fault)) + "\n")


def _program(command: list[str]) -> str | None:
    """Find the program; python is this one, and its own scripts come first."""
    if not command:
        return None
    if command[0] in ("python", "python3"):
        return sys.executable
    return shutil.which(command[0], path=_search_path())


def _search_path() -> str:
    return os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])


def _environment(on: str, folder: str) -> dict[str, str]:
    environment = {**os.environ, "PATH": _search_path()}
    environment.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    if on == "interpreter":
        environment["TRITON_INTERPRET"] = "1"
    elif on == "gpu":
        from trivet.simulator.gpu import require_gpu

        require_gpu()
    elif on == "simulator":
        entries = [str(_HOOK), *filter(None, [environment.get("PYTHONPATH", "")])]
        environment["PYTHONPATH"] = os.pathsep.join(entries)
        environment[REPORT] = folder
    else:
        raise ValueError(f"--on {on}: expected simulator, interpreter or gpu")
    return environment


def _finish(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the command; an interrupt is its own to handle."""
    while True:
        try:
            status = process.wait()
            return status if status >= 0 else 128 - status
        except KeyboardInterrupt:
            continue


def _conclude(status: int, on: str, folder: Path) -> int:
    if on != "simulator":
        return status
    launches = sum(int(file.read_text() or 0) for file in folder.glob("launches-*"))
    faults = list(dict.fromkeys(_faults(folder)))
    for kind, text in faults:
        _say(f"{kind}: {text}")
    found = f"{len(faults)} fault{'' if len(faults) == 1 else 's'}"
    _say(f"{launches} launch{'' if launches == 1 else 'es'} on the simulator, {found}")
    return 1 if faults and status == 0 else status


def _faults(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.glob("faults-*")):
        for line in file.read_text().splitlines():
            fault: dict[str, Any] = json.loads(line)
            yield fault["kind"], fault["text"]


def _say(text: str) -> None:
    print(f"trivet: {text}", file=sys.stderr, flush=True)
