"""Simulations times events a second: the backtest's kernel beside the plain Python simulator.

    python -m trivet.ci.backtest_speed [--simulations S] [--events E] [--plain P] [--json]

On a GPU where there is one, in wall time; else on the CPU simulator, sanitizers on, in processor
time of one thread. The plain simulator goes over the first P simulations, and both must end in the
same state, bit by bit.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from trivet.impl import _replay
from trivet.impl._backtest.synthetic import synthetic
from trivet.oracles._simulation import simulate
from trivet.oracles._states import state_of
from trivet.simulator.executors import Simulator

_SLOTS = 4
_WARM_EVENTS = 2
_REGIME, _SEED = "trending", 7


def measured(simulations: int, events: int, plain: int) -> dict[str, Any]:
    """Rates of both in simulations times events a second; ValueError where their states differ."""
    on_gpu = torch.cuda.is_available()
    device = "cuda" if on_gpu else "cpu"
    given = {
        "threshold": np.linspace(0, 0.4, simulations, dtype=np.float32),
        "cost": np.linspace(0.1, 2, simulations, dtype=np.float32),
        "max_lots": np.arange(simulations, dtype=np.int32) % 20 + 1,
        "latency_ns": np.arange(simulations, dtype=np.int64) % 5 * 50_000_000,
    }
    settings = _replay.Settings.of(simulations, device, **given)
    tape = synthetic(_REGIME, events, _SEED)
    state, seconds = _replayed(tape.events(device), settings, on_gpu)
    first = {name: getattr(settings, name)[:plain].cpu().numpy() for name in _replay.DEFAULTS}
    start = time.process_time()
    wanted = _plainly(tape.events("cpu"), first)
    plain_seconds = time.process_time() - start
    _same(state, wanted, plain)
    return {
        "device": torch.cuda.get_device_name() if on_gpu else "CPU simulator",
        "simulations": simulations,
        "events": events,
        "kernel": simulations * events / seconds,
        "plain_simulations": plain,
        "plain": plain * events / plain_seconds,
    }


def _replayed(
    events: _replay.Events, settings: _replay.Settings, on_gpu: bool
) -> tuple[_replay.State, float]:
    """The state after all events and the seconds they took, compilation left out."""
    horizons, length = events.p.shape[2], events.p.shape[1]
    count, device = settings.cost.shape[0], settings.cost.device
    fresh = [_replay.State.fresh(count, horizons, _SLOTS, device) for _ in range(2)]
    if on_gpu:
        _replay.run(events, settings, fresh[0], stop=min(_WARM_EVENTS, length))
        torch.cuda.synchronize()
        start = time.perf_counter()
        _replay.run(events, settings, fresh[1])
        torch.cuda.synchronize()
        return fresh[1], time.perf_counter() - start
    taken: list[float] = []

    def launches() -> None:
        for state, stop in zip(fresh, (min(_WARM_EVENTS, length), length), strict=True):
            start = time.process_time()
            _replay.run(events, settings, state, stop=stop)
            taken.append(time.process_time() - start)

    run = Simulator().run(launches, {})
    if run.error is not None:
        raise run.error
    return fresh[1], taken[1]


def _plainly(events: _replay.Events, settings: dict[str, Any]) -> dict[str, Any]:
    tapes = {name: value.numpy() for name, value in events.quotes.items()}
    with np.errstate(all="ignore"):
        done = simulate({**tapes, "p": events.p.numpy()}, settings, _SLOTS)
    return state_of(done, events.p.shape[2], _SLOTS)


def _same(state: _replay.State, wanted: dict[str, Any], plain: int) -> None:
    """ValueError where the first simulations' states are not the same to the bit."""
    for name, (_, shape) in _replay.SHAPES.items():
        got = getattr(state, name).cpu().numpy()
        own = np.take(got, range(plain), axis=shape.index("S"))
        if own.tobytes() != np.asarray(wanted[name], own.dtype).tobytes():
            raise ValueError(f"{name} of the kernel is not that of the plain simulator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both rates, or the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m trivet.ci.backtest_speed")
    parser.add_argument("--simulations", type=int, default=512)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--plain", type=int, default=8, help="simulations of the plain simulator")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    found = measured(options.simulations, options.events, min(options.plain, options.simulations))
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    print(f"{found['simulations']} simulations x {found['events']} events, {found['device']}")
    print(f"kernel               {found['kernel']:12.0f} (simulations x events)/s")
    print(f"plain Python         {found['plain']:12.0f} (simulations x events)/s")
    print(f"kernel over plain    {found['kernel'] / found['plain']:12.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
