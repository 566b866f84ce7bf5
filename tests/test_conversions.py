"""Every narrow float format, on every bit pattern: the same values as ml_dtypes and torch."""

import ml_dtypes
import numpy as np
import pytest
import torch

from trivet.simulator._rounding import NARROW, STORAGE
from trivet.simulator.arithmetic import Native

TORCH = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
}
FORMATS = ["f16", "bf16", *NARROW]
# What lies below the upper sixteen bits decides ties and what stands just beside them.
LOWER = (0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xEFFF, 0xFFFF)
NATIVE = Native()


@pytest.fixture(autouse=True)
def as_in_the_machine():
    with np.errstate(all="ignore"):
        yield


def every_pattern(element):
    storage = np.dtype(STORAGE[element])
    bits = np.arange(1 << (8 * storage.itemsize)).astype(f"u{storage.itemsize}")
    return bits, bits.view(storage)


def all_float32():
    """Every sign, exponent and upper mantissa of float32, beside and on every tie below."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    return (upper[:, None] | np.array(LOWER, np.uint32)).reshape(-1).view(np.float32)


def same(ours, theirs):
    """The same values, signs of zero included; all NaN are one."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    both = np.isnan(ours) & np.isnan(theirs)
    return both | ((ours == theirs) & (np.signbit(ours) == np.signbit(theirs)))


def by_torch(values, element):
    narrow = torch.from_numpy(np.ascontiguousarray(values)).to(TORCH[element])
    return narrow.to(torch.float32).numpy()


def expected(values, element):
    """ml_dtypes' conversion; what float8 cannot hold goes to the largest finite value (PTX)."""
    theirs = values.astype(STORAGE[element]).astype(np.float32)
    if element not in NARROW:
        return theirs
    largest = np.float32(NARROW[element][1])
    beyond = ~np.isnan(values) & (~np.isfinite(theirs) | (np.abs(theirs) > largest))
    return np.where(beyond, np.copysign(largest, values), theirs)


@pytest.mark.parametrize("element", FORMATS)
def test_every_pattern_widens_to_its_value(element):
    bits, stored = every_pattern(element)
    wanted = stored.astype(np.float32)
    assert same(NATIVE.load(stored, element), wanted).all()
    if element in TORCH:
        signed = torch.from_numpy(bits.view(f"i{bits.itemsize}"))
        assert same(NATIVE.load(stored, element), signed.view(TORCH[element]).float()).all()


@pytest.mark.parametrize("element", FORMATS)
def test_every_pattern_survives_bits_and_back(element):
    bits, stored = every_pattern(element)
    value = NATIVE.load(stored, element)
    kept = ~np.isnan(np.asarray(value, np.float32))
    back = NATIVE.bits(element)(value).view(bits.dtype)
    assert np.array_equal(back[kept], bits[kept])
    assert same(NATIVE.from_bits(element)(bits.view(f"i{bits.itemsize}")), value).all()


@pytest.mark.parametrize("element", FORMATS)
def test_float32_narrows_as_ml_dtypes_and_torch_do(element):
    values = all_float32()
    ours = NATIVE.cast("f32", element, "rtne")(values)
    assert same(ours, expected(values, element)).all()
    if element in TORCH:
        theirs = by_torch(values, element)
        held = np.abs(values) <= (NARROW[element][1] if element in NARROW else np.inf)
        assert same(ours, theirs)[held].all()


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_narrow_formats_convert_into_each_other(source, target):
    _, stored = every_pattern(source)
    value = NATIVE.load(stored, source)
    ours = NATIVE.cast(source, target, "rtne")(value)
    wide = stored.astype(np.float32)
    assert same(ours, expected(wide, target)).all()


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_towards_zero_never_grows_and_stops_at_the_neighbour(element):
    values = all_float32()
    values = values[np.isfinite(values)]
    ours = NATIVE.cast("f32", element, "rtz")(values).astype(np.float64)
    nearest = NATIVE.cast("f32", element, "rtne")(values).astype(np.float64)
    wide = values.astype(np.float64)
    assert (np.abs(ours) <= np.abs(wide)).all()
    assert (np.signbit(ours) == np.signbit(wide)).all()
    step = np.spacing(np.abs(ours).astype(STORAGE[element])).astype(np.float64)
    beyond = np.abs(ours) + step
    assert (np.abs(wide) < beyond).all()
    within = np.abs(nearest) <= np.abs(wide)
    assert np.array_equal(ours[within], nearest[within])


@pytest.mark.parametrize("target", ["f16", "bf16", *NARROW])
def test_stored_elements_are_the_carried_values(target):
    """What a store writes is what the format holds: nothing is rounded twice."""
    values = NATIVE.cast("f32", target, "rtne")(all_float32())
    stored = NATIVE.store(values, np.dtype(STORAGE[target]))
    assert same(stored.astype(np.float32), values).all()


def test_bfloat16_is_not_rounded_through_another_format():
    value = np.array([1 + 2**-8 + 2**-20, 1 + 2**-8, 1 + 3 * 2**-8], np.float32)
    assert NATIVE.cast("f32", "bf16", "rtne")(value).tolist() == [1 + 2**-7, 1, 1 + 2**-6]
    assert ml_dtypes.bfloat16(value[0]) == 1 + 2**-7
