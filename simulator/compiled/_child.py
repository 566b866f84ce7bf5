"""The compiler's own process: compiles one kernel's IR after the other, and reads the artifacts.

It gets text and gives back plain data, so that a compiler that crashes, prints or patches itself
costs nothing but this process.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivet.simulator._interpreter_child import read, write


@dataclass(frozen=True)
class Task:
    """One compilation: the IR after Triton's frontend, the target, the launch's options.

    ``disassembler`` and ``usage`` are the paths of nvdisasm and cuobjdump; empty for AMD, and where
    nobody asks for the assembly.
    """

    ttir: str
    target: Any
    options: dict[str, object]
    disassembler: str = ""
    usage: str = ""


@dataclass(frozen=True)
class Artifact:
    """What came of it: assembly with source lines, resources, and Triton's later IR.

    ``assembly`` is SASS or AMD's assembly, ``ptx`` empty for AMD; ``error`` says why there is
    nothing, ``crashed`` that the compiler did not say so itself.
    """

    assembly: str = ""
    usage: str = ""
    ptx: str = ""
    ttgir: str = ""
    shared: int = 0
    warps: int = 0
    error: str = ""
    crashed: bool = False


def main() -> None:
    """Answer tasks until the other side closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Triton prints a whole PTX file when its assembler fails
    tasks = sys.stdin.buffer
    with tempfile.TemporaryDirectory(prefix="trivet-compile-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        while True:
            try:
                task = read(tasks)
            except EOFError:
                return
            write(answers, _answer(task, Path(folder)))


def _answer(task: Task, folder: Path) -> Artifact:
    try:
        return compile_text(task, folder)
    except Exception as error:
        return Artifact(error=f"{type(error).__name__}: {_first_lines(str(error))}")


def compile_text(task: Task, folder: Path) -> Artifact:
    """Compile one kernel's IR in ``folder``. Raises whatever Triton raises."""
    import triton

    path = folder / "kernel.ttir"
    path.write_text(task.ttir)
    made = triton.compile(str(path), target=task.target, options=task.options)
    return read_artifact(made, task, folder)


def read_artifact(made: Any, task: Task, folder: Path) -> Artifact:
    """Disassemble what Triton compiled; ``made`` is its CompiledKernel."""
    known = {
        "ttgir": made.asm["ttgir"],
        "shared": int(made.metadata.shared),
        "warps": int(made.metadata.num_warps),
    }
    if task.target.backend != "cuda":
        return Artifact(assembly=made.asm["amdgcn"], **known)
    if not task.disassembler:
        return Artifact(ptx=made.asm["ptx"], **known)
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(made.asm["cubin"])
    return Artifact(
        assembly=_output(task.disassembler, "-c", "-g", "-ndf", cubin),
        usage=_output(task.usage, "-res-usage", cubin),
        ptx=made.asm["ptx"],
        **known,
    )


def _output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {_first_lines(done.stderr)}")
    return done.stdout + done.stderr


def _first_lines(text: str) -> str:
    """Shorten an error to its first lines: an assembler's repeats the whole program."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[:4])[:600]


if __name__ == "__main__":
    # Under its own name, so that what is sent has the class that the other side knows.
    from trivet.simulator.compiled import _child

    _child.main()
