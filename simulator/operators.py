"""What each ATen operation does to memory: allocates, views, moves, overwrites or computes."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from trivet.simulator._torch import torch

# Results hold whatever the memory held before.
_EMPTY = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
)

# Results share storage with an argument, though the schema does not say so.
_ALIASES = frozenset({"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"})

# Neither the values of an argument nor of the result are looked at.
_SHAPE_ONLY = frozenset({"resize_", "set_", "resize_as_"})

# Every element of `self` is written whatever it held.
_OVERWRITES = frozenset(
    {
        "zero_",
        "fill_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "cauchy_",
    }
)

# Elements travel unchanged: an unwritten element stays one in the result. The names are those of
# the arguments that hold data; the others (indices, conditions, sizes) are read.
_MOVES: dict[str, tuple[str, ...]] = {
    "clone": ("self",),
    "_to_copy": ("self",),
    "copy_": ("self", "src"),
    "cat": ("tensors",),
    "stack": ("tensors",),
    "flip": ("self",),
    "roll": ("self",),
    "repeat": ("self",),
    "index": ("self",),
    "index_select": ("self",),
    "gather": ("self",),
    "take": ("self",),
    "constant_pad_nd": ("self", "value"),
    "slice_scatter": ("self", "src"),
    "select_scatter": ("self", "src"),
    "where": ("self", "other"),
    "index_put_": ("self", "values"),
    "index_put": ("self", "values"),
    "index_copy_": ("self", "source"),
    "index_fill_": ("self", "value"),
    "masked_fill_": ("self", "value"),
    "masked_fill": ("self", "value"),
    "masked_scatter_": ("self", "source"),
    "scatter_": ("self", "src", "value"),
    "scatter": ("self", "src", "value"),
}


@dataclass(frozen=True)
class Operator:
    """One overload: its arguments' names, those it writes, and how it treats memory.

    ``moves`` names the arguments whose elements travel unchanged into the result (empty where
    elements are computed), ``replaced`` the written arguments whose old contents do not matter.
    """

    name: str
    arguments: tuple[str, ...]
    written: frozenset[str]
    replaced: frozenset[str]
    moves: tuple[str, ...]
    is_aten: bool
    is_empty: bool
    is_view: bool
    is_constant: bool
    is_random: bool
    reads_nothing: bool


@cache
def operator(function: Any) -> Operator:
    """Return what is known of an OpOverload, read off its schema."""
    name = function._schema.name.partition("::")[2]
    arguments = function._schema.arguments
    written = frozenset(a.name for a in arguments if a.alias_info and a.alias_info.is_write)
    outputs = frozenset(a.name for a in arguments if a.is_out)
    replaced = frozenset({"self"}) if name in _OVERWRITES or name == "copy_" else outputs
    moves = _MOVES.get(name, ()) if not outputs else ()
    return Operator(
        name=name,
        arguments=tuple(a.name for a in arguments),
        written=written,
        replaced=replaced,
        moves=moves,
        is_aten=function.namespace in ("aten", "prims", "prim"),
        is_empty=name in _EMPTY,
        is_view=bool(function.is_view) or name in _ALIASES,
        is_constant=name == "lift_fresh",
        is_random=torch.Tag.nondeterministic_seeded in function.tags,
        reads_nothing=name in _SHAPE_ONLY
        or name.endswith("_like")
        or name.startswith("new_")
        or torch.Tag.inplace_view in function.tags,
    )
