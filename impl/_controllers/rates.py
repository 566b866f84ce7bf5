"""What is kept of each horizon's smoothness: the rate of its skip weights, the weight of its loss.

Both are decided in step t from the averages as of the end of step t-1.
"""

from collections.abc import Mapping, Sequence

import torch

from trivet.impl._controllers.saved import restored
from trivet.impl.controllers import label_deviation, rate_scale, smoothness_lambda
from trivet.impl.losses import output_smoothness
from trivet.impl.trace import Ring


class RateScale:
    """Controller C: the rate (N,) by which each horizon's step of the skip weights is shortened."""

    def __init__(self, horizons: int, device: torch.device | str = "cpu") -> None:
        self._state = {
            "jitter": torch.zeros(5, horizons, device=device),
            "target": torch.zeros(5, horizons, device=device),
            "floor": torch.zeros(horizons, device=device),
            "rejected": torch.zeros(horizons, dtype=torch.int32, device=device),
            "rate": torch.ones(horizons, device=device),
        }

    @property
    def multiplier(self) -> torch.Tensor:
        """The rates (N,) float32 of this step, in (0, 1]; 1 before jitter and labels were seen."""
        return self._state["rate"]

    @property
    def jitter(self) -> torch.Tensor:
        """The averages (5, N) of the jitter; their means are the J of the smoothness weight."""
        return self._state["jitter"]

    @property
    def target(self) -> torch.Tensor:
        """The averages (5, N) of the labels' deviation."""
        return self._state["target"]

    def observe(self, p: torch.Tensor, labels: torch.Tensor) -> None:
        """Take in the window of this step, at its end.

        p (K, B, N) float32 probabilities, labels (K, B, N) float32 in [0, 1] or NaN. A window of
        one event has no jitter, a horizon without labels no deviation: neither is updated then.
        Raises TypeError or ValueError naming the argument.
        """
        mine = self._state
        _, mean_square = output_smoothness(p, torch.zeros_like(mine["floor"]))
        has_steps = p.shape[0] > 1 and p.shape[1] > 0
        mine["rate"] = rate_scale(
            mean_square if has_steps else None,
            label_deviation(labels),
            mine["jitter"],
            mine["target"],
            mine["floor"],
            mine["rejected"],
        )

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that later answers depend on, as copies."""
        return {name: tensor.clone() for name, tensor in self._state.items()}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from a state; raises StateError where it is not this controller's."""
        self._state = restored(self._state, state, "the rate scale")


class SmoothnessWeight:
    """The weight (N,) of each horizon's smoothness loss, horizons in events, shortest first."""

    def __init__(
        self, horizons: Sequence[int], base: float, device: torch.device | str = "cpu"
    ) -> None:
        self._horizons = torch.tensor(list(horizons), dtype=torch.int32, device=device)
        self._base = base
        self._floor = torch.zeros(len(horizons), device=device)

    def weights(self, rates: RateScale, ring: Ring | None = None) -> torch.Tensor:
        """Return lambda (N,) of this step from the averages so far; traced where there is a ring.

        Raises TypeError or ValueError naming the argument.
        """
        return smoothness_lambda(rates.jitter, self._horizons, self._floor, self._base, ring)

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that later answers depend on, as copies."""
        return {"floor": self._floor.clone()}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from a state; raises StateError where it is not this controller's."""
        self._floor = restored({"floor": self._floor}, state, "the smoothness weight")["floor"]
