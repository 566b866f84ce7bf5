"""The decision's formulas as people write them in torch."""

import torch


def smooth(x: torch.Tensor, average: torch.Tensor, floor: torch.Tensor) -> torch.Tensor:
    """The averages (5, S) after x (S,)."""
    mean, diff_var, sample_var, last, seen = average
    first = seen == 0
    diff = 0.95 * diff_var + 0.05 * (x - last).square()
    sample = 0.95 * sample_var + 0.05 * (x - mean).square()
    gain = torch.maximum(floor, sample / (sample + diff + 1e-30))
    none = torch.zeros_like(x)
    return torch.stack(
        [
            torch.where(first, x, mean + gain * (x - mean)),
            torch.where(first, none, diff),
            torch.where(first, none, sample),
            x,
            torch.where(first, torch.ones_like(x), seen),
        ]
    )


def weighted(
    q: torch.Tensor, net_edge: torch.Tensor, var: torch.Tensor, cost: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights (S, N) and signals (S,)."""
    least = 0.01 * cost[:, None]
    weight = torch.maximum(net_edge, least) / (var + cost.square()[:, None])
    pull = (2 * q * weight).sum(1) / weight.sum(1)
    return weight, pull.clamp(-1, 1)
