"""Algebra: another way to write the same numbers."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators._source import Edit, Source
from trivet.faults._rewrites import KERNEL, rewrite

_COMMUTING = {ast.Add: "+", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|"}
_TURNED = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}


@rewrite(KERNEL, fires=("y = a * b", "y = b * a"), silent="y = a - b")
def operands_commuted(source: Source) -> Iterator[Edit]:
    """The operands of a sum, a product or a conjunction change places."""
    for node in source.nodes:
        sign = _COMMUTING.get(type(node.op)) if isinstance(node, ast.BinOp) else None
        if sign is not None:
            assert isinstance(node, ast.BinOp)
            left, right = source.operand(node.left), source.operand(node.right)
            yield source.replace(node, f"{right} {sign} {left}")


@rewrite(KERNEL, fires=("y = a - b", "y = a + (-b)"), silent="y = a + b")
def difference_as_sum(source: Source) -> Iterator[Edit]:
    """A difference is the sum with the negative: the same bits."""
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            left, right = source.operand(node.left), source.operand(node.right)
            yield source.replace(node, f"{left} + (-{right})")


@rewrite(KERNEL, fires=("m = a < b", "m = b > a"), silent="m = a == b")
def comparison_turned(source: Source) -> Iterator[Edit]:
    """An ordering is read from its other side."""
    for node in source.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sign = _TURNED.get(type(node.ops[0]))
            left, right = source.operand(node.left), source.operand(node.comparators[0])
            if sign is not None:
                yield source.replace(node, f"{right} {sign} {left}")


@rewrite(
    KERNEL,
    fires=("y = tl.where(m, a, b)", "y = tl.where(m == 0, b, a)"),
    silent="y = tl.where(m)",
)
def choice_turned(source: Source) -> Iterator[Edit]:
    """The condition of a choice is negated and its sides change places."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or source.device_call(node) != "where":
            continue
        if len(node.args) == 3 and not node.keywords:
            condition = source.operand(node.args[0])
            first, second = source.text(node.args[1]), source.text(node.args[2])
            called = source.text(node.func)
            yield source.replace(node, f"{called}({condition} == 0, {second}, {first})")


@rewrite(KERNEL, fires=("s += a", "s = a + s"), silent="s -= a")
def addition_written_out(source: Source) -> Iterator[Edit]:
    """An augmented addition is written out, the new term first."""
    for node in source.nodes:
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            continue
        if isinstance(node.target, ast.Name):
            name = node.target.id
            yield source.replace(node, f"{name} = {source.operand(node.value)} + {name}")


@rewrite(KERNEL, fires=("n = tl.cdiv(a, b)", "n = ((a + b - 1) // b)"), silent="n = a // b")
def division_rounded_up(source: Source) -> Iterator[Edit]:
    """A division that rounds up is written out."""
    for node in source.nodes:
        if source.device_call(node) == "cdiv" and isinstance(node, ast.Call):
            size, block = (source.operand(argument) for argument in node.args)
            yield source.replace(node, f"(({size} + {block} - 1) // {block})")


@rewrite(
    KERNEL,
    fires=(
        "v = tl.load(p).to(tl.float32)\ny = v * a + b",
        "v = tl.load(p).to(tl.float32)\ny = tl.fma(v, a, b)",
    ),
    silent="y = a * b + x",
    rounds=True,
)
def product_fused(source: Source) -> Iterator[Edit]:
    """A product and a sum round once instead of twice."""
    widened = _widened(source)
    for node in source.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            continue
        product = node.left
        if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
            continue
        if source.read(product) & widened:
            parts = (product.left, product.right, node.right)
            yield source.replace(node, f"tl.fma({', '.join(source.text(part) for part in parts)})")


def _widened(source: Source) -> set[str]:
    """Return the names that hold values loaded and widened to float32."""
    return {
        name
        for node in source.nodes
        if isinstance(node, ast.Assign) and "tl.load" in source.text(node)
        if source.text(node).endswith(".to(tl.float32)")
        for name in source.stored(node)
    }
