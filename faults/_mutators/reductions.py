"""Reductions and selections: another function, axis, direction or branch."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import operator
from trivet.faults._mutators._source import Edit, Source, keyword

_OTHERS = {
    "sum": "max",
    "max": "min",
    "min": "max",
    "argmax": "argmin",
    "argmin": "argmax",
    "xor_sum": "sum",
}
_SCANS = ("cumsum", "cumprod", "associative_scan")


@operator(
    ast.Call, fires=("y = tl.sum(x, axis=0)", "y = tl.max(x, axis=0)"), silent="y = tl.exp(x)"
)
def reduction_swapped(node: ast.Call, source: Source) -> Iterator[Edit]:
    """Another function folds the axis."""
    if other := _OTHERS.get(source.device_call(node)):
        assert isinstance(node.func, ast.Attribute)
        yield source.replace(node.func, f"{source.text(node.func.value)}.{other}")


@operator(
    ast.Call, fires=("y = tl.sum(x, axis=1)", "y = tl.sum(x, axis=0)"), silent="y = tl.sum(x)"
)
def reduction_axis_changed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """Another axis is folded or scanned."""
    if source.device_call(node) not in (*_OTHERS, *_SCANS):
        return
    axis = keyword(node, "axis") or (node.args[1] if len(node.args) > 1 else None)
    if isinstance(axis, ast.Constant) and isinstance(axis.value, int):
        yield source.replace(axis, "0" if axis.value else "1")


@operator(ast.Call, fires=("y = tl.cumsum(x, 0)", "y = x"), silent="y = tl.sum(x, 0)")
def scan_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """Elements stand for their running sums."""
    if source.device_call(node) in _SCANS:
        yield source.operand(node.args[0])


@operator(
    ast.Call,
    fires=("y = tl.cumsum(x, 0)", "y = tl.cumsum(x, 0, reverse=True)"),
    silent="y = tl.cumsum(x, 0, reverse=True)",
)
def scan_reversed(node: ast.Call, source: Source) -> Iterator[str]:
    """A scan runs from the last element to the first."""
    if source.device_call(node) in _SCANS and keyword(node, "reverse") is None:
        yield f"{source.call(node)[:-1]}, reverse=True)"


@operator(
    ast.Call, fires=("y = tl.where(m, a, b)", "y = tl.where(m, b, a)"), silent="y = where(m, a)"
)
def where_swapped(node: ast.Call, source: Source) -> Iterator[str]:
    """A selection takes the other value."""
    if source.device_call(node) == "where" and len(node.args) == 3:
        mask, first, second = (source.text(argument) for argument in node.args)
        yield f"{source.text(node.func)}({mask}, {second}, {first})"


@operator(ast.Call, fires=("y = tl.where(m, a, b)", "y = a"), silent="y = where(m, a)")
def where_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A selection takes one value everywhere."""
    if source.device_call(node) == "where" and len(node.args) == 3:
        yield source.operand(node.args[1])
        yield source.operand(node.args[2])


@operator(ast.Call, fires=("y = tl.flip(x, 0)", "y = x"), silent="y = tl.sum(x, 0)")
def flip_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """An axis keeps its direction."""
    if source.device_call(node) == "flip":
        yield source.operand(node.args[0])


@operator(
    ast.Call,
    fires=("y = tl.sort(x)", "y = tl.sort(x, descending=True)"),
    silent="y = tl.sort(x, descending=True)",
)
def sort_reversed(node: ast.Call, source: Source) -> Iterator[str]:
    """The largest comes first."""
    if source.device_call(node) == "sort" and keyword(node, "descending") is None:
        yield f"{source.call(node)[:-1]}, descending=True)"
