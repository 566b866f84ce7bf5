"""The training losses as people write them in torch."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits


def bce_multi_horizon(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy (N,) of the present labels, by torch's own function."""
    present = ~labels.isnan()
    entropy = binary_cross_entropy_with_logits(
        logits, labels.nan_to_num(), weight=present.to(logits.dtype), reduction="none"
    )
    return entropy.sum((0, 1)) / present.sum((0, 1)).clamp(min=1)


def bce_multi_horizon_backward(
    g_loss: torch.Tensor, logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The gradient (K, B, N) of `bce_multi_horizon`."""
    present = ~labels.isnan()
    scale = g_loss / present.sum((0, 1)).clamp(min=1)
    return torch.where(present, scale * (torch.sigmoid(logits) - labels.nan_to_num()), 0.0)


def output_smoothness(p: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weighted and plain mean (N,) of the squared steps."""
    mean = (p[1:] - p[:-1]).square().mean((0, 1))
    return weight * mean, mean


def output_smoothness_backward(
    g_loss: torch.Tensor, g_mean: torch.Tensor, p: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """The gradient (K, B, N) of `output_smoothness`."""
    change = p[1:] - p[:-1]
    scale = 2 * (g_loss * weight + g_mean) / (p.shape[1] * (p.shape[0] - 1))
    edge = torch.zeros_like(p[:1])
    return scale * (torch.cat([edge, change]) - torch.cat([change, edge]))
