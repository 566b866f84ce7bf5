"""Bounds: one element too many or too few, a tail forgotten."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import EVERYWHERE, operator
from trivet.faults._mutators._source import Source

_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def _sides(node: ast.Compare, source: Source) -> tuple[str, str, str] | None:
    """Return left side, sign and right side of an ordering, None for any other comparison."""
    sign = _SIGNS.get(type(node.ops[0])) if len(node.ops) == 1 else None
    if sign is None:
        return None
    return source.operand(node.left), sign, source.operand(node.comparators[0])


@operator(
    ast.Compare, places=EVERYWHERE, fires=("m = cols < N", "m = cols <= N"), silent="m = cols == N"
)
def bound_off_by_one(node: ast.Compare, source: Source) -> Iterator[str]:
    """The end counts as inside, or the last element as outside."""
    if sides := _sides(node, source):
        left, sign, right = sides
        yield f"{left} {_SHIFTED[sign]} {right}"


@operator(ast.Compare, fires=("m = cols < N", "m = cols < N - 1"), silent="m = cols > N")
def bound_one_less(node: ast.Compare, source: Source) -> Iterator[str]:
    """The last element is left out."""
    if (sides := _sides(node, source)) and sides[1] in ("<", "<="):
        left, sign, right = sides
        yield f"{left} {sign} {right} - 1"


@operator(ast.Compare, fires=("m = cols < N", "m = (cols == cols)"), silent="m = cols == N")
def bound_always_met(node: ast.Compare, source: Source) -> Iterator[str]:
    """Every element counts as inside."""
    if sides := _sides(node, source):
        yield f"({sides[0]} == {sides[0]})"


@operator(ast.Compare, fires=("m = cols < N", "m = cols >= N"), silent="m = cols == N")
def bound_inverted(node: ast.Compare, source: Source) -> Iterator[str]:
    """Inside and outside change places."""
    if sides := _sides(node, source):
        left, sign, right = sides
        yield f"{left} {({'<': '>=', '<=': '>', '>': '<=', '>=': '<'})[sign]} {right}"


@operator(ast.Compare, places=EVERYWHERE, fires=("m = a == b", "m = a != b"), silent="m = a < b")
def equality_inverted(node: ast.Compare, source: Source) -> Iterator[str]:
    """Equal and unequal change places."""
    signs = {ast.Eq: "!=", ast.NotEq: "=="}
    if len(node.ops) == 1 and (sign := signs.get(type(node.ops[0]))):
        yield f"{source.operand(node.left)} {sign} {source.operand(node.comparators[0])}"


@operator(ast.Call, fires=("c = tl.arange(0, B)", "c = (tl.arange(0, B) + 1)"), silent="f(0, B)")
def arange_shifted(node: ast.Call, source: Source) -> Iterator[str]:
    """A block begins one element late."""
    if source.device_call(node) == "arange":
        yield f"({source.text(node)} + 1)"


@operator(ast.Call, fires=("n = tl.cdiv(N, B)", "n = (N // B)"), silent="n = N // B")
def cdiv_floored(node: ast.Call, source: Source) -> Iterator[str]:
    """The last block, where it is not full, is not counted."""
    if source.device_call(node) == "cdiv" and len(node.args) == 2:
        yield f"({source.operand(node.args[0])} // {source.operand(node.args[1])})"


def _range(node: ast.AST, source: Source) -> tuple[str, str, str] | None:
    """Return start, end and step of a loop's range, as texts."""
    ranged = isinstance(node, ast.Call) and source.method(node) in ("range", "static_range")
    if not ranged or not isinstance(source.parent(node), ast.For):
        return None
    assert isinstance(node, ast.Call)
    parts = [source.operand(each) for each in node.args]
    if len(parts) == 1:
        return "0", parts[0], "1"
    if len(parts) == 2:
        return parts[0], parts[1], "1"
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


@operator(
    ast.Call,
    fires=("for k in range(0, N, B):\n    f(k)", "for k in range(0 + B, N, B):\n    f(k)"),
    silent="range(0, N, B)",
)
def loop_first_skipped(node: ast.Call, source: Source) -> Iterator[str]:
    """The loop begins at the second block."""
    if found := _range(node, source):
        start, end, step = found
        yield f"{source.text(node.func)}({start} + {step}, {end}, {step})"


@operator(
    ast.Call,
    fires=("for k in range(0, N, B):\n    f(k)", "for k in range(0, N - B, B):\n    f(k)"),
    silent="range(0, N, B)",
)
def loop_last_skipped(node: ast.Call, source: Source) -> Iterator[str]:
    """The loop ends before the last block."""
    if found := _range(node, source):
        start, end, step = found
        yield f"{source.text(node.func)}({start}, {end} - {step}, {step})"


@operator(
    ast.Call,
    fires=("for k in range(0, N, B):\n    f(k)", "for k in range(0, N // B * B, B):\n    f(k)"),
    silent="for k in range(N):\n    f(k)",
)
def loop_tail_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """The loop runs over full blocks alone."""
    if (found := _range(node, source)) and found[2] != "1":
        start, end, step = found
        yield f"{source.text(node.func)}({start}, {end} // {step} * {step}, {step})"


@operator(ast.Call, places=EVERYWHERE, fires=("n = min(a, b)", "n = a"), silent="n = max(a, b, c)")
def clamp_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A minimum or maximum of two sizes is one of them."""
    if isinstance(node.func, ast.Name) and node.func.id in ("min", "max") and len(node.args) == 2:
        yield source.operand(node.args[0])
        yield source.operand(node.args[1])
