"""What people test the quantile split with: random orders, buckets that divide the channels."""

import torch

SHAPES = ((128, 4), (100, 5), (60, 3), (33, 3))


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for channels, buckets in SHAPES:
        order = torch.randperm(channels).int()
        bucket_of, size, offset = kernel(order, buckets)
        share = channels // buckets
        expected = torch.arange(channels) // share
        assert torch.equal(bucket_of[order.long()].long(), expected)
        assert size.tolist() == [share] * buckets
        assert offset.tolist() == [k * share for k in range(buckets)]
