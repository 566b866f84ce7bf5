"""Tiny models, batches and runs of training, on the simulator without its sanitizer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.nn import functional
from typer.testing import CliRunner

from trivet.impl._backtest.program import app
from trivet.impl._perception.checkpoint import read
from trivet.impl._perception.model import PerceptionModel, Sizes
from trivet.impl._perception.moments import Rates
from trivet.impl._perception.program import with_training
from trivet.impl._perception.source import Batch
from trivet.impl._perception.trainer import Trainer
from trivet.simulator.executors import Simulator

T = TypeVar("T")
HORIZONS = (2, 5)
SIZES = Sizes(D=3, H=5, S=2, N=2, E=2, M=3)
# A run of six steps and three epochs, phase 2 from step 3 on.
TINY = ("train", "--size", "tiny", "--transition-by", 2)


def simulated(call: Callable[[], T]) -> T:
    """What `call` returns, its launches on the simulator; its error is raised here."""
    done: list[Any] = []

    def run() -> None:
        try:
            done.append((call(), None))
        except Exception as error:
            done.append((None, error))

    assert Simulator(sanitize=False).run(run, {}).error is None
    result, error = done[0]
    if error is not None:
        raise error
    return result


def batch(seed: int = 0, B: int = 2, K: int = 2, sizes: Sizes = SIZES) -> Batch:
    """Random events and labels."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(B, K, sizes.D, generator=random)
    dt = torch.rand(B, K, generator=random)
    labels = (torch.rand(B, K, sizes.N, generator=random) > 0.5).float()
    return Batch(x, dt, labels)


def trainer(seed: int = 0, lr: float = 1e-2, transition_by: int = 0, base: float = 0.0) -> Trainer:
    model = PerceptionModel(SIZES, seed)
    return Trainer(model, HORIZONS, Rates(lr), base, transition_by=transition_by)


def command(*words: object, status: int = 0) -> str:
    """What `python -m trivet.impl` prints, its launches on the simulator."""
    done = simulated(lambda: CliRunner().invoke(with_training(app), list(map(str, words))))
    assert done.exit_code == status, (done.output, done.exception)
    return done.output


def contents(folder: Path) -> dict[str, object]:
    """What a run has written, by file: all of a checkpoint, as its digest tells it."""
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        found[path.name] = path.read_bytes()
        if path.suffix == ".safetensors":
            assert read(path)[1]
    return found


class Reference(torch.nn.Module):
    """The model of phase 1 in float64, from the formulas, differentiated by torch."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        for name, value in weights.items():
            self.register_parameter(name, torch.nn.Parameter(value.detach().double().clone()))

    def loss(self, given: Batch) -> torch.Tensor:
        """The sum over horizons of the mean cross entropy."""
        labels = given.labels.double()
        entropy = functional.binary_cross_entropy_with_logits
        return entropy(self(given.x.double(), given.dt.double()), labels) * labels.shape[2]

    def forward(self, x: torch.Tensor, dt: torch.Tensor) -> torch.Tensor:
        """Logits (B, K, N)."""
        u = x @ self.W_x.T + self.b_x
        for block in range(len(self.W_delta)):
            u = u + self._scanned(u, block)
        weight = torch.softmax(u @ self.q / u.shape[2] ** 0.5, dim=1)
        h = (weight[..., None] * u).sum(1)
        logits = []
        for event in range(x.shape[1]):
            decay = torch.exp(-dt[:, event, None] / self.tau)
            drive = u[:, event] @ self.W_in.T + h @ self.W_rec.T + self.b
            h = h * decay + (1 - decay) * torch.tanh(drive)
            a = functional.elu(torch.einsum("neh,bh->bne", self.W1, h) + self.b1)
            e = torch.einsum("nij,bnj->bni", self.W2, a) + self.b2
            gate = torch.sigmoid((e * self.w_gate).sum(2) + self.bg)
            logits.append(h @ self.w_skip.T + gate * ((e * self.w_main).sum(2) + self.bm))
        return torch.stack(logits, dim=1)

    def _scanned(self, u: torch.Tensor, block: int) -> torch.Tensor:
        step = functional.softplus(u @ self.W_delta[block].T + self.b_delta[block])
        decay = torch.exp(-step * torch.exp(self.A_log[block]))
        entering, leaving = u @ self.W_B[block].T, u @ self.W_C[block].T
        state, out = torch.zeros(*u[:, 0].shape, entering.shape[2], dtype=u.dtype), []
        for event in range(u.shape[1]):
            gained = (step * u)[:, event, :, None] * entering[:, event, None]
            state = decay[:, event, :, None] * state + gained
            out.append((state * leaving[:, event, None]).sum(2) + self.D_u[block] * u[:, event])
        return torch.stack(out, dim=1)
