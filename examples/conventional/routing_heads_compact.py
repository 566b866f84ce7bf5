"""What people test the packing of weights with: contiguous buckets, a loop as the reference."""

import torch

SHAPES = ((128, 4), (100, 5), (60, 3), (33, 3))


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for channels, buckets in SHAPES:
        w_skip = torch.randn(buckets, channels)
        table = torch.arange(channels, dtype=torch.int32).reshape(buckets, -1)
        packed, offset = kernel(w_skip, table)
        expected = torch.cat([w_skip[k, table[k].long()] for k in range(buckets)])
        torch.testing.assert_close(packed, expected)
        assert offset.tolist() == [k * table.shape[1] for k in range(buckets)]
