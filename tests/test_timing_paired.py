"""Interleaved timing: every call flushed, on copies, in random order, and checked."""

import random

import pytest
import torch
from tests.fakes.devices import FakeDevice

from trivet.ci.timing.paired import SETS, WARM, Version, WrongResultError, interleaved
from trivet.ci.timing.statistics import compared


def inputs(seed):
    return {"x": torch.randn(64, generator=torch.Generator().manual_seed(seed)), "factor": 2.0}


def scaled(x, factor):
    return x * factor


def halved(x, factor):
    return x * (factor / 4)


def timed(*versions, rounds=40, costs=None, given=inputs):
    device = FakeDevice(costs or (lambda launch, call: 1e-5), simulated=False)
    named = [v if isinstance(v, Version) else Version(v.__name__, v) for v in versions]
    return interleaved(named, given, device, rounds=rounds), device


def test_each_version_is_timed_once_a_round_after_a_flush():
    seconds, device = timed(scaled, halved)
    assert [len(side) for side in seconds] == [40, 40]
    assert device.flushed == 80
    assert device.calls == 2 * (SETS + WARM + 40)


def test_the_seconds_are_those_of_the_call():
    seconds, _ = timed(scaled, halved, costs=lambda launch, call: {scaled: 2, halved: 3}[launch])
    assert {round(s, 6) for s in seconds[0]} == {2}
    assert {round(s, 6) for s in seconds[1]} == {3}


def test_the_order_within_a_round_is_random_and_repeatable():
    orders = []

    def noting(launch, call):
        orders[-1].append(launch.__name__)
        return 1e-5

    for _ in range(2):
        orders.append([])
        timed(scaled, halved, costs=noting)
    pairs = list(zip(orders[0][-80::2], orders[0][-79::2], strict=True))
    assert orders[0] == orders[1]
    assert len(set(pairs)) == 2


def test_a_version_that_writes_into_its_arguments_changes_nothing_for_the_next():
    def greedy(x, factor):
        x.mul_(factor)

    seconds, _ = timed(greedy, scaled)
    assert len(seconds[0]) == 40


def test_a_view_keeps_its_strides_and_alignment():
    seen = set()

    def strided(x):
        seen.add((x.stride(), x.storage_offset(), tuple(x.shape)))
        return x + 1

    timed(strided, given=lambda seed: {"x": torch.randn(9, 8)[1:, 2:6]})
    assert seen == {((8, 1), 10, (8, 4))}


def cached(x, factor, held=[]):  # noqa: B006
    held.append(x * factor)
    return held[0]


def skipping(x, factor, calls=[]):  # noqa: B006
    calls.append(1)
    return x * factor if len(calls) < 30 else torch.zeros_like(x)


def growing(x, factor, calls=[]):  # noqa: B006
    calls.append(1)
    return x * factor if len(calls) < 30 else (x * factor, x)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (cached, "cached returned the same for different inputs"),
        (skipping, "skipping returned something else for inputs that it had before"),
        (growing, "growing returned 3 tensors, not 2"),
    ],
)
def test_results_that_were_not_computed_stop_the_timing(version, words):
    with pytest.raises(WrongResultError, match=words):
        timed(version)


def test_a_version_that_may_round_otherwise_is_held_to_its_shapes_alone():
    def jittery(x, factor):
        return x * factor + torch.randn(()) * 1e-7

    timed(Version("jittery", jittery, exact=False))
    with pytest.raises(WrongResultError, match="something else"):
        timed(jittery)


def test_nan_equals_nan():
    def undefined(x, factor):
        return torch.where(x > 0, x, torch.nan)

    timed(undefined)


@pytest.mark.parametrize(("factor", "state"), [(1.0, "SAME"), (1.3, "SLOW")])
def test_a_slower_version_is_found_through_noise(factor, state):
    rng = random.Random(1)

    def costs(launch, call):
        burst = 3 if rng.random() < 0.2 else 1
        return 1e-5 * (factor if launch is halved else 1) * burst * rng.uniform(0.99, 1.01)

    seconds, _ = timed(scaled, halved, rounds=100, costs=costs)
    assert compared(*seconds).state == state
