"""Rules of ATen operations that move numbers: joins, indexing, scattering, casts and copies."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trivet.oracles._bounded import Bounded, context_of, lift
from trivet.oracles._discrete import Discrete, parts
from trivet.oracles._dispatch import apply
from trivet.oracles._errors import Undecidable
from trivet.properties._torch_trace import NoRuleError, Rule, narrow_name, torch_rule


@torch_rule("clone", "contiguous")
def _clone(x: Any, **_: Any) -> Any:
    return apply("copy", x) if isinstance(x, Bounded) else x


@torch_rule("_to_copy")
def _cast(x: Any, dtype: Any = None, **_: Any) -> Any:
    """Floats stay float64 but for a format that the contract declares; integers truncate."""
    name = str(dtype).removeprefix("torch.")
    if dtype is None or dtype.is_floating_point:
        number = lift(context_of(x), x)
        narrow = narrow_name(dtype, number.context)
        return apply("copy", number) if narrow is None else apply("cast", number, narrow)
    return apply("astype", x, name)


@torch_rule("copy")
def _copy(x: Any, source: Any, non_blocking: bool = False) -> Any:
    return _in_kind_of(x, apply("broadcast_to", _tracked(x, source), np.shape(x)))


@torch_rule("fill")
def _fill(x: Any, value: Any) -> Any:
    return _copy(x, value)


@torch_rule("zero")
def _zero(x: Any) -> Any:
    return _copy(x, 0.0) if isinstance(x, Bounded) else np.zeros_like(parts(x)[0])


def _tracked(x: Any, value: Any) -> Any:
    """`value` as a number of the system of `x`."""
    if isinstance(value, (Bounded, Discrete)):
        return value
    context = context_of(x)
    if isinstance(x, Bounded):
        return lift(context, value)
    return Discrete(context, np.asarray(value), False)


def _in_kind_of(x: Any, value: Any) -> Any:
    """Integers stored among floats become floats, floats stored among integers truncate."""
    if isinstance(x, Bounded) or not isinstance(value, Bounded):
        return value
    return apply("astype", value, np.asarray(parts(x)[0]).dtype.name)


@torch_rule("cat", "concat", "concatenate")
def _cat(members: Sequence[Any], dim: int = 0) -> Any:
    kept = [member for member in members if np.shape(member) != (0,)]
    return apply("concatenate", kept or list(members), axis=dim)


@torch_rule("stack")
def _stack(members: Sequence[Any], dim: int = 0) -> Any:
    return apply("stack", list(members), axis=dim)


@torch_rule("repeat")
def _repeat(x: Any, sizes: Sequence[int]) -> Any:
    return apply("tile", x, tuple(sizes))


@torch_rule("flip")
def _flip(x: Any, dims: Sequence[int]) -> Any:
    return apply("flip", x, tuple(dims))


@torch_rule("roll")
def _roll(x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        return apply("roll", x, shifts[0])
    return apply("roll", x, tuple(shifts), tuple(dims))


@torch_rule("tril")
def _tril(x: Any, diagonal: int = 0) -> Any:
    return apply("tril", x, diagonal)


@torch_rule("triu")
def _triu(x: Any, diagonal: int = 0) -> Any:
    return apply("triu", x, diagonal)


@torch_rule("diag_embed")
def _diag_embed(x: Any, offset: int = 0, first: int = -2, second: int = -1) -> Any:
    if (first, second) != (-2, -1):
        raise NoRuleError("other axes than the last two")
    size = x.shape[-1] + abs(offset)
    place = np.arange(x.shape[-1])
    result = Bounded(context_of(x), np.zeros((*x.shape[:-1], size, size)), 0.0)
    result[..., place + max(-offset, 0), place + max(offset, 0)] = x
    return result


@torch_rule("constant_pad_nd")
def _pad(x: Any, pad: Sequence[int], value: Any = 0) -> Any:
    """Pads the last axes: (before, after) of the last one first; negative widths cut off."""
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    widths = [(0, 0)] * (len(x.shape) - len(pairs)) + pairs
    cut = tuple(
        slice(max(-before, 0), size - max(-after, 0))
        for (before, after), size in zip(widths, x.shape, strict=True)
    )
    grown = [(max(before, 0), max(after, 0)) for before, after in widths]
    return apply("pad", apply("getitem", x, cut), grown, constant_values=float(value))


def _key(indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


@torch_rule("index")
def _index(x: Any, indices: Sequence[Any]) -> Any:
    return apply("getitem", x, _key(indices))


@torch_rule("index_put", "_index_put_impl", "_unsafe_index_put")
def _index_put(
    x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    return _placed(x, _key(indices), values, accumulate)


def _placed(x: Any, key: tuple[Any, ...], values: Any, accumulate: bool) -> Any:
    plain = [parts(part) for part in key]
    if any(np.any(doubt) for _, doubt in plain):
        raise Undecidable("where the oracle writes depends on rounding", "index_put")
    key = tuple(part for part, _ in plain)
    if not isinstance(x, Bounded):
        raise NoRuleError("integers in doubt")
    result = apply("copy", x)
    if accumulate:
        return apply("scatter_add", result, key, values)
    result[key] = values
    return result


@torch_rule("index_select")
def _index_select(x: Any, dim: int, index: Any) -> Any:
    return apply("take", x, index, axis=dim)


@torch_rule("take")
def _take(x: Any, index: Any) -> Any:
    return apply("take", apply("ravel", x), index)


@torch_rule("embedding")
def _embedding(weight: Any, index: Any, *_: Any, **__: Any) -> Any:
    return apply("take", weight, index, axis=0)


@torch_rule("gather")
def _gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    if not x.shape:
        return x
    return apply("getitem", x, _along(dim, index))


def _along(dim: int, index: Any) -> tuple[Any, ...]:
    """The key of gather and scatter: index[i, j] on axis dim, i and j on the others."""
    shape = np.shape(index)
    grid = np.meshgrid(*(np.arange(size) for size in shape), indexing="ij", sparse=True)
    key: list[Any] = list(grid)
    key[dim] = index
    return tuple(key)


@torch_rule("scatter")
def _scatter(x: Any, dim: int, index: Any, source: Any, reduce: str | None = None) -> Any:
    if reduce not in (None, "add"):
        raise NoRuleError(f"scatter with reduce={reduce}")
    return _placed(x, _along(dim, index), _cut(source, index), reduce == "add")


@torch_rule("scatter_add")
def _scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    return _placed(x, _along(dim, index), _cut(source, index), True)


@torch_rule("scatter_reduce")
def _scatter_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    if reduce != "sum" or not include_self:
        raise NoRuleError(f"scatter_reduce with reduce={reduce}")
    return _scatter_add(x, dim, index, source)


def _cut(source: Any, index: Any) -> Any:
    """The part of a source that belongs to an index."""
    if not np.ndim(source):
        return source
    return source[tuple(slice(0, size) for size in np.shape(index))]


def _on_axis(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    axis = dim % max(x.ndim, 1)
    return (*(slice(None),) * axis, index)


@torch_rule("index_add")
def _index_add(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    added = source if alpha == 1 else apply("multiply", source, alpha)
    return _placed(x, _on_axis(x, dim, index), added, True)


@torch_rule("index_copy", "index_fill")
def _index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    return _placed(x, _on_axis(x, dim, index), source, False)


@torch_rule("masked_select")
def _masked_select(x: Any, mask: Any) -> Any:
    return apply("getitem", x, mask)


def _put_back(key_of: Rule) -> Rule:
    """The gradient of a view: zeros, and the gradient at the view's place."""

    def call(gradient: Any, shape: Sequence[int], *settings: Any) -> Any:
        zeros = Bounded(context_of(gradient), np.zeros(tuple(shape)), 0.0)
        zeros[key_of(len(shape), *settings)] = gradient
        return zeros

    return call


torch_rule("select_backward")(
    _put_back(lambda rank, dim, index: (*(slice(None),) * (dim % rank), index))
)
torch_rule("slice_backward")(
    _put_back(
        lambda rank, dim, start, end, step: (
            *(slice(None),) * (dim % rank),
            slice(start, end, step),
        )
    )
)


@torch_rule("select_scatter")
def _select_scatter(x: Any, source: Any, dim: int, index: int) -> Any:
    return _placed(x, _on_axis(x, dim, index), source, False)


@torch_rule("slice_scatter")
def _slice_scatter(
    x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return _placed(x, _on_axis(x, dim, slice(start, end, step)), source, False)
