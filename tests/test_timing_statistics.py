"""The verdict on times: rates on synthetic ones, quiet and disturbed, and what is refused."""

import numpy as np
import pytest

from trivet.ci.timing.statistics import LEAST_LIMIT, compared, limit_of, spread_of

PAIRS = 120
RUNS = 100


def times(rng, ratio, *, noise=0.02, bursts=0.1, drift=0.05):
    """Both sides of a run: log-normal noise, slow drift, and bursts that disturb single calls."""
    wander = 1 + drift * np.sin(np.linspace(0, 3, PAIRS) + rng.uniform(0, 6))
    sides = []
    for factor in (1.0, ratio):
        side = 1e-4 * factor * wander * rng.lognormal(0, noise, PAIRS)
        hit = rng.random(PAIRS) < bursts
        sides.append(np.where(hit, side * rng.uniform(1.2, 4, PAIRS), side))
    return sides


def rates(ratio, **model):
    rng = np.random.default_rng(7)
    states = [compared(*times(rng, ratio, **model)).state for _ in range(RUNS)]
    return {state: states.count(state) / RUNS for state in ("SAME", "SLOW", "AMBIGUOUS")}


def test_equal_kernels_are_never_called_slow_and_mostly_the_same():
    found = rates(1.0)
    assert found["SLOW"] == 0
    assert found["SAME"] >= 0.9


def test_equal_kernels_on_a_disturbed_machine_are_hardly_ever_called_slow():
    assert rates(1.0, noise=0.06, bursts=0.4, drift=0.3)["SLOW"] <= 0.01


def test_a_tenth_is_seen_nearly_always():
    assert rates(1.10)["SLOW"] >= 0.95


def test_a_twentieth_is_seen_mostly_and_never_called_the_same():
    found = rates(1.05)
    assert found["SLOW"] >= 0.6
    assert found["SAME"] == 0


def test_half_of_the_limit_is_no_alarm():
    assert rates(1.015)["SLOW"] <= 0.01


def test_a_faster_candidate_is_the_same_and_its_ratio_is_there():
    found = compared(*times(np.random.default_rng(1), 0.8))
    assert found.state == "SAME"
    assert found.low < 0.8 < found.high


def test_a_burst_in_one_window_alone_is_not_slow():
    rng = np.random.default_rng(3)
    base, candidate = times(rng, 1.0, noise=0.001, bursts=0, drift=0)
    candidate[:40] *= 1.5
    assert compared(base, candidate).state != "SLOW"


def test_the_limit_follows_the_runner():
    base, candidate = times(np.random.default_rng(2), 1.05)
    assert compared(base, candidate, limit=1.03).state == "SLOW"
    assert compared(base, candidate, limit=1.20).state == "SAME"


def test_the_spread_is_that_of_the_worst_comparison():
    rng = np.random.default_rng(4)
    found = [compared(*times(rng, ratio)) for ratio in (1.0, 0.9)]
    spread = spread_of(found)
    assert spread == 1 - found[1].ratio
    assert limit_of(spread) == 1 + 2 * spread
    assert limit_of(0.001) == LEAST_LIMIT


@pytest.mark.parametrize(
    ("base", "candidate", "words"),
    [
        ([1.0] * 24, [1.0] * 25, "24 times of the base and 25 of the candidate"),
        ([1.0] * 23, [1.0] * 23, "23 pairs of times: at least 24"),
        ([1.0] * 24, [0.0] * 24, "not positive and finite"),
        ([float("nan")] * 24, [1.0] * 24, "not positive and finite"),
    ],
)
def test_times_that_say_nothing_are_refused(base, candidate, words):
    with pytest.raises(ValueError, match=words):
        compared(base, candidate)


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="spread is not known"):
        spread_of([])
