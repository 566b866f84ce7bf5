"""Indexing: the right computation on the wrong element."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import operator
from trivet.faults._mutators._source import Edit, Source

_MOST_SWAPS = 2


@operator(
    ast.Call, fires=("i = tl.program_id(0)", "i = tl.program_id(1)"), silent="i = tl.program_id(a)"
)
def program_axis_changed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A program takes its place from another axis of the grid."""
    if source.device_call(node) in ("program_id", "num_programs") and node.args:
        axis = node.args[0]
        if isinstance(axis, ast.Constant) and isinstance(axis.value, int):
            yield source.replace(axis, str((axis.value + 1) % 3))


@operator(ast.Call, fires=("i = tl.program_id(0)", "i = (tl.program_id(0) * 0)"), silent="i = f(0)")
def program_always_first(node: ast.Call, source: Source) -> Iterator[str]:
    """Every program does the first one's work."""
    if source.device_call(node) == "program_id":
        yield f"({source.text(node)} * 0)"


def _strides(source: Source) -> list[str]:
    """The parameters that something is multiplied by."""
    factors = {
        side.id
        for node in source.nodes
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        for side in (node.left, node.right)
        if isinstance(side, ast.Name)
    }
    return [name for name in source.parameters if name in factors]


def _stride_side(node: ast.BinOp, source: Source) -> tuple[ast.Name, ast.expr] | None:
    """Return the stride of a product and the other side."""
    if isinstance(node.op, ast.Mult):
        for side, other in ((node.right, node.left), (node.left, node.right)):
            if isinstance(side, ast.Name) and side.id in _strides(source):
                return side, other
    return None


@operator(
    ast.BinOp,
    fires=("i = row * a + col * b", "i = row * b + col * b"),
    silent="i = row * 2 + col * 3",
)
def stride_swapped(node: ast.BinOp, source: Source) -> Iterator[Edit]:
    """A row is stepped over by another dim's or another tensor's stride."""
    if found := _stride_side(node, source):
        others = [name for name in _strides(source) if name != found[0].id]
        for name in others[:_MOST_SWAPS]:
            yield source.replace(found[0], name)


@operator(ast.BinOp, fires=("i = row * a", "i = row"), silent="i = row * 2")
def stride_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """Elements count as adjacent whatever the stride."""
    if found := _stride_side(node, source):
        yield source.operand(found[1])


@operator(ast.BinOp, fires=("i = start * B + lane", "i = lane"), silent="i = start - lane")
def addend_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """One of two terms of a sum is forgotten."""
    if isinstance(node.op, ast.Add) and not _is_small(node.right):
        yield source.operand(node.right)
        yield source.operand(node.left)


def _is_small(node: ast.expr) -> bool:
    """Whether a term guards a division and has an operator of its own."""
    return "eps" in ast.unparse(node)


@operator(ast.BinOp, fires=("i = a + b", "i = a - b"), silent="i = a * b")
def addend_negated(node: ast.BinOp, source: Source) -> Iterator[str]:
    """A term is subtracted instead of added."""
    if isinstance(node.op, ast.Add):
        yield f"{source.operand(node.left)} - {source.operand(node.right)}"


@operator(ast.BinOp, fires=("i = row * 2", "i = row"), silent="i = row + 2")
def factor_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """One of two factors is forgotten."""
    if isinstance(node.op, ast.Mult) and _stride_side(node, source) is None:
        yield source.operand(node.left)
        yield source.operand(node.right)


@operator(
    ast.Call,
    fires=("i = tl.program_id(0).to(tl.int64)", "i = tl.program_id(0)"),
    silent="i = x.to(tl.float32)",
)
def wide_index_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """Offsets of large tensors wrap at two to the 31."""
    if _casts_to(node, source, "int64"):
        assert isinstance(node.func, ast.Attribute)
        yield source.operand(node.func.value)


def _casts_to(node: ast.Call, source: Source, dtype: str) -> bool:
    is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) > 0
    return is_cast and ast.unparse(node.args[0]).endswith(dtype)


@operator(ast.BinOp, fires=("i = p % n", "i = p // n"), silent="i = p / n")
def remainder_and_quotient_swapped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """Row and column of a numbered tile change places."""
    signs = {ast.Mod: "//", ast.FloorDiv: "%"}
    if sign := signs.get(type(node.op)):
        yield f"{source.operand(node.left)} {sign} {source.operand(node.right)}"


@operator(ast.BinOp, fires=("i = p // n", "i = p"), silent="i = p / n")
def index_division_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """A number is taken where its quotient or remainder is meant."""
    if isinstance(node.op, ast.FloorDiv | ast.Mod):
        yield source.operand(node.left)


@operator(ast.Subscript, fires=("i = rows[:, None]", "i = rows[None, :]"), silent="i = rows[0]")
def broadcast_axes_swapped(node: ast.Subscript, source: Source) -> Iterator[Edit]:
    """A column of numbers is laid out as a row."""
    index = node.slice
    if not isinstance(index, ast.Tuple) or len(index.elts) != 2:
        return
    first, second = (source.text(each) for each in index.elts)
    if {first, second} == {":", "None"}:
        yield source.replace(index, f"{second}, {first}")


@operator(
    ast.Call,
    fires=("n = tl.num_programs(2)", "n = (tl.num_programs(2) * 0 + 1)"),
    silent="n = tl.program_id(2)",
)
def work_not_shared(node: ast.Call, source: Source) -> Iterator[str]:
    """Every program does the work of all."""
    if source.device_call(node) == "num_programs":
        yield f"({source.text(node)} * 0 + 1)"


@operator(ast.Call, fires=("y = tl.trans(x)", "y = x"), silent="y = tl.abs(x)")
def transposition_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A tile keeps its axes where they should change places."""
    if source.device_call(node) == "trans" and len(node.args) == 1:
        yield source.operand(node.args[0])
