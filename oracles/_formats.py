"""Binary floating-point formats: limits, and rounding of float64 values exactly once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Format:
    """A storage format: `significand` counts the hidden bit, `minimum` is the exponent of the
    smallest normal number, `largest` the largest finite one."""

    name: str
    significand: int
    minimum: int
    largest: float
    infinite: bool = True

    @property
    def unit(self) -> float:
        """Unit roundoff: round to nearest errs by at most `unit` times the value."""
        return 2.0**-self.significand

    @property
    def normal(self) -> float:
        """The smallest positive normal number."""
        return 2.0**self.minimum

    @property
    def subnormal(self) -> float:
        """The smallest positive number, the spacing of the subnormal range."""
        return 2.0 ** (self.minimum - self.significand + 1)


FORMATS = {
    format.name: format
    for format in (
        Format("float64", 53, -1022, float(np.finfo(np.float64).max)),
        Format("float32", 24, -126, float(np.finfo(np.float32).max)),
        Format("tf32", 11, -126, (2 - 2.0**-10) * 2.0**127),
        Format("float16", 11, -14, 65504.0),
        Format("bfloat16", 8, -126, (2 - 2.0**-7) * 2.0**127),
        Format("float8_e5m2", 3, -14, 57344.0),
        Format("float8_e4m3fn", 4, -6, 448.0, infinite=False),
        Format("float8_e4m3fnuz", 4, -7, 240.0, infinite=False),
        Format("float8_e5m2fnuz", 3, -15, 57344.0, infinite=False),
    )
}


def format_of(dtype: Any) -> Format:
    """The format of a NumPy or ml_dtypes dtype, or of a name. Raises ValueError for others."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in FORMATS:
        raise ValueError(f"{name!r} is not a floating-point format; known: {', '.join(FORMATS)}")
    return FORMATS[name]


def round_to(values: npt.ArrayLike, format: Format, *, saturate: bool = False) -> Array:
    """`values` (float64, any shape) rounded to nearest even in `format`, once, as float64.

    Beyond the largest finite number the result is an infinity, or NaN where the format has none;
    with `saturate` it is the largest finite number (infinities saturate too).
    """
    with np.errstate(invalid="ignore"):
        values = np.asarray(values, np.float64)
    if format.name == "float64":
        return values
    with np.errstate(all="ignore"):
        if format.name == "float32":
            rounded = values.astype(np.float32).astype(np.float64)
        else:
            exponent = np.maximum(np.frexp(values)[1], format.minimum + 1) - format.significand
            rounded = np.ldexp(np.rint(np.ldexp(values, -exponent)), exponent)
        over = np.abs(rounded) > format.largest
        if saturate:
            return np.where(over, np.copysign(format.largest, values), rounded)
        beyond = np.copysign(np.inf, values) if format.infinite else np.nan
        return np.where(over, beyond, rounded)
