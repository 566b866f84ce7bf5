"""Tensors larger than memory, of which chosen programs touch a few pages."""

import math
import mmap
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator.executors import Simulator
from trivet.simulator.memory import Allocation, Argument, View
from trivet.simulator.selection import chosen_programs
from trivet.simulator.virtual import dense_strides, virtual_tensor, whole_pages, zeros_tensor

HUGE = 2**33
BLOCK = 64
# As in the machine's own words: what the tests below may add to the process.
_ALLOWED = 200 * 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@triton.jit
def copy_blocks(x, o, size, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + place, tl.load(x + place, mask=place < size), mask=place < size)


@triton.jit
def narrow_blocks(x, o, size, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + place, tl.load(x + place, mask=place < size), mask=place < size)


@triton.jit
def read_at(x, o, place):
    tl.store(o + tl.program_id(0), tl.load(x + place + tl.program_id(0)))


@triton.jit
def meet(o, place):
    tl.store(o + place, tl.program_id(0))


def copied(x: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    copy_blocks[(triton.cdiv(x.numel(), BLOCK),)](x, o, x.numel(), BLOCK=BLOCK)
    return o


def test_two_to_the_33_elements_on_a_laptop() -> None:
    before = resident()
    x = virtual_tensor((HUGE,), torch.float32, np.arange(1024, dtype=np.float32).view(np.uint8))
    run = Simulator(programs=20).run(copied, {"x": x}, read_only=["x"])
    assert run.error is None, run.error
    assert run.faults == []
    out = run.outputs[0]
    assert isinstance(out, torch.Tensor)
    assert torch.equal(out[-BLOCK:], torch.arange(1024.0)[-BLOCK:])
    written = run.initialised_of(out)
    assert written.shape == (HUGE,)
    assert (written[0], written[BLOCK - 1], written[BLOCK], written[-1]) == (1, 1, 0, 1)
    assert math.isnan(float(out[BLOCK]))
    assert run.traffic["programs"] <= 28
    assert run.elements == 2 * BLOCK * run.traffic["programs"]
    assert resident() - before < _ALLOWED


def test_a_32_bit_offset_leaves_the_tensor() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        narrow_blocks[(triton.cdiv(x.numel(), BLOCK),)](x, o, x.numel(), BLOCK=BLOCK)
        return o

    before = resident()
    x = virtual_tensor((HUGE,), torch.float32)
    faults = Simulator(programs=8).run(host, {"x": x}).faults
    assert {(fault.kind, fault.argument) for fault in faults} >= {("out_of_bounds", "x")}
    assert {fault.kind for fault in faults} <= {"int_wrap", "out_of_bounds", "race_write_write"}
    assert "element -2147483584 of x (8589934592,)" in faults[0].index
    assert resident() - before < _ALLOWED


@pytest.mark.parametrize(("place", "faults"), [(HUGE - 2, []), (HUGE - 1, [HUGE]), (-1, [-1])])
def test_bounds_are_exact(place: int, faults: list[int]) -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        o = torch.zeros(2)
        read_at[(2,)](x, o, place)
        return o

    run = Simulator(programs=2).run(host, {"x": zeros_tensor((HUGE,), torch.float32)})
    indices = [fault.index for fault in run.faults]
    assert indices == [f"element {index} of x ({HUGE},)" for index in faults]


def test_uninitialised_reads_and_races_are_exact() -> None:
    def host(first: int) -> torch.Tensor:
        x, o = torch.empty(HUGE, dtype=torch.float32), torch.zeros(2)
        x[first] = 1.0
        read_at[(2,)](x, o, HUGE // 2)
        meet[(2,)](x, HUGE - 5)
        return o

    before = resident()
    run = Simulator(programs=2).run(host, {"first": HUGE // 2})
    assert run.error is None, run.error
    found = [(fault.kind, fault.index) for fault in run.faults]
    assert found == [
        ("uninitialised", f"element [{HUGE // 2 + 1}] of x ({HUGE},)"),
        ("race_write_write", f"element [{HUGE - 5}] of o ({HUGE},)"),
    ]
    assert resident() - before < _ALLOWED


def test_constants_and_fills_of_the_host_are_virtual() -> None:
    def host() -> tuple[torch.Tensor, ...]:
        return (
            torch.zeros(3, HUGE),
            torch.full((HUGE,), 2.5),
            torch.empty(HUGE, dtype=torch.int32).fill_(7),
            torch.ones(HUGE // 2, dtype=torch.bfloat16),
        )

    before = resident()
    run = Simulator(programs=2).run(host, {})
    assert run.error is None, run.error
    zeros, halves, sevens, ones = run.outputs
    assert zeros[2, -1] == 0  # type: ignore[index]
    assert halves[HUGE // 3] == 2.5  # type: ignore[index]
    assert sevens[-1] == 7  # type: ignore[index]
    assert (halves[:4096] == 2.5).all()  # type: ignore[index]
    assert ones[-1] == 1  # type: ignore[index]
    assert resident() - before < _ALLOWED


def test_an_operation_that_would_fill_memory_is_refused() -> None:
    def host(x: torch.Tensor) -> bool:
        return bool((x * 2 > 1).all())

    run = Simulator(programs=2).run(host, {"x": zeros_tensor((HUGE,), torch.float32)})
    assert run.failed is not None
    assert not run.rejected
    text = "would take 32.0 GiB at production size: return bool((x * 2 > 1).all())"
    assert run.failed.text.startswith("torch.mul at test_virtual.py:")
    assert run.failed.text.endswith(text)


def test_pointwise_operations_repeat_what_a_block_becomes() -> None:
    content = np.arange(1 << 18, dtype=np.float32) % 7 - 1

    def host(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, bool, bool]:
        good = x.isnan() | (x >= y)
        return good, bool(good.all()), bool((~good).any())

    x = virtual_tensor((HUGE // 4, 4), torch.float32, content.view(np.uint8))
    zeros = np.zeros(1 << 19, np.float32).view(np.uint8)
    y = virtual_tensor((HUGE // 4, 4), torch.float32, zeros)
    before = resident()
    run = Simulator(programs=2).run(host, {"x": x, "y": y})
    assert run.error is None, run.error
    good, every, some = run.outputs
    assert not every
    assert some
    assert good[:2].tolist() == [[False, True, True, True], [True, True, True, False]]  # type: ignore[index]
    far = HUGE // 4 - 1
    assert good[far].tolist() == (x[far] >= 0).tolist()  # type: ignore[index]
    assert resident() - before < _ALLOWED


def test_holes_of_a_large_view_are_told_by_arithmetic() -> None:
    shape, strides = (3, 2**20, 5), (2**23, 7, 1)
    extent = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    allocation = Allocation(np.zeros(extent, np.int8), "i8")
    view = View(Argument("x", allocation, 0, shape, strides))
    places = np.array([0, 4, 5, 6, 7, 7 * (2**20 - 1) + 4, 7 * 2**20, 2**23, extent - 1, extent])
    outside = view.outside(places)
    assert outside is not None
    assert outside.tolist() == [0, 0, 1, 1, 0, 0, 1, 0, 0, 1]


def test_programs_stand_for_all_of_them() -> None:
    assert chosen_programs((1, 1, 1), 4) == (0,)
    assert set(chosen_programs((2, 3, 1), 1)) >= {0, 1, 4, 5}
    chosen = chosen_programs((1000, 1, 1), 4, [2**32])
    assert {0, 999, 501} <= set(chosen)
    assert len(chosen) <= 8
    rows = {number % 1000 for number in chosen_programs((1000, 7, 1), 4, [3 * 2**31])}
    assert {0, 999, 334, 667} <= rows


def test_blocks_are_whole_pages() -> None:
    with pytest.raises(ValueError, match="a block of 12 bytes is no whole number of pages"):
        virtual_tensor((100,), torch.float32, np.zeros(12, np.uint8))
    assert whole_pages(torch.float32, 300) == 307200 // 4
    assert dense_strides((2, 3, 4)) == (12, 4, 1)
    assert virtual_tensor((0, 3), torch.float32).shape == (0, 3)
    assert virtual_tensor((), torch.float16).isnan()
