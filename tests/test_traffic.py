"""The traffic meter counts bytes, sectors, shared and wasted lanes exactly."""

import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator.executors import Simulator
from trivet.simulator.traffic import WAVE


@triton.jit
def add(x, y, out, n, stride, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    total = tl.load(x + place * stride, mask=inside) + tl.load(y + place, mask=inside)
    tl.store(out + place, total, mask=inside)


@triton.jit
def row_and_table(x, table, out, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    place = tl.program_id(0) * BLOCK + lane
    total = tl.load(table + lane)
    for _ in range(TIMES):
        total += tl.load(x + place)
    tl.store(out + place, total)


@triton.jit
def update(x, out, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + place, tl.load(x + place))


@triton.jit
def early(x, out, BLOCK: tl.constexpr):
    if tl.program_id(0) == 1:
        place = tl.arange(0, BLOCK)
        tl.store(out + place, tl.load(x + place))


@triton.jit
def visit(x, out, ROWS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    row = program % GROUP + program // (GROUP * ROWS) * GROUP
    column = program % (GROUP * ROWS) // GROUP
    lane = tl.arange(0, BLOCK)
    total = tl.load(x + row * BLOCK + lane) + tl.load(x + (ROWS + column) * BLOCK + lane)
    tl.store(out + program * BLOCK + lane, total)


def metered(launch, chunk=None, **tensors):
    run = Simulator(meter=True, chunk=chunk).run(lambda **given: launch(**given), tensors)
    assert run.error is None
    assert [fault.text for fault in run.faults] == []
    assert len(run.metered) == len(run.launches)
    return run.metered[0]


def added(n, block, stride=1, offset=0, chunk=None):
    x = torch.arange(n * stride + offset, dtype=torch.float32)[offset:]
    y, out = torch.ones(n), torch.empty(n)

    def launch(x, y, out):
        add[(triton.cdiv(n, block),)](x, y, out, n, stride, BLOCK=block)

    return metered(launch, chunk, x=x, y=y, out=out)


@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_a_sum_moves_each_element_once(chunk):
    traffic = added(1024, 128, chunk=chunk)
    assert (traffic.read_bytes, traffic.written_bytes, traffic.updated_bytes) == (8192, 4096, 0)
    assert (traffic.read_sectors, traffic.written_sectors) == (256, 128)
    assert (traffic.sector_use, traffic.rereads, traffic.sharing) == (1, 1, 1)
    assert (traffic.wave_rereads, traffic.wasted, traffic.programs) == (1, 0, 8)


def test_masked_lanes_are_wasted_and_move_nothing():
    traffic = added(100, 64)
    assert traffic.read_bytes == 800
    assert (traffic.lanes, traffic.wasted_lanes) == (3 * 128, 3 * 28)


def test_a_column_takes_a_sector_for_each_element():
    traffic = added(128, 32, stride=16)
    assert traffic.lines["test_traffic.py:16"].bytes == 1024
    assert traffic.read_sectors == 128 + 128 * 4 // 32
    assert traffic.sector_use == (3 * 512) / (32 * (128 + 16 + 16))


def test_a_row_that_starts_between_sectors_takes_one_more():
    assert added(1024, 128, offset=1).read_sectors == 256 + 8


@pytest.mark.parametrize("chunk", [None, 1, 5])
def test_what_a_program_reads_again_and_what_programs_share_are_told_apart(chunk):
    programs, block = 2 * WAVE, 16
    x, table = torch.ones(programs * block), torch.ones(block)

    def launch(x, table, out):
        row_and_table[(programs,)](x, table, out, TIMES=3, BLOCK=block)

    traffic = metered(launch, chunk, x=x, table=table, out=torch.empty_like(x))
    assert traffic.read_sectors == programs * 2 * 4
    assert traffic.program_sectors == programs * 2 * 2
    assert traffic.wave_sectors == programs * 2 + 2 * 2
    assert traffic.distinct_sectors == programs * 2 + 2
    assert traffic.rereads == 2


def test_the_order_in_which_programs_visit_tiles_shows_in_waves():
    rows, block = 32, 8
    found = {}
    for group in (1, 8):

        def launch(x, out, group=group):
            visit[(rows * rows,)](x, out, ROWS=rows, GROUP=group, BLOCK=block)

        x = torch.ones(2 * rows * block)
        found[group] = metered(launch, x=x, out=torch.empty(rows * rows * block))
    assert found[1].bytes == found[8].bytes
    assert found[1].distinct_sectors == found[8].distinct_sectors
    assert found[1].wave_sectors > 1.2 * found[8].wave_sectors


def test_atomics_are_counted_apart():
    def launch(x, out):
        update[(4,)](x, out, BLOCK=32)

    traffic = metered(launch, x=torch.ones(128), out=torch.zeros(128))
    assert (traffic.read_bytes, traffic.written_bytes, traffic.updated_bytes) == (512, 0, 512)


def test_programs_that_take_no_part_move_nothing():
    def launch(x, out):
        early[(9,)](x, out, BLOCK=16)

    traffic = metered(launch, x=torch.ones(16), out=torch.zeros(16))
    assert (traffic.read_bytes, traffic.written_bytes, traffic.lanes) == (64, 64, 32)


def test_a_launch_without_programs_moves_nothing():
    def launch(x, out):
        early[(0,)](x, out, BLOCK=16)

    assert metered(launch, x=torch.ones(16), out=torch.zeros(16)).bytes == 0


def test_the_meter_wants_programs_in_order():
    run = Simulator(meter=False).run(lambda: None, {})
    assert run.metered == []
    with pytest.raises(ValueError, match="metered in forward order, not 'reverse'"):
        Simulator(meter=True, order="reverse").run(lambda: None, {})
