"""Every kind of fault is found where it is, and right kernels that look alike are clean."""

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import triton.language as tl

from trivet.simulator.executors import Simulator
from trivet.simulator.memory import sparse_zeros


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


faulty, runner = load("faulty"), load("runner")
run, kinds = runner.run, runner.kinds
SOURCE = (Path(__file__).parent / "kernels" / "faulty.py").read_text().splitlines()


def ones(*shape):
    return np.ones(shape, np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def line_of(text, function):
    """``faulty.py:N`` of the first line with ``text`` in ``function``."""
    start = next(n for n, line in enumerate(SOURCE) if line.startswith(f"def {function}("))
    return f"faulty.py:{next(n for n in range(start, len(SOURCE)) if text in SOURCE[n]) + 1}"


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_load_beyond_the_end(chunk):
    given = {"x": ones(250), "out": zeros(250), "n": 250}
    report = run(faulty.unmasked_load, 4, given, {"BLOCK": 64}, chunk=chunk)
    (fault,) = report.faults
    assert (fault.kind, fault.argument, fault.lanes) == ("out_of_bounds", "x", 6)
    assert (fault.program, fault.index) == ((3, 0, 0), "element 250 of x (250,)")
    assert fault.line == line_of("value = tl.load(x + place)", "unmasked_load")
    assert fault.source == "value = tl.load(x + place)"
    assert fault.text == (
        "program (3, 0, 0) of unmasked_load accesses element 250 of x (250,), which lies outside "
        f"it, at {fault.line}"
    )
    assert np.array_equal(given["out"], ones(250))


def test_store_beyond_the_end_is_dropped():
    storage = zeros(300)
    given = {"x": ones(250), "out": storage[20:270], "n": 250}
    report = run(faulty.unmasked_store, 4, given, {"BLOCK": 64})
    assert kinds(report) == ["out_of_bounds"]
    assert np.array_equal(storage, np.r_[zeros(20), ones(250), zeros(30)])


def test_access_before_the_start():
    given = {"x": ones(64), "out": zeros(64), "n": 64, "shift": -1}
    (fault,) = run(faulty.shifted_copy, 1, given, {"BLOCK": 64}).faults
    assert (fault.kind, fault.index, fault.lanes) == ("out_of_bounds", "element -1 of x (64,)", 1)


def test_bounds_are_those_of_the_view_not_of_the_storage():
    storage = ones(100)
    given = {"x": storage[:50], "out": zeros(64), "n": 60, "shift": 0}
    assert kinds(run(faulty.shifted_copy, 1, given, {"BLOCK": 64})) == ["out_of_bounds"]
    whole = runner.argument("x", storage[:50], whole_storage=True)
    given = {**given, "x": whole}
    assert kinds(run(faulty.shifted_copy, 1, given, {"BLOCK": 64})) == []


def test_gaps_of_a_strided_view_are_outside():
    storage = ones(10, 16)
    given = {"x": storage[:, :8], "out": zeros(16), "stride": 1, "n": 12}
    (fault,) = run(faulty.strided_copy, 1, given, {"BLOCK": 16}).faults
    assert (fault.kind, fault.lanes, fault.index) == (
        "out_of_bounds",
        4,
        "element 8 of x (10, 8)",
    )
    given = {"x": storage[:, 3], "out": zeros(16), "stride": 16, "n": 10}
    assert kinds(run(faulty.strided_copy, 1, given, {"BLOCK": 16})) == []


def test_empty_argument_has_no_legal_element():
    given = {"x": ones(0), "out": zeros(64), "n": 64, "shift": 0}
    assert kinds(run(faulty.shifted_copy, 1, given, {"BLOCK": 64})) == ["out_of_bounds"]


def test_reading_what_nobody_wrote():
    written = np.ones(64, bool)
    written[[7, 40]] = False
    x = runner.argument("x", ones(64), initialised=written)
    given = {"x": x, "out": zeros(64), "n": 64, "shift": 0}
    (fault,) = run(faulty.shifted_copy, 1, given, {"BLOCK": 64}).faults
    assert (fault.kind, fault.lanes, fault.index) == ("uninitialised", 2, "element [7] of x (64,)")


def test_stores_initialise():
    written = np.zeros(64, bool)
    x = runner.argument("x", ones(64), initialised=written)
    report = run(faulty.in_place, 1, {"x": x}, {"BLOCK": 32})
    assert kinds(report) == ["uninitialised"]
    assert written[:32].all()
    assert not written[32:].any()


def test_an_update_reads_and_an_exchange_does_not():
    for kernel, wanted in ((faulty.atomic_sum, ["uninitialised"]), (faulty.exchange, [])):
        written = np.zeros(1, bool)
        total = runner.argument("total", zeros(1), initialised=written)
        assert kinds(run(kernel, 3, {"total": total})) == wanted
        assert written.all()


@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_read_modify_write_shared_by_programs(chunk):
    report = run(faulty.shared_counter, 8, {"out": zeros(4)}, {"SLOTS": 4}, chunk=chunk)
    assert "race_read_write" in kinds(report)
    fault = next(fault for fault in report.faults if fault.kind == "race_read_write")
    assert fault.program[0] % 4 == fault.other_program[0] % 4
    assert fault.program != fault.other_program
    line = line_of("tl.store(place", "shared_counter")
    assert {fault.line, fault.other_line} == {line}
    assert str(fault.program) in fault.text
    assert str(fault.other_program) in fault.text


def test_no_race_when_every_program_has_its_own_element():
    assert kinds(run(faulty.shared_counter, 4, {"out": zeros(4)}, {"SLOTS": 4})) == []


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_same_value_is_told_from_different_values(chunk):
    given = {"out": zeros(1), "value": 2.0}
    assert kinds(run(faulty.same_store, 4, given, chunk=chunk)) == ["same_value_write"]
    assert "race_write_write" in kinds(run(faulty.own_store, 4, {"out": zeros(1)}, chunk=chunk))


@pytest.mark.parametrize("chunk", [None, 1])
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_reading_a_neighbours_element_races_in_any_order(chunk, order):
    report = run(faulty.neighbour, 4, {"x": ones(257)}, {"BLOCK": 64}, chunk=chunk, order=order)
    assert kinds(report) == ["race_read_write"]
    assert report.faults[0].lanes == 3


def test_a_program_may_read_and_write_its_own_elements():
    assert kinds(run(faulty.in_place, 4, {"x": ones(256)}, {"BLOCK": 64})) == []


def test_atomics_race_with_plain_accesses_only():
    report = run(faulty.atomic_and_plain, 4, {"total": zeros(1), "out": zeros(4)})
    assert kinds(report) == ["race_read_write"]


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
def test_a_lock_orders_what_it_guards(order):
    given = {"total": zeros(1), "lock": np.zeros(1, np.int32)}
    assert kinds(run(faulty.locked, 6, given, order=order)) == []
    assert given["total"][0] == 6


def test_a_write_after_the_release_is_not_guarded():
    given = {"total": zeros(1), "lock": np.zeros(1, np.int32)}
    assert "race_read_write" in kinds(run(faulty.unlocked_early, 6, given))


def test_a_counter_with_acquire_and_release_orders_the_last_program():
    given = {
        "x": ones(4, 16),
        "partial": zeros(4),
        "count": np.zeros(1, np.int32),
        "out": zeros(1),
    }
    sizes = {"BLOCK": 16, "PROGRAMS": 4}
    assert kinds(run(faulty.last_arriver, 4, given, sizes)) == []
    assert given["out"][0] == 64
    given["count"][:] = 0
    report = run(faulty.last_arriver_without_order, 4, given, sizes)
    assert kinds(report) == ["race_read_write"]


@pytest.mark.parametrize(("barrier", "warps", "races"), [(1, 4, 0), (0, 4, 1), (0, 1, 0)])
def test_a_release_covers_a_tile_only_behind_a_barrier(barrier, warps, races):
    given = {"total": zeros(32), "lock": np.zeros(1, np.int32)}
    sizes = {"BLOCK": 32, "BARRIER": barrier}
    report = run(faulty.locked_tile, 4, given, sizes, warps=warps)
    assert ("race_read_write" in kinds(report)) == bool(races)
    assert (given["total"] == 4).all()


@pytest.mark.skipif(not hasattr(tl, "atomic_load"), reason="this Triton has no tl.atomic_load")
def test_atomic_loads_and_stores_hand_data_over():
    given = {"data": zeros(4), "flag": np.zeros(4, np.int32), "out": zeros(4)}
    assert kinds(run(faulty.hand_over, 4, given)) == []
    assert given["out"].tolist() == [0, 0, 10, 20]


@pytest.mark.parametrize(
    ("wide", "found"), [(0, ["int_wrap"] * 2 + ["out_of_bounds"] * 2), (1, [])]
)
def test_offsets_that_overflow_show_at_production_size(wide, found):
    """16 GiB of zeros, of which one program touches a few pages."""
    rows, columns = 2**17 + 1, 2**15
    x = sparse_zeros(rows * columns, np.float32).reshape(rows, columns)
    given = {"x": x, "columns": columns}
    sizes = {"BLOCK": 128, "WIDE": wide}
    report = run(faulty.last_column, rows, given, sizes, programs=(2**16, rows - 1))
    assert report.programs == 2
    assert kinds(report) == found


def test_an_offset_that_wraps_to_a_place_inside_is_found_at_its_product():
    given = {"x": zeros(4096), "stride": 2**30}
    (fault,) = run(faulty.wraps_inside, 8, given, {"BLOCK": 16}, programs=(4,)).faults
    assert (fault.kind, fault.program, fault.lanes) == ("int_wrap", (4, 0, 0), 16)
    assert fault.line == line_of("start = row * stride", "wraps_inside")
    assert fault.other_line == line_of("tl.store", "wraps_inside")
    assert fault.text == (
        "program (4, 0, 0) of wraps_inside accesses element [0] of x (4096,) at "
        f"{fault.other_line} where element 4294967296 is meant: the integers at {fault.line} "
        "wrap in 32 bits"
    )


@pytest.mark.parametrize("form", range(15))
def test_a_wrap_is_found_whatever_lies_between_it_and_the_address(form):
    given = {"x": zeros(64), "index": np.full(4, 4, np.int32), "stride": 2**30, "steps": 4}
    found = run(faulty.wraps_in_many_ways, 8, given, {"FORM": form}, programs=(4,)).faults
    assert {fault.kind for fault in found} == {"int_wrap"}
    given |= {"stride": 3, "x": zeros(64)}
    assert kinds(run(faulty.wraps_in_many_ways, 8, given, {"FORM": form}, programs=(4,))) == []


def test_a_loaded_index_that_wraps_is_found():
    index = np.array([1, 4, 2], np.int32)
    given = {"index": index, "x": zeros(64), "out": zeros(3), "stride": 2**30}
    report = run(faulty.wraps_in_gather, 3, given, programs=(1,))
    assert kinds(report) == ["int_wrap"]
    given["stride"] = 8
    assert kinds(run(faulty.wraps_in_gather, 3, given)) == []


def test_a_loop_that_wraps_is_found():
    given = {"x": zeros(64), "steps": 5, "stride": 2**30}
    faults = run(faulty.wraps_in_a_loop, 1, given).faults
    assert {fault.line for fault in faults if fault.kind == "int_wrap"} == {
        line_of("place += stride", "wraps_in_a_loop")
    }
    assert kinds(run(faulty.wraps_in_a_loop, 1, {**given, "stride": 8})) == []


@pytest.mark.parametrize(
    ("kernel", "given", "sizes"),
    [
        ("wraps_where_masked", {"x": zeros(64), "n": 64, "stride": 2**28}, {"BLOCK": 16}),
        ("wraps_and_comes_back", {"x": zeros(4), "large": 2**30}, {}),
        ("hashes", {"x": zeros(64), "seed": 77}, {"BLOCK": 16}),
        (
            "hash_table",
            {"keys": np.arange(4).astype(np.int32) + 2**20, "table": np.zeros(16, np.int32)},
            {"BLOCK": 16},
        ),
    ],
)
def test_integers_that_wrap_on_purpose_are_no_concern(kernel, given, sizes):
    assert kinds(run(getattr(faulty, kernel), 4, given, sizes)) in ([], ["same_value_write"])


def test_read_only_argument_is_kept():
    x = ones(64)
    given = {"x": runner.argument("x", x, read_only=True)}
    report = run(faulty.in_place, 2, given, {"BLOCK": 32})
    assert set(kinds(report)) == {"read_only"}
    assert (x == 1).all()


def test_a_read_only_tensor_in_a_pool_is_kept_apart_from_its_neighbour():
    pool = torch.ones(128)

    def called(x, out):
        faulty.both_written[(2,)](x, out, BLOCK=32)

    given = {"x": pool[:64], "out": pool[64:]}
    faults = Simulator().run(called, given, read_only=["x"]).faults
    assert [(fault.kind, fault.argument, fault.lanes) for fault in faults] == [
        ("read_only", "x", 64)
    ]
    assert Simulator().run(called, given).faults == []


def test_endless_loop_runs_out_of_fuel_within_seconds():
    start = time.perf_counter()
    report = run(faulty.endless, 3, {"x": zeros(1)}, fuel=200_000)
    assert time.perf_counter() - start < 10
    fault = report.faults[-1]
    assert (fault.kind, fault.fatal) == ("fuel", True)
    assert fault.line.startswith("faulty.py:")


def test_failed_assertion_names_message_and_program():
    x = ones(4, 16)
    x[2, 5] = -1
    (fault,) = run(faulty.asserted, 4, {"x": x}, {"BLOCK": 16}).faults
    assert (fault.kind, fault.program, fault.lanes) == ("assert", (2, 0, 0), 1)
    assert "x must be positive" in fault.text
    assert not fault.fatal


def test_fault_in_a_helper_shows_the_helpers_line_and_who_called_it():
    (fault,) = run(faulty.calls_helper, 1, {"x": ones(8), "out": zeros(16)}, {"BLOCK": 16}).faults
    assert fault.line == line_of("return tl.load", "load_tile")
    assert f"called from {line_of('load_tile(x, place)', 'calls_helper')}" in fault.text


def test_unknown_operation_is_fatal_and_named():
    given = {"x": ones(16), "out": zeros(16)}
    (fault,) = run(faulty.inline_assembly, 1, given, {"BLOCK": 16}).faults
    assert (fault.kind, fault.fatal) == ("unsupported", True)
    assert "tt.elementwise_inline_asm" in fault.text
    assert fault.line.startswith("faulty.py:")


@pytest.mark.parametrize("poison", ["nan", "large"])
def test_undefined_lanes_show_in_the_result(poison):
    sums = {}
    for fill in ("zero", poison):
        for kernel in (faulty.no_other, faulty.guarded_no_other):
            given = {"x": ones(3, 10), "out": zeros(3), "n": 10}
            run(kernel, 3, given, {"BLOCK": 16}, poison=fill)
            sums[fill, kernel] = given["out"]
    assert (sums["zero", faulty.no_other] == 10).all()
    assert not (sums[poison, faulty.no_other] == 10).any()
    assert (sums[poison, faulty.guarded_no_other] == 10).all()


def test_without_sanitizing_bad_lanes_are_dropped_silently():
    given = {"x": ones(250), "out": zeros(250), "n": 250}
    report = run(faulty.unmasked_load, 4, given, {"BLOCK": 64}, sanitize=False)
    assert report.faults == []
    assert np.array_equal(given["out"], ones(250))
