"""Buckets that fell silent, and three levels of recovery."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trivet.impl._controllers.saved import restored
from trivet.impl.controllers import (
    inherit_tau,
    swap_bucket,
    watch_buckets,
)
from trivet.impl.controllers.buckets import COUNTERS
from trivet.impl.routing import RoutingRecord, iqr_double_widen

WINDOW = 50
LEVEL = COUNTERS.index("level")


@dataclass(frozen=True)
class Recovery:
    """What one step did, per bucket: the level that fired (0: none), its level, if it is degraded.

    `activity` is the mean of |h|.
    """

    fired: tuple[int, ...]
    levels: tuple[int, ...]
    degraded: tuple[bool, ...]
    activity: torch.Tensor


class DeadBuckets:
    """Controller D, over N buckets; `window` dead steps in a row make a bucket's level rise."""

    def __init__(
        self, horizons: int, device: torch.device | str = "cpu", window: int = WINDOW
    ) -> None:
        self._window = window
        self._state = {
            "average": torch.zeros(5, horizons, device=device),
            "floor": torch.zeros(horizons, device=device),
            "counters": torch.zeros(len(COUNTERS), horizons, dtype=torch.int32, device=device),
            "degraded": torch.zeros(horizons, dtype=torch.int32, device=device),
        }
        self.report: Recovery | None = None

    def observe(
        self,
        h: torch.Tensor,
        record: RoutingRecord,
        tau: torch.Tensor,
        w_skip: torch.Tensor,
        exp_avg: torch.Tensor,
        exp_avg_sq: torch.Tensor,
    ) -> RoutingRecord:
        """Look at the states h (B, H) of the window's last event, at the end of a phase-2 step.

        Returns the record to be published: this one, or the next version where a bucket fired.
        Level 1 widens the bucket's range; level 2 swaps channels, whose entries of w_skip and its
        moments (N, H) are zeroed in place; level 3 writes tau (H,) in place. `report` says what
        was done. Weights must be packed anew from the record that is returned. Raises TypeError
        or ValueError naming the argument.
        """
        record.validate(channels=h.shape[1], device=h.device)
        mine = self._state
        activity, levels_fired = watch_buckets(
            h, record, mine["average"], mine["floor"], mine["counters"], self._window
        )
        fired = levels_fired.tolist()
        mine["degraded"][mine["counters"][LEVEL] == 0] = 0
        for bucket, level in enumerate(fired):
            if level == 1:
                record = self._widened(record, bucket)
            if level == 2:
                record = self._swapped(record, bucket, h, tau, (w_skip, exp_avg, exp_avg_sq))
            if level == 3:
                record = self._inherited(record, bucket, tau)
        levels, degraded = mine["counters"][LEVEL].tolist(), mine["degraded"].bool().tolist()
        self.report = Recovery(tuple(fired), tuple(levels), tuple(degraded), activity)
        return record

    def _widened(self, record: RoutingRecord, bucket: int) -> RoutingRecord:
        lo, hi = iqr_double_widen(record.lo, record.hi, bucket)
        return record.replace(lo=lo, hi=hi)

    def _swapped(
        self,
        record: RoutingRecord,
        bucket: int,
        h: torch.Tensor,
        tau: torch.Tensor,
        weights: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    ) -> RoutingRecord:
        """Level 2; without a neighbour the bucket is degraded and nothing else happens."""
        mean, floor = self._state["average"][0], self._state["floor"]
        swap = swap_bucket(
            h, tau, record.bucket_of, *weights, mean, floor, bucket, record.table.shape[1]
        )
        if swap.neighbour.item() < 0:
            self._state["degraded"][bucket] = 1
            return record
        return record.replace(bucket_of=swap.bucket_of, table=swap.table)

    def _inherited(self, record: RoutingRecord, bucket: int, tau: torch.Tensor) -> RoutingRecord:
        """Level 3: the neighbour's time constants and range; degraded with or without one."""
        mean, floor = self._state["average"][0], self._state["floor"]
        self._state["degraded"][bucket] = 1
        new, lo, hi, neighbour = inherit_tau(
            tau, record.bucket_of, record.lo, record.hi, mean, floor, bucket
        )
        if neighbour.item() < 0:
            return record
        tau.copy_(new)
        return record.replace(lo=lo, hi=hi)

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that later answers depend on, as copies."""
        return {name: tensor.clone() for name, tensor in self._state.items()}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from a state; raises StateError where it is not this controller's."""
        self._state = restored(self._state, state, "the dead buckets' controller")
