"""Any sequence of launches, checkpoints and restarts: the same run, and books that add up."""

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.backtests import Pairs, differences, pairs

from trivet.impl import _replay
from trivet.simulator.executors import Simulator

PAIRS = 12
EVENTS = 30


class Replay(RuleBasedStateMachine):
    """A replay that is cut, saved and restarted at will."""

    @initialize(seed=st.integers(0, 2**32 - 1), horizons=st.integers(1, 6), slots=st.integers(1, 4))
    def begin(self, seed: int, horizons: int, slots: int) -> None:
        self.pairs = pairs(seed, PAIRS, EVENTS, horizons, slots)
        self.events = _replay.Events(
            **{name: torch.from_numpy(value) for name, value in self.pairs.events.items()}
        )
        given = {name: torch.from_numpy(value) for name, value in self.pairs.settings.items()}
        self.settings = _replay.Settings.of(PAIRS, **given)
        self.state = _replay.State.fresh(PAIRS, horizons, slots)
        self.done = 0
        self.saved = (0, [tensor.numpy().tobytes() for tensor in self.state.tensors()])

    @precondition(lambda self: self.done < EVENTS)
    @rule(count=st.integers(1, 12))
    def advance(self, count: int) -> None:
        """One launch over some more events."""
        start, stop = self.done, min(self.done + count, EVENTS)

        def launch() -> None:
            _replay.run(
                self.events,
                self.settings,
                self.state,
                start=start,
                stop=stop,
                programs=self.pairs.programs,
            )

        run = Simulator(sanitize=False).run(launch, {})
        assert run.error is None, run.error
        self.done = stop

    @rule()
    def save(self) -> None:
        """Keep position and state as bytes."""
        self.saved = (self.done, [each.numpy().tobytes() for each in self.state.tensors()])

    @rule()
    def restart(self) -> None:
        """Go back to what was saved, in memory that held something else."""
        self.done, kept = self.saved
        for tensor, content in zip(self.state.tensors(), kept, strict=True):
            tensor.view(torch.uint8).fill_(0xA5)
            flat = np.frombuffer(content, np.uint8).copy()
            tensor.copy_(torch.from_numpy(flat).view(tensor.dtype).view(tensor.shape))

    @invariant()
    def equals_the_plain_simulator(self) -> None:
        """Every integer, float and byte, however the events were cut."""
        if not self.done:
            return
        short = {name: value[:, : self.done] for name, value in self.pairs.events.items()}
        plain = Pairs(short, self.pairs.settings, self.pairs.slots, self.pairs.programs)
        held = {name: getattr(self.state, name).numpy() for name in _replay.SHAPES}
        assert not differences(held, plain.plain_state())

    @invariant()
    def books_add_up(self) -> None:
        """2 cash + position (bid + ask) is 2 realised + position (bid + ask) - 2 basis; flat: 0."""
        if not self.done:
            return
        position, cash, basis, realised = self.state.book[:4].numpy()
        assert (2 * cash == 2 * realised - 2 * basis).all()
        assert (basis[position == 0] == 0).all()


Replay.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestReplay = Replay.TestCase
