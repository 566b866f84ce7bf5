"""TF32 by rounding or truncation, fused multiply-adds or none: what each does to the bits."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator._rounding import round_tf32, truncate_tf32
from trivet.simulator.executors import Simulator


@triton.jit
def product(x, y, out, PRECISION: tl.constexpr):
    row, column = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    place = row * 16 + column
    found = tl.dot(tl.load(x + place), tl.load(y + place), input_precision=PRECISION)
    tl.store(out + place, found)


@triton.jit
def combined(x, y, z, out, KIND: tl.constexpr):
    lane = tl.arange(0, 64)
    a, b, c = tl.load(x + lane), tl.load(y + lane), tl.load(z + lane)
    if KIND == 0:
        found = a * b + c
    elif KIND == 1:
        found = c + a * b
    elif KIND == 2:
        found = a * b - c
    elif KIND == 3:
        found = c - a * b
    else:
        held = a * b
        found = held + c + held
    tl.store(out + lane, found)


def draws(count, *shape):
    draw = np.random.default_rng(3)
    return [draw.standard_normal(shape).astype(np.float32) for _ in range(count)]


def ran(kernel, *arrays, shape, constant, **options):
    def host(**given):
        out = torch.empty(shape)
        kernel[(1,)](*given.values(), out, constant)
        return out

    given = {f"a{n}": torch.from_numpy(array.copy()) for n, array in enumerate(arrays)}
    run = Simulator(**options).run(host, given)
    assert (run.error, run.faults) == (None, [])
    return run.outputs[0].numpy()


def ascending(a, b):
    total = np.zeros((16, 16), np.float32)
    for k in range(16):
        total = total + a[:, k, None] * b[k]
    return total


@pytest.mark.parametrize(("tf32", "narrow"), [("round", round_tf32), ("truncate", truncate_tf32)])
def test_inputs_of_a_dot_are_narrowed_as_asked(tf32, narrow):
    x, y = draws(2, 16, 16)
    found = ran(product, x, y, shape=(16, 16), constant="tf32", tf32=tf32)
    assert np.array_equal(found, ascending(narrow(x), narrow(y)))
    exact = ran(product, x, y, shape=(16, 16), constant="ieee", tf32=tf32)
    assert np.array_equal(exact, ascending(x, y))


def test_tf32_has_ten_bits_after_the_point():
    x = np.array([1 + 2**-11, 1 + 2**-11 + 2**-23, -1 - 2**-12, 1 + 2**-10], np.float32)
    assert round_tf32(x).tolist() == [1 + 2**-10, 1 + 2**-10, -1, 1 + 2**-10]
    assert truncate_tf32(x).tolist() == [1, 1, -1, 1 + 2**-10]
    unusual = np.array([np.inf, -np.inf, np.nan, -0.0], np.float32)
    for narrow in (round_tf32, truncate_tf32):
        assert np.array_equal(narrow(unusual), unusual, equal_nan=True)


def once(a, b, c):
    """The sum of a product, rounded once: float64 holds the product, the sum is told apart."""
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(
        np.float32
    )


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no float wider than float64 here")
def test_a_sum_of_a_product_is_rounded_once_where_fused():
    x, y, z = draws(3, 64)
    wanted = [
        (x * y + z, once(x, y, z)),
        (z + x * y, once(x, y, z)),
        (x * y - z, once(x, y, -z)),
        (z - x * y, once(-x, y, z)),
    ]
    for kind, (plain, fused) in enumerate(wanted):
        apart = ran(combined, x, y, z, shape=64, constant=kind)
        together = ran(combined, x, y, z, shape=64, constant=kind, fused=True)
        assert np.array_equal(apart, plain)
        assert np.array_equal(together, fused)
        assert not np.array_equal(apart, together)


def test_a_product_that_is_used_twice_stays():
    x, y, z = draws(3, 64)
    found = ran(combined, x, y, z, shape=64, constant=4, fused=True)
    assert np.array_equal(found, x * y + z + x * y)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no float wider than float64 here")
def test_a_dot_is_a_chain_of_fused_operations():
    x, y = draws(2, 16, 16)
    total = np.zeros((16, 16), np.float32)
    for k in range(16):
        total = once(x[:, k, None], y[k], total)
    assert np.array_equal(ran(product, x, y, shape=(16, 16), constant="ieee", fused=True), total)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tf32": "nearest"}, "tf32 'nearest': expected one of"),
        ({"arithmetic": "as_interpreter", "fused": True}, "options of the native arithmetic"),
    ],
)
def test_options_that_say_nothing_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Simulator(**options)
