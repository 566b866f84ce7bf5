"""The controllers' host side: when they act, what they change, what they refuse."""

import math
import statistics

import numpy as np
import pytest
import torch
from tests.perceptions import simulated

from trivet.impl._controllers import (
    DeadBuckets,
    RateScale,
    SmoothnessWeight,
    TransitionClock,
    transition,
)
from trivet.impl._controllers.clock import cap_of, noise_floor
from trivet.impl._controllers.saved import StateError
from trivet.impl.routing import RoutingRecord, tau_clamp
from trivet.impl.trace import INPUT, OUTPUT, RECORD, STATE, Ring

H, N, M, WINDOW = 9, 3, 5, 2


def noisy(seed: int, count: int = 100) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, count).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_noise_floor_and_cap_are_those_of_the_standard_library(seed: int) -> None:
    changes = noisy(seed)
    values = [float(x) for x in changes]
    median = statistics.median(values)
    spread = statistics.median([abs(x - median) for x in values])
    assert noise_floor(changes) == median
    assert cap_of(changes) == math.ceil(100 * (4 + 16 * spread / median))


def test_the_cap_runs_from_400_for_equal_changes_to_2000() -> None:
    assert cap_of(np.full(100, 0.25, np.float32)) == 400
    assert cap_of(np.zeros(100, np.float32)) == 400
    assert cap_of(np.array([1e-6] * 49 + [1.0] * 51, np.float32)) == 400
    # Half of all non-negative numbers lie within the median of it: no dispersion is beyond 1.
    assert cap_of(np.array([0.0] * 40 + [0.25] * 20 + [1.0] * 40, np.float32)) == 2000


def clock_after(changes: np.ndarray, count: int, smoothed: float) -> TransitionClock:
    """A clock that has seen `count` changes, the first 100 of them given, tau of ones."""
    clock = TransitionClock()
    average = torch.tensor([[smoothed], [0.0], [0.0], [smoothed], [1.0]])
    state = {"previous": torch.ones(H), "average": average, "changes": torch.from_numpy(changes)}
    clock.load({**state, "count": torch.tensor([count, 0])})
    return clock


def test_a_clock_fires_once_when_the_changes_have_settled() -> None:
    def run() -> tuple[list[bool], float]:
        clock = clock_after(noisy(0), 120, 1.0)
        told = [clock.observe(torch.ones(H)) for _ in range(8)]
        return told, clock.noise_floor

    told, floor = simulated(run)
    # Every observation of 0 takes the average down by 0.4 of itself or more.
    longest = math.ceil(math.log(floor / 4) / math.log(0.6))
    assert sum(told) == 1
    assert told.index(True) < longest


def test_before_a_hundred_changes_nothing_fires() -> None:
    def run() -> list[bool]:
        changes = np.full(100, np.nan, np.float32)
        changes[:97] = noisy(1)[:97]
        clock = clock_after(changes, 97, 1e-6)
        return [clock.observe(torch.ones(H)) for _ in range(4)]

    assert simulated(run) == [False, False, True, False]


def test_a_noise_floor_of_zero_leaves_the_cap_alone_to_fire() -> None:
    def run() -> list[bool]:
        clock = clock_after(np.zeros(100, np.float32), 396, 0.0)
        return [clock.observe(torch.ones(H)) for _ in range(5)]

    assert simulated(run) == [False, False, False, True, False]


def test_a_clock_starts_counting_at_the_second_step_and_resumes_bitwise() -> None:
    random = np.random.default_rng(2)
    taus = [torch.from_numpy(random.uniform(1, 2, H).astype(np.float32)) for _ in range(6)]

    def run() -> None:
        whole, cut = TransitionClock(), TransitionClock()
        cut.load(whole.state())
        for step, tau in enumerate(taus):
            assert not whole.observe(tau)
            assert whole.count == step
            fresh = TransitionClock()
            fresh.load(cut.state())
            cut = fresh
            cut.observe(tau)
        for name, tensor in whole.state().items():
            assert tensor.numpy().tobytes() == cut.state()[name].numpy().tobytes(), name
        change = (taus[1].double().log() - taus[0].double().log()).abs().mean()
        # Distances under 1, each rounded a few times to within 2^-25, and their sum.
        assert abs(float(whole.state()["changes"][0]) - float(change)) < 2**-22

    simulated(run)


