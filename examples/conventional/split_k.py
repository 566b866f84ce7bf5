"""What people test a split-K product with: a few shapes and splits, torch as the reference."""

import torch

SHAPES = ((64, 64, 128, 4), (50, 60, 100, 2), (33, 65, 17, 1))


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for rows, columns, depth, splits in SHAPES:
        a = torch.randn(rows, depth)
        b = torch.randn(depth, columns)
        torch.testing.assert_close(kernel(a, b, splits), a @ b)
