"""Synthetic events whose runs have known lengths, every number a function of the seed."""

from collections.abc import Sequence

import numpy as np

from trivet.impl._backtest.tape import Tape

HORIZONS = (30, 100, 300, 1000, 6000)
# How far a lean moves p against the noise's standard deviation, and for how many events it lasts:
# None for a tenth of the horizon (backtest.md, 8).
REGIMES: dict[str, tuple[float, int | None]] = {
    "trending": (3.0, None),
    "reverting": (3.0, None),
    "slow": (1.5, 500),
    "noise": (0.0, None),
}
_NOISE = 0.05
_MIDDLE = 1_000_000
_MEAN_STEP_NS = 100_000_000
_GAP_NS = 60_000_000_000
_DEEPEST = 20


def synthetic(
    regime: str, events: int, seed: int, horizons: Sequence[int] = HORIZONS, tape: int = 0
) -> Tape:
    """Draw events of a regime.

    p_h = 0.5 + 0.05 (amplitude * lean_h + standard normal noise), clipped to [0, 1]. lean_h is +-1
    and turns after HORIZONS_h / 10 events: trending, the price moves with it; reverting, the price
    has moved away and it points back; slow, amplitude 1.5 in place of 3 and 500 events for every
    horizon; noise, amplitude 0. Books are crossed, sizes 0 and time stamps equal now and then.
    """
    random = np.random.default_rng([seed, tape])
    amplitude, hold = REGIMES[regime]
    holds = [hold or max(1, each // 10) for each in horizons]
    start = random.choice([-1, 1], len(holds))
    trend = np.stack([_square(events, each) for each in holds], axis=1) * start
    lean = trend
    if regime == "reverting":
        shifted = [_square(events, each, each // 2) for each in holds]
        lean = -np.stack(shifted, axis=1) * start
    noise = random.standard_normal((events, len(holds)))
    p = np.clip(0.5 + _NOISE * (amplitude * lean + noise), 0, 1)
    moves = random.integers(-1, 2, events)
    if amplitude:
        moves = moves + trend.sum(axis=1)
    return Tape(
        tuple(f"h{each}" for each in horizons),
        **_book(random, _MIDDLE + np.cumsum(moves)),
        p=p.astype(np.float32),
    )


def _square(events: int, hold: int, late: int = 0) -> np.ndarray:
    """1 and -1 in turn, `hold` events each, the first turn `late` events later."""
    return 1 - 2 * ((np.arange(events) - late) // hold % 2)


def _book(random: np.random.Generator, middle: np.ndarray) -> dict[str, np.ndarray]:
    events = len(middle)
    step = random.integers(0, 2 * _MEAN_STEP_NS, events)
    step[random.random(events) < 0.02] = 0
    step[random.random(events) < 0.001] = _GAP_NS
    spread = random.integers(1, 4, events)
    spread[random.random(events) < 0.01] = -1
    found = {"ts": np.cumsum(step), "bid": middle - spread // 2}
    found["ask"] = found["bid"] + spread
    for name in ("bid_size", "ask_size"):
        found[name] = random.integers(0, _DEEPEST + 1, events)
    return {n: v.astype(np.int64 if n == "ts" else np.int32) for n, v in found.items()}
