"""Inputs derived from inputs: dense copies, one row alone, some arguments replaced."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._arrays import exact, numpy_of
from trivet.properties._cases import Inputs
from trivet.properties._contract import Contract
from trivet.properties._dims import extent
from trivet.properties._tensors import stored_tensor
from trivet.properties._verdict import InapplicableError, NotPromisedError


def dense(inputs: Inputs) -> Inputs | None:
    """Return ``inputs`` with every tensor contiguous from the start of a storage of its own.

    None where that changes nothing, or would part arguments that share storage.
    """
    tensors = {n: t for n, t in inputs.tensors.items() if isinstance(t, torch.Tensor)}
    storages = [tensor.untyped_storage().data_ptr() for tensor in tensors.values()]
    if len(set(storages)) < len(storages):
        return None
    if all(t.is_contiguous() and not t.storage_offset() for t in tensors.values()):
        return None
    copies = {name: _compact(tensor) for name, tensor in tensors.items()}
    return replace(inputs, tensors={**inputs.tensors, **copies})


def _compact(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


def batch_dim(contract: Contract) -> str:
    """Return the dim whose rows can stand alone: the leading one of the first input.

    Raises NotPromisedError where there is none: it must admit 1, lead every tensor that has it,
    and no other dim, scalar or domain may depend on it.
    """
    first = next((t for t in contract.tensors().values() if t.role != "out"), None)
    terms = first.shapes[0] if first is not None and len(first.shapes) == 1 else ()
    dim = terms[0].text if terms else ""
    if dim not in contract.forms:
        raise NotPromisedError("the first input has no leading dim of its own")
    low, high = extent(contract, dim)
    if not low <= 1 <= high:
        raise NotPromisedError(f"dim {dim} does not admit a single row")
    entangled = _entangled(contract, dim)
    if entangled:
        raise NotPromisedError(f"{entangled} depends on dim {dim}: its rows do not stand alone")
    return dim


def _entangled(contract: Contract, dim: str) -> str | None:
    for name, form in contract.forms.items():
        if dim in form.names:
            return f"dim {name}"
    for name, arg in contract.args.items():
        if isinstance(arg, Scalar) and any(dim in end.names for end in arg.ends):
            return f"argument {name}"
        if isinstance(arg, Tensor) and _tensor_entangled(arg, dim):
            return f"argument {name}"
    return None


def _tensor_entangled(tensor: Tensor, dim: str) -> bool:
    if tensor.domain is not None and (tensor.domain.structured or dim in tensor.domain.names):
        return any(dim in term.names for shape in tensor.shapes for term in shape) or (
            dim in tensor.domain.names
        )
    for shape in tensor.shapes:
        leads = bool(shape) and shape[0].text == dim
        if any(dim in term.names for term in shape[1 if leads else 0 :]):
            return True
    return False


def one_row(contract: Contract, inputs: Inputs) -> tuple[Inputs, str, int]:
    """Return the inputs of one row alone, the dim's name and the row's index.

    Raises NotPromisedError (see ``batch_dim``), InapplicableError where there are under two rows.
    """
    dim = batch_dim(contract)
    size = inputs.dims[dim]
    if size < 2:
        raise InapplicableError(f"{dim} = {size}: no row among others")
    index = size // 2
    tensors, arrays = dict(inputs.tensors), dict(inputs.arrays)
    for name, tensor in contract.tensors().items():
        given = tensors[name]
        if not isinstance(given, torch.Tensor) or not _leads(tensor, dim, given.ndim):
            continue
        tensors[name] = given[index : index + 1].clone()
        whole = arrays[name]
        if isinstance(whole, np.ndarray):
            arrays[name] = whole[index : index + 1]
    dims = {**inputs.dims, dim: 1}
    arrays[dim] = 1
    if dim in tensors:
        tensors[dim] = 1
    return replace(inputs, dims=dims, tensors=tensors, arrays=arrays), dim, index


def _leads(tensor: Tensor, dim: str, rank: int) -> bool:
    return any(len(shape) == rank and rank > 0 and shape[0].text == dim for shape in tensor.shapes)


def changed(contract: Contract, inputs: Inputs, changes: Mapping[str, Any]) -> Inputs:
    """Return ``inputs`` with some arguments replaced; arrays are rounded to the argument's dtype.

    Dims handed to the kernel may be replaced as well. Raises TypeError for an unknown name.
    """
    tensors, arrays, dims = dict(inputs.tensors), dict(inputs.arrays), dict(inputs.dims)
    for name, value in changes.items():
        if name in dims:
            dims[name] = arrays[name] = int(value)
            tensors.update({name: int(value)} if name in tensors else {})
        elif name not in contract.args:
            raise TypeError(f"rerun: no argument {name}; arguments: {', '.join(contract.args)}")
        elif value is None or not isinstance(contract.args[name], Tensor):
            # Triton passes floats as float32, so kernel and oracle are given what arrives.
            rounded = float(np.float32(value)) if isinstance(value, float) else value
            tensors[name] = arrays[name] = rounded
        else:
            tensor = stored_tensor(np.asarray(value), contract.dtype_of(name, inputs.dtype))
            tensors[name] = tensor
            arrays[name] = exact(numpy_of(tensor))
    return replace(inputs, tensors=tensors, arrays=arrays, dims=dims)
