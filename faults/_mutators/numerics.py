"""Numerics: the right formula with a wrong term, type or function."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import operator
from trivet.faults._mutators._source import Edit, Source, keyword

_FUNCTIONS = {
    "exp": "exp2",
    "exp2": "exp",
    "log": "log2",
    "log2": "log",
    "sqrt": "rsqrt",
    "rsqrt": "sqrt",
    "sin": "cos",
    "cos": "sin",
    "floor": "ceil",
    "ceil": "floor",
}


@operator(
    ast.Call,
    fires=("s = tl.zeros([B], dtype=tl.float32)", "s = tl.zeros([B], dtype=tl.bfloat16)"),
    silent="s = tl.zeros([B], dtype=tl.int32)",
)
def accumulator_narrowed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A sum is kept in eight bits of mantissa."""
    if source.device_call(node) in ("zeros", "full"):
        for part in [*node.args[1:], *(word.value for word in node.keywords)]:
            if ast.unparse(part).endswith("float32"):
                yield source.replace(part, "tl.bfloat16")


def _cast(node: ast.Call) -> ast.expr | None:
    """Return what ``x.to(tl.float32)`` casts."""
    is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and node.args
    if is_cast and ast.unparse(node.args[0]).endswith("float32"):
        assert isinstance(node.func, ast.Attribute)
        return node.func.value
    return None


@operator(
    ast.Call, fires=("y = tl.load(p).to(tl.float32)", "y = tl.load(p)"), silent="y = x.to(tl.int32)"
)
def widening_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A narrow type is computed with as it was stored."""
    if (value := _cast(node)) is not None:
        yield source.operand(value)


@operator(
    ast.Call,
    fires=("y = x.to(tl.float32)", "y = x.to(tl.bfloat16).to(tl.float32)"),
    silent="y = x.to(tl.int32)",
)
def value_narrowed(node: ast.Call, source: Source) -> Iterator[str]:
    """A value is rounded to eight bits on its way."""
    if (value := _cast(node)) is not None:
        yield f"{source.operand(value)}.to(tl.bfloat16).to(tl.float32)"


@operator(
    ast.Call,
    fires=('c = tl.dot(a, b, input_precision="ieee")', 'c = tl.dot(a, b, input_precision="tf32")'),
    silent="c = tl.dot(a, b)",
)
def dot_in_tf32(node: ast.Call, source: Source) -> Iterator[Edit]:
    """Ten bits of each factor are kept."""
    precision = keyword(node, "input_precision")
    if source.device_call(node) == "dot" and precision is not None:
        yield source.replace(precision, '"tf32"')


@operator(ast.Call, fires=("c = tl.dot(a, b, c)", "c = tl.dot(a, b)"), silent="c = tl.dot(a, b)")
def dot_accumulator_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A product replaces the sum of the products before."""
    if source.device_call(node) == "dot":
        if len(node.args) > 2:
            yield source.call(node, keep=2)
        elif keyword(node, "acc") is not None:
            yield source.call(node, without=("acc",))


@operator(ast.BinOp, fires=("r = 1 / tl.sqrt(v + eps)", "r = 1 / tl.sqrt(v)"), silent="r = v + w")
def epsilon_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """A small term that keeps a division finite is forgotten."""
    if isinstance(node.op, ast.Add) and "eps" in ast.unparse(node.right):
        yield source.operand(node.left)


@operator(ast.Constant, fires=("y = 0.5 * x", "y = 1.0 * x"), silent="y = 2 * x")
def constant_changed(node: ast.Constant, source: Source) -> Iterator[str]:
    """A constant is twice as large; zero is one."""
    if isinstance(node.value, float) and not _is_other(node, source):
        yield repr(node.value * 2 if node.value else 1.0)


def _is_other(node: ast.Constant, source: Source) -> bool:
    """Whether a constant fills masked-off lanes, which has operators of its own."""
    parent = source.parent(node)
    return isinstance(parent, ast.keyword) and parent.arg == "other"


@operator(ast.Call, fires=("y = tl.exp(x)", "y = tl.exp2(x)"), silent="y = tl.abs(x)")
def function_swapped(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A function is taken for its sibling: exp for exp2, sqrt for rsqrt."""
    if other := _FUNCTIONS.get(source.device_call(node)):
        assert isinstance(node.func, ast.Attribute)
        yield source.replace(node.func, f"{source.text(node.func.value)}.{other}")


@operator(ast.Call, fires=("y = tl.maximum(a, b)", "y = tl.minimum(a, b)"), silent="y = tl.max(a)")
def extremum_swapped(node: ast.Call, source: Source) -> Iterator[Edit]:
    """The larger of two is taken for the smaller."""
    if other := {"maximum": "minimum", "minimum": "maximum"}.get(source.device_call(node)):
        assert isinstance(node.func, ast.Attribute)
        yield source.replace(node.func, f"{source.text(node.func.value)}.{other}")


@operator(ast.Call, fires=("y = tl.maximum(a, b)", "y = a"), silent="y = tl.max(a)")
def extremum_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """One of two values is taken whichever is larger."""
    if source.device_call(node) in ("maximum", "minimum") and len(node.args) == 2:
        yield source.operand(node.args[0])
        yield source.operand(node.args[1])


@operator(ast.Call, fires=("y = tl.abs(x)", "y = x"), silent="y = tl.exp(x)")
def magnitude_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A sign survives where only the size counts."""
    if source.device_call(node) == "abs" and len(node.args) == 1:
        yield source.operand(node.args[0])


@operator(ast.BinOp, fires=("y = a - b", "y = b - a"), silent="y = a + b")
def difference_reversed(node: ast.BinOp, source: Source) -> Iterator[str]:
    """A difference has the other sign."""
    if isinstance(node.op, ast.Sub):
        yield f"{source.operand(node.right)} - {source.operand(node.left)}"


@operator(ast.BinOp, fires=("y = a - b", "y = a + b"), silent="y = a + b")
def difference_to_sum(node: ast.BinOp, source: Source) -> Iterator[str]:
    """What should be taken away is added."""
    if isinstance(node.op, ast.Sub):
        yield f"{source.operand(node.left)} + {source.operand(node.right)}"


@operator(ast.BinOp, fires=("y = a - b", "y = a"), silent="y = a + b")
def subtrahend_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """Nothing is taken away: a maximum, a mean, an old value."""
    if isinstance(node.op, ast.Sub):
        yield source.operand(node.left)


@operator(ast.UnaryOp, fires=("y = -x", "y = x"), silent="y = -1")
def negation_dropped(node: ast.UnaryOp, source: Source) -> Iterator[str]:
    """A sign is forgotten."""
    if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield source.operand(node.operand)


@operator(ast.BinOp, fires=("y = a / b", "y = a * b"), silent="y = a // b")
def quotient_to_product(node: ast.BinOp, source: Source) -> Iterator[str]:
    """Multiplied where it should be divided."""
    if isinstance(node.op, ast.Div):
        yield f"{source.operand(node.left)} * {source.operand(node.right)}"


@operator(ast.BinOp, fires=("y = a / b", "y = a"), silent="y = a // b")
def divisor_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """A division is forgotten."""
    if isinstance(node.op, ast.Div):
        yield source.operand(node.left)
