"""What people test a chunked scan with: a few lengths, the plain loop as the reference."""

import torch

SHAPES = ((2, 64, 32), (3, 100, 40), (1, 33, 16))


def reference(a, b, initial):
    states, state = [], initial
    for t in range(b.shape[1]):
        state = a[:, t] * state + b[:, t]
        states.append(state)
    return torch.stack(states, dim=1), state


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for shape in SHAPES:
        a = torch.rand(shape)
        b = torch.randn(shape)
        initial = torch.randn(shape[0], shape[2])
        expected = reference(a, b, initial)
        torch.testing.assert_close(kernel(a, b, initial), expected)
