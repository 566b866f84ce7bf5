"""Numbers: integers, functions, casts, atomics and matrix products against plain NumPy."""

import importlib.util
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import triton.language as tl

from trivet.simulator.arithmetic import Native, Shadow
from trivet.simulator.frontend import lower
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


constructs, runner = load("constructs"), load("runner")
CHUNKS = [None, 1, 3]


def run(kernel, grid, given, constexprs=None, **settings):
    report = runner.run(kernel, grid, given, constexprs, **settings)
    assert [fault.text for fault in report.faults] == []
    return given


def floats(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def test_wide_and_unsigned_integers():
    rng = np.random.default_rng(0)
    x, y = rng.integers(-(2**62), 2**62, (2, 16)) * 2 + 1
    given = {"x": x, "y": y, "out": zeros(3, 16, dtype=np.int64)}
    run(constructs.wide_integers, 1, given, {"BLOCK": 16})
    mask = 2**64 - 1
    pairs = [(int(a) & mask, int(b) & mask) for a, b in zip(x, y, strict=True)]
    wanted = np.array([(a * b >> 64) for a, b in pairs], np.uint64).view(np.int64)
    assert np.array_equal(given["out"][0], wanted)
    wanted = np.array([(a // 3 + (b >> 7)) & mask for a, b in pairs], np.uint64).view(np.int64)
    assert np.array_equal(given["out"][1], wanted)
    order = [2 * (a < b) + ((int(a) & mask) < (int(b) & mask)) for a, b in zip(x, y, strict=True)]
    assert np.array_equal(given["out"][2], order)


@pytest.mark.parametrize(("arithmetic", "kind"), [(Native, np.float32), (Shadow, np.float64)])
def test_functions(arithmetic, kind):
    """No row rounds more than five times, and no condition number exceeds ten."""
    x = floats(32) * 3
    given = {"x": x.astype(kind), "out": zeros(14, 32, dtype=kind), "n": 32}
    kinds = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    machine = Machine(lower(constructs.functions, kinds, {"BLOCK": 32}).module, arithmetic())
    pointers = [as_float32(key, given[key]) for key in ("x", "out")]
    assert machine.launch((1, 1, 1), [*pointers, 32], Settings()).faults == []
    v = x.astype(np.float64)
    size = np.abs(v)
    wanted = np.array(
        [
            1 / (1 + np.exp(-v)),
            [math.erf(a) for a in v],
            np.tanh(v),
            (size + 0.5) ** v,
            np.log1p(size),
            1 / np.sqrt(size + 1),
            v * v + v,
            np.clip(v, -0.5, 0.5),
            np.floor(v) + np.ceil(v),
            np.ones(32),
            np.rint(v * 2),
            v / 3 + np.sqrt(size),
            np.arctan2(v, v + 1),
            np.expm1(v),
        ]
    )
    rounding = np.spacing(np.maximum(np.abs(wanted), 1).astype(kind)) / 2
    assert (np.abs(given["out"] - wanted) <= 5 * 10 * rounding).all()


def as_float32(name, array):
    """Storage of float32 elements, which a shadow keeps in float64."""
    allocation = Allocation(array.reshape(-1), "f32", name=name)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Argument(name, allocation, 0, array.shape, strides)


def test_casts_round_to_nearest_even_and_saturate_where_the_hardware_does():
    special = [0.0, -0.0, 1.9449, 1e9, -1e9, np.inf, -np.inf, np.nan, 3e38, 70000.0, 1e-42, 65519.0]
    x = np.concatenate([np.array(special, np.float32), floats(20) * 100])
    brain = ml_dtypes.bfloat16
    given = {
        "x": x,
        "half": zeros(32, dtype=np.float16),
        "brain": zeros(32, dtype=brain),
        "octet": zeros(32),
        "whole": zeros(32, dtype=np.int32),
    }
    run(constructs.casts, 1, given, {"BLOCK": 32})
    with np.errstate(all="ignore"):
        assert np.array_equal(given["half"], x.astype(np.float16), equal_nan=True)
        wanted = x.astype(brain).astype(np.float32)
        assert np.array_equal(given["brain"].astype(np.float32), wanted, equal_nan=True)
        octets = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
        assert np.array_equal(given["octet"], octets, equal_nan=True)
        whole = np.nan_to_num(np.clip(np.trunc(x.astype(np.float64)), -(2**31), 2**31 - 1))
        assert np.array_equal(given["whole"], whole.astype(np.int32))


def test_bfloat16_rounds_after_every_operation():
    brain = ml_dtypes.bfloat16
    a, b = floats(64).astype(brain), floats(64, seed=1).astype(brain)
    given = {"x": a, "y": b, "out": zeros(64, dtype=brain)}
    run(constructs.brain_arithmetic, 1, given, {"BLOCK": 64})
    assert np.array_equal(given["out"].view(np.int16), (a * b + a).view(np.int16))


def test_bit_casts():
    given = {"x": floats(16), "out": zeros(16)}
    run(constructs.bits, 1, given, {"BLOCK": 16})
    assert np.array_equal(given["out"], -given["x"])


def test_booleans_in_memory():
    given = {"x": floats(16), "seen": zeros(16, dtype=np.bool_), "out": zeros(16)}
    run(constructs.flags, 1, given, {"BLOCK": 16})
    assert np.array_equal(given["seen"], given["x"] > 0)
    assert np.array_equal(given["out"], np.abs(given["x"]))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_atomics_of_every_kind(chunk):
    numbers = np.zeros(26, np.int32)
    numbers[8:16] = 100
    given = {"values": zeros(8), "numbers": numbers, "old": zeros(5, 16, dtype=np.int32)}
    given["values"][:4] = -9
    run(constructs.atomics, 5, given, {"BLOCK": 16}, chunk=chunk)
    lane = np.arange(16)
    value = (lane * 7 + np.arange(5)[:, None] * 3) % 11
    columns = [value[:, lane % 4 == column].ravel() for column in range(4)]
    ufuncs = [np.add, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor]
    starts = [0, 0, 100, 100, 0, 0]
    for row, (ufunc, start) in enumerate(zip(ufuncs, starts, strict=True)):
        parts = [part | 8 if ufunc is np.bitwise_and else part for part in columns]
        wanted = [ufunc.reduce(np.r_[start, part]) for part in parts]
        assert numbers[4 * row : 4 * row + 4].tolist() == wanted
    assert given["values"][:4].tolist() == [part.max() - 5.5 for part in columns]
    assert given["values"][4:].tolist() == [part.sum() for part in columns]
    for parity in range(2):
        seen = given["old"][:, lane % 2 == parity].ravel()
        assert sorted(seen) == list(range(40))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_compare_and_swap_lets_one_lane_win(chunk):
    given = {"slots": zeros(8, dtype=np.int32), "got": zeros(3, 16, dtype=np.int32)}
    run(constructs.swaps, 3, given, {"BLOCK": 16}, chunk=chunk)
    assert given["slots"].tolist() == list(range(1, 17, 2))
    first = np.where(np.arange(16) % 2 == 0, 0, np.arange(16))
    assert given["got"][0].tolist() == first.tolist()
    assert (given["got"][1:] == np.repeat(given["slots"], 2)).all()


def in_order(a, b):
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = total + a[:, k, None].astype(np.float32) * b[None, k].astype(np.float32)
    return total


def to_tf32(x):
    return ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize(
    ("dtype", "mode"), [(np.float16, "ieee"), (np.float32, "ieee"), (np.float32, "tf32")]
)
def test_dot_adds_in_ascending_order(dtype, mode):
    a, b = floats(32, 64, dtype=dtype), floats(64, 16, seed=1, dtype=dtype)
    given = {"a": a, "b": b, "out": zeros(32, 16)}
    run(constructs.half_dot, 1, given, {"M": 32, "N": 16, "K": 64, "MODE": mode})
    if mode == "tf32":
        a, b = to_tf32(a), to_tf32(b)
    assert np.array_equal(given["out"], in_order(a, b))


def test_dot_of_a_batch_and_of_bytes():
    given = {"a": floats(2, 16, 16), "b": floats(2, 16, 16, seed=1), "out": zeros(2, 16, 16)}
    run(constructs.batched_dot, 1, given, {"B": 2, "M": 16})
    for a, b, out in zip(*given.values(), strict=True):
        assert np.array_equal(out, in_order(a, b))
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (2, 32, 32)).astype(np.int8)
    given = {"a": a, "b": b, "out": zeros(32, 32, dtype=np.int32)}
    run(constructs.byte_dot, 1, given, {"M": 32})
    assert np.array_equal(given["out"], a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(("kind", "pack"), [("e5m2", 1), ("e2m1", 2)])
def test_scaled_dot_decodes_values_and_scales(kind, pack):
    rng = np.random.default_rng(0)
    octets = rng.integers(0, 256, (32, 64 // pack)).astype(np.uint8)
    octets[octets & 0x7C == 0x7C] = 0
    right = rng.integers(0, 120, (64, 32)).astype(np.uint8)
    scales = rng.integers(120, 130, (2, 32, 2)).astype(np.uint8)
    given = {
        "a": octets,
        "scale_a": scales[0],
        "b": right,
        "scale_b": scales[1],
        "out": zeros(32, 32),
    }
    run(constructs.scaled_dot, 1, given, {"M": 32, "K": 64, "PACK": pack, "KIND": kind})
    left = octets.view(ml_dtypes.float8_e5m2).astype(np.float32)
    if kind == "e2m1":
        nibbles = np.stack([octets & 15, octets >> 4], -1).reshape(32, 64)
        left = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    left = left * np.repeat(2.0 ** (scales[0] - 127.0), 32, 1).astype(np.float32)
    other = right.view(ml_dtypes.float8_e5m2).astype(np.float32)
    other = other * np.repeat(2.0 ** (scales[1] - 127.0), 32, 1).astype(np.float32).T
    assert np.array_equal(given["out"], in_order(left, other))


def test_counts_of_bits():
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 16).astype(np.int32) << np.arange(16)
    x[:2] = 0, -1
    given = {"x": x.astype(np.int32), "out": zeros(4, 16, dtype=np.int32)}
    run(constructs.bit_counts, 1, given, {"BLOCK": 16})
    texts = [format(int(value) & 0xFFFFFFFF, "032b") for value in given["x"]]
    assert given["out"][0].tolist() == [text.count("1") for text in texts]
    assert given["out"][1].tolist() == [(text + "1").index("1") for text in texts]
    assert given["out"][2].tolist() == [(text[::-1].find("1") + 1) for text in texts]
    assert given["out"].view(np.uint32)[3].tolist() == [int(text[::-1], 2) for text in texts]


@pytest.mark.skipif(not hasattr(tl, "atomic_poll"), reason="this Triton has no tl.atomic_poll")
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_waiting_for_another_program_succeeds(order):
    given = {"flag": zeros(4, dtype=np.int32), "seen": zeros(4, dtype=np.int32)}
    run(constructs.polling, 4, given, order=order)
    assert given["seen"].tolist() == [0, 1, 1, 1]
