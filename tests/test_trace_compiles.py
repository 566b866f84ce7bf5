"""The kernels of the trace, compiled for two GPUs without one: a record is whole before head moves.

A child process compiles; this one reads the order of stores, barriers and the release.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from tests.compiling import ROOT, TARGETS

RING = {"slots": "*i32", "head": "*i64", "step": "*i64"}
IDS = {"capacity": "i32", "kernel_id": "i32", "record_type": "i32"}
KERNELS: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "_log_tick_kernel": ({"step": "*i64"}, {}),
    "_write_kernel": ({**RING, "payload": "*fp32", "R": "i32", **IDS}, {}),
    "_write_horizons_kernel": (
        {**RING, "values": "*fp32", "more": "*fp32", "N": "i32", **IDS, "COLUMNS": "constexpr"},
        {"COLUMNS": 8},
    ),
}
WRITERS = [name for name in KERNELS if "write" in name]


@pytest.fixture(scope="module")
def compiled() -> dict[str, dict[str, dict[str, Any]]]:
    environment = os.environ | {"TRITON_DEFAULT_FP_FUSION": "1"}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-W", "error", "-m", "tests.test_trace_compiles"]
    child = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_every_kernel_of_the_family_is_compiled() -> None:
    source = (ROOT / "impl" / "trace" / "ring.py").read_text()
    assert set(re.findall(r"^def (_\w+_kernel)\(", source, re.MULTILINE)) == set(KERNELS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_spills_and_head_alone_is_atomic(
    compiled: dict[str, dict[str, dict[str, Any]]], target: str, kernel: str
) -> None:
    facts = compiled[target][kernel]
    assert not facts["spills"]
    assert bool(facts["forbidden"]) == (kernel in WRITERS)


@pytest.mark.parametrize("kernel", WRITERS)
def test_on_nvidia_head_moves_behind_a_barrier_and_with_a_release(
    compiled: dict[str, dict[str, dict[str, Any]]], kernel: str
) -> None:
    text = compiled["sm_90"][kernel]["text"]
    order = re.findall(r"(st\.global|bar\.sync|atom\.[\w.]+)", text)
    writes = "".join({"s": "s", "b": "b"}.get(each[0], "a") for each in order)
    assert re.fullmatch(r"(b*s{4}b+ab*)+", writes), writes
    assert {each for each in order if each.startswith("atom")} == {
        "atom.global.sys.release.exch.b64"
    }


@pytest.mark.parametrize("kernel", WRITERS)
def test_on_amd_head_moves_after_the_caches_are_written_back(
    compiled: dict[str, dict[str, dict[str, Any]]], kernel: str
) -> None:
    text = compiled["gfx942"][kernel]["text"]
    order = re.findall(r"(global_store|buffer_wbl2|global_atomic\w*)", text)
    swaps = [place for place, each in enumerate(order) if each.startswith("global_atomic")]
    assert swaps
    assert {order[place] for place in swaps} == {"global_atomic_swap_x2"}
    assert all(order[place - 1] == "buffer_wbl2" for place in swaps)
    assert all(order[place - 2] != "buffer_wbl2" for place in swaps)


def _main() -> None:
    import triton
    from tests.compiling import _facts
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from trivet.impl.trace import ring

    report: dict[str, dict[str, object]] = {}
    for target, machine in TARGETS.items():
        report[target] = {}
        for name, (signature, constants) in KERNELS.items():
            source = ASTSource(fn=getattr(ring, name), signature=signature, constexprs=constants)
            options = {"num_warps": 1}
            artifact = triton.compile(source, target=GPUTarget(*machine), options=options)
            text = artifact.asm["ptx" if target == "sm_90" else "amdgcn"]
            report[target][name] = {**_facts(artifact, target), "text": text}
    print(json.dumps(report))


if __name__ == "__main__":
    _main()
