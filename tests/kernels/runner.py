"""Run one kernel on the machine from NumPy arrays."""

import ml_dtypes
import numpy as np

from trivet.simulator.arithmetic import Native
from trivet.simulator.frontend import lower
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument

ELEMENTS = {
    np.dtype(np.bool_): ("i1", "*i1"),
    np.dtype(np.int8): ("i8", "*i8"),
    np.dtype(np.uint8): ("i8", "*u8"),
    np.dtype(np.int32): ("i32", "*i32"),
    np.dtype(np.int64): ("i64", "*i64"),
    np.dtype(np.float16): ("f16", "*fp16"),
    np.dtype(np.float32): ("f32", "*fp32"),
    np.dtype(np.float64): ("f64", "*fp64"),
    np.dtype(ml_dtypes.bfloat16): ("bf16", "*bf16"),
}


def argument(name, array, *, initialised=None, **options):
    """The view ``array`` has of its own storage."""
    base = array if array.base is None else array.base
    offset = (array.ctypes.data - base.ctypes.data) // array.itemsize
    strides = tuple(stride // array.itemsize for stride in array.strides)
    element = ELEMENTS[array.dtype][0]
    allocation = Allocation(base.reshape(-1), element, initialised, name)
    return Argument(name, allocation, offset, array.shape, strides, **options)


def lowered(kernel, given, constexprs):
    """Module of ``kernel`` for arguments like ``given``."""
    return lower(kernel, {key: _type(value) for key, value in given.items()}, constexprs).module


def _type(value):
    if isinstance(value, Argument):
        return ELEMENTS[value.allocation.data.dtype][1]
    return "fp32" if isinstance(value, float) else "i32"


def run(kernel, grid, given, constexprs=None, arithmetic=None, **settings):
    """Report of one launch; arrays in ``given`` change in place."""
    arguments = {
        key: argument(key, value) if isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }
    grid = grid if isinstance(grid, tuple) else (grid,)
    machine = Machine(lowered(kernel, arguments, constexprs or {}), arithmetic or Native())
    return machine.launch((*grid, 1, 1)[:3], list(arguments.values()), Settings(**settings))


def kinds(report):
    """Kinds of the faults of a report, sorted."""
    return sorted(fault.kind for fault in report.faults)
