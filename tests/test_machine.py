"""Each construct of the language against plain NumPy."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import triton

from trivet.simulator.arithmetic import Native
from trivet.simulator.frontend import lower
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.parser import parse


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


constructs, runner = load("constructs"), load("runner")
CHUNKS = [None, 1, 3]
DETERMINISTIC_CAT = not triton.__version__.startswith("3.6")


def run(kernel, grid, given, constexprs=None, **settings):
    report = runner.run(kernel, grid, given, constexprs, **settings)
    assert [fault.text for fault in report.faults] == []
    return given


def floats(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_nested_loops_with_bounds_of_each_program(chunk):
    inner = np.array([3, 0, 5, 2, 7], np.int32)
    x = floats(16)
    given = {"x": x, "out": zeros(5, 16), "inner": inner}
    run(constructs.nested_loops, 5, given, {"BLOCK": 16}, chunk=chunk)
    for program in range(5):
        total = zeros(16)
        for i in range(program + 1):
            for j in range(i, inner[program]):
                total = total + x * np.float32(j + 1) if (i + j) % 2 == 0 else total - 1
        assert np.array_equal(given["out"][program], total)


def collatz(value):
    steps = 0
    while value != 1:
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        steps += 1
    return steps


@pytest.mark.parametrize("chunk", CHUNKS)
def test_while_loop_whose_programs_leave_at_different_times(chunk):
    given = {"out": zeros(30, dtype=np.int32)}
    run(constructs.collatz, 30, given, {"BLOCK": 1}, chunk=chunk)
    assert given["out"].tolist() == [collatz(n + 1) for n in range(30)]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_some_programs_return_early(chunk):
    x = np.array([17, -3, 0, 99, -1, 4], np.int32)
    given = {"x": x, "out": zeros(6, dtype=np.int32), "n": 12}
    run(constructs.return_from_loop_body, 6, given, {"BLOCK": 1}, chunk=chunk)
    assert given["out"].tolist() == [min(11, math.isqrt(v)) if v >= 0 else -1 for v in x]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_pointers_to_different_arguments_merge(chunk):
    a, b = floats(16), floats(16, seed=1)
    given = {"a": a, "b": b, "out": zeros(4, 16)}
    run(constructs.choose_pointer, 4, given, {"BLOCK": 16}, chunk=chunk)
    mixed = np.where(np.arange(16) % 2 == 0, a, b)
    for program in range(4):
        assert np.array_equal(given["out"][program], (b if program % 2 else a) + mixed)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_call_of_a_function_that_returns_in_two_places(chunk):
    given = {"x": floats(4, 16), "out": zeros(4, 16)}
    run(constructs.calls, 4, given, {"BLOCK": 16}, chunk=chunk)
    even = np.arange(4)[:, None] % 2 == 0
    assert np.array_equal(given["out"], np.where(even, given["x"] * 2, given["x"] + 100))


def test_descriptor_blocks_are_clipped_at_the_edges():
    given = {"x": floats(40, 52), "out": zeros(40, 52), "m": 40, "n": 52}
    run(constructs.descriptors, (3, 4), given, {"BLOCK": 16})
    assert np.array_equal(given["out"], given["x"] * 2 + 1)


def test_descriptors_made_on_the_host_bring_their_sizes():
    x, out = floats(40, 16), zeros(40, 16)
    kinds = {"source": "tensordesc<fp32[16, 16]>", "target": "tensordesc<fp32[16, 16]>"}
    machine = Machine(lower(constructs.host_descriptors, kinds, {"BLOCK": 16}).module, Native())
    sizes = [40, 16, 16, 1]
    given = [runner.argument("source", x), *sizes, runner.argument("target", out), *sizes]
    assert machine.launch((3, 1, 1), given, Settings()).faults == []
    assert np.array_equal(out, x + 1)


def test_descriptor_lines_are_gathered_and_scattered():
    lines = np.array([3, 0, 9, 5, 5, 1, 2, 7], np.int32)
    given = {"x": floats(8, 32), "out": zeros(8, 32), "lines": lines, "m": 8, "n": 32}
    run(constructs.descriptor_lines, 1, given, {"BLOCK": 32})
    wanted = np.where((lines < 8)[:, None], given["x"][lines % 8], np.nan)
    assert np.array_equal(given["out"], wanted, equal_nan=True)


def test_descriptor_reduction_adds_inside_only():
    given = {"x": floats(3, 8, 16), "out": zeros(6, 16), "n": 16}
    run(constructs.descriptor_sum, 3, given, {"BLOCK": 16})
    assert np.array_equal(given["out"], (given["x"][0] + given["x"][1] + given["x"][2])[:6])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_operations_that_move_elements(chunk):
    given = {"x": floats(5, 16), "out": zeros(5, 16)}
    run(constructs.shapes, 5, given, {"BLOCK": 16}, chunk=chunk)
    x = given["x"]
    flipped = x.reshape(5, 8, 2)[..., ::-1].reshape(5, 16)[:, ::-1]
    wanted = flipped + flipped * 2 + x[:, np.arange(16) * 3 % 16] * np.float32(100)
    assert np.array_equal(given["out"], wanted)


@pytest.mark.skipif(not DETERMINISTIC_CAT, reason="Triton 3.6 concatenates in any order only")
def test_tiles_one_after_the_other():
    given = {"x": floats(3, 16), "out": zeros(3, 32)}
    run(constructs.concatenated, 3, given, {"BLOCK": 16})
    assert np.array_equal(given["out"], np.concatenate([given["x"], -given["x"]], 1))


def test_histogram_counts_lanes_of_the_mask():
    x = np.random.default_rng(0).integers(0, 12, 100).astype(np.int32)
    given = {"x": x, "out": zeros(2, 8, dtype=np.int32), "n": 100}
    run(constructs.counts, 2, given, {"BLOCK": 64, "BINS": 8})
    wanted = [np.bincount(part[part < 8], minlength=8) for part in (x[:64], x[64:])]
    assert np.array_equal(given["out"], wanted)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_reductions_and_scans_along_either_axis(chunk):
    x = np.random.default_rng(0).integers(1, 4, (3, 8, 16)).astype(np.float32)
    given = {"x": x, "out": zeros(3, 4, 16), "places": zeros(3, 16, dtype=np.int32)}
    run(constructs.folds, 3, given, {"BLOCK": 8, "COLUMNS": 16}, chunk=chunk)
    weights = np.arange(1, 9, dtype=np.float32)[:, None]
    rows = [x.sum(1), (x * weights).sum(1), np.cumprod(x, 2).sum(1), x.max(1)]
    assert np.array_equal(given["out"], np.stack(rows, 1))
    assert np.array_equal(given["places"], x.argmax(1))


@pytest.mark.parametrize("chunk", CHUNKS)
def test_grid_of_three_axes_runs_x_fastest(chunk):
    given = {"out": zeros(4, 3, 2, dtype=np.int32)}
    run(constructs.three_axes, (2, 3, 4), given, chunk=chunk)
    z, y, x = np.indices((4, 3, 2))
    assert np.array_equal(given["out"], x + 10 * y + 100 * z)


def test_chosen_programs_run_alone_and_offsets_wrap_as_32_bits_do():
    given = {"out": zeros(4, dtype=np.int32), "n": 2**20}
    report = runner.run(constructs.wraps, 4096, given, {"BLOCK": 4}, programs=(2048,))
    assert report.programs == 1
    assert given["out"].tolist() == [-(2**31) + lane for lane in range(4)]


def test_wrong_number_of_arguments_is_refused():
    number = runner.argument("out", zeros(1, dtype=np.int32))
    machine = Machine(runner.lowered(constructs.three_axes, {"out": number}, {}), Native())
    with pytest.raises(ValueError, match="1 arguments expected, 0 given"):
        machine.launch((1, 1, 1), [], Settings())


LOOP_OF_BRANCHES = """module {
  tt.func public @powers(%out: !tt.ptr<i32>, %limits: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %pid = tt.get_program_id x : i32
    %place = tt.addptr %limits, %pid : !tt.ptr<i32>, i32
    %limit = tt.load %place : !tt.ptr<i32>
    cf.br ^bb1(%c0, %c1 : i32, i32)
  ^bb1(%steps: i32, %value: i32):  // 2 preds: ^bb0, ^bb2
    %twice = arith.addi %value, %value : i32
    %more = arith.cmpi slt, %value, %limit : i32
    cf.cond_br %more, ^bb2(%c1 : i32), ^bb3
  ^bb2(%by: i32):  // pred: ^bb1
    %next = arith.addi %steps, %by : i32
    %grown = arith.muli %value, %c3 : i32
    cf.br ^bb1(%next, %grown : i32, i32)
  ^bb3:  // pred: ^bb1
    %sum = arith.addi %twice, %steps : i32
    %target = tt.addptr %out, %pid : !tt.ptr<i32>, i32
    tt.store %target, %sum : !tt.ptr<i32>
    tt.return
  }
}
"""


@pytest.mark.parametrize("chunk", CHUNKS)
def test_loop_made_of_branches_keeps_the_values_of_programs_that_left(chunk):
    limits, out = np.array([1, 30, 2, 500, 8], np.int32), zeros(5, dtype=np.int32)
    machine = Machine(parse(LOOP_OF_BRANCHES), Native())
    given = [runner.argument("out", out), runner.argument("limits", limits)]
    assert machine.launch((5, 1, 1), given, Settings(chunk=chunk)).faults == []
    steps = [next(n for n in range(20) if 3**n >= limit) for limit in limits]
    assert out.tolist() == [2 * 3**n + n for n in steps]


def test_report_counts_accesses():
    given = {"x": floats(16), "out": zeros(16)}
    report = runner.run(constructs.bits, 1, given, {"BLOCK": 16})
    assert (report.programs, report.elements) == (1, 32)
    assert (report.loads, report.stores) == (1, 1)
