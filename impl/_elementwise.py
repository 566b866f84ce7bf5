"""Device functions that stay accurate where the textbook forms cancel or overflow.

They use no library call beyond exp, so every backend and the interpreter run them alike.
"""

import triton
import triton.language as tl


@triton.jit
def _tanh_quotient(square: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return (P, Q - P) of the [7/6] Pade form tanh(y) = y P / Q, square = y * y.

    From the continued fraction y / (1 + y^2 / (3 + y^2 / (5 + ...))). All coefficients are
    positive integers, exact in float32; up to y = 1 the form is off by at most 3e-12 relative.
    """
    numerator = ((square + 378.0) * square + 17325.0) * square + 135135.0
    excess = ((27.0 * square + 2772.0) * square + 45045.0) * square
    return numerator, excess


@triton.jit
def tanh(x: tl.tensor) -> tl.tensor:
    """tanh(x), elementwise, float32, within 2^-23 relative (exp and division rounded correctly).

    Nothing overflows in the branch that is taken; NaN stays NaN.
    """
    size = tl.abs(x)
    numerator, excess = _tanh_quotient(size * size)
    near = x - x * (excess / (numerator + excess))
    falling = tl.exp(-2.0 * size)
    far = 1.0 - 2.0 * falling / (1.0 + falling)
    return tl.where(size < 0.9, near, tl.where(x < 0.0, -far, far))


@triton.jit
def tanh_slope(x: tl.tensor) -> tl.tensor:
    """1 - tanh(x)^2, elementwise, float32, accurate relative to itself where tanh(x) is near 1."""
    falling = tl.exp(-2.0 * tl.abs(x))
    return 4.0 * falling / ((1.0 + falling) * (1.0 + falling))


@triton.jit
def expm1(x: tl.tensor) -> tl.tensor:
    """exp(x) - 1, elementwise, float32, within 2^-23 relative (exp and division as for tanh).

    Near 0 it is 2 y P / (Q - y P) with y = x / 2 and tanh(y) = y P / Q, written as x plus a
    correction so that the last rounding decides.
    """
    half = 0.5 * x
    numerator, excess = _tanh_quotient(half * half)
    lean = half * numerator
    near = x + x * ((lean - excess) / (numerator + excess - lean))
    return tl.where(tl.abs(x) < 0.5, near, tl.exp(x) - 1.0)


@triton.jit
def log1p(x: tl.tensor) -> tl.tensor:
    """log(1 + x), elementwise, float32, x >= 0, accurate relative to itself.

    W. Kahan's quotient: the rounding of 1 + x spoils its logarithm and its distance from 1 alike.
    """
    sum = 1.0 + x
    gap = sum - 1.0
    return tl.where(gap == 0.0, x, tl.log(sum) * (x / tl.where(gap == 0.0, 1.0, gap)))


@triton.jit
def sigmoid(x: tl.tensor) -> tl.tensor:
    """1 / (1 + exp(-x)), elementwise, float32, accurate relative to itself; nothing overflows."""
    falling = tl.exp(-tl.abs(x))
    return tl.where(x < 0.0, falling, 1.0) / (1.0 + falling)
