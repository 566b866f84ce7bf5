"""Reads of undefined memory are faults where they change what a launch writes, and only there."""

from collections.abc import Callable

import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator.executors import Run, Simulator

N = 16


@triton.jit
def lower_half(o):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(o + i * 16 + j, (i * 16 + j).to(tl.float32), mask=j <= i)


@triton.jit
def sum_of_lower_half(x, o):
    """Loads the whole tile, of which the upper half was never written, and drops that half."""
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tile = tl.load(x + i * 16 + j)
    tl.store(o + tl.arange(0, 16), tl.sum(tl.where(j <= i, tile, 0.0), axis=1))


@triton.jit
def sum_of_all(x, o):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(o + tl.arange(0, 16), tl.sum(tl.load(x + i * 16 + j), axis=1))


@triton.jit
def largest_so_far(x, o):
    """A maximum forgets the NaN of an undefined float, but not what else it may hold."""
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    tl.store(o + tl.arange(0, 16), tl.max(tl.load(x + i * 16 + j), axis=1))


@triton.jit
def jumps_where_told(x, o):
    """What was read decides where the kernel writes."""
    place = tl.load(x + 1).to(tl.int32, bitcast=True) & 7
    tl.store(o + place, 1.0)


@triton.jit
def sum_of_two(x, y, o):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    one = tl.where(j <= i, tl.load(x + i * 16 + j), 0.0)
    tl.store(o + tl.arange(0, 16), tl.sum(one + tl.load(y + i * 16 + j), axis=1))


def run(kernel: Callable[..., object], *, copies: int = 1) -> Run:
    def host() -> torch.Tensor:
        tiles = [torch.empty(N, N) for _ in range(copies)]
        for tile in tiles:
            lower_half[(1,)](tile)
        o = torch.empty(N)
        kernel[(1,)](*tiles, o)  # type: ignore[index]
        return o

    return Simulator().run(host, {})


def test_what_is_dropped_after_the_load_is_no_fault() -> None:
    found = run(sum_of_lower_half)
    (sums,) = found.outputs
    tile = torch.arange(N * N, dtype=torch.float32).view(N, N).tril()

    assert found.faults == []
    assert torch.equal(sums, tile.sum(1))  # type: ignore[arg-type]
    assert found.initialised_of(sums).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", [sum_of_all, largest_so_far, jumps_where_told])
def test_what_shows_in_the_result_is_a_fault(kernel: Callable[..., object]) -> None:
    assert {fault.kind for fault in run(kernel).faults} == {"uninitialised"}


def test_the_fault_names_the_argument_whose_undefined_values_show() -> None:
    assert [fault.argument for fault in run(sum_of_two, copies=2).faults] == ["y"]


def test_memory_is_left_as_the_launch_left_it() -> None:
    kept: list[torch.Tensor] = []

    def host() -> None:
        tile = torch.empty(N, N)
        lower_half[(1,)](tile)
        upper = tile.clone().triu(1)
        o = torch.empty(N)
        sum_of_all[(1,)](tile, o)
        kept.extend([upper, tile.triu(1), o])

    Simulator().run(host, {})
    before, after, o = (tensor.view(torch.int32) for tensor in kept)
    assert torch.equal(before, after)
    assert torch.isnan(kept[2][:-1]).all()
    assert len(o) == N
