"""The least traffic that a contract leaves open: each input read once, each output written once."""

from collections.abc import Iterable, Mapping

import torch

from trivet.properties._arguments import Tensor
from trivet.properties._contract import Contract


def floor_bytes(
    contract: Contract, args: Mapping[str, object], outputs: Iterable[object] = ()
) -> int:
    """Return the bytes that one call must move, whatever its kernels.

    ``args`` are those of the call and ``outputs`` what it returned. An ``inout`` argument is read
    and written; one that is returned as well counts once. Elements that a stride of 0 repeats count
    once. A kernel whose inputs tell it not to look at all of them (indices, counts, masks) can stay
    below.
    """
    total = 0
    written: dict[object, int] = {}
    for name, value in args.items():
        declared = contract.args.get(name)
        if not isinstance(value, torch.Tensor) or not isinstance(declared, Tensor):
            continue
        if declared.role != "out":
            total += _bytes(value)
        if declared.role != "in":
            written[_place(value)] = _bytes(value)
    for value in outputs:
        if isinstance(value, torch.Tensor):
            written[_place(value)] = _bytes(value)
    return total + sum(written.values())


def _bytes(tensor: torch.Tensor) -> int:
    count = 0 if tensor.numel() == 0 else 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride else 1
    return count * tensor.element_size()


def _place(tensor: torch.Tensor) -> object:
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
