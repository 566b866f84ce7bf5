"""The GPUs that kernels are compiled for, what each holds, and the tools that compile for it."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from trivet.simulator._torch import triton

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942", "gfx1100")
LOCKED = ("sm_90", "gfx942")


class CompilerError(RuntimeError):
    """A kernel could not be compiled, through no fault of its own; the message says why."""


class CompilerMissingError(CompilerError):
    """What compiles or disassembles for a target is not installed; the message names it."""


@dataclass(frozen=True, slots=True)
class Device:
    """What one multiprocessor (NVIDIA) or compute unit (AMD) holds.

    ``warps`` and ``blocks`` may be resident at once; ``registers`` are 32-bit ones for each lane
    of a scheduler's share (AMD) or of the whole multiprocessor (NVIDIA), given out by
    ``register_unit``; ``shared`` is in bytes, of which each block loses ``shared_reserved``
    and may have ``most_shared``.
    Sources: CUDA C++ Programming Guide, technical specifications per compute capability; AMD
    CDNA3 and RDNA3 instruction set architecture reference guides.
    """

    target: GPUTarget
    warps: int
    blocks: int
    registers: int
    register_unit: int
    shared: int
    shared_unit: int
    most_shared: int
    shared_reserved: int = 0
    schedulers: int = 4


_KILO = 1024
DEVICES = {
    name: Device(GPUTarget(*about), *numbers)
    for name, about, numbers in (
        ("sm_80", ("cuda", 80, 32), (64, 32, 65536, 256, 164 * _KILO, 128, 163 * _KILO, _KILO)),
        ("sm_90", ("cuda", 90, 32), (64, 32, 65536, 256, 228 * _KILO, 128, 227 * _KILO, _KILO)),
        ("sm_100", ("cuda", 100, 32), (64, 32, 65536, 256, 228 * _KILO, 128, 227 * _KILO, _KILO)),
        ("gfx942", ("hip", "gfx942", 64), (32, 32, 512, 8, 64 * _KILO, 512, 64 * _KILO)),
        ("gfx1100", ("hip", "gfx1100", 32), (64, 64, 1536, 24, 128 * _KILO, 1024, 64 * _KILO)),
    )
}


def device_named(target: str) -> Device:
    """Return the device of a target; raises ValueError naming the known ones."""
    if target not in DEVICES:
        raise ValueError(f"target {target!r}: expected one of {', '.join(DEVICES)}")
    return DEVICES[target]


def is_nvidia(target: str) -> bool:
    """Whether a target's name is that of an NVIDIA GPU."""
    return target.startswith("sm_")


@cache
def toolchain(target: str) -> str:
    """Name what compiles for ``target``: Triton's version and that of the last tool.

    Raises CompilerMissingError where a part of it is not installed.
    """
    try:
        make_backend(device_named(target).target)
    except RuntimeError as error:
        raise CompilerMissingError(f"Triton has no backend for {target}: {error}") from error
    if not is_nvidia(target):
        return f"triton {triton.__version__}, {_amd_revision()}"
    tool = assembler(target)
    for name in ("nvdisasm", "cuobjdump"):
        tool_path(name)
    return f"triton {triton.__version__}, ptxas {_version(tool)}"


def missing(target: str) -> str:
    """Return why nothing can be compiled for ``target`` here; empty where it can."""
    try:
        toolchain(target)
    except CompilerMissingError as error:
        return str(error)
    return ""


def assembler(target: str) -> Path:
    """Return the ptxas that Triton takes for an NVIDIA target."""
    arch = int(device_named(target).target.arch)
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        found = get_ptxas(arch)
        return Path(found.path if hasattr(found, "path") else found[0])
    except ImportError:
        return tool_path("ptxas")
    except RuntimeError as error:
        raise CompilerMissingError(f"no assembler for {target}: {error}") from error


def tool_path(name: str) -> Path:
    """Return the path of one of the NVIDIA tools that Triton brings; CompilerMissingError."""
    try:
        return Path(getattr(triton.knobs.nvidia, name).path)
    except (AttributeError, RuntimeError) as error:
        raise CompilerMissingError(
            f"Triton {triton.__version__} brings no {name} here: {error}"
        ) from error


@cache
def _version(tool: Path) -> str:
    try:
        text = subprocess.run(
            [tool, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CompilerMissingError(f"{tool} does not run: {error}") from error
    found = re.search(r"\bV([\d.]+)", text)
    return found[1] if found else " ".join(text.split()[-1:])


def _amd_revision() -> str:
    """The code generator beside Triton, where it is one of its own, else Triton's LLVM."""
    try:
        from triton.backends.amd.compiler import get_amd_codegen_revision
    except ImportError:
        return "its own LLVM"
    return f"amdgpu {get_amd_codegen_revision()[:12]}"
