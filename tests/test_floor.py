"""The least traffic of a contract counts each element once, and what is written beside it."""

import torch
from tests.tiny import contract_of, doubled

from trivet import ANY, Contract, Tensor, sizes
from trivet.properties._floor import floor_bytes
from trivet.simulator.executors import Simulator


def scaled_into(x, y, out):
    out.copy_(x * y)
    return out


def product(x, y, out):
    return x * y


def buffered():
    return Contract(
        kernel=scaled_into,
        oracles=[product],
        dims={"N": sizes(0, 9)},
        args={
            "x": Tensor("N", layouts=ANY),
            "y": Tensor("N", role="inout"),
            "out": Tensor("N", role="out"),
        },
    )


def test_a_returned_tensor_is_written_and_an_argument_read():
    x = torch.ones(10)
    assert floor_bytes(contract_of(doubled), {"x": x}, (torch.ones(10),)) == 80


def test_a_buffer_that_is_returned_counts_once_and_an_updated_one_twice():
    x, y, out = torch.ones(1).expand(8), torch.ones(8), torch.ones(8)
    given = {"x": x, "y": y, "out": out, "factor": 3.0}
    assert floor_bytes(buffered(), given, (out,)) == 4 + 32 + 32 + 32


def test_an_empty_call_moves_nothing():
    assert floor_bytes(contract_of(doubled), {"x": torch.ones(0, 3)}, (torch.ones(0, 3),)) == 0


def test_a_kernel_that_reads_and_writes_once_meets_the_floor():
    x = torch.ones(96)
    run = Simulator(meter=True).run(doubled, {"x": x})
    moved = sum(traffic.bytes for traffic in run.metered)
    assert moved == floor_bytes(contract_of(doubled), {"x": x}, run.outputs)
