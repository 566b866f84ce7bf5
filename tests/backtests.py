"""Generated streams and configurations: pairs of a tape and a simulation, many at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trivet.impl import _replay, policy
from trivet.oracles._simulation import simulate
from trivet.oracles._states import state_of
from trivet.properties.policy.machine import USED_HORIZONS, program_of
from trivet.simulator.executors import Simulator

REGIMES = 6


@dataclass
class Pairs:
    """As many tapes as simulations, one of each to a pair, and programs that some of them run."""

    events: dict[str, Any]
    settings: dict[str, Any]
    slots: int
    programs: torch.Tensor

    def kernel_state(self, cuts: list[int]) -> dict[str, Any]:
        """The state after launches that end at the cuts and at the last event."""
        events = _replay.Events(**{n: torch.from_numpy(v) for n, v in self.events.items()})
        tapes, length, horizons = events.p.shape
        given = {name: torch.from_numpy(value) for name, value in self.settings.items()}
        settings = _replay.Settings.of(tapes, **given)
        state = _replay.State.fresh(tapes, horizons, self.slots)

        def launches() -> None:
            start = 0
            for stop in [*sorted(cuts), length]:
                _replay.run(events, settings, state, start=start, stop=stop, programs=self.programs)
                start = stop

        run = Simulator(sanitize=False).run(launches, {})
        assert run.error is None, run.error
        return {name: getattr(state, name).numpy() for name in _replay.SHAPES}

    def plain_state(self) -> dict[str, Any]:
        """The state of the plain simulator."""
        with np.errstate(all="ignore"):
            done = simulate(self.events, self.settings, self.slots, self.programs.numpy())
        return state_of(done, self.events["p"].shape[2], self.slots)


def pairs(seed: int, count: int, events: int, horizons: int, slots: int) -> Pairs:
    """Draw pairs; every number of them is a function of these arguments."""
    random = np.random.default_rng(seed)
    return Pairs(
        _events(random, count, events, horizons),
        _settings(random, count),
        slots,
        _programs(random, horizons),
    )


def _events(random: np.random.Generator, tapes: int, events: int, horizons: int) -> dict[str, Any]:
    steps = random.integers(0, random.choice([2, 4, 1000], (tapes, 1)), (tapes, events))
    middle = 10_000 + np.cumsum(random.integers(-2, 3, (tapes, events)), axis=1)
    least = random.integers(-2, 2, (tapes, 1))
    spread = random.integers(least, least + 4, (tapes, events))
    deep = random.choice([0, 3, 50, 1 << 21], (tapes, 1)) + 1
    found: dict[str, Any] = {"ts": np.cumsum(steps, axis=1), "bid": middle, "ask": middle + spread}
    found |= {name: random.integers(0, deep, (tapes, events)) for name in ("bid_size", "ask_size")}
    found = {n: v.astype(np.int64 if n == "ts" else np.int32) for n, v in found.items()}
    found["p"] = _probabilities(random, tapes, events, horizons)
    return found


def _probabilities(random: np.random.Generator, tapes: int, events: int, horizons: int) -> Any:
    """Trends, disputes, noise, constants, coarse steps and gaps, a regime for each tape."""
    time = np.arange(events)[None, :, None]
    period = random.integers(2, 40, (tapes, 1, horizons))
    noise = random.standard_normal((tapes, events, horizons))
    trend = 0.5 + 0.25 * np.where(time // period % 2 == 0, 1, -1) + 0.05 * noise
    sides = np.where(np.arange(horizons) < horizons / 2, 0.9, 0.3)
    steady = np.broadcast_to(random.choice([0.5, 0.75, 0.0, 1.0], (tapes, 1, 1)), trend.shape)
    kinds = [trend, sides + 0.02 * noise, 0.5 + 0.2 * noise, steady, np.round(trend * 4) / 4]
    kinds.append(np.where(noise > 1, np.nan, trend))
    regime = random.integers(0, REGIMES, (tapes, 1, 1))
    chosen = np.choose(regime, [np.broadcast_to(kind, trend.shape) for kind in kinds])
    return np.clip(chosen, 0, 1).astype(np.float32)


def _settings(random: np.random.Generator, count: int) -> dict[str, Any]:
    def one_of(*values: float) -> Any:
        return random.choice(np.array(values), count)

    floats = {
        "threshold": one_of(0, 0, 0.1, 0.3),
        "cost": np.exp(random.uniform(np.log(1e-3), 2, count)),
        "delta_floor": one_of(0, 1, 2.5),
        "stop_multiple": one_of(np.inf, 1, 3, 10),
        "horizon_floor": one_of(0.1, 0, 1, 0.3),
        "conviction_floor": one_of(0.4, 0, 1),
        "trade_floor": one_of(0.4, 0, 1),
    }
    whole: dict[str, Any] = {
        "tape": np.arange(count, dtype=np.int32),
        "program": random.choice([-1, -1, 0, 1, 2], count).astype(np.int32),
        "max_lots": one_of(1, 2, 5, 100, 1 << 20).astype(np.int32),
        "latency_ns": random.choice([0, 1, 3, 700], count),
        "max_hold_ns": random.choice([4, 20, 900, 1 << 40], count),
    }
    return {name: value.astype(np.float32) for name, value in floats.items()} | whole


def _programs(random: np.random.Generator, horizons: int) -> torch.Tensor:
    drawn = [policy.default_program(horizons)]
    for row in range(2):
        program = program_of(random.integers(0, 1 << 30, 30), row)
        fits = max((each.arg for each in program), default=0) < horizons
        drawn.append(program if fits or horizons >= USED_HORIZONS else drawn[0])
    return policy.encode(drawn, horizons)


def differences(got: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What of two states is not equal to the bit, NaN equal to itself."""
    found = []
    for name, value in wanted.items():
        other = got[name]
        alike = other == value
        if other.dtype.kind == "f":
            alike = (alike & (np.signbit(other) == np.signbit(value))) | (
                np.isnan(other) & np.isnan(value)
            )
        for index in np.argwhere(~alike)[:3]:
            place = tuple(index)
            found.append(f"{name}{[*map(int, place)]} = {other[place]}, wanted {value[place]}")
    return found