def parameters(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """tau, and w_skip with warm moments."""
    random = torch.Generator().manual_seed(seed)
    tau = torch.exp(torch.rand(H, generator=random) * 11 - 4.6)
    w, m, v = torch.randn(3, N, H, generator=random)
    return tau, w, m, v.abs()


def test_a_bucket_over_the_capacity_stops_the_transition_before_it_changes_anything() -> None:
    tau, w, m, v = parameters()
    before = [each.clone() for each in (w, m, v)]
    with pytest.raises(ValueError, match=r"bucket 0"):
        simulated(lambda: transition(tau, w, m, v, 2))
    for old, new in zip(before, (w, m, v), strict=True):
        assert torch.equal(old, new)


class Silence:
    """A model in phase 2 whose bucket 1 falls silent after the first step."""

    def __init__(self, horizons: int = N) -> None:
        self.tau, self.w, self.m, self.v = parameters()
        self.weights = (self.w, self.m, self.v)
        self.record = transition(self.tau, *self.weights, M)
        self.dead = DeadBuckets(horizons, window=WINDOW)
        self.random = torch.Generator().manual_seed(1)

    def step(self, silent: int | None) -> RoutingRecord:
        h = 1 + torch.rand(2, H, generator=self.random)
        if silent is not None:
            h[:, self.record.bucket_of == silent] *= 1e-3
        self.tau = tau_clamp(self.tau, self.record.bucket_of, self.record.lo, self.record.hi)
        self.record = self.dead.observe(h, self.record, self.tau, *self.weights)
        return self.record

    def until(self, level: int) -> tuple[RoutingRecord, RoutingRecord]:
        """The records before and after bucket 1 fires this level."""
        for _ in range(20):
            before = self.record
            after = self.step(1)
            if self.dead.report.fired[1] == level:
                return before, after
        raise AssertionError(f"level {level} never fired")


def test_level_one_widens_the_range_of_its_bucket_alone() -> None:
    def run() -> None:
        model = Silence()
        model.step(None)
        before, after = model.until(1)
        assert after.version == before.version + 1
        factors = torch.tensor([1.0, 2.0, 1.0])
        assert torch.equal(after.lo, before.lo / factors)
        assert torch.equal(after.hi, before.hi * factors)
        assert torch.equal(after.table, before.table)
        assert model.dead.report.degraded == (False, False, False)

    simulated(run)


def test_level_two_swaps_and_level_three_inherits_what_the_clamp_leaves() -> None:
    def run() -> None:
        model = Silence()
        model.step(None)
        before, after = model.until(2)
        moved = before.bucket_of != after.bucket_of
        assert moved.any()
        assert torch.equal(before.size, after.size)
        assert not any(each[:, moved].any() for each in model.weights)
        before, after = model.until(3)
        tau = model.tau.clone()
        assert (after.lo[1], after.hi[1]) in [(before.lo[k], before.hi[k]) for k in (0, 2)]
        assert torch.equal(tau_clamp(tau, after.bucket_of, after.lo, after.hi), tau)
        assert model.dead.report.degraded == (False, True, False)
        assert model.until(3)[1].version == after.version + 1
        for _ in range(12):
            model.step(None)
        assert model.dead.report.levels == (0, 0, 0)
        assert model.dead.report.degraded == (False, False, False)

    simulated(run)


def test_a_bucket_without_a_neighbour_is_degraded_and_nothing_is_published() -> None:
    def run() -> None:
        model = Silence()
        tau, w, m, v = model.tau, *(each[:1].contiguous() for each in model.weights)
        model.weights = (w, m, v)
        model.record = transition(tau, w, m, v, H)
        model.dead = DeadBuckets(1, window=WINDOW)
        h = torch.ones(2, H)
        versions, degraded = [], []
        for step in range(16):
            activity = h if step == 0 else 1e-3 * h
            model.record = model.dead.observe(activity, model.record, tau, w, m, v)
            versions.append(model.record.version)
            degraded.append(model.dead.report.degraded[0])
        assert versions[-1] == 2, "level 1 publishes; 2 and 3 have nothing to publish"
        assert degraded[-1]

    simulated(run)


def test_states_of_another_controller_or_size_are_refused_in_one_line() -> None:
    with pytest.raises(StateError, match=r"expected the entries floor, jitter.*got floor$"):
        RateScale(N).load(SmoothnessWeight((30, 100, 300), 1.0).state())
    with pytest.raises(StateError, match=r"floor must be \(3,\) torch.float32, got \(2,\)"):
        SmoothnessWeight((30, 100, 300), 1.0).load({"floor": torch.zeros(2)})
    state = DeadBuckets(N).state()
    widened = {**state, "counters": state["counters"].long()}
    with pytest.raises(StateError, match=r"counters must be"):
        DeadBuckets(N).load(widened)
    with pytest.raises(StateError, match=r"transition clock"):
        TransitionClock().load({"previous": torch.zeros(H)})


@pytest.mark.parametrize("horizons", [(30, 100, 300), tuple(range(30, 240, 30))])
def test_a_traced_weight_has_the_same_bits_and_three_kinds_of_records(
    horizons: tuple[int, ...],
) -> None:
    number = len(horizons)

    def run() -> tuple[torch.Tensor, torch.Tensor, RateScale, Ring]:
        random = torch.Generator().manual_seed(3)
        rates, ring = RateScale(number), Ring.create(16)
        for _ in range(3):
            p = torch.rand(4, 2, number, generator=random)
            rates.observe(p, (p > 0.5).float())
        plain = SmoothnessWeight(horizons, 2.0).weights(rates)
        traced = SmoothnessWeight(horizons, 2.0).weights(rates, ring)
        return plain, traced, rates, ring

    plain, traced, rates, ring = simulated(run)
    assert torch.equal(plain, traced)
    records = np.frombuffer(ring.slots.numpy().tobytes(), RECORD)[: ring.head.item()]
    each = math.ceil(number / 6)
    assert list(records["rt"]) == [INPUT] * each + [STATE] * each + [OUTPUT] * each
    assert set(records["kid"]) == {1}
    assert plain[0] == 0
    assert plain[1:].gt(0).any()
    payload = records["payload"].reshape(3, each, 13)
    values = [np.concatenate([row[:6] for row in kind])[:number] for kind in payload]
    more = [np.concatenate([row[6:12] for row in kind])[:number] for kind in payload]
    assert np.array_equal(values[0], rates.jitter[3].numpy())
    assert np.array_equal(values[1], rates.jitter[0].numpy())
    assert np.array_equal(more[2], plain.numpy())
