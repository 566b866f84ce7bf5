"""What people test a CfC cell with: an aligned shape and three others, torch as the reference."""

import torch

SHAPES = ((4, 64, 128), (3, 40, 100), (1, 17, 33), (6, 32, 60))


def arguments(batch, features, channels):
    """Everyday values: normal inputs, unit fan-in weights, steps about as long as tau."""
    return {
        "x": torch.randn(batch, features),
        "h": torch.randn(batch, channels),
        "dt": torch.rand(batch),
        "W_in": torch.randn(channels, features) / features**0.5,
        "W_rec": torch.randn(channels, channels) / channels**0.5,
        "b": torch.randn(channels),
        "tau": torch.rand(channels) + 0.1,
    }


def reference(x, h, dt, W_in, W_rec, b, tau):
    decay = torch.exp(-dt[:, None] / tau)
    return h * decay + (1 - decay) * torch.tanh(x @ W_in.T + h @ W_rec.T + b)


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for shape in SHAPES:
        given = arguments(*shape)
        torch.testing.assert_close(kernel(**given), reference(**given))
