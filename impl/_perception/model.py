"""The perception model as a module: its parameters, and the routing record it works by."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import nn

from trivet.impl.model import Window, window
from trivet.impl.routing import RoutingRecord, heads_compact

# The range of the time constants at the start, and their limits in phase 1, in seconds.
SHORTEST, LONGEST = 0.01, 1000.0


@dataclass(frozen=True)
class Sizes:
    """Input features D, channels H, scan states S, blocks L, horizons N, inner width E, M slots."""

    D: int
    H: int = 128
    S: int = 16
    L: int = 2
    N: int = 5
    E: int = 32
    M: int = 28

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.N * self.M < self.H or math.ceil(self.H / self.N) > self.M:
            raise ValueError(f"M = {self.M} slots in each of {self.N} buckets cannot hold {self.H}")


class PerceptionModel(nn.Module):
    """Projection, scan blocks, attention pool, CfC cell and gated heads; all weights float32.

    Parameters are named as the arguments of `impl.model.window` and drawn from `seed`. Without a
    record (phase 1) the cell is dense; `publish` takes it to phase 2 and counts in `published`.
    """

    tau: nn.Parameter

    def __init__(self, sizes: Sizes, seed: int, device: str = "cpu") -> None:
        super().__init__()
        self.sizes = sizes
        self.record: RoutingRecord | None = None
        self.w_compact: torch.Tensor | None = None
        self.published = 0
        for name, value in initial_weights(sizes, seed).items():
            self.register_parameter(name, nn.Parameter(value.to(device)))

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return self.weights()["tau"].device

    def weights(self) -> dict[str, torch.Tensor]:
        """The parameters by name, in the order in which `impl.model.window` takes them."""
        return dict(self.named_parameters())

    def forward(self, x: torch.Tensor, dt: torch.Tensor) -> Window:
        """Return logits, p and states of windows x (B, K, D), dt (B, K) seconds before events."""
        return window(x, dt, **self.weights(), table=self.record)

    def publish(self, record: RoutingRecord) -> None:
        """Work by this record from now on; raises as its `validate`, packs the skip weights."""
        record.validate(channels=self.sizes.H, device=self.device)
        self.record = record
        self.published += 1
        self.repack()

    def repack(self) -> None:
        """Pack the skip weights anew: after every change of them or of the record.

        In place, since launches that are kept read where they were packed first.
        """
        if self.record is None:
            return
        w_skip = self.weights()["w_skip"].detach()
        if self.w_compact is None:
            self.w_compact = torch.zeros_like(w_skip[0])
        self.w_compact.copy_(heads_compact(w_skip, self.record)[0])


def initial_weights(sizes: Sizes, seed: int) -> dict[str, torch.Tensor]:
    """Return fresh weights on the CPU; every number is a function of sizes and seed."""
    D, H, S, L, N, E = sizes.D, sizes.H, sizes.S, sizes.L, sizes.N, sizes.E
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int, width: int) -> torch.Tensor:
        return torch.randn(shape, generator=random) / math.sqrt(width)

    def log_uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        span = torch.rand(shape, generator=random) * math.log(high / low)
        return (low * span.exp()).clamp(low, high)

    return {
        "W_x": normal(H, D, width=D),
        "b_x": torch.zeros(H),
        "W_delta": normal(L, H, H, width=H),
        # softplus of these is log-uniform: steps from a hundredth of an event to a whole one.
        "b_delta": log_uniform(0.01, 1.0, L, H).expm1().log(),
        # A block's output is cubic in its input: small weights keep it small at the start.
        "W_B": normal(L, S, H, width=16 * H),
        "W_C": normal(L, S, H, width=16 * H * S),
        "A_log": log_uniform(0.25, 4.0, L, H).log(),
        "D_u": torch.zeros(L, H),
        "q": normal(H, width=1),
        "W_in": normal(H, H, width=H),
        "W_rec": normal(H, H, width=4 * H),
        "b": torch.zeros(H),
        "tau": log_uniform(SHORTEST, LONGEST, H),
        "W1": normal(N, E, H, width=H),
        "b1": torch.zeros(N, E),
        "W2": normal(N, E, E, width=E),
        "b2": torch.zeros(N, E),
        "w_gate": normal(N, E, width=E),
        "bg": torch.zeros(N),
        "w_main": normal(N, E, width=E),
        "bm": torch.zeros(N),
        "w_skip": normal(N, H, width=H),
    }
