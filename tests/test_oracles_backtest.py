"""The oracles of the backtest: by hand, and the forms of one formula against each other."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from trivet.oracles import decision, diagnosis, exits, orders, policy, sampling, trades
from trivet.oracles._evaluate import evaluate, evaluate_float64
from trivet.oracles._simulation import Moments

Single = np.float32
NUMBERS = np.random.default_rng(11)


def single(*shape: int, low: float = 0.0, high: float = 1.0) -> Any:
    return NUMBERS.uniform(low, high, shape).astype(np.float32).astype(np.float64)


AVERAGE = np.stack([single(4), single(4), single(4), single(4), np.array([1.0, 1, 0, 1])])
CASES: dict[str, tuple[Any, Any, Mapping[str, Any], tuple[str, ...]]] = {
    "smooth": (
        decision.smooth,
        decision.smooth_scalar,
        {"x": single(4), "average": AVERAGE, "floor": np.array([0.0, 0.9, 0.4, 0.1])},
        ("smoothed",),
    ),
    "weighted": (
        decision.weighted,
        decision.weighted_scalar,
        {
            "q": single(3, 5, low=-0.5, high=0.5),
            "net_edge": single(3, 5, low=-2, high=2),
            "var": single(3, 5),
            "cost": np.array([0.001953125, 1.0, 7.0]),
        },
        ("weight", "signed"),
    ),
    "levels": (
        exits.levels,
        exits.levels_scalar,
        {
            "position": np.array([3, -7, 0]),
            "basis": np.array([29_990, -70_011, 0]),
            "bid": np.array([9_990, 10_001, 5]),
            "ask": np.array([9_993, 10_001, 4]),
            "at_entry": np.array([0.5, 0.0, 0.25]),
            "conviction": np.array([0.125, 0.5, 0.75]),
            "pnl": np.array([-0.75, 0.5, -1.0]),
            "disagreement": np.array([0, 31, 2]),
            "mean_var": np.array([4.0, 0.0, 0.3]),
            "cost": np.array([1.0, 0.5, 0.001953125]),
            "stop_multiple": np.array([2.0, 1.5, 1.0]),
        },
        ("unrealised", "composite", "stop"),
    ),
    "credit": (
        trades.credit,
        trades.credit_scalar,
        {
            "record": np.arange(48).reshape(3, 16) % 3,
            "profit": np.array([5.5, -2.0, 0.1]),
            "lots": np.array([3, 2, 7]),
            "closes": np.array([1, 1, 0]),
            "closed": np.array([[0, 1, 2], [4, 0, 1], [9, 9, 9]]),
            "mean": single(3, 3),
            "square": single(3, 3),
        },
        ("record", "closed", "mean", "square"),
    ),
}


def _scalar(
    oracle: Callable[..., Any], index: tuple[int, ...], output: str, given: Mapping[str, Any]
) -> float:
    wanted = inspect.signature(oracle).parameters
    named = {name: value for name, value in given.items() if name in wanted}
    if "output" in wanted:
        named["output"] = output
    return float(oracle(index, **named))


@pytest.mark.parametrize("name", CASES)
def test_array_and_scalar_forms_agree(name: str) -> None:
    array, scalar, given, outputs = CASES[name]
    values = evaluate_float64(array, given)
    bounds = evaluate(array, given)
    for output, value, bounded in zip(outputs, values, bounds, strict=True):
        assert value is not None
        assert bounded is not None
        for index in np.ndindex(value.shape):
            exact = _scalar(scalar, index, output, given)
            # float64 rounds a few dozen times less than 2^-29 of what float32 does.
            slack = 0.0 if bounded.error is None else float(bounded.error[index])
            assert abs(float(value[index]) - exact) <= slack * 2.0**-24 + abs(exact) * 2.0**-48


def test_averages_by_hand() -> None:
    average = decision.Average(Single(0.5))
    assert average.observe(Single(0.25)) == 0.25
    assert average.observe(Single(0.25)) == 0.25
    # change = off = 1: both variances 0.05, a gain of 1/2, as the floor.
    assert average.observe(Single(1.25)) == 0.75
    assert average.diff_var == average.sample_var == Single(0.05)
    # change 0, off 0.5: 0.06 over 0.06 and 0.0475 is a gain of 0.558, over the floor.
    assert 0.75 + 0.55 * 0.5 < average.observe(Single(1.25)) < 0.75 + 0.56 * 0.5


def test_targets_round_ties_to_even() -> None:
    half = Single(0.5)
    for lots, wanted in ((1, 0), (3, 2), (5, 2), (7, 4)):
        assert decision.target_of(Single(0.1), half, Single(0), lots) == wanted
        assert decision.target_of(Single(-0.1), half, Single(0), lots) == -wanted
    assert decision.target_of(Single(0), half, Single(0), 9) == 0
    assert decision.target_of(Single(1), half, Single(0.75), 9) == 0


def test_books_by_hand() -> None:
    book = orders.Book()
    book.fill(3, 100)
    book.fill(2, 105)
    assert (book.position, book.cash, book.basis) == (5, -510, 510)
    book.fill(-2, 110)  # releases 510 * 2 / 5 = 204
    assert (book.position, book.basis, book.realised) == (3, 306, 16)
    book.fill(-7, 90)  # closes 3, opens 4 short
    assert (book.position, book.basis, book.realised) == (-4, -360, -20)
    assert (book.cash, book.filled) == (340, 14)
    book.fill(1, 101)  # releases 360 / 4 = 90 of what was fetched
    assert (book.basis, book.realised) == (-270, -31)


def test_shares_of_a_basis_are_cut_towards_zero() -> None:
    for sign in (1, -1):
        book = orders.Book(position=3 * sign, basis=100 * sign)
        book.fill(-sign, 0)
        assert book.basis == 67 * sign


def test_orders_are_served_by_sequence_and_size() -> None:
    slots: list[orders.Order | None] = [
        orders.Order(4, orders.BUY, 100, 0, 7),
        orders.Order(4, orders.BUY, 101, 0, 3),
        orders.Order(4, orders.SELL, 99, 5, 1),
    ]
    desk = orders.Desk(slots)
    assert desk.fills(orders.Quote(4, 99, 100, 9, 6)) == [(4, 101), (2, 100)]
    assert desk.fills(orders.Quote(5, 99, 101, 3, 6)) == [(-3, 99)]
    assert desk.active == 2
    assert desk.seed(0, 1.0, 2, orders.Quote(6, 98, 102, 1, 1)) == (orders.SELL, 1)
    assert desk.seed(9, 0.0, 2, orders.Quote(6, 98, 102, 1, 1)) == (orders.NONE, 0)
    assert desk.refused == 1


def test_records_have_the_bytes_of_the_table() -> None:
    words = trades.words_of(
        2**33 + 5, -7, 4, 1.5, 0.25, 0.5, 0.1, 0.2, 0.3, 0.4, -0.75, 9.0, 6, 8, 3
    )
    raw = np.array(words, "<i4").tobytes()
    assert len(raw) == 64
    assert int.from_bytes(raw[:8], "little") == 2**33 + 5
    assert int.from_bytes(raw[8:12], "little", signed=True) == -7
    assert np.frombuffer(raw, "<f4", 1, 20)[0] == 0.25
    assert np.frombuffer(raw, "<f4", 4, 28).tolist() == [Single(x) for x in (0.1, 0.2, 0.3, 0.4)]
    assert np.frombuffer(raw, "<u4", 2, 52).tolist() == [6, 8]
    assert raw[60:] == bytes([3, 0, 0, 0])
    assert trades.fields_of(words)[-1] == 3


def test_exits_by_hand() -> None:
    composite = exits.composite_of(Single(0.5), Single(0), Single(0), 0)
    assert composite == 0.5
    assert exits.composite_of(Single(0), Single(0), Single(-0.25), 16) == 0.5
    stop = exits.stop_of(Single(2), Single(3), Single(1), 5)
    assert stop == -20
    args = (Single(-20), Single(0.5), Single(-20))
    assert exits.reason_of(*args, 3, 3) == exits.STOP
    assert exits.reason_of(Single(0), Single(1), Single(-20), 9, 3) == exits.COMPOSITE
    assert exits.reason_of(Single(0), Single(0.5), Single(-20), 3, 3) == exits.HOLD


def test_runs_and_bins_by_hand() -> None:
    runs = diagnosis.Runs()
    for x in (0.0, 0.0, 1.0, 0.0, 2.0, -1.0, -1.0, 3.0):
        runs.observe(x)
    assert runs.numbers == (1, 1, 2, 5)
    assert runs.bins == [2, 0, 0, 0, 0]
    assert [diagnosis.unit_bin(Single(x)) for x in (0, 0.05, 0.5, 0.999, 1)] == [0, 0, 5, 9, 9]
    second = 1_000_000_000
    edges = (0, second - 1, second, 60 * second, 3600 * second)
    assert [diagnosis.hold_bin(held) for held in edges] == [0, 0, 1, 3, 5]


def test_programs_by_hand() -> None:
    machine = policy.Machine([Single(0.25), Single(-0.5)], [Single(1), Single(3)])
    mag, emit, neg, agg, write = 2, 20, 8, 7, 21
    program = [(mag, 0), (emit, 0), (mag, 1), (neg, 0), (emit, 1), (agg, 0), (write, 0), (0, 0)]
    machine.run([[op | arg << 8, 0] for op, arg in program])
    # sizes 0.5 and -1 by weights 1 and 3: (0.5 - 3) / 4.
    assert machine.signed == Single(-0.625)
    assert machine.dominant == 1


def test_moments_are_those_of_all_numbers() -> None:
    moments = Moments()
    for x in (1.0, 3.0, 2.0, 6.0):
        moments.observe(Single(x))
    assert (moments.mean, moments.var) == (3.0, 3.5)


def test_sampled_moments_are_those_of_the_ticks() -> None:
    p = np.array([[[0.25], [0.9], [np.nan], [0.9], [0.75]]])
    zeros = np.zeros((1, 1), np.int64)
    moments, bins = np.zeros((4, 1, 1)), np.zeros((10, 1, 1), np.int64)
    state = {"counts": zeros, "moments": moments, "bins": bins}
    counts, found, hist = sampling.accumulate(None, p=p, stride=2, start=0, stop=5, **state)
    assert counts[0, 0] == 3
    assert found[:, 0, 0].tolist() == [0.5, 0.125, 0.25, 0.75]
    assert np.flatnonzero(hist[:, 0, 0]).tolist() == [2, 5, 7]
