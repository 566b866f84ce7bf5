"""What people test the per-branch cell with: contiguous buckets, the dense formula in torch."""

import torch

SHAPES = ((4, 64, 128, 4), (3, 40, 100, 5), (1, 17, 33, 2), (6, 32, 60, 5))


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


def contiguous(channels, buckets):
    """Rows of neighbouring channels; the last row ends in -1 where it is not full."""
    capacity = -(-channels // buckets)
    slots = torch.arange(buckets * capacity, dtype=torch.int32)
    return torch.where(slots < channels, slots, -1).reshape(buckets, capacity)


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for batch, features, channels, buckets in SHAPES:
        given = arguments(batch, features, channels)
        out = torch.zeros(batch, channels)
        kernel(**given, table=contiguous(channels, buckets), out=out)
        torch.testing.assert_close(out, reference(**given))
