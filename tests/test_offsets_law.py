"""offsets_fit: red for offsets that wrap, green for those that do not, honest about the rest."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trivet import ANY, Choice, Contract, Tensor, integers, offsets, permutation, reals, sizes
from trivet.properties._engine import judge
from trivet.properties._production import production_cases
from trivet.properties._verdict import Verdict

ROWS, COLUMNS = 2**21 + 3, 2**10 + 1


def verdict_of(kernel: Any, args: dict[str, Any], **dims: Any) -> Verdict:
    contract = Contract(kernel=kernel, oracles=[lambda x: x], dims=dims, args=args)
    return judge(contract, name="mine", laws=["offsets_fit"])[0]


@triton.jit
def add_one(x, o, columns, row_step, column_step, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        row = row.to(tl.int64)
        lane = lane.to(tl.int64)
    at = row * row_step + lane * column_step
    tl.store(o + at, tl.load(x + at, mask=lane < columns) + 1, mask=lane < columns)


def added(x: torch.Tensor, wide: bool) -> torch.Tensor:
    o = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype)
    grid = (x.shape[0], triton.cdiv(x.shape[1], 128))
    add_one[grid](x, o, x.shape[1], *x.stride(), WIDE=wide, BLOCK=128)
    return o


def added_narrow(x: torch.Tensor) -> torch.Tensor:
    return added(x, False)


def added_wide(x: torch.Tensor) -> torch.Tensor:
    return added(x, True)


ROW_SIZES = {"M": sizes(1, 5, production=ROWS), "N": sizes(1, 9, production=COLUMNS)}


def test_64_bit_offsets_fit() -> None:
    verdict = verdict_of(added_wide, {"x": Tensor("M N", layouts=ANY)}, **ROW_SIZES)
    assert (verdict.state, verdict.reason) == ("green", None)
    assert verdict.examples == verdict.launches == 2
    assert verdict.elements > 1000
    assert verdict.size_classes == {"M": 1, "N": 1}


def test_32_bit_offsets_do_not() -> None:
    verdict = verdict_of(added_narrow, {"x": Tensor("M N")}, **ROW_SIZES)
    assert verdict.state == "red"
    assert verdict.failure is not None
    lines = verdict.failure.text.splitlines()
    assert lines[:2] == [
        "mine breaks offsets_fit at float32",
        "  At production sizes no chosen program reaches outside an argument it was given.",
    ]
    assert "of add_one accesses element -214" in lines[2]
    assert f"of x ({ROWS}, {COLUMNS}) at test_offsets_law.py:" in lines[2]
    assert "where element 214" in lines[2]
    assert lines[2].endswith("wrap in 32 bits")
    assert f"  at the production sizes M = {ROWS}, N = {COLUMNS}" in lines
    assert verdict.failure.line is not None


def test_an_offset_may_wrap_along_any_axis() -> None:
    """Tall and thin: only a layout with far columns reaches 2^31."""

    @triton.jit
    def far_columns(x, o, row_step, column_step):
        row = tl.program_id(0).to(tl.int64)
        lane = tl.arange(0, 4)
        tl.store(o + row, tl.sum(tl.load(x + row * row_step + lane * column_step)))

    def host(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty(x.shape[0])
        far_columns[(x.shape[0],)](x, o, *x.stride())
        return o

    dims = {"M": sizes(1, 5, production=2**30)}
    assert verdict_of(host, {"x": Tensor("M 4")}, **dims).state == "green"
    assert verdict_of(host, {"x": Tensor("M 4", layouts=ANY)}, **dims).state == "red"


@pytest.mark.parametrize("rows", [2**22, 5 * 2**21, 2**24 + 7])
def test_wraps_that_land_inside_again_are_found_at_others_that_do_not(rows: int) -> None:
    dims = {"M": sizes(1, 5, production=rows), "N": sizes(1, 9, production=COLUMNS)}
    args = {"x": Tensor("M N", dtypes=("int8",))}
    assert verdict_of(added_narrow, args, **dims).state == "red"
    assert verdict_of(added_wide, args, **dims).state == "green"


@triton.jit
def gather_rows(x, starts, table, o, width, BLOCK: tl.constexpr):
    segment = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    row = tl.load(table + segment).to(tl.int64)
    first = tl.load(starts + segment).to(tl.int64)
    last = tl.load(starts + segment + 1)
    value = tl.load(x + (first + lane) * width + row % width, mask=first + lane < last)
    tl.store(o + segment, tl.sum(value))


def gathered(x: torch.Tensor, starts: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    o = torch.zeros(table.shape[0])
    gather_rows[(table.shape[0],)](x, starts, table, o, x.shape[1], BLOCK=32)
    return o


def test_tables_and_offsets_are_legal_ones() -> None:
    verdict = verdict_of(
        gathered,
        {
            "x": Tensor("T W"),
            "starts": Tensor("S+1", dtypes=("int32",), domain=offsets("T")),
            "table": Tensor("S", dtypes=("int32",), domain=integers(0, "S-1")),
        },
        T=sizes(1, 9, production=2**25 + 1),
        W=sizes(1, 9, production=100),
        S=sizes(1, 9, production=2**21),
    )
    assert (verdict.state, verdict.reason) == ("green", None)


def test_every_choice_comes_up() -> None:
    def host(x: torch.Tensor, wide: object) -> torch.Tensor:
        return added(x, wide != "no")

    args = {"x": Tensor("M N"), "wide": Choice("yes", "also", "no")}
    verdict = verdict_of(host, args, **ROW_SIZES)
    assert (verdict.state, verdict.examples) == ("red", 3)


def test_without_a_production_size_nothing_is_promised() -> None:
    verdict = verdict_of(added_wide, {"x": Tensor("M N")}, M=sizes(1, 5), N=sizes(1, 9))
    assert (verdict.state, verdict.reason) == ("not_promised", "no dim states a production size")


def test_values_that_depend_on_one_another_have_an_end() -> None:
    args = {"x": Tensor("M", dtypes=("int64",), domain=permutation())}
    verdict = verdict_of(lambda x: x, args, M=sizes(1, 5, production=2**33))
    text = "x would hold 8589934592 values that depend on one another at the production sizes"
    assert (verdict.state, verdict.reason) == ("not_judged", f"{text}: too many to draw")


def test_rows_of_a_mapped_domain_are_repeated() -> None:
    args = {"x": Tensor("M N", domain=reals(0, 1).map(lambda a: np.sort(a, axis=-1)))}

    def host(x: torch.Tensor) -> torch.Tensor:
        assert bool((x[-3:].diff(dim=1) >= 0).all())
        assert x[-3:].max() > 0
        return added_wide(x)

    assert verdict_of(host, args, **ROW_SIZES).state == "green"


def test_a_host_operation_over_everything_is_not_judged() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        return added_wide(x * 2)

    verdict = verdict_of(host, {"x": Tensor("M N")}, **ROW_SIZES)
    assert verdict.state == "not_judged"
    assert "torch.mul at test_offsets_law.py:" in str(verdict.reason)
    assert "would take 8.0 GiB at production size: return added_wide(x * 2)" in str(verdict.reason)


def test_a_kernel_may_not_refuse_its_own_production_size() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        if x.numel() >= 2**31:
            raise ValueError("x is too large")
        return added_wide(x)

    verdict = verdict_of(host, {"x": Tensor("M N")}, **ROW_SIZES)
    assert verdict.state == "red"
    assert verdict.failure is not None
    assert "the kernel raised ValueError" in verdict.failure.text


@triton.jit
def sum_of_all(x, o, size, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK).to(tl.int64))
    tl.store(o, tl.sum(total))


def test_a_long_loop_is_followed_for_a_while() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        o = torch.zeros(1)
        sum_of_all[(1,)](x, o, x.shape[0], BLOCK=128)
        return o

    verdict = verdict_of(host, {"x": Tensor("M*128")}, M=sizes(1, 5, production=2**27))
    assert (verdict.state, verdict.reason) == ("green", None)
    assert verdict.elements > 10**5
    assert verdict.seconds < 30


@triton.jit
def place_of(p):
    row = tl.program_id(0).to(tl.int64)
    tl.store(p + row, row - 1)


@triton.jit
def read_placed(p, x, o, size, SHIFT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = tl.load(p + (row + 1) % size)
    tl.store(o + row, tl.load(x + place - SHIFT))


@pytest.mark.parametrize(("shift", "state"), [(0, "green"), (1, "not_judged")])
def test_places_that_programs_left_out_would_have_written(shift: int, state: str) -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        p = torch.empty(x.shape[0], dtype=torch.int64)
        o = torch.empty_like(x)
        place_of[(x.shape[0],)](p)
        read_placed[(x.shape[0] - 2,)](p[1:], x, o, x.shape[0] - 2, SHIFT=shift)
        return o

    assert verdict_of(host, {"x": Tensor("M")}, M=sizes(3, 5, production=2**28)).state == state


def test_cases_take_turns() -> None:
    contract = Contract(
        kernel=lambda x, k: x,
        oracles=[lambda x: x],
        dims={"M": sizes(1, 5, production=2**31)},
        args={"x": Tensor(("M", "M 2")), "k": Choice(1, 2, 3)},
    )
    cases = list(production_cases(contract, dtype="float32", seed=0, count=9))
    assert [case.scalars["k"] for case in cases] == [0, 1, 2]
    assert [case.recipes["x"].shape for case in cases] == [0, 1, 2]
    assert {case.dims["M"] for case in cases} == {2**31}
