"""The cell's gradients a second way: the forward kernel's own IR in dual numbers."""

import numpy as np
import pytest
import torch
from tests.test_new_arithmetic import runner

from trivet.impl import cfc
from trivet.impl.cfc.forward import _step_kernel, _step_per_branch_kernel
from trivet.oracles import cfc as oracles
from trivet.oracles._gradient import gradient
from trivet.simulator.dual import STORED, Dual, DualArithmetic
from trivet.simulator.executors import Simulator
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument

B, D, H = 3, 70, 67
BLOCKS = {"BLOCK_ROWS": 4, "BLOCK_CHANNELS": 16, "BLOCK_K": 64}
LEARNED = ("x", "h", "W_in", "W_rec", "b", "tau")
TABLE = np.array([[5, 2, -1, 0], [-1, 66, 33, 7], [-1, -1, -1, -1]], np.int32)


def cell():
    draw = np.random.default_rng(11)
    shapes = {"x": (B, D), "h": (B, H), "dt": (B,), "W_in": (H, D), "W_rec": (H, H), "b": (H,)}
    point = {name: draw.standard_normal(shape) / 4 for name, shape in shapes.items()}
    point |= {"dt": np.array([0.0, 0.01, 3.0]), "tau": np.exp(draw.standard_normal(H))}
    return {name: value.astype(np.float32).astype(np.float64) for name, value in point.items()}


def lifted(name, value, tangent):
    stored = DualArithmetic().store(Dual(value, tangent), STORED)
    strides = tuple(stride // value.itemsize for stride in value.strides)
    return Argument(name, Allocation(stored.reshape(-1), "f32"), 0, value.shape, strides)


def tangent_of_the_kernel(kernel, point, direction, grid, sizes, table=None):
    """The output's derivative along ``direction``, by the kernel's own operations."""
    names = ["x", "h", "dt", "W_in", "W_rec", "b", "tau"]
    given = {name: lifted(name, point[name], direction[name]) for name in names}
    if table is not None:
        given["table"] = runner.argument("table", table)
    given["out"] = lifted("out", np.zeros((B, H)), np.zeros((B, H)))
    kinds = dict.fromkeys(given, "*fp32") | ({} if table is None else {"table": "*i32"})
    parameters = [name for name in kernel.arg_names if name not in BLOCKS]
    signature = dict(zip(parameters, [*kinds.values(), *["i32"] * len(sizes)], strict=True))
    module = runner.lower(kernel, signature, BLOCKS).module
    machine = Machine(module, DualArithmetic())
    report = machine.launch(grid, [*given.values(), *sizes], Settings(sanitize=False))
    assert [fault.text for fault in report.faults] == []
    return given["out"].allocation.data["tangent"].reshape(B, H)


def agree(oracle, backward, tangent, point, direction, g, **table):
    """<g, J v> from the kernel, <J^T g, v> from forward mode and from the backward kernel."""
    arguments = {**point, **table}
    values = gradient(oracle, arguments, LEARNED, [g])
    along = {name: direction[name] for name in LEARNED}
    wanted = sum((v.value * along[n]).sum() for n, v in zip(LEARNED, values, strict=True))
    allowed = sum((v.error * np.abs(along[n])).sum() for n, v in zip(LEARNED, values, strict=True))
    tensors = {name: torch.tensor(a, dtype=torch.float32) for name, a in point.items()}
    tensors |= {name: torch.from_numpy(a) for name, a in table.items() if name == "table"}

    def called(**arguments):
        found = backward(torch.tensor(g).float(), **arguments)
        return tuple(found[name] for name in LEARNED)

    run = Simulator().run(called, tensors)
    assert run.error is None
    pairs = zip(LEARNED, run.outputs, strict=True)
    kernels = sum((t.double().numpy() * along[n]).sum() for n, t in pairs)
    assert abs((g * tangent).sum() - wanted) <= allowed
    assert abs(kernels - wanted) <= allowed


def directions(point, g_seed):
    draw = np.random.default_rng(g_seed)
    direction = {name: draw.standard_normal(value.shape) for name, value in point.items()}
    return {**direction, "dt": np.zeros(B)}, draw.standard_normal((B, H)).astype(np.float32)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_dense_cells_ir_has_the_gradient_of_its_backward(seed):
    point = cell()
    direction, g = directions(point, seed)
    grid = (1, -(-H // BLOCKS["BLOCK_CHANNELS"]), 1)
    tangent = tangent_of_the_kernel(_step_kernel, point, direction, grid, (B, D, H))
    agree(oracles.step, cfc.step_backward, tangent, point, direction, g.astype(np.float64))


def test_the_branches_ir_has_the_gradient_of_its_backward():
    point = cell()
    direction, g = directions(point, 3)
    sizes = (B, D, H, TABLE.shape[1])
    grid = (1, TABLE.shape[0], 1)
    tangent = tangent_of_the_kernel(_step_per_branch_kernel, point, direction, grid, sizes, TABLE)
    agree(
        oracles.step_per_branch,
        cfc.step_per_branch_backward,
        tangent,
        point,
        direction,
        g.astype(np.float64),
        table=TABLE,
        out=np.zeros((B, H)),
    )
