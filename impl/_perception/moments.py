"""AdamW over a model's parameters in few launches: parameters of a kind lie in one buffer."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from trivet.impl.optimiser import adamw, block_diagonal_start, block_diagonal_step
from trivet.impl.routing import RoutingRecord

SKIP = "w_skip"
# Time constants, decay rates and biases are no weights: shrinking them regularises nothing.
NOT_DECAYED = frozenset({"tau", "A_log", "D_u", "b_x", "b_delta", "b", "b1", "b2", "bg", "bm"})


@dataclass(frozen=True)
class Rates:
    """What a step of AdamW is told: rate, decay of weights, betas, eps."""

    lr: float = 1e-3
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def of(self, decayed: bool) -> tuple[float, float, float, float, float]:
        """The five numbers in the order of `optimiser.adamw`."""
        decay = self.weight_decay if decayed else 0.0
        return self.lr, self.beta1, self.beta2, self.eps, decay


class Group:
    """Some parameters, made views of one buffer, with their moments."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decayed: bool) -> None:
        self.parameters, self.decayed = dict(parameters), decayed
        self.values = torch.cat([each.detach().flatten() for each in self.parameters.values()])
        self.exp_avg = torch.zeros_like(self.values)
        self.exp_avg_sq = torch.zeros_like(self.values)
        for name, view in self.views(self.values).items():
            self.parameters[name].data = view

    def views(self, buffer: torch.Tensor) -> dict[str, torch.Tensor]:
        """The parts of a buffer of this group by parameter, each of its parameter's shape."""
        sizes = [each.numel() for each in self.parameters.values()]
        parts = zip(self.parameters.items(), torch.split(buffer, sizes), strict=True)
        return {name: part.view(parameter.shape) for (name, parameter), part in parts}

    def gradient(self) -> torch.Tensor:
        """All gradients in one buffer; what the loss does not reach has gradient 0."""
        gradients = [
            torch.zeros_like(each) if each.grad is None else each.grad
            for each in self.parameters.values()
        ]
        return torch.cat([gradient.flatten() for gradient in gradients])

    def step(self, rates: Rates, t: int) -> None:
        """Step t, from 1, of all parameters of the group: one launch."""
        gradient = self.gradient()
        adamw(self.values, gradient, self.exp_avg, self.exp_avg_sq, *rates.of(self.decayed), t)


class Moments:
    """The optimiser of a model: three groups, of which the skip weights' obeys the record."""

    def __init__(self, model: nn.Module) -> None:
        named = dict(model.named_parameters())
        bare = {name: named[name] for name in named if name in NOT_DECAYED}
        decayed = {n: named[n] for n in named if n not in NOT_DECAYED and n != SKIP}
        self.skip = Group({SKIP: named[SKIP]}, decayed=True)
        self.groups = (Group(bare, decayed=False), Group(decayed, decayed=True), self.skip)

    def skip_weights(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The live skip weights and their moments, each (N, H)."""
        skip = self.skip
        buffers = (skip.values, skip.exp_avg, skip.exp_avg_sq)
        w_skip, exp_avg, exp_avg_sq = (skip.views(buffer)[SKIP] for buffer in buffers)
        return w_skip, exp_avg, exp_avg_sq

    def step(
        self, rates: Rates, t: int, record: RoutingRecord | None, scale: torch.Tensor | None
    ) -> None:
        """Step t, from 1, of every parameter; after the transition w_skip's is block diagonal.

        scale (N,) in (0, 1] multiplies each horizon's step of the skip weights.
        """
        for group in self.groups[:2]:
            group.step(rates, t)
        if record is None:
            self.skip.step(rates, t)
            return
        w_skip, exp_avg, exp_avg_sq = self.skip_weights()
        gradient = self.skip.gradient().view_as(w_skip)
        moments = (exp_avg, exp_avg_sq, record.bucket_of)
        block_diagonal_step(w_skip, gradient, *moments, *rates.of(True), t, scale)

    def start_block_diagonal(self, record: RoutingRecord) -> None:
        """Zero the skip weights and their moments off bucket, at the transition."""
        block_diagonal_start(*self.skip_weights(), record.bucket_of)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Parameters and moments by name: `w_skip`, `w_skip.exp_avg`, `w_skip.exp_avg_sq`."""
        found: dict[str, torch.Tensor] = {}
        for group in self.groups:
            found |= group.views(group.values)
            for kind in ("exp_avg", "exp_avg_sq"):
                views = group.views(getattr(group, kind))
                found |= {f"{name}.{kind}": view for name, view in views.items()}
        return found

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take parameters and moments over; ValueError naming what is missing or misshapen."""
        for name, own in self.tensors().items():
            given = tensors.get(name)
            if given is None or given.shape != own.shape or given.dtype != own.dtype:
                found = "none" if given is None else f"{given.dtype} {tuple(given.shape)}"
                raise ValueError(f"{name} must be {own.dtype} {tuple(own.shape)}, got {found}")
            own.copy_(given)
