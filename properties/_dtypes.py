"""The storage types of arguments: their NumPy forms, ranges, and rounding into a range."""

from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Dtype:
    """A storage type by the name torch gives it; ``digits`` counts the bits of a significand."""

    name: str
    numpy: np.dtype[np.generic]
    family: str  # float, int or bool
    lowest: float
    highest: float
    digits: int
    tiny: float  # smallest normal, 1 for whole numbers
    smallest: float  # smallest positive

    @property
    def floating(self) -> bool:
        """Whether its values are floats."""
        return self.family == "float"


_FLOATS: Mapping[str, object] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _float(name: str, kind: object) -> Dtype:
    numpy = np.dtype(kind)  # type: ignore[call-overload]
    facts = ml_dtypes.finfo(numpy)  # type: ignore[no-untyped-call]
    return Dtype(
        name,
        numpy,
        "float",
        float(facts.min),
        float(facts.max),
        int(facts.nmant) + 1,
        float(facts.smallest_normal),
        float(facts.smallest_subnormal),
    )


def _whole(name: str) -> Dtype:
    numpy = np.dtype(name)
    facts = np.iinfo(name)
    return Dtype(name, numpy, "int", facts.min, facts.max, facts.bits, 1, 1)


DTYPES: Mapping[str, Dtype] = {
    **{name: _float(name, kind) for name, kind in _FLOATS.items()},
    **{name: _whole(name) for name in _WHOLE},
    "bool": Dtype("bool", np.dtype(bool), "bool", 0, 1, 1, 1, 1),
}


def _rounded(value: float, dtype: Dtype, *, up: bool) -> float:
    """``value`` rounded to the storage type in one direction, within its finite range."""
    value = min(max(value, dtype.lowest), dtype.highest)
    near = np.asarray(value).astype(dtype.numpy)
    if float(near) < value if up else float(near) > value:
        end = np.asarray(dtype.highest if up else dtype.lowest).astype(dtype.numpy)
        near = np.nextafter(near, end)
    return float(near)


def range_in(dtype: Dtype, lo: float, hi: float) -> tuple[float, float]:
    """The smallest and largest stored values from lo to hi, as floats; (1, 0) where none is."""
    if lo > hi or lo > dtype.highest or hi < dtype.lowest:
        return 1.0, 0.0
    low, high = _rounded(lo, dtype, up=True), _rounded(hi, dtype, up=False)
    return (low, high) if low <= high else (1.0, 0.0)


def stored(values: NDArray[np.float64], dtype: Dtype, lo: float, hi: float) -> NDArray[np.float64]:
    """``values`` clipped to lo..hi and rounded to the storage type within it, as float64."""
    low, high = range_in(dtype, lo, hi)
    with np.errstate(all="ignore"):
        rounded = np.clip(values, low, high).astype(dtype.numpy).astype(np.float64)
    return np.clip(rounded, low, high)


def stored_number(value: float, dtype: Dtype, lo: float, hi: float) -> float:
    """As ``stored``, for one number."""
    return float(stored(np.asarray(value, np.float64), dtype, lo, hi))
