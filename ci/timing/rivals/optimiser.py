"""AdamW as people write it in torch, and torch's own kernels for it."""

from collections.abc import Callable

import torch
from torch.optim.adamw import adamw as _torch_adamw


def adamw(
    p: torch.Tensor,
    g: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    t: int,
) -> None:
    """One step in place, operation by operation."""
    exp_avg.mul_(beta1).add_(g, alpha=1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    size = (exp_avg_sq / (1 - beta2**t)).sqrt_().add_(eps)
    p.mul_(1 - lr * decay).addcdiv_(exp_avg / (1 - beta1**t), size, value=-lr)


def _by_torch(*, fused: bool) -> Callable[..., None]:
    """torch.optim's functional step, fused or foreach; its counter stands one step behind."""

    def step(
        p: torch.Tensor,
        g: torch.Tensor,
        exp_avg: torch.Tensor,
        exp_avg_sq: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        decay: float,
        t: int,
    ) -> None:
        counter = torch.full((), float(t - 1), device=p.device)
        _torch_adamw(
            [p], [g], [exp_avg], [exp_avg_sq], [], [counter],
            lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=decay,
            amsgrad=False, maximize=False, fused=fused, foreach=not fused,
        )  # fmt: skip

    return step


PUBLIC = {"adamw": {"torch fused": _by_torch(fused=True), "torch foreach": _by_torch(fused=False)}}
