"""The domain of bucket assignments: within capacity, every kind, every channel."""

import numpy as np
import pytest

from trivet import Contract, Tensor, sizes
from trivet.properties._assignments import assignment
from trivet.properties._dtypes import DTYPES
from trivet.properties._stream import Stream
from trivet.properties._values import Request

DOMAIN = assignment("N", "M")
INT32 = DTYPES["int32"]


def drawn(kind: str, channels: int, buckets: int, capacity: int, seed: int = 0) -> np.ndarray:
    names = {"N": buckets, "M": capacity}
    request = Request((channels,), kind, Stream(seed, "bucket_of"), INT32, 0.0, names)
    return DOMAIN.draw(request)


@pytest.mark.parametrize("kind", DOMAIN.kinds(INT32))
@pytest.mark.parametrize(("channels", "buckets", "capacity"), [(28, 5, 7), (3, 9, 1), (40, 1, 40)])
def test_no_bucket_is_over_its_capacity(
    kind: str, channels: int, buckets: int, capacity: int
) -> None:
    for seed in range(5):
        bucket_of = drawn(kind, channels, buckets, capacity, seed)
        assert bucket_of.shape == (channels,)
        assert np.bincount(bucket_of, minlength=buckets).max() <= capacity
        assert len(np.bincount(bucket_of, minlength=buckets)) == buckets


def test_buckets_are_empty_full_giant_and_scattered() -> None:
    counts = [
        np.bincount(drawn(kind, 30, 5, 30, seed), minlength=5)
        for kind in DOMAIN.kinds(INT32)
        for seed in range(5)
    ]
    assert any((count == 0).any() for count in counts)
    assert any((count == 30).any() for count in counts)
    scattered = drawn("mixed", 30, 5, 30)
    assert (np.diff(scattered) < 0).any()
    assert (np.diff(drawn("contiguous", 30, 5, 30)) >= 0).all()


def test_buckets_too_small_for_the_channels_are_named() -> None:
    text = DOMAIN.obstacle((9,), {"N": 2, "M": 4}, INT32)
    assert text == "2 buckets of 4 cannot hold 9 channels"
    assert DOMAIN.obstacle((8,), {"N": 2, "M": 4}, INT32) is None


def test_a_contract_that_never_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        Contract(
            kernel=lambda bucket_of: bucket_of,
            oracles=[lambda m, bucket_of: bucket_of],
            dims={"H": sizes(9, 12), "N": sizes(1, 2), "M": sizes(1, 4)},
            args={"bucket_of": Tensor("H", dtypes=("int32",), domain=DOMAIN)},
        )
