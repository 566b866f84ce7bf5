"""The trainer: phase 1 with the dense cell, the transition, phase 2 per branch, all controllers."""

from dataclasses import dataclass

import torch

from trivet.impl._controllers import (
    DeadBuckets,
    RateScale,
    SmoothnessWeight,
    TransitionClock,
    transition,
)
from trivet.impl._perception.change import BucketWeights
from trivet.impl._perception.checkpoint import Checkpoint
from trivet.impl._perception.model import LONGEST, SHORTEST, PerceptionModel
from trivet.impl._perception.moments import Moments, Rates
from trivet.impl._perception.source import Batch
from trivet.impl.losses import BceMultiHorizon, OutputSmoothness
from trivet.impl.model import Window
from trivet.impl.routing import tau_clamp
from trivet.impl.trace import Ring, log_tick


@dataclass(frozen=True)
class Step:
    """What a step did: its number from 1, the phase it ran in, loss and smoothness weight (N,)."""

    number: int
    phase: int
    loss: torch.Tensor
    smoothness_lambda: torch.Tensor
    transitioned: bool


class Trainer:
    """A model, its optimiser and its controllers, one step at a time.

    Everything that a later step depends on is in `tensors`, `controllers` and `counters`.
    """

    def __init__(
        self,
        model: PerceptionModel,
        horizons: tuple[int, ...],
        rates: Rates,
        base_lambda: float = 0.0,
        ring: Ring | None = None,
        transition_by: int = 0,
    ) -> None:
        self.model, self.rates, self.ring = model, rates, ring
        self.moments = Moments(model)
        self.done, self.transition_by = 0, transition_by
        self.clock = TransitionClock()
        device = model.device
        self.rate_scale = RateScale(len(horizons), device)
        self.smoothness = SmoothnessWeight(horizons, base_lambda, device)
        self.dead = DeadBuckets(len(horizons), device)

    @property
    def phase(self) -> int:
        """1 before the transition, 2 after it."""
        return 1 if self.model.record is None else 2

    def step(self, batch: Batch) -> Step:
        """Train on one batch; raises UnchangedBucketError where a bucket of phase 2 stood still."""
        number, phase = self.done + 1, self.phase
        if self.ring is not None:
            log_tick(self.ring.step)
        weight = self.smoothness.weights(self.rate_scale, self.ring)
        labels = batch.labels.transpose(0, 1).contiguous()
        window = self.model(batch.x, batch.dt)
        loss = self._backward(window, labels, weight)
        self._update(number, batch)
        fired = phase == 1 and self._is_time(number)
        if fired:
            self._transition()
        elif phase == 2:
            self._observe_buckets(window.states[-1].detach())
        self.rate_scale.observe(window.p.detach(), labels)
        self.done = number
        return Step(number, phase, loss, weight, fired)

    def _is_time(self, number: int) -> bool:
        """Whether controller A says so, or the step by which it must have."""
        fires = self.clock.observe(self.model.tau.detach())
        return fires or 0 < self.transition_by <= number

    def _backward(self, window: Window, labels: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Leave the gradients in the parameters; returns the loss of each horizon (N,)."""
        entropy: torch.Tensor = BceMultiHorizon.apply(window.logits, labels)  # type: ignore[no-untyped-call]
        smoothness, _ = OutputSmoothness.apply(window.p, weight)  # type: ignore[no-untyped-call]
        self.model.zero_grad(set_to_none=True)
        (entropy.sum() + smoothness.sum()).backward()
        return entropy.detach()

    def _update(self, number: int, batch: Batch) -> None:
        """AdamW, the clamp of tau and, in phase 2, the check that every bucket moved."""
        record, weights = self.model.record, self.model.weights()
        if record is None:
            self.moments.step(self.rates, number, None, None)
            self.model.tau.data.clamp_(SHORTEST, LONGEST)
            return
        before = BucketWeights(weights, record)
        self.moments.step(self.rates, number, record, self.rate_scale.multiplier)
        self._clamp()
        self.model.repack()
        if (
            self.rates.lr > 0
            and bool((batch.dt > 0).any())
            and not bool(batch.labels.isnan().all())
        ):
            before.check(weights, number)

    def _clamp(self) -> None:
        """Every time constant into its own bucket's range (controller B)."""
        record, tau = self.model.record, self.model.tau.data
        if record is not None:
            tau.copy_(tau_clamp(tau, record.bucket_of, record.lo, record.hi))

    def _transition(self) -> None:
        """Build the routing record and hand it to every consumer, before the next step."""
        sizes = self.model.sizes
        self.model.publish(transition(self.model.tau.data, *self.moments.skip_weights(), sizes.M))

    def _observe_buckets(self, states: torch.Tensor) -> None:
        """Let controller D look at the last states (B, H); publish what it changes."""
        record = self.model.record
        if record is None:
            return
        changed = self.dead.observe(
            states, record, self.model.tau.data, *self.moments.skip_weights()
        )
        if changed is not record:
            self.model.publish(changed)

    def jitter(self) -> torch.Tensor:
        """The smoothed jitter J (N,) of each horizon, NaN before the first window of two events."""
        mean, *_, seen, _ = self.rate_scale.jitter
        return torch.where(seen > 0, mean, torch.nan)

    def smoothness_lambda(self) -> torch.Tensor:
        """The smoothness weight (N,) of the next step, which leaves no trace."""
        return self.smoothness.weights(self.rate_scale)

    def degraded(self) -> list[int]:
        """The buckets that controller D could not bring back."""
        found = self.dead.report
        return [] if found is None else [k for k, bad in enumerate(found.degraded) if bad]

    def _controllers(
        self,
    ) -> dict[str, TransitionClock | RateScale | SmoothnessWeight | DeadBuckets]:
        return {
            "clock": self.clock,
            "rate_scale": self.rate_scale,
            "smoothness": self.smoothness,
            "dead": self.dead,
        }

    def checkpoint(self) -> Checkpoint:
        """Everything that later steps depend on."""
        states = {name: each.state() for name, each in self._controllers().items()}
        tensors = self.moments.tensors()
        return Checkpoint(tensors, self.model.record, states, {"step": self.done})

    def load(self, kept: Checkpoint) -> None:
        """Go on from a checkpoint; raises ValueError naming what does not fit this model."""
        controllers = self._controllers()
        if set(kept.controllers) != set(controllers):
            raise ValueError(f"controllers must be {', '.join(controllers)}")
        self.moments.load(kept.tensors)
        for name, each in controllers.items():
            each.load(kept.controllers[name])
        self.done = int(kept.counters["step"])
        self.model.record = None
        if kept.record is not None:
            self.model.publish(kept.record)
