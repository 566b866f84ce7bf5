"""Step inference: a trained model fed one event at a time, seeded from a finished window."""

import torch

from trivet.impl import _checks
from trivet.impl import model as kernels
from trivet.impl._perception.launch_plan import LaunchPlan
from trivet.impl._perception.model import PerceptionModel
from trivet.impl.model.features import NAMES as BLOCKS
from trivet.impl.model.window import CELL, HEAD
from trivet.impl.routing import RoutingRecord


class StepInference:
    """The state of B streams of events through one model, always on the per-branch path.

    The record is the model's own at every step: one that is published later holds from the next
    event on. The launches of an event are kept and run again. Raises ValueError for a model
    without a routing record, at every use.
    """

    def __init__(self, model: PerceptionModel, rows: int) -> None:
        self.model = model
        self._plan = LaunchPlan(model.device)
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
        self._routed()
        sizes, device = self.model.sizes, self.model.device
        self._x = torch.zeros(rows, sizes.D, device=device)
        self._dt = torch.zeros(rows, device=device)
        self.state = torch.zeros(rows, sizes.H, device=device)
        self.scan_states = torch.zeros(sizes.L, rows, sizes.H, sizes.S, device=device)
        # What was kept has the tensors of before.
        self._plan.forget()

    @torch.no_grad()
    def seed(self, x: torch.Tensor, dt: torch.Tensor) -> None:
        """Take the states that windows x (B, K, D), dt (B, K) end in.

        The recurrent state is a copy of the window's at event K - 1, the scan states are those
        of K single steps from zero.
        """
        self._routed()
        weights = self.model.weights()
        states = self.model(x, dt).states
        self.reset(len(x))
        self.state.copy_(states[-1])
        self.scan_states.copy_(kernels.seed(x, *(weights[name] for name in BLOCKS)))

    @torch.no_grad()
    def step(self, x: torch.Tensor, dt: torch.Tensor) -> kernels.Step:
        """Return what one more event x (B, D), dt (B,) seconds after the last one, gives.

        Raises TypeError or ValueError naming the argument.
        """
        record, _ = self._routed()
        arguments = _checks.Arguments(B=self._x.shape[0], D=self._x.shape[1])
        self._x.copy_(arguments.tensor("x", x, "B D", torch.float32))
        self._dt.copy_(arguments.tensor("dt", dt, "B", torch.float32))
        # The kept launches check nothing.
        _checks.finite_not_negative("dt", dt)
        done = self._plan.run((record.version, self.model.published), self._advance)
        return kernels.Step(*(tensor.clone() for tensor in done))

    def _advance(self) -> kernels.Step:
        """The launches of one event, on tensors that stay where they are."""
        record, packed = self._routed()
        weights = self.model.weights()
        own = {name: weights[name] for name in (*BLOCKS, *CELL, *HEAD)}
        given = (self._x, self._dt, self.state, self.scan_states)
        done = kernels.step(*given, **own, w_compact=packed, table=record)
        self.state.copy_(done.state)
        self.scan_states.copy_(done.scan_states)
        return done
