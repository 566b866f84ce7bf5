"""Programs that wait for each other get on, in any order, or are told to hang for ever."""

import importlib.util
import threading
from pathlib import Path

import numpy as np
import pytest


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


waiting, runner = load("waiting"), load("runner")
run, kinds = runner.run, runner.kinds
SOURCE = (Path(__file__).parent / "kernels" / "waiting.py").read_text().splitlines()
ORDERS = ["forward", "reverse", "shuffled", "halves"]


def zeros(count, dtype=np.float32):
    return np.zeros(count, dtype)


def flags(count):
    return zeros(count, np.int32)


def line_of(text, function):
    start = next(n for n, line in enumerate(SOURCE) if line.startswith(f"def {function}("))
    return f"waiting.py:{next(n for n in range(start, len(SOURCE)) if text in SOURCE[n]) + 1}"


@pytest.mark.parametrize("order", ORDERS)
def test_each_program_waits_for_the_next(order):
    given = {"flag": flags(9), "data": zeros(9), "out": zeros(9)}
    report = run(waiting.chain_from_the_end, 9, given, {"PROGRAMS": 9}, order=order)
    assert [fault.text for fault in report.faults] == []
    assert given["out"].tolist() == [2.0 ** (8 - n) for n in range(9)]
    assert report.programs == 9


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_of_the_whole_grid(order):
    given = {"count": flags(1), "data": zeros(7), "out": zeros(7)}
    report = run(waiting.grid_barrier, 7, given, {"PROGRAMS": 7}, order=order)
    assert [fault.text for fault in report.faults] == []
    assert given["out"].tolist() == [1, 2, 3, 4, 5, 6, 0]


def test_a_loop_that_counts_its_rounds_gives_its_turn_away():
    given = {"flag": flags(1), "rounds": flags(1)}
    assert run(waiting.counts_its_rounds, 2, given).faults == []
    assert given["rounds"][0] > 0


def test_a_volatile_load_sees_the_flag_but_does_not_order_the_data():
    given = {"flag": flags(1), "data": zeros(1), "out": zeros(1)}
    report = run(waiting.waits_with_a_plain_load, 2, given)
    assert [(fault.kind, fault.argument) for fault in report.faults] == [
        ("race_read_write", "data")
    ]
    assert given["out"][0] == 7


def test_crossed_locks_name_both_lines():
    """Only where the two meet: one after the other they get on."""
    given = {"locks": flags(2), "total": zeros(1)}
    assert run(waiting.crossed_locks, 2, given).faults == []
    fault = run(waiting.crossed_locks, 2, given, order="reverse").faults[-1]
    assert (fault.kind, fault.fatal, fault.program, fault.other_program) == (
        "deadlock",
        True,
        (0, 0, 0),
        (1, 0, 0),
    )
    second = line_of("while tl.atomic_cas(locks + 1 - first", "crossed_locks")
    first = line_of("while tl.atomic_cas(locks + first", "crossed_locks")
    assert (fault.line, fault.other_line) == (second, second)
    assert fault.text == (
        f"program (0, 0, 0) of crossed_locks waits for ever at {second} for element [1] of locks "
        f"(2,), which program (1, 0, 0) wrote last at {first} and which waits itself at {second} "
        "for element [0] of locks (2,)"
    )


def test_a_lock_that_is_never_released_names_who_took_it():
    given = {"lock": flags(1), "total": zeros(1)}
    fault = run(waiting.never_released, 3, given).faults[-1]
    line = line_of("while", "never_released")
    assert (fault.kind, fault.program, fault.other_program) == ("deadlock", (1, 0, 0), (0, 0, 0))
    assert (fault.line, fault.other_line, fault.lanes) == (line, line, 2)
    assert fault.text.endswith(f"wrote last at {line}; nobody is left to write it")


@pytest.mark.parametrize(("programs", "ending"), [(1, "will write"), (2, "of flag (2,)")])
def test_waiting_for_what_nobody_writes(programs, ending):
    given = {"flag": flags(2), "out": zeros(2)}
    fault = run(waiting.nobody_writes, programs, given).faults[-1]
    assert (fault.kind, fault.index) == ("deadlock", "element [1] of flag (2,)")
    assert fault.text.endswith(ending)


def test_a_launch_leaves_no_thread_behind():
    before = threading.active_count()
    run(waiting.nobody_writes, 40, {"flag": flags(2), "out": zeros(40)})
    assert threading.active_count() == before


RACE, STUCK = "race_read_write", "deadlock"
MISTAKES = {
    1: RACE,  # accesses in front of the lock
    2: RACE,  # two locks for one tile
    3: RACE,  # taken without acquiring
    4: RACE,  # taken with a release
    5: RACE,  # not taken at all
    6: RACE,  # given back at once
    7: RACE,  # given back in front of the store
    8: RACE,  # no barrier between the tile and the release
    9: RACE,  # given back without releasing
    10: RACE,  # given back with an acquire
    11: RACE,  # given back by a plain store
    12: STUCK,  # another lock given back
    13: STUCK,  # given back as taken
    14: RACE,  # accesses behind the release
}


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_with_a_lock_is_found(mistake, order):
    given = {"total": zeros(32), "lock": flags(2), "other": flags(1)}
    sizes = {"BLOCK": 32, "FAULT": mistake}
    report = run(waiting.guarded, 4, given, sizes, warps=4, order=order)
    assert MISTAKES[mistake] in kinds(report)


@pytest.mark.parametrize("order", ORDERS)
def test_a_lock_that_is_used_right_is_clean(order):
    given = {"total": zeros(32), "lock": flags(2), "other": flags(1)}
    sizes = {"BLOCK": 32, "FAULT": 0}
    assert run(waiting.guarded, 4, given, sizes, warps=4, order=order).faults == []
    assert (given["total"] == 4).all()
