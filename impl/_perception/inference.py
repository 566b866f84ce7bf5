"""Step inference: a trained model fed one event at a time, seeded from a finished window."""

import torch

from trivet.impl import model as kernels
from trivet.impl._perception.model import PerceptionModel
from trivet.impl.model.features import NAMES as BLOCKS
from trivet.impl.model.window import CELL, HEAD
from trivet.impl.routing import RoutingRecord


class StepInference:
    """The state of B streams of events through one model, always on the per-branch path.

    The record is the model's own at every step: one that is published later holds from the next
    event on. Raises ValueError for a model without a routing record, at every use.
    """

    def __init__(self, model: PerceptionModel, rows: int) -> None:
        self.model = model
        self._routed()
        self.reset(rows)

    def _routed(self) -> tuple[RoutingRecord, torch.Tensor]:
        record, packed = self.model.record, self.model.w_compact
        if record is None or packed is None:
            raise ValueError(
                "model must have a routing record for step inference, got one before its "
                "transition: train it further or load a checkpoint of phase 2"
            )
        return record, packed

    def reset(self, rows: int) -> None:
        """Start `rows` streams from states of zero, whatever was before."""
        sizes, device = self.model.sizes, self.model.device
        self.state = torch.zeros(rows, sizes.H, device=device)
        self.scan_states = torch.zeros(sizes.L, rows, sizes.H, sizes.S, device=device)

    @torch.no_grad()
    def seed(self, x: torch.Tensor, dt: torch.Tensor) -> None:
        """Take the states that windows x (B, K, D), dt (B, K) end in.

        The recurrent state is a copy of the window's at event K - 1, the scan states are those
        of K single steps from zero.
        """
        self._routed()
        weights = self.model.weights()
        self.state = self.model(x, dt).states[-1].clone()
        self.scan_states = kernels.seed(x, **{name: weights[name] for name in BLOCKS})

    @torch.no_grad()
    def step(self, x: torch.Tensor, dt: torch.Tensor) -> kernels.Step:
        """Return what one more event x (B, D), dt (B,) seconds after the last one, gives."""
        record, packed = self._routed()
        weights = self.model.weights()
        own = {name: weights[name] for name in (*BLOCKS, *CELL, *HEAD)}
        given = (x, dt, self.state, self.scan_states)
        done = kernels.step(*given, **own, w_compact=packed, table=record)
        self.state, self.scan_states = done.state, done.scan_states
        return done
