"""Every kernel of the controllers, compiled for two GPUs at production sizes, without a GPU."""

from pathlib import Path

import pytest
from tests.compiling import TARGETS, Compiled, compiled_by, main

PRODUCTION = {"B": 1024, "K": 200, "H": 128, "N": 5, "M": 28}
# What they launch of other families, which those compile.
ELSEWHERE = {"_change_partials_kernel", "_smoothness_kernel"}
# The one that writes trace records moves the ring's head by an exchange.
TRACED = {"_smoothness_lambda_kernel"}
WIDE = {
    "_tau_change_kernel": ("tl.load(tau", "tl.load(previous"),
    "_heads_lr_scale_kernel": ("tl.load(snap", "tl.load(params"),
    "_reset_channels_kernel": ("tl.load(before",),
    "_channel_activity_kernel": ("tl.load(h",),
    "_inherit_kernel": ("tl.load(bucket_of + other",),
    "_rank_kernel": ("tl.load(bucket_of + other", "tl.load(tau + other"),
}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compiled_by(Path(__file__).stem)


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_compiles_without_spills(compiled, target):
    kernels = compiled[target]
    assert set(kernels) - ELSEWHERE == set(compiled["defined"])
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
def test_no_kernel_uses_atomics_or_matrix_units_but_to_publish_records(compiled, target):
    for name, facts in compiled[target].items():
        assert bool(facts["forbidden"]) == (name in TRACED), (name, facts["forbidden"])


def _launch_everything(B: int, K: int, H: int, N: int, M: int) -> None:
    import torch

    from trivet.impl import controllers
    from trivet.impl._controllers import RateScale, SmoothnessWeight
    from trivet.impl.trace import Ring

    each, average = torch.ones(N), torch.zeros(5, N)
    counts = torch.zeros(N, dtype=torch.int32)
    tau, h, weights = torch.ones(H), torch.zeros(B, H), torch.zeros(N, H)
    order = torch.arange(H, dtype=torch.int32)
    bucket_of = (order * N // H).to(torch.int32)
    table = torch.full((N, M), -1, dtype=torch.int32)
    controllers.wiener_ema(each, each, average, counts)
    controllers.tau_change(tau, tau)
    rates = RateScale(N)
    rates.observe(torch.zeros(1, B, N), torch.zeros(1, B, N))
    rates.observe(torch.zeros(K + 1, B, N), torch.zeros(K + 1, B, N))
    controllers.heads_lr_scale(weights, weights, each)
    smoothness = SmoothnessWeight(range(1, N + 1), 1.5)
    smoothness.weights(rates)
    smoothness.weights(rates, Ring.create(32768))
    counters = torch.zeros(7, N, dtype=torch.int32)
    controllers.watch_buckets(h, table, average, each, counters, 50)
    controllers.channel_activity(h)
    controllers.channel_swap(tau, tau, bucket_of, each, each, 0)
    controllers.reset_channels(weights, weights, weights, bucket_of, bucket_of)
    controllers.inherit_tau(tau, bucket_of, each, each, each, each, 0)


def _files() -> list[str]:
    folder = Path(__file__).resolve().parents[1] / "impl"
    return [str(file.relative_to(folder)) for file in (folder / "controllers").glob("*.py")]


if __name__ == "__main__":
    main(_launch_everything, PRODUCTION, _files())
