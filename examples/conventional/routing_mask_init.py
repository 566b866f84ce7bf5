"""What people test a mask with: random buckets, a comparison as the reference."""

import torch

SHAPES = ((128, 4), (100, 5), (60, 3), (33, 2))


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for channels, buckets in SHAPES:
        bucket_of = torch.randint(0, buckets, (channels,), dtype=torch.int32)
        expected = torch.arange(buckets)[:, None] == bucket_of
        torch.testing.assert_close(kernel(bucket_of, buckets), expected.float())
