"""What people test the widening of one range with: a few buckets, whole arrays compared."""

import torch

SHAPES = (4, 5, 3, 1)


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for buckets in SHAPES:
        lo = torch.rand(buckets)
        hi = lo + 1
        k = buckets // 2
        lower, upper = lo.clone(), hi.clone()
        lower[k] *= 0.5
        upper[k] *= 2
        new_lo, new_hi = kernel(lo, hi, k)
        torch.testing.assert_close(new_lo, lower)
        torch.testing.assert_close(new_hi, upper)
