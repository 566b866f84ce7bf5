"""Every kernel of routing and cfc, compiled for two GPUs at production sizes, without a GPU."""

from pathlib import Path

import pytest
from tests.compiling import TARGETS, Compiled, compiled_by, main

PRODUCTION = {"H": 128, "N": 5, "M": 28, "D": 64, "B": 1024}

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
def compiled() -> Compiled:
    return compiled_by(Path(__file__).stem)


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


def _files() -> list[str]:
    folder = Path(__file__).resolve().parents[1] / "impl"
    files = [*(folder / "routing").glob("*.py"), *(folder / "cfc").glob("*.py")]
    return [str(file.relative_to(folder)) for file in files] + ["_sums.py"]


if __name__ == "__main__":
    main(_launch_everything, PRODUCTION, _files())
