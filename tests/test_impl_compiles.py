"""Every kernel of routing and cfc, compiled for two GPUs at production sizes, without a GPU.

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
from pathlib import Path

import pytest

PRODUCTION = {"H": 128, "N": 5, "M": 28, "D": 64, "B": 1024}
ONES = dict.fromkeys(PRODUCTION, 1)
TARGETS = {"sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64)}

# The loads along a contiguous axis that repeat in loops; the rest are gathers, or tiles of less
# than two elements a thread. A text stands on the line on which the load begins, or the next.
VECTORS_AND_WEIGHTS = ("tl.load(vectors", "tl.load(weights")
WIDE = {
    "_step_kernel": VECTORS_AND_WEIGHTS,
    "_step_per_branch_kernel": VECTORS_AND_WEIGHTS,
    "_local_kernel": VECTORS_AND_WEIGHTS,
    "_local_per_branch_kernel": VECTORS_AND_WEIGHTS,
    "_batch_partials_kernel": ("tl.load(vectors",),
    "_sum_parts_kernel": ("tl.load(partials",),
    "_input_gradients_kernel": ("tl.load(weights",),
    "_tau_sort_kernel": ("tl.load(tau + other_channel",),
    "_bucket_assign_kernel": ("tl.load(order",),
    "_channels_in_bucket_kernel": ("tl.load(bucket_of",),
    "_bucket_iqr_kernel": ("tl.load(bucket_of + other_channel", "tl.load(tau + other_channel"),
    "_tau_clamp_kernel": ("tl.load(tau", "tl.load(bucket_of"),
    "_mask_init_kernel": ("tl.load(bucket_of",),
    "_zero_off_bucket_kernel": ("tl.load(bucket_of",),
    "_grad_mask_apply_kernel": ("tl.load(mask", "tl.load(grad"),
}
# N = 5 ranges, and rows of M = 28 slots: neither length is a multiple of 16.
NARROW = {"_iqr_widen_kernel", "_iqr_double_widen_kernel", "_heads_compact_kernel"}


@pytest.fixture(scope="module")
def compiled() -> dict[str, dict[str, dict[str, object]]]:
    command = [sys.executable, "-W", "error", __file__]
    environment = dict(os.environ, TRITON_DEFAULT_FP_FUSION="1")
    environment.pop("TRITON_INTERPRET", None)
    child = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_compiles_without_spills(compiled, target):
    kernels = compiled[target]
    assert set(kernels) == set(WIDE) | NARROW == set(compiled["defined"])
    spilled = {name: facts for name, facts in kernels.items() if facts["spills"]}
    assert not spilled


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", WIDE)
def test_contiguous_loads_are_64_bits_or_wider(compiled, target, kernel):
    loads = compiled[target][kernel]["loads"]
    for text in WIDE[kernel]:
        widths = [width for source, width in loads if text in source]
        assert widths, f"no load from a line with {text!r}: {loads}"
        assert min(widths) >= 64, f"{text!r} loads {widths} bits"


@pytest.mark.parametrize("target", TARGETS)
def test_no_kernel_uses_atomics_or_matrix_units_of_lower_precision(compiled, target):
    for name, facts in compiled[target].items():
        assert not facts["forbidden"], (name, facts["forbidden"])


def _launch_everything(H: int, N: int, M: int, D: int, B: int) -> None:
    import torch

    from trivet.impl import cfc, routing

    tau = torch.linspace(0.01, 1000.0, H)
    order = torch.arange(H, dtype=torch.int32)
    bucket_of = (order * N // H).to(torch.int32)
    table = torch.full((N, M), -1, dtype=torch.int32)
    for k in range(N):
        members = order[bucket_of == k]
        table[k, : len(members)] = members
    ones = torch.ones(N)
    weights = torch.zeros(N, H)
    routing.tau_sort(tau)
    routing.bucket_assign(order, N)
    routing.channels_in_bucket(bucket_of, N, M)
    routing.bucket_iqr(tau, bucket_of, N)
    routing.iqr_widen(ones, ones)
    routing.iqr_double_widen(ones, ones, N - 1)
    routing.tau_clamp(tau, bucket_of, ones, ones)
    routing.heads_compact(weights, table)
    routing.mask_init(bucket_of, N)
    routing.zero_off_bucket(weights, bucket_of)
    routing.grad_mask_apply(weights, weights)
    x, h, dt = torch.zeros(B, D), torch.zeros(B, H), torch.zeros(B)
    cell = (x, h, dt, torch.zeros(H, D), torch.zeros(H, H), torch.zeros(H), tau)
    out = cfc.step(*cell)
    cfc.step_per_branch(*cell, table, out)
    cfc.step_backward(out, *cell)
    cfc.step_per_branch_backward(out, *cell, table)


def _caught_launches(
    sizes: dict[str, int],
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
    _launch_everything(**sizes)
    return launches


def _compile(kernel, named, options, target):
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    pointers = {torch.float32: "*fp32", torch.int32: "*i32"}
    signature, constants, attributes = {}, {}, {}
    for place, (name, parameter) in enumerate(zip(named, kernel.params, strict=True)):
        value = named[name]
        if isinstance(value, torch.Tensor):
            signature[name] = pointers[value.dtype]
            attributes[(place,)] = [["tt.divisibility", 16]]
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


def _defined() -> list[str]:
    folder = Path(__file__).resolve().parents[1] / "impl"
    files = [*(folder / "routing").glob("*.py"), *(folder / "cfc").glob("*.py")]
    files.append(folder / "_sums.py")
    sources = "".join(file.read_text() for file in files)
    return re.findall(r"^def (_\w+_kernel)\(", sources, re.MULTILINE)


def _main() -> None:
    launches = _caught_launches(PRODUCTION)
    report: dict[str, object] = {"defined": _defined()}
    for kernel, named, options in _caught_launches(ONES):
        _compile(kernel, named, options, TARGETS["sm_90"])
    for target, machine in TARGETS.items():
        report[target] = {
            kernel.fn.__name__: _facts(_compile(kernel, named, options, machine), target)
            for kernel, named, options in launches
        }
    print(json.dumps(report))


if __name__ == "__main__":
    _main()
