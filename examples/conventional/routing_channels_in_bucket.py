"""What people test the table of buckets with: random buckets, a loop as the reference."""

import torch

SHAPES = ((128, 4), (100, 5), (60, 3), (33, 2))


def conventional(kernel):
    """Raise AssertionError where the usual tests would fail."""
    torch.manual_seed(0)
    for channels, buckets in SHAPES:
        bucket_of = torch.randint(0, buckets, (channels,), dtype=torch.int32)
        table = kernel(bucket_of, buckets, channels)
        for bucket in range(buckets):
            members = torch.nonzero(bucket_of == bucket).flatten()
            assert table[bucket, : len(members)].tolist() == members.tolist()
            assert (table[bucket, len(members) :] == -1).all()
