"""What the synthetic regimes must show in a whole run: the smoke gates on mean run lengths."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from trivet.impl import _replay, diagnosis
from trivet.impl._backtest.synthetic import synthetic
from trivet.impl._backtest.tape import Tape
from trivet.simulator.executors import Simulator

LEAST = 10.0
NOISY = 3.0
# The simulator takes a launch of some thousand events for one that may never end.
A_LAUNCH = 500


def one_stream(tape: Tape) -> Tape:
    """The mistake to be seen: every horizon is given the first one's stream, labels differ."""
    return replace(tape, p=np.ascontiguousarray(np.repeat(tape.p[:, :1], 5, axis=1)))


def mean_lengths(tapes: list[Tape]) -> tuple[np.ndarray, np.ndarray]:
    """Mean run lengths (N, T), raw and smoothed, of one whole run over each tape."""
    each = [tape.events("cpu") for tape in tapes]
    names = (*each[0].quotes, "p")
    events = _replay.Events(*(torch.cat([getattr(e, name) for e in each]) for name in names))
    state = _replay.State.fresh(len(tapes), 5, 4)
    settings = _replay.Settings.of(len(tapes), tape=list(range(len(tapes))))

    def launches() -> None:
        for start in range(0, len(tapes[0].ts), A_LAUNCH):
            stop = min(start + A_LAUNCH, len(tapes[0].ts))
            _replay.run(events, settings, state, start=start, stop=stop)

    run = Simulator(sanitize=False).run(launches, {})
    assert run.error is None, run.error
    raw, smoothed = diagnosis.read_out(state.runs, state.run_bins)
    return raw.mean_length, smoothed.mean_length


def _judge(events: int, seed: int) -> None:
    trending = synthetic("trending", events, seed)
    tapes = [trending, one_stream(trending)]
    tapes += [synthetic(name, events, seed) for name in ("slow", "noise")]
    raw, smoothed = mean_lengths(tapes)
    across = raw[-1] / raw[0]
    assert across[0] >= LEAST
    assert across[1] == 1
    # Every horizon of these regimes is the same experiment.
    ratio = smoothed.mean(axis=0) / raw.mean(axis=0)
    assert ratio[2] >= LEAST
    assert ratio[3] < NOISY
    # Neither gate is passed by what is not its regime.
    assert ratio[0] < NOISY
    assert across[3] < LEAST


def test_regimes_show_their_run_lengths() -> None:
    _judge(450, 3)


@pytest.mark.night
def test_longer_regimes_show_their_run_lengths() -> None:
    _judge(6000, 11)
