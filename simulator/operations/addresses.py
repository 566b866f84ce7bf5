"""Addresses as integers: pointers taken from memory and put there."""

from __future__ import annotations

import numpy as np

from trivet.simulator.addresses import Addresses, width_of
from trivet.simulator.chunk import Chunk
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, Unsupported, effect
from trivet.simulator.values import Pointer


@effect("tt.int_to_ptr")
def build_pointer(operation: Operation, compiler: Compiler) -> Handler:
    """Pointer into the tensor that holds the address."""
    element = operation.result_types[0].pointee
    return lambda chunk, addresses: pointer_at(chunk, addresses, element)


@effect("tt.ptr_to_int")
def build_address(operation: Operation, compiler: Compiler) -> Handler:
    """Address of the element a pointer points to."""
    return lambda chunk, pointer: _known(chunk).of(pointer)


def pointer_at(chunk: Chunk, addresses: np.ndarray, element: str) -> Pointer:
    """Pointers to ``element`` at integer ``addresses``."""
    argument, offsets, widths = _known(chunk).find(addresses)
    wrong = widths[widths > 0] != width_of(element)
    if wrong.any():
        held = int(widths[widths > 0][wrong][0])
        raise Unsupported(f"a pointer to {element} into a tensor of {held}-byte elements")
    return Pointer(argument, offsets)


def _known(chunk: Chunk) -> Addresses:
    addresses = chunk.launch.addresses
    assert addresses is not None
    return addresses
