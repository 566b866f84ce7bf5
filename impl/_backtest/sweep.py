"""Running the variants of a configuration over its events, block by block, range by range.

Whatever the blocks, the ranges and the times it was killed and went on, the result is the same to
the byte: launches hand on their state, and variants know nothing of each other.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from trivet.impl import _replay, diagnosis
from trivet.impl._backtest.checkpoint import Checkpoints, key_of
from trivet.impl._backtest.config import Config
from trivet.impl._backtest.table import table_of, write_table
from trivet.impl._backtest.tape import Tape
from trivet.impl.sampling import Sampler

# A launch goes over this many events at first, then over what takes about so many seconds.
_FIRST_EVENTS = 32
_LAUNCH_SECONDS = 2.0
_GROWTH = 4
Progress = Callable[[int], None]


@dataclass
class Outcome:
    """What a run leaves beside its table: the end-of-run lines, and how much was computed now.

    work counts simulations times events of this call alone, seconds their launches.
    """

    lines: list[str]
    table: pa.Table
    work: int
    seconds: float


@dataclass
class Sweep:
    """One run: a configuration, its events, and where the result goes."""

    config: Config
    tape: Tape
    output: Path
    device: str = "cpu"
    at_once: int = 4096
    save_every: float = 10.0

    def __post_init__(self) -> None:
        programs = self.config.programs(len(self.tape.labels))
        self.programs = None if programs is None else programs.to(self.device)
        self.events = self.tape.events(self.device)
        self.work, self.seconds = 0, 0.0

    @property
    def simulations(self) -> int:
        """How many variants there are."""
        return len(self.config.names)

    @property
    def total(self) -> int:
        """Simulations times events."""
        return self.simulations * len(self.tape.ts)

    def key(self) -> str:
        """What decides the result, and how its blocks are cut."""
        arrays = {f"tape_{n}": array for n, array in enumerate(self.tape.arrays())}
        if self.programs is not None:
            arrays["programs"] = self.programs.cpu().numpy()
        arrays |= {name: np.asarray(given) for name, given in self.config.values.items()}
        own = {"labels": self.tape.labels, "names": self.config.names, "at_once": self.at_once}
        own |= {"slots": self.config.slots, "stride": self.config.stride}
        return key_of(own, arrays)

    def perform(
        self, diagnosed: int = 0, progress: Progress = lambda _: None, restart: bool = False
    ) -> Outcome:
        """Run, or go on where an earlier run was stopped; write the table, remove checkpoints.

        diagnosed chooses the variant of the crt_diag lines; progress is told work as it is done;
        restart forgets what an earlier run did. Raises CheckpointError.
        """
        with Checkpoints(self.output, self.key(), restart) as kept:
            tables: list[pa.Table] = []
            lines: list[str] = []
            samples: list[str] = []
            for block, first in enumerate(range(0, self.simulations, self.at_once)):
                sampler = Sampler(self.config.stride) if self.config.stride and not block else None
                span = slice(first, first + self.at_once)
                settings = self._settings(span)
                state = self._block(kept, block, settings, sampler, progress)
                names = self.config.names[span]
                tables.append(table_of(names, first, settings, state, self.tape.labels))
                if first <= diagnosed < first + len(names):
                    lines = self._lines(state, diagnosed - first)
                if sampler is not None:
                    samples = sampler.lines(list(self.tape.labels))
            table = pa.concat_tables(tables).combine_chunks()
            write_table(table, self.output)
        return Outcome(lines + samples, table, self.work, self.seconds)

    def _settings(self, span: slice) -> _replay.Settings:
        values = {name: given[span] for name, given in self.config.values.items()}
        return _replay.Settings.of(len(values["cost"]), self.device, **values)

    def _block(
        self,
        kept: Checkpoints,
        block: int,
        settings: _replay.Settings,
        sampler: Sampler | None,
        progress: Progress,
    ) -> _replay.State:
        """One block of variants from its checkpoint, or the first event, to the last event."""
        count, length = settings.cost.shape[0], len(self.tape.ts)
        done, state = self._begun(kept, block, count, sampler)
        progress(count * done)
        step, saved = _FIRST_EVENTS, time.monotonic()
        while done < length:
            stop, start = min(done + step, length), time.monotonic()
            self._launch(settings, state, sampler, (done, stop))
            taken = time.monotonic() - start
            self.work, self.seconds = self.work + count * (stop - done), self.seconds + taken
            progress(count * (stop - done))
            wanted = int((stop - done) * _LAUNCH_SECONDS / max(taken, 1e-6))
            step, done = max(_FIRST_EVENTS, min(wanted, _GROWTH * step)), stop
            if done == length or time.monotonic() - saved >= self.save_every:
                kept.save(block, done, state, sampler)
                saved = time.monotonic()
        return state

    def _launch(
        self,
        settings: _replay.Settings,
        state: _replay.State,
        sampler: Sampler | None,
        span: tuple[int, int],
    ) -> None:
        start, stop = span
        _replay.run(
            self.events,
            settings,
            state,
            start=start,
            stop=stop,
            programs=self.programs,
            sampler=sampler,
        )
        if self.device != "cpu":
            torch.cuda.synchronize()

    def _begun(
        self, kept: Checkpoints, block: int, count: int, sampler: Sampler | None
    ) -> tuple[int, _replay.State]:
        found = kept.load(block, self.device)
        if found is None:
            horizons = len(self.tape.labels)
            return 0, _replay.State.fresh(count, horizons, self.config.slots, self.device)
        done, state, sampled = found
        if sampler is not None:
            for name, tensor in sampled.items():
                setattr(sampler, name, tensor)
        return done, state

    def _lines(self, state: _replay.State, simulation: int) -> list[str]:
        tensors = (state.runs, state.run_bins, state.bins, state.outcome_profit)
        return list(diagnosis.lines(*tensors, self.tape.labels, simulation))


def best(table: pa.Table) -> tuple[str, float]:
    """The variant with most net profit, and that profit; the first of equal ones."""
    profit = table["net_profit"].to_numpy()
    place = int(profit.argmax())
    return str(table["name"][place].as_py()), float(profit[place])
