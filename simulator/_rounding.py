"""Float formats: carrier types, rounding, bit patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

NARROW: dict[str, tuple[Any, float]] = {
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 448.0),
    "f8E5M2": (ml_dtypes.float8_e5m2, 57344.0),
    "f8E4M3FNUZ": (ml_dtypes.float8_e4m3fnuz, 240.0),
    "f8E5M2FNUZ": (ml_dtypes.float8_e5m2fnuz, 57344.0),
    "f8E4M3B11FNUZ": (ml_dtypes.float8_e4m3b11fnuz, 30.0),
}
"""float8 kinds: storage type and largest finite value, to which conversions saturate (PTX cvt)."""

CARRIER: dict[str, type[np.floating[Any]]] = {
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "tf32": np.float32,
    "f64": np.float64,
    **dict.fromkeys(NARROW, np.float32),
}
"""NumPy type in which values of an element are carried between operations."""

STORAGE: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    **{name: kind for name, (kind, _) in NARROW.items()},
}
"""NumPy type of an element in memory."""

_PATTERN = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def same(value: np.ndarray) -> np.ndarray:
    """Return ``value``: it needs no rounding."""
    return value


def round_bfloat16(value: np.ndarray) -> np.ndarray:
    """Nearest bfloat16, ties to even, as float32."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + (odd + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    result = rounded.view(np.float32).reshape(value.shape)
    unordered = np.isnan(value)
    return np.where(unordered, np.float32(np.nan), result) if unordered.any() else result


def truncate_bfloat16(value: np.ndarray) -> np.ndarray:
    """Next bfloat16 towards zero, as float32."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    result = bits.view(np.float32).reshape(value.shape)
    return np.where(np.isnan(value), np.float32(np.nan), result)


def truncate_float16(value: np.ndarray) -> np.ndarray:
    """Next float16 towards zero."""
    nearest = value.astype(np.float16)
    beyond = np.abs(nearest.astype(value.dtype)) > np.abs(value)
    return np.where(beyond, np.nextafter(nearest, np.float16(0)), nearest)


def round_tf32(value: np.ndarray) -> np.ndarray:
    """Nearest TF32, ties away from zero (PTX ``cvt.rna.tf32``), as float32."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    finite = (bits & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    return np.where(finite, rounded, bits).view(np.float32).reshape(value.shape)


def truncate_tf32(value: np.ndarray) -> np.ndarray:
    """Next TF32 towards zero, as float32: the lowest 13 bits are not looked at."""
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
    result = (bits & np.uint32(0xFFFFE000)).view(np.float32).reshape(value.shape)
    return np.where(np.isnan(value), value, result)


def _saturating(element: str) -> Callable[[np.ndarray], np.ndarray]:
    kind, largest = NARROW[element]

    def narrow(value: np.ndarray) -> np.ndarray:
        bounded = np.clip(value, -largest, largest)
        rounded: np.ndarray = bounded.astype(kind).astype(np.float32)
        return rounded

    return narrow


def rounder(element: str, rounding: str = "rtne") -> Callable[[np.ndarray], np.ndarray]:
    """Rounding of a carried array to the values of ``element``."""
    if element == "bf16":
        return truncate_bfloat16 if rounding == "rtz" else round_bfloat16
    return _saturating(element) if element in NARROW else same


def saturate(value: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    """Integers towards zero; out of range to the nearest end, NaN to 0 (PTX ``cvt.rzi``)."""
    result = value.astype(dtype)
    info = np.iinfo(dtype)  # type: ignore[type-var]
    high, low = value >= float(info.max), value <= float(info.min)
    unusual = high | low | np.isnan(value)
    if not unusual.any():
        return result
    result = np.where(high, info.max, np.where(low, info.min, result))
    return np.where(np.isnan(value), 0, result).astype(dtype)


def to_bits(value: np.ndarray, element: str) -> np.ndarray:
    """Signed integers with the bit patterns of ``value`` in the format ``element``."""
    stored = np.ascontiguousarray(value.astype(STORAGE[element], copy=False))
    return stored.view(_PATTERN[stored.dtype.itemsize]).reshape(value.shape)


def from_bits(value: np.ndarray, element: str) -> np.ndarray:
    """Carried values of bit patterns in the format ``element``."""
    stored = np.ascontiguousarray(value).view(STORAGE[element]).reshape(value.shape)
    carried: np.ndarray = stored.astype(CARRIER[element])
    return carried
