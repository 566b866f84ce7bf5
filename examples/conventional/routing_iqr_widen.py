"""What people test the widening with: everyday quartiles, the formula in torch."""

import torch

SHAPES = (4, 5, 3, 1)


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for buckets in SHAPES:
        q1 = torch.rand(buckets) + 0.1
        q3 = q1 + torch.rand(buckets)
        slack = torch.sqrt(q3 / q1)
        lo, hi = kernel(q1, q3)
        torch.testing.assert_close(lo, q1 / slack)
        torch.testing.assert_close(hi, q3 * slack)
