"""The CfC cell as people write it in torch."""

import torch


def step(
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
) -> torch.Tensor:
    """h' (B, H) of the dense cell: two products and a chain of elementwise operations."""
    share = -torch.expm1(-dt[:, None] / tau)
    return h * (1 - share) + share * torch.tanh(b + x @ W_in.T + h @ W_rec.T)


def step_backward(
    g: torch.Tensor,
    x: torch.Tensor,
    h: torch.Tensor,
    dt: torch.Tensor,
    W_in: torch.Tensor,
    W_rec: torch.Tensor,
    b: torch.Tensor,
    tau: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """The gradients of `step` to x, h, W_in, W_rec, b and tau by autograd, the forward included."""
    leaves = [t.detach().requires_grad_() for t in (x, h, W_in, W_rec, b, tau)]
    x, h, W_in, W_rec, b, tau = leaves
    return torch.autograd.grad(step(x, h, dt, W_in, W_rec, b, tau), leaves, g)
