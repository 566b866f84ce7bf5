"""What ties the values of one argument to those of another: copies, equal rows, shared zeros."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.properties._arguments import Tensor
from trivet.properties._contract import Contract
from trivet.properties._dtypes import stored
from trivet.properties._real_domains import Reals
from trivet.properties._sizes import Number

Array = NDArray[Any]
_NEAR = 2.0**-7


@dataclass(frozen=True, slots=True)
class Relation:
    """A tie: ``second`` follows ``first``, by equal_rows, copy, zero_rows or correlated."""

    kind: str
    first: str
    second: str


def _plain(contract: Contract, tensor: Tensor, name: str) -> bool:
    storage = contract.storage_of(name, contract.dtypes()[0])
    drawn = tensor.role != "out" and isinstance(tensor.domain_at(storage), Reals)
    return drawn and len(tensor.shapes) == 1 and bool(tensor.shapes[0])


def _texts(tensor: Tensor) -> tuple[str, ...]:
    return tuple(term.text for term in tensor.shapes[0])


def relations_of(contract: Contract) -> Iterator[Relation]:
    """Every tie that has a meaning between two float arguments of one shape or row length."""
    tensors = contract.tensors()
    plain = {name: tensor for name, tensor in tensors.items() if _plain(contract, tensor, name)}
    for (first, one), (second, other) in permutations(plain.items(), 2):
        left, right = _texts(one), _texts(other)
        if left[-1] != right[-1]:
            continue
        if len(left) > 1 or len(right) > 1:
            yield Relation("equal_rows", first, second)
        if first < second and len(left) > 1 and left[:-1] == right[:-1]:
            yield Relation("zero_rows", first, second)
        if left == right:
            yield Relation("copy", first, second)
            yield Relation("correlated", first, second)


def related(
    contract: Contract,
    relation: Relation,
    values: Mapping[str, Array | None],
    dtype: str,
    names: Mapping[str, Number],
) -> dict[str, Array | None]:
    """``values`` with the tie in place; unchanged where one is absent or has no elements."""
    first, second = values.get(relation.first), values.get(relation.second)
    if first is None or second is None or not first.size or not second.size:
        return dict(values)
    one, other = _tied(relation.kind, first, second)
    tied = {relation.first: one, relation.second: other}
    return {**values, **{n: _legal(contract, n, tied[n], dtype, names) for n in tied}}


def _tied(kind: str, first: Array, second: Array) -> tuple[Array, Array]:
    if kind == "equal_rows":
        row = first.reshape(-1, first.shape[-1])[0]
        return np.broadcast_to(row, first.shape), np.broadcast_to(row, second.shape)
    if kind == "zero_rows":
        live = np.arange(first.shape[0]) % 2 == 1
        rows = live.reshape((-1,) + (1,) * (first.ndim - 1))
        return np.where(rows, first, 0.0), np.where(rows, second, 0.0)
    if kind == "copy":
        return first, first
    return first, first + _NEAR * second


def _legal(
    contract: Contract, name: str, values: Array, dtype: str, names: Mapping[str, Number]
) -> Array:
    storage = contract.storage_of(name, dtype)
    domain = contract.tensors()[name].domain_at(storage)
    assert isinstance(domain, Reals)
    span = domain.span(names, storage)
    finite = np.where(np.isfinite(values), values, span.simplest)
    return np.array(stored(finite, storage, span.lo, span.hi))
