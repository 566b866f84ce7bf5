"""Every kernel of the scan, compiled for two GPUs at production sizes, without a GPU."""

from pathlib import Path

import pytest
from tests.compiling import TARGETS, Compiled, compiled_by, main

PRODUCTION = {"B": 1024, "T": 200, "H": 128, "S": 16}
# The second stage of the sums is compiled with the cell's gradients.
ELSEWHERE = {"_sum_parts_kernel"}
# Loads along a contiguous axis; the others are of less than two elements a thread.
WIDE = {
    "_gates_kernel": ("tl.load(delta",),
    "_gates_backward_kernel": ("tl.load(delta", "tl.load(g_a", "tl.load(g_step"),
}
SCANS = {"_scan_kernel", "_chunk_starts_kernel", "_scan_backward_kernel"}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compiled_by(Path(__file__).stem)


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_compiles_without_spills(compiled, target):
    kernels = compiled[target]
    assert set(kernels) - ELSEWHERE == set(WIDE) | SCANS == set(compiled["defined"])
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


def _launch_everything(B: int, T: int, H: int, S: int) -> None:
    import torch

    from trivet.impl import scan

    gate, entry, state = torch.zeros(B, T, H), torch.zeros(B, T, S), torch.zeros(B, H, S)
    direct = torch.zeros(H)
    scan.scan_gates(gate, direct)
    scan.scan_gates_backward(gate, gate, gate, direct)
    event, weights = gate[:, 0].contiguous(), entry[:, 0].contiguous()
    scan.scan_step(event, event, weights, weights, direct, event, state)
    # Facts of a kernel are those of its last launch: the largest, a window with resets.
    reset = torch.zeros(B, T, dtype=torch.bool)
    window = (gate, gate, entry, entry, direct, gate, state, reset)
    scan.scan_chunked(*window)
    scan.scan_chunked_backward(gate, state, *window)


if __name__ == "__main__":
    main(_launch_everything, PRODUCTION, ["scan/gates.py", "scan/forward.py", "scan/backward.py"])
