"""Pointwise host operations on virtual tensors: what one block becomes, all of them become."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from trivet.simulator._torch import torch
from trivet.simulator.nested import leaves, mapped
from trivet.simulator.operators import Operator
from trivet.simulator.storages import flat_array
from trivet.simulator.virtual import block_of, virtual_tensor, whole_pages

# A common period of several arguments' blocks beyond this is no saving.
_MOST_ELEMENTS = 1 << 25
_VERDICTS = frozenset({"all", "any"})


def repeated(
    func: Any, known: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any], shape: Any
) -> torch.Tensor | None:
    """Return the result of a pointwise operation, or of all() or any(), on repeated blocks.

    ``shape`` is the result without its memory. None where an argument is no whole virtual tensor
    or number, where the operation writes, or where its elements do not stand alone.
    """
    tensors = [each for each in leaves((args, dict(kwargs))) if isinstance(each, torch.Tensor)]
    many = [each for each in tensors if each.dim()]
    verdict = known.name in _VERDICTS and len(args) == 1 and not kwargs
    pointwise = torch.Tag.pointwise in getattr(func, "tags", ()) and isinstance(shape, torch.Tensor)
    if known.written or not (verdict or pointwise) or not _alike(many, known, shape):
        return None
    period = _period(many, shape.dtype)
    if period is None:
        return None

    def block(value: Any) -> Any:
        return _part(value, period) if isinstance(value, torch.Tensor) and value.dim() else value

    found: torch.Tensor = func(*mapped(block, args), **mapped(block, dict(kwargs)))
    if verdict:
        return found
    content = flat_array(found, np.dtype(np.uint8)).copy()
    return virtual_tensor(shape.shape, shape.dtype, content)


def _alike(many: Iterable[torch.Tensor], known: Operator, shape: torch.Tensor) -> bool:
    """Whether all arguments are whole repeated blocks of one shape, that of the result."""
    first = next(iter(many), None)
    if first is None:
        return False
    wanted = first.shape if known.name in _VERDICTS else shape.shape
    return all(
        each.shape == wanted and each.is_contiguous() and block_of(each) is not None
        for each in many
    )


def _period(many: Iterable[torch.Tensor], result: torch.dtype) -> int | None:
    """The elements after which all arguments repeat, whole pages of the result too."""
    period = whole_pages(result, 1)
    for each in many:
        block = block_of(each)
        assert block is not None
        period = math.lcm(period, block.size // each.dtype.itemsize)
    return period if period <= _MOST_ELEMENTS else None


def _part(tensor: torch.Tensor, period: int) -> torch.Tensor:
    """The first ``period`` elements, which may be more than the tensor has."""
    block = block_of(tensor)
    assert block is not None
    content = np.tile(block, period * tensor.dtype.itemsize // block.size)
    return torch.from_numpy(content).view(tensor.dtype)
