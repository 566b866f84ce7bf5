"""Integers and truth values that rounding may have changed: a value and a mask of doubt."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trivet.oracles._context import Context
from trivet.oracles._dispatch import Rule
from trivet.oracles._errors import Undecidable
from trivet.oracles._operators import Operators

Mask = npt.NDArray[np.bool_]

STRUCTURE: dict[str, Rule] = {}


class Discrete(Operators):
    """`value` (bool or integer array) and `undecided` (bool array of the same shape): where it
    is set, an admissible execution may hold another value."""

    __slots__ = ("undecided", "value")
    rules: ClassVar[dict[str, Rule]] = {}
    rank = 1

    def __init__(self, context: Context, value: npt.ArrayLike, undecided: npt.ArrayLike) -> None:
        self.context = context
        self.value = np.asarray(value)
        self.undecided: Mask = np.array(np.broadcast_to(undecided, self.value.shape), bool)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the value."""
        return self.value.dtype

    def __bool__(self) -> bool:
        return bool(self._single())

    def __setitem__(self, key: Any, item: Any) -> None:
        value, undecided = parts(item)
        self.value[key] = value
        self.undecided[key] = undecided

    def _single(self) -> Any:
        if self.undecided.any():
            raise Undecidable("a branch or index of the oracle depends on rounding", "bool")
        return self.value


def decided_or_not(context: Context, value: Any, undecided: Any) -> Any:
    """A plain NumPy array when nothing is in doubt, a `Discrete` otherwise."""
    if not np.any(undecided):
        return np.asarray(value)[()]
    return Discrete(context, value, undecided)


def parts(operand: Any) -> tuple[Any, Any]:
    """Value and doubt of an operand that may be plain."""
    if isinstance(operand, Discrete):
        return operand.value, operand.undecided
    return operand, np.False_
