"""State: sums and carries that start wrong, stand still, or are read at the wrong time."""

import ast
from collections.abc import Iterator, Sequence

from trivet.faults._mutators import EVERYWHERE, operator
from trivet.faults._mutators._source import Edit, Source, Statement

_SIGNS = {ast.Add: "-=", ast.Sub: "+=", ast.Mult: "/="}


@operator(ast.AugAssign, places=EVERYWHERE, fires=("s += x", "s = x"), silent="s = s + x")
def sum_replaced(node: ast.AugAssign, source: Source) -> Iterator[str]:
    """The last term stands for the sum."""
    yield f"{source.text(node.target)} = {source.text(node.value)}"


@operator(ast.AugAssign, places=EVERYWHERE, fires=("s += x", "s -= x"), silent="s = s + x")
def sum_sign_changed(node: ast.AugAssign, source: Source) -> Iterator[str]:
    """Terms are taken away instead of added."""
    if sign := _SIGNS.get(type(node.op)):
        yield f"{source.text(node.target)} {sign} {source.text(node.value)}"


@operator(
    ast.Call,
    fires=("s = tl.zeros([B], tl.float32)", "s = (tl.zeros([B], tl.float32) + 1)"),
    silent="s = tl.full([B], 2.0, tl.float32)",
)
def sum_started_at_one(node: ast.Call, source: Source) -> Iterator[str]:
    """A sum does not begin at zero."""
    if source.device_call(node) in ("zeros", "zeros_like"):
        yield f"({source.text(node)} + 1)"


@operator(
    ast.Assign,
    fires=("s = 0\nfor k in r:\n    s = s + k", "s = 1\nfor k in r:\n    s = s + k"),
    silent="s = 0",
)
def carry_started_elsewhere(node: ast.Assign, source: Source) -> Iterator[Edit]:
    """A count that a loop carries on begins one too high."""
    value = node.value
    if not isinstance(value, ast.Constant) or type(value.value) is not int:
        return
    if source.stored(node) & _carried(source, after=node):
        yield source.replace(value, f"{source.text(value)} + 1" if value.value else "1")


def _carried(source: Source, *, after: ast.stmt) -> set[str]:
    loops = [n for n in source.nodes if isinstance(n, ast.For | ast.While)]
    later = [loop for loop in loops if loop.lineno > after.lineno]
    return {name for loop in later for name in source.stored(loop)}


def _block(node: ast.AST, source: Source) -> Sequence[ast.stmt]:
    """Return the statements among which ``node`` stands."""
    parent = source.parent(node)
    for name in ("body", "orelse", "finalbody"):
        body = getattr(parent, name, None)
        if isinstance(body, list) and node in body:
            return body
    return ()


def _loop(node: ast.AST, source: Source) -> ast.For | ast.While | None:
    found = source.enclosing(node, ast.For) or source.enclosing(node, ast.While)
    return found if isinstance(found, ast.For | ast.While) else None


@operator(
    ast.Assign,
    fires=("c = a\nfor k in r:\n    c = f(c)", "c = a\nfor k in r:\n    pass"),
    silent="for k in r:\n    c = f(k)",
)
def carry_frozen(node: ast.Assign, source: Source) -> Iterator[str]:
    """What a loop hands on to its next turn never changes."""
    loop = _loop(node, source)
    if loop is not None and source.stored(node) & _before(source, loop):
        yield "pass"


def _before(source: Source, loop: ast.For | ast.While) -> set[str]:
    early = [n for n in source.nodes if isinstance(n, ast.stmt) and n.lineno < loop.lineno]
    names = {name for node in early for name in source.stored(node)}
    return names | set(source.parameters)


@operator(
    ast.Expr, ast.AugAssign, places=EVERYWHERE, fires=("tl.store(p, x)", "pass"), silent="x = f(p)"
)
def statement_deleted(node: ast.Expr | ast.AugAssign, source: Source) -> Iterator[str]:
    """A store, a launch or a step of a sum is forgotten."""
    if isinstance(node, ast.AugAssign) or isinstance(node.value, ast.Call):
        yield "pass"


@operator(
    ast.Assign,
    ast.AugAssign,
    fires=("t = s * k\ns = s + k", "s = s + k\nt = s * k"),
    silent="t = k\ns = s + k",
)
def state_read_after_update(node: Statement, source: Source) -> Iterator[Edit]:
    """A step reads the state that a later statement of the block was to change after it."""
    body = _block(node, source)
    place = body.index(node) if node in body else len(body)
    between: list[ast.stmt] = [node]
    for later in body[place + 1 :]:
        if not isinstance(later, ast.Assign | ast.AugAssign):
            return
        new = source.stored(later)
        if new & source.read(node) and not _needs(later, between, source):
            first, last = source.span(node)[0], source.span(later)[1]
            kept = source.file.text[first : source.span(later)[0]].rstrip()
            indent = " " * node.col_offset
            yield Edit(first, last, f"{source.text(later)}\n{indent}{kept}")
            return
        between.append(later)


def _needs(later: ast.stmt, between: Sequence[ast.stmt], source: Source) -> bool:
    """Whether ``later`` reads or writes again what the statements before it wrote."""
    written = {name for each in between for name in source.stored(each)}
    return bool(written & (source.read(later) | source.stored(later)))


@operator(ast.If, places=EVERYWHERE, fires=("if a:\n    f()", "if True:\n    f()"), silent="x = a")
def branch_always_taken(node: ast.If, source: Source) -> Iterator[Edit]:
    """A condition counts as met."""
    if not _raises(node):
        yield source.replace(node.test, "True")


@operator(ast.If, places=EVERYWHERE, fires=("if a:\n    f()", "if False:\n    f()"), silent="x = a")
def branch_never_taken(node: ast.If, source: Source) -> Iterator[Edit]:
    """A condition counts as not met."""
    if not _raises(node):
        yield source.replace(node.test, "False")


def _raises(node: ast.If) -> bool:
    """Whether a branch refuses inputs, which has an operator of its own."""
    return any(isinstance(each, ast.Raise) for each in node.body)


@operator(ast.IfExp, places=EVERYWHERE, fires=("x = a if c else b", "x = a"), silent="x = c")
def choice_dropped(node: ast.IfExp, source: Source) -> Iterator[str]:
    """One of two values is taken whatever the condition says."""
    yield source.operand(node.body)
    yield source.operand(node.orelse)
