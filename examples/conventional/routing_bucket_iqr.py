"""What people test quartiles by bucket with: shuffled buckets, torch.quantile as the reference."""

import torch

SHAPES = ((128, 4), (96, 5), (64, 3), (32, 2))


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for channels, buckets in SHAPES:
        tau = torch.exp(torch.randn(channels))
        bucket_of = (torch.randperm(channels) % buckets).int()
        q1, q3 = kernel(tau, bucket_of, buckets)
        own = [tau[bucket_of == bucket] for bucket in range(buckets)]
        torch.testing.assert_close(q1, torch.stack([torch.quantile(each, 0.25) for each in own]))
        torch.testing.assert_close(q3, torch.stack([torch.quantile(each, 0.75) for each in own]))
