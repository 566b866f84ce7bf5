"""Masks: lanes that should be off are on, or hold what they must not."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import operator
from trivet.faults._mutators._source import Edit, Source, keyword


def _unmasked(node: ast.Call, source: Source) -> Iterator[str]:
    if keyword(node, "mask") is not None:
        yield source.call(node, without=("mask", "other"))


@operator(
    ast.Call,
    fires=("x = tl.load(p, mask=m, other=0.0)", "x = tl.load(p)"),
    silent="x = tl.load(p)",
)
def load_mask_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A load without its mask reads past the end of a ragged block."""
    if source.device_call(node) == "load":
        yield from _unmasked(node, source)


@operator(ast.Call, fires=("tl.store(p, x, mask=m)", "tl.store(p, x)"), silent="tl.load(p, mask=m)")
def store_mask_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A store without its mask writes past the end of a ragged block."""
    if source.device_call(node) == "store":
        yield from _unmasked(node, source)


@operator(
    ast.Call,
    fires=("tl.atomic_add(p, x, mask=m)", "tl.atomic_add(p, x)"),
    silent="tl.store(p, x, mask=m)",
)
def atomic_mask_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """An atomic without its mask adds lanes that stand past the end."""
    if source.device_call(node).startswith("atomic_"):
        yield from _unmasked(node, source)


@operator(ast.BinOp, fires=("m = (a < b) & (c < d)", "m = (a < b)"), silent="m = a | b")
def mask_conjunct_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """One of two conditions is forgotten: ragged in one direction only."""
    if isinstance(node.op, ast.BitAnd):
        yield source.operand(node.left)
        yield source.operand(node.right)


@operator(ast.BinOp, fires=("m = a & b", "m = a | b"), silent="m = a + b")
def mask_and_to_or(node: ast.BinOp, source: Source) -> Iterator[str]:
    """Either condition suffices where both should hold."""
    if isinstance(node.op, ast.BitAnd):
        yield f"{source.operand(node.left)} | {source.operand(node.right)}"


@operator(ast.BinOp, fires=("m = a | b", "m = a & b"), silent="m = a & b")
def mask_or_to_and(node: ast.BinOp, source: Source) -> Iterator[str]:
    """Both conditions are demanded where either should suffice."""
    if isinstance(node.op, ast.BitOr):
        yield f"{source.operand(node.left)} & {source.operand(node.right)}"


@operator(ast.UnaryOp, fires=("m = ~done", "m = done"), silent="m = -done")
def mask_inversion_dropped(node: ast.UnaryOp, source: Source) -> Iterator[str]:
    """The complement of a mask is taken for the mask."""
    if isinstance(node.op, ast.Invert):
        yield source.operand(node.operand)


@operator(
    ast.Call,
    fires=("x = tl.load(p, mask=m, other=0.0)", "x = tl.load(p, mask=m)"),
    silent="x = tl.load(p, mask=m)",
)
def load_other_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """Masked-off lanes are left undefined."""
    if source.device_call(node) == "load" and keyword(node, "other") is not None:
        yield source.call(node, without=("other",))


@operator(
    ast.Call,
    fires=("x = tl.load(p, mask=m, other=0.0)", "x = tl.load(p, mask=m, other=1)"),
    silent="x = tl.load(p, mask=m)",
)
def load_other_changed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """Masked-off lanes hold one where they should hold zero, zero where anything else."""
    other = keyword(node, "other")
    if source.device_call(node) == "load" and other is not None:
        zero = isinstance(other, ast.Constant) and other.value in (0, False)
        yield source.replace(other, "1" if zero else "0")


def poisoned(source: Source, edit: Edit) -> Edit | None:
    """Return the edit that leaves undefined the masked-off lanes of the load ``edit`` stands in.

    None where ``edit`` changes more than what those lanes hold.
    """
    for node in source.nodes:
        if isinstance(node, ast.Call) and source.device_call(node) == "load":
            other = keyword(node, "other")
            whole = source.replace(node, source.call(node, without=("other",)))
            if other is not None and (edit == whole or _within(source, other, edit)):
                return whole
    return None


def _within(source: Source, node: ast.expr, edit: Edit) -> bool:
    start, end = source.span(node)
    return start <= edit.start and edit.end <= end
