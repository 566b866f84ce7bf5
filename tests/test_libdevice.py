"""Functions of libdevice beyond the elementary ones, against mpmath and Python's integers."""

import mpmath
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trivet.simulator.executors import Simulator

X = np.asarray([0.0625, 0.25, 0.4, 0.5, 0.7, 0.8, 0.9375, 0.99], np.float32)
FUNCTIONS = {
    "cyl_bessel_i0": lambda x: mpmath.besseli(0, x),
    "cyl_bessel_i1": lambda x: mpmath.besseli(1, x),
    "j0": lambda x: mpmath.besselj(0, x),
    "j1": lambda x: mpmath.besselj(1, x),
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
    "erfinv": mpmath.erfinv,
    "erfcinv": lambda x: mpmath.erfinv(1 - x),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "normcdf": mpmath.ncdf,
    "normcdfinv": lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1),
    "saturatef": lambda x: x,
}


@triton.jit
def unary(x, o, NAME: tl.constexpr):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    if NAME == "cyl_bessel_i0":
        y = libdevice.cyl_bessel_i0(v)
    elif NAME == "cyl_bessel_i1":
        y = libdevice.cyl_bessel_i1(v)
    elif NAME == "j0":
        y = libdevice.j0(v)
    elif NAME == "j1":
        y = libdevice.j1(v)
    elif NAME == "y0":
        y = libdevice.y0(v)
    elif NAME == "y1":
        y = libdevice.y1(v)
    elif NAME == "erfinv":
        y = libdevice.erfinv(v)
    elif NAME == "erfcinv":
        y = libdevice.erfcinv(v)
    elif NAME == "erfcx":
        y = libdevice.erfcx(v)
    elif NAME == "normcdf":
        y = libdevice.normcdf(v)
    elif NAME == "normcdfinv":
        y = libdevice.normcdfinv(v)
    else:
        y = libdevice.saturatef(v)
    tl.store(o + i, y)


@triton.jit
def others(x, y, n, o, whole, products):
    i = tl.arange(0, 8)
    a, b, e = tl.load(x + i), tl.load(y + i), tl.load(n + i)
    tl.store(o + i, libdevice.ldexp(a, e))
    tl.store(o + 8 + i, libdevice.nextafter(a, b))
    tl.store(o + 16 + i, libdevice.rhypot(a, b))
    tl.store(o + 24 + i, libdevice.norm3d(a, b, a))
    tl.store(whole + i, libdevice.llrint(a * 10))
    tl.store(whole + 8 + i, libdevice.llround(a * 10))
    tl.store(whole + 16 + i, libdevice.ilogb(a).to(tl.int64))
    tl.store(products + i, libdevice.mul24(e * 12345, e))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_round_the_true_value(name: str) -> None:
    def host() -> torch.Tensor:
        o = torch.empty(8)
        unary[(1,)](torch.from_numpy(X), o, name)
        return o

    run = Simulator().run(host, {})
    assert run.error is None, run.error
    with mpmath.workprec(100):
        wanted = np.asarray([float(FUNCTIONS[name](mpmath.mpf(float(x)))) for x in X], np.float32)
    got = run.outputs[0].numpy()  # type: ignore[attr-defined]
    assert (np.abs(got - wanted) <= np.spacing(np.abs(wanted))).all()


def test_scaling_neighbours_lengths_and_whole_numbers() -> None:
    y = X[::-1].copy()
    n = np.asarray([-3, 0, 5, 127, -149, 3000, -3000, 1], np.int32)

    def host() -> tuple[torch.Tensor, ...]:
        o, whole = torch.empty(32), torch.empty(24, dtype=torch.int64)
        products = torch.empty(8, dtype=torch.int32)
        given = [torch.from_numpy(array) for array in (X, y, n)]
        others[(1,)](*given, o, whole, products)
        return o, whole, products

    run = Simulator().run(host, {})
    assert run.error is None, run.error
    o, whole, products = (tensor.numpy() for tensor in run.outputs)  # type: ignore[attr-defined]
    wide_x, wide_y = X.astype(np.float64), y.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        assert np.array_equal(o[:8], np.ldexp(wide_x, n).astype(np.float32))
    assert np.array_equal(o[8:16], np.nextafter(X, y))
    length = np.hypot(wide_x, wide_y)
    assert (np.abs(o[16:24] - 1 / length) <= np.spacing(o[16:24])).all()
    assert (np.abs(o[24:] - np.hypot(length, wide_x)) <= np.spacing(o[24:])).all()
    tens = X * np.float32(10)
    assert np.array_equal(whole[:8], np.rint(tens))
    assert np.array_equal(whole[8:16], np.floor(tens + 0.5))
    assert np.array_equal(whole[16:], np.floor(np.log2(X)))
    low = [((int(e) * 12345 + 2**23) % 2**24 - 2**23) * int(e) for e in n]
    assert products.tolist() == [(p + 2**31) % 2**32 - 2**31 for p in low]
