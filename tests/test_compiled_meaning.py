"""Edges of the types: the machine means what the compiled code means, also where NumPy does not.

Triton's interpreter is no judge here. It casts floats as C does (out of range anything, 8 bits
without the detour over 16), and finds places of largest elements with ``nanargmax``, which skips
NaN and raises where all are NaN. Shifts by the width or more and ``INT_MIN // -1`` are undefined
in LLVM; PTX clamps the one and wraps the other, and so do NumPy and the machine.
"""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

KERNELS = Path(__file__).parent / "kernels"
NAN, INF = float("nan"), float("inf")
INTEGERS = [np.int8, np.int32, np.int64]


def load(name):
    spec = importlib.util.spec_from_file_location(name, KERNELS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


meanings, runner = load("meanings"), load("runner")


def run(kernel, **given):
    block = {"BLOCK": next(iter(given.values())).size}
    assert runner.run(kernel, 1, given, block).faults == []
    return given["out"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_truncates_and_the_remainder_has_the_sign_of_the_dividend(dtype):
    low = np.iinfo(dtype).min
    table = [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (low, -1, low, 0)]
    table += [(low, 2, low // 2, 0), (low, low, 1, 0), (1, low, 0, 1)]
    x, y, quotient, rest = np.array(table, dtype).T.copy()
    out = run(meanings.division, x=x, y=y, out=np.zeros((2, 8), dtype))
    assert out.tolist() == [quotient.tolist(), rest.tolist()]


def test_division_of_unsigned_integers_is_that_of_their_bits():
    x, y = np.array([255, 255, 128, 7], np.uint8), np.array([2, 255, 128, 200], np.uint8)
    out = run(meanings.division, x=x, y=y, out=np.zeros((2, 4), np.uint8))
    assert out.tolist() == [[127, 1, 1, 0], [1, 0, 0, 7]]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_the_width_or_more_leave_nothing_but_the_sign(dtype):
    width, high = 8 * np.dtype(dtype).itemsize, np.iinfo(dtype).max
    x = np.array([1, -1, high, high, -8, -8, 5, -5], dtype)
    y = np.array([width - 1, width - 1, 1, width, width, width + 5, -1, -1], dtype)
    left, right = run(meanings.shifts, x=x, y=y, out=np.zeros((2, 8), dtype)).tolist()
    assert left == [np.iinfo(dtype).min, np.iinfo(dtype).min, -2, 0, 0, 0, 0, 0]
    assert right == [0, -1, high // 2, 0, -1, -1, 0, -1]


def test_right_shifts_of_unsigned_integers_bring_in_zeros():
    x, y = np.array([200, 200, 200, 255], np.uint8), np.array([1, 7, 8, 255], np.uint8)
    out = run(meanings.shifts, x=x, y=y, out=np.zeros((2, 4), np.uint8))
    assert out.tolist() == [[144, 0, 0, 0], [100, 1, 0, 0]]


FLOATS = [2.9, -2.9, -0.5, 300.0, 1e30, -1e30, INF, NAN]
_I32, _I64 = (np.iinfo(kind) for kind in (np.int32, np.int64))
WHOLE = [
    # An 8-bit integer is the low half of a 16-bit one: 300 is 44, the largest is -1.
    (np.float32, np.int8, [2, -2, 0, 44, -1, 0, -1, 0]),
    (np.float32, np.uint8, [2, 0, 0, 44, 255, 0, 255, 0]),
    (np.float32, np.int32, [2, -2, 0, 300, _I32.max, _I32.min, _I32.max, 0]),
    (np.float32, np.int64, [2, -2, 0, 300, _I64.max, _I64.min, _I64.max, _I64.min]),
    (np.float64, np.int8, [2, -2, 0, 44, -1, 0, -1, 0]),
    (np.float64, np.int32, [2, -2, 0, 300, _I32.max, _I32.min, _I32.max, _I32.min]),
    (np.float64, np.int64, [2, -2, 0, 300, _I64.max, _I64.min, _I64.max, _I64.min]),
]


@pytest.mark.parametrize(("source", "target", "wanted"), WHOLE)
def test_floats_become_integers_as_ptx_converts_them(source, target, wanted):
    out = run(meanings.whole, x=np.array(FLOATS, source), out=np.zeros(8, target))
    assert out.tolist() == wanted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maximum_loses_nan_unless_told_to_keep_it(dtype):
    x = np.array([NAN, 2.0, NAN, -0.0, 0.0, INF, 3.0, -5.0], dtype)
    y = np.array([1.0, NAN, NAN, 0.0, -0.0, NAN, 4.0, -INF], dtype)
    out = run(meanings.extremes, x=x, y=y, out=np.zeros((6, 8), dtype))
    wanted = [
        [1, 2, NAN, 0, 0, INF, 4, -5],
        [1, 2, NAN, -0.0, -0.0, INF, 3, -INF],
        [NAN, NAN, NAN, 0, 0, NAN, 4, -5],
        [NAN, NAN, NAN, -0.0, -0.0, NAN, 3, -INF],
        [-1, 1, -1, -0.0, 0, 1, 1, -1],
        [NAN, 1, NAN, -0.0, 0, 1, 1, -1],
    ]
    assert np.array_equal(out, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(out)[:4, 3:5], np.signbit(wanted)[:4, 3:5])


@pytest.mark.parametrize(
    ("row", "value", "place", "number"),
    [
        ([5.0, NAN], NAN, 1, 5.0),
        ([NAN, 5.0], 5.0, 1, 5.0),
        ([NAN, NAN], NAN, 1, NAN),
        ([3.0, 3.0], 3.0, 0, 3.0),
    ],
)
def test_the_place_of_the_largest_follows_the_comparison(row, value, place, number):
    """Of a pair the left one is kept only if it is larger, which no NaN and nothing beside is."""
    values, places = np.zeros(2, np.float32), np.zeros(1, np.int32)
    given = {"x": np.array(row, np.float32), "values": values, "places": places}
    assert runner.run(meanings.largest, 1, given, {"BLOCK": 2}).faults == []
    assert np.array_equal(values, np.array([value, number], np.float32), equal_nan=True)
    assert places[0] == place


@pytest.mark.parametrize(
    ("kernel", "kinds", "instructions"),
    [
        ("whole", {"x": "*fp32", "out": "*i8"}, ["cvt.rzi.s16.f32"]),
        ("whole", {"x": "*fp32", "out": "*u8"}, ["cvt.rzi.u16.f32"]),
        ("whole", {"x": "*fp64", "out": "*i64"}, ["cvt.rzi.s64.f64"]),
        ("shifts", dict.fromkeys(("x", "y", "out"), "*i32"), ["shl.b32", "shr.s32"]),
        ("division", dict.fromkeys(("x", "y", "out"), "*i32"), ["div.s32"]),
        ("extremes", dict.fromkeys(("x", "y", "out"), "*fp32"), ["max.f32", "max.NaN.f32"]),
    ],
)
def test_the_tables_are_about_the_instructions_triton_emits(kernel, kinds, instructions):
    signature = {**kinds, "BLOCK": "constexpr"}
    source = ASTSource(getattr(meanings, kernel), signature, {"BLOCK": 8})
    text = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    for instruction in instructions:
        assert re.search(rf"\s{re.escape(instruction)}\s", text), instruction
