"""Order between programs that synchronise through atomics (locks, last-arriver counters)."""

from __future__ import annotations

import numpy as np


class Ordering:
    """Vector clocks of programs that run one at a time.

    Each release opens a new epoch of its program; an acquire on the same element covers every
    epoch the element's releases knew of. Epochs are numbered over the whole launch, and these
    numbers stand for the programs in the sanitizer's keys.
    """

    def __init__(self, sites: int) -> None:
        self._sites = max(1, sites)
        self._owners: list[int] = []
        self._positions: list[int] = []
        self._current: dict[int, int] = {}
        self._known: dict[int, dict[int, int]] = {}
        self._released: dict[tuple[int, int], dict[int, int]] = {}

    def epoch(self, program: int) -> int:
        """Number of the program's current epoch."""
        if program not in self._current:
            self._known[program] = {}
            self._open(program, 0)
        return self._current[program]

    def owner(self, epoch: int) -> int:
        """Program of an epoch."""
        return self._owners[epoch]

    def _open(self, program: int, position: int) -> None:
        self._current[program] = len(self._owners)
        self._owners.append(program)
        self._positions.append(position)

    def acquire(self, program: int, place: tuple[int, int]) -> None:
        """``program`` reads what the releases on ``place`` published."""
        known = self._known[program]
        for other, position in self._released.get(place, {}).items():
            known[other] = max(known.get(other, -1), position)

    def release(self, program: int, place: tuple[int, int]) -> None:
        """``program`` publishes on ``place`` all it did and all it knows."""
        position = self._positions[self.epoch(program)]
        published = self._released.setdefault(place, {})
        for other, reach in (*self._known[program].items(), (program, position)):
            published[other] = max(published.get(other, -1), reach)
        self._open(program, position + 1)

    def covered(self, others: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Which accesses in ``others`` are ordered before those in ``keys`` (0 is none)."""
        program = self._owners[(int(keys[0]) - 1) // self._sites]
        known = self._known[program]
        epochs, inverse = np.unique((others - 1) // self._sites, return_inverse=True)
        ordered = [self._precedes(int(epoch), program, known) for epoch in epochs]
        return np.array(ordered)[inverse].reshape(others.shape)

    def _precedes(self, epoch: int, program: int, known: dict[int, int]) -> bool:
        if epoch < 0:
            return True
        owner = self._owners[epoch]
        return owner == program or known.get(owner, -1) >= self._positions[epoch]
