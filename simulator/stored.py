"""One memory operation, prepared, and its elements as they lie in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trivet.simulator._rounding import STORAGE
from trivet.simulator.arithmetic import Arithmetic
from trivet.simulator.ir import Type
from trivet.simulator.values import INTEGERS, Mover, Value

_FLOAT_POISON = {"nan": float("nan"), "large": 3.0e4, "zero": 0.0}
_INTEGER_POISON = {"nan": 0x5A5A5A5A5A5A5A5A, "large": 0x3B3B3B3B3B3B3B3B, "zero": 0}


@dataclass(frozen=True, eq=False)
class Access:
    """One memory operation, prepared.

    ``kind`` is the type of the tile that moves, ``number`` that of its site; a ``relaxed`` one
    may meet atomics.
    """

    kind: Type
    number: int
    arithmetic: Arithmetic
    move: Mover
    relaxed: bool = False

    @property
    def rank(self) -> int:
        """Number of tile axes."""
        return len(self.kind.shape)

    def poison(self, name: str) -> Value:
        """What undefined lanes hold: NaN or a pattern nobody means, by the launch's settings."""
        element = self.kind.element
        if self.kind.is_float:
            return self.arithmetic.constant(_FLOAT_POISON[name], element)
        dtype = INTEGERS[element]
        pattern = np.array(_INTEGER_POISON[name], np.int64)
        return (pattern & 1).astype(np.bool_) if element == "i1" else pattern.astype(dtype)


def typed(data: np.ndarray, element: str) -> np.ndarray:
    """Storage seen as ``element``: a cast pointer, or a tensor of unsigned integers.

    Storage wider than the element belongs to an arithmetic and stays as it is.
    """
    dtype = np.dtype(STORAGE.get(element) or INTEGERS[element])
    return data if data.dtype == dtype or data.itemsize != dtype.itemsize else data.view(dtype)


def taken(access: Access, data: np.ndarray, places: np.ndarray, stored_as: str) -> Value:
    """Elements at ``places`` as a value of the operation's kind."""
    element = access.kind.element
    return decoded(access, typed(data, element).take(places), stored_as)


def decoded(access: Access, elements: np.ndarray, stored_as: str) -> Value:
    """Elements of memory, a fresh array, as a value of the operation's kind."""
    element = access.kind.element
    if access.kind.is_float:
        return access.arithmetic.load(elements, element)
    if elements.dtype.kind == "f":
        return access.arithmetic.bits(stored_as)(access.arithmetic.load(elements, stored_as))
    return elements


def as_stored(access: Access, target: np.ndarray, value: Value, stored_as: str) -> np.ndarray:
    """``value`` as elements of ``target``."""
    if not access.kind.is_float and target.dtype.kind == "f":
        value = access.arithmetic.from_bits(stored_as)(value)
    elif not access.kind.is_float:
        return np.asarray(value)
    return np.asarray(access.arithmetic.store(value, target.dtype))
