"""When training goes over to buckets: the time constants have settled, or a cap of steps."""

import math
from collections.abc import Mapping

import numpy as np
import torch

from trivet.impl._controllers.saved import restored
from trivet.impl.controllers import tau_change, wiener_ema

# How many changes the noise floor is taken from.
SAMPLES = 100
LONGEST = 4000
TINY = 1e-30
GAIN_FLOOR = 0.4


def noise_floor(changes: np.ndarray) -> float:
    """Median of the first changes."""
    return float(np.median(changes.astype(np.float64)))


def cap_of(changes: np.ndarray) -> int:
    """After how many changes the transition happens in any case, from their dispersion.

    min(4000, ceil(100 (4 + 16 MAD / max(median, 1e-30)))), MAD the median distance from the median.
    """
    values = changes.astype(np.float64)
    median = np.median(values)
    dispersion = float(np.median(np.abs(values - median)) / max(median, TINY))
    return math.ceil(min(LONGEST, 100 * (4 + 16 * dispersion)))


class TransitionClock:
    """Controller A: `observe(tau)` after each step of phase 1 is true once, when it is time."""

    def __init__(self) -> None:
        self._previous: torch.Tensor | None = None
        self._average = torch.zeros(5, 1)
        self._changes = np.full(SAMPLES, np.nan, np.float32)
        self._count, self._fired = 0, False

    @property
    def count(self) -> int:
        """Changes observed."""
        return self._count

    @property
    def noise_floor(self) -> float:
        """Median of the first 100 changes; NaN before they are complete."""
        return noise_floor(self._changes) if self._count >= SAMPLES else math.nan

    def observe(self, tau: torch.Tensor) -> bool:
        """Look at tau (H,) float32 after a step; returns whether to transition now.

        The smoothed change is under a quarter of the noise floor, or the cap is reached. Raises
        ValueError for a channel that is not finite and positive.
        """
        previous, self._previous = self._previous, tau.detach().clone()
        if previous is None or self._fired:
            return False
        change = tau_change(self._previous, previous)
        rejected = torch.zeros(1, dtype=torch.int32, device=tau.device)
        self._average = self._average.to(tau.device)
        wiener_ema(change, change.new_full((1,), GAIN_FLOOR), self._average, rejected)
        if self._count < SAMPLES:
            self._changes[self._count] = change.item()
        self._count += 1
        self._fired = self._count >= SAMPLES and self._is_time()
        return self._fired

    def _is_time(self) -> bool:
        settled = self._average[0, 0].item() < self.noise_floor / 4
        return settled or self._count >= cap_of(self._changes)

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that later answers depend on, as copies; `previous` is empty at first."""
        previous = torch.empty(0) if self._previous is None else self._previous.clone()
        return {
            "previous": previous,
            "average": self._average.clone(),
            "changes": torch.from_numpy(self._changes.copy()),
            "count": torch.tensor([self._count, int(self._fired)]),
        }

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from a state; raises StateError where it is no clock's."""
        own = self.state()
        if "previous" in state and state["previous"].ndim == 1:
            own["previous"] = own["previous"].new_empty(state["previous"].shape)
        found = restored(own, state, "the transition clock")
        self._previous = found["previous"] if len(found["previous"]) else None
        self._average = found["average"]
        self._changes = found["changes"].cpu().numpy()
        self._count, fired = map(int, found["count"])
        self._fired = bool(fired)
