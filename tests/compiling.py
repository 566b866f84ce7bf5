"""Compiling what host functions launch, for two GPUs, without a GPU: in a process of its own.

A child process runs the host functions on CPU tensors with the launches caught, compiles each
as it would have been launched, and reads the artifact. It also compiles what is launched when
every size is 1, which Triton makes constants of.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

TARGETS = {"sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64)}
Compiled = dict[str, dict[str, dict[str, object]]]
ROOT = Path(__file__).resolve().parents[1]


def compiled_by(module: str) -> Compiled:
    """What this module of tests, run as a process of its own, prints by `main`."""
    command = [sys.executable, "-W", "error", "-m", f"tests.{module}"]
    environment = dict(os.environ, TRITON_DEFAULT_FP_FUSION="1")
    environment.pop("TRITON_INTERPRET", None)
    child = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def main(launch: Callable[..., None], sizes: dict[str, int], files: Sequence[str]) -> None:
    """Print the facts of every kernel that `launch(**sizes)` launches, and those defined.

    files are relative to impl/.
    """
    launches = _caught_launches(launch, sizes)
    report: dict[str, object] = {"defined": _defined(files)}
    for kernel, named, options in _caught_launches(launch, dict.fromkeys(sizes, 1)):
        _compile(kernel, named, options, TARGETS["sm_90"])
    for target, machine in TARGETS.items():
        report[target] = {
            kernel.fn.__name__: _facts(_compile(kernel, named, options, machine), target)
            for kernel, named, options in launches
        }
    print(json.dumps(report))


def _defined(files: Sequence[str]) -> list[str]:
    sources = "".join((ROOT / "impl" / file).read_text() for file in files)
    return re.findall(r"^def (_\w+_kernel)\(", sources, re.MULTILINE)


def _caught_launches(
    launch: Callable[..., None], sizes: dict[str, int]
) -> list[tuple[object, dict[str, object], dict[str, object]]]:
    """Run every host function; return (kernel, arguments by name, options) for each launch."""
    from triton.runtime.jit import JITFunction

    launches = []

    def catch(kernel, *arguments, grid, warmup, **options):
        named = dict(zip(kernel.arg_names, arguments, strict=False))
        named |= {key: options.pop(key) for key in list(options) if key in kernel.arg_names}
        assert list(named) == kernel.arg_names
        launches.append((kernel, named, options))

    JITFunction.run = catch
    launch(**sizes)
    return launches


def _compile(kernel, named, options, target):
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    pointers = {
        torch.float32: "*fp32", torch.int32: "*i32", torch.int64: "*i64", torch.bool: "*i1"
    }  # fmt: skip
    signature, constants, attributes = {}, {}, {}
    for place, (name, parameter) in enumerate(zip(named, kernel.params, strict=True)):
        value = named[name]
        if value is None:
            signature[name], constants[name] = "constexpr", None
        elif isinstance(value, torch.Tensor):
            signature[name] = pointers[value.dtype]
            attributes[(place,)] = [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[name] = "fp32"
        elif parameter.is_constexpr or (value == 1 and not parameter.do_not_specialize):
            signature[name], constants[name] = "constexpr", value
        else:
            signature[name] = "i32"
            if value % 16 == 0 and not parameter.do_not_specialize:
                attributes[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=GPUTarget(*target), options=options)


def _facts(artifact, target: str) -> dict[str, object]:
    if target == "gfx942":
        return _amd_facts(artifact.asm["amdgcn"])
    return _nvidia_facts(artifact.asm["ptx"], artifact.asm["cubin"])


def _nvidia_facts(ptx: str, cubin: bytes) -> dict[str, object]:
    import triton

    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tools / "cuobjdump", "-sass", "-res-usage", file.name]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
    text = shown.stdout + shown.stderr
    usage = re.search(r"REG:(\d+) STACK:\d+ SHARED:(\d+) LOCAL:(\d+)", text)
    assert usage
    registers, shared, local = map(int, usage.groups())
    spilling = len(re.findall(r"\b(?:LDL|STL)\b", text))
    return {
        "registers": registers,
        "shared": shared,
        "spills": local + spilling,
        "loads": _loads(ptx, r"ld\.global[\w.:]*?(?:\.v(\d))?\.[bfus](\d+)"),
        "forbidden": re.findall(r"\b(?:ATOM\w*|REDG?(?=[. ])|HG?MMA)\b", text),
    }


def _amd_facts(text: str) -> dict[str, object]:
    fields = {
        name: int(value)
        for name, value in re.findall(r"\.(\w+(?:count|segment_fixed_size)):\s+(\d+)", text)
    }
    spills = ("vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size")
    return {
        "registers": fields["vgpr_count"],
        "shared": fields["group_segment_fixed_size"],
        "spills": sum(fields[name] for name in spills),
        "loads": _loads(text, r"(?:global|buffer|flat)_load_dword(?:x(\d))?"),
        "forbidden": re.findall(r"\w*atomic\w*|\w*mfma\w*", text),
    }


def _loads(text: str, pattern: str) -> list[tuple[str, int]]:
    """Return (source, bits) of each global load: its line by the directives, and the next one."""
    files = {
        number: Path(folder) / name
        for number, folder, name in re.findall(r'\.file\s+(\d+) "([^"]*)"(?: "([^"]*)")?', text)
    }
    loads, line, in_assembly = [], "", False
    for row in text.splitlines():
        in_assembly = (in_assembly or "begin inline asm" in row) and "end inline asm" not in row
        place = re.match(r"\s*\.loc\s+(\d+) (\d+)", row)
        # Inside inline assembly the directives count the assembly's own lines.
        if place and place[1] in files and not in_assembly:
            line = files[place[1]].read_text().splitlines()[int(place[2]) - 1 : int(place[2]) + 1]
        load = re.search(pattern, row)
        if load:
            numbers = [int(group) for group in load.groups() if group]
            scale = 32 if "dword" in load[0] else 1
            source = " ".join(map(str.strip, line)).replace("( ", "(")
            loads.append((source, math.prod(numbers) * scale))
    return loads
