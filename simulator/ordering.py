"""Order between programs that synchronise through atomics (locks, last-arriver counters)."""

from __future__ import annotations

import numpy as np

_Agent = tuple[int, bool]


class Ordering:
    """Vector clocks of programs that run one at a time.

    A program is two agents: its tile accesses, made by all of its threads, and its scalar ones,
    made by the thread that also does the scalar atomics. A release publishes what the scalar
    agent did so far, and what the tile agent did before the program's last barrier (everything
    when a program is a single warp). An acquire on the same element covers what its releases
    knew of. Each publication opens a new epoch; epochs, numbered over the whole launch, stand for
    the programs in the sanitizer's keys.
    """

    def __init__(self, sites: int, warps: int) -> None:
        self._sites = max(1, sites)
        self._single = warps == 1
        self._owners: list[_Agent] = []
        self._positions: list[int] = []
        self._current: dict[_Agent, int] = {}
        self._known: dict[int, dict[_Agent, int]] = {}
        self._released: dict[tuple[int, int], dict[_Agent, int]] = {}

    def epoch(self, program: int, tile: bool) -> int:
        """Number of the current epoch of the program's tile or scalar accesses."""
        agent = (program, tile)
        if agent not in self._current:
            self._known.setdefault(program, {})
            self._open(agent, 0)
        return self._current[agent]

    def owner(self, epoch: int) -> int:
        """Program of an epoch."""
        return self._owners[epoch][0]

    def _open(self, agent: _Agent, position: int) -> None:
        self._current[agent] = len(self._owners)
        self._owners.append(agent)
        self._positions.append(position)

    def barrier(self, program: int) -> None:
        """All threads of ``program`` wait for each other."""
        self._open((program, True), self._positions[self.epoch(program, True)] + 1)

    def acquire(self, program: int, place: tuple[int, int]) -> None:
        """``program`` reads what the releases on ``place`` published."""
        known = self._known[program]
        for other, position in self._released.get(place, {}).items():
            known[other] = max(known.get(other, -1), position)

    def release(self, program: int, place: tuple[int, int]) -> None:
        """``program`` publishes on ``place`` what it did and what it knows."""
        if self._single:
            self.barrier(program)
        done = self._positions[self.epoch(program, True)] - 1
        said = self._positions[self.epoch(program, False)]
        own = {(program, True): done, (program, False): said}
        published = self._released.setdefault(place, {})
        for agent, reach in {**self._known[program], **own}.items():
            published[agent] = max(published.get(agent, -1), reach)
        self._open((program, False), said + 1)

    def covered(self, others: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Which accesses in ``others`` are ordered before those in ``keys`` (0 is none)."""
        program = self.owner((int(keys[0]) - 1) // self._sites)
        known = self._known[program]
        epochs, inverse = np.unique((others - 1) // self._sites, return_inverse=True)
        ordered = [self._precedes(int(epoch), program, known) for epoch in epochs]
        return np.array(ordered)[inverse].reshape(others.shape)

    def _precedes(self, epoch: int, program: int, known: dict[_Agent, int]) -> bool:
        if epoch < 0:
            return True
        agent = self._owners[epoch]
        return agent[0] == program or known.get(agent, -1) >= self._positions[epoch]
