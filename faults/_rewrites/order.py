"""Order: programs and blocks of a loop come in another one."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators._source import Edit, Source
from trivet.faults._rewrites import KERNEL, rewrite, together


def _program_ids(source: Source) -> list[tuple[ast.Call, str]]:
    """Return the function's program ids with their axes, none where another function has more."""
    called = [n for n in source.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    others = {source.text(call.func) for call in called}
    for name, function in source.file.functions().items():
        if name in others and "program_id" in ast.unparse(function):
            return []
    return [
        (node, ast.unparse(node.args[0] if node.args else node.keywords[0].value))
        for node in source.nodes
        if isinstance(node, ast.Call) and source.device_call(node) == "program_id"
    ]


@rewrite(
    KERNEL,
    fires=("i = tl.program_id(0)", "i = (tl.num_programs(0) - 1 - tl.program_id(0))"),
    silent="n = tl.num_programs(0)",
)
def programs_reversed(source: Source) -> Iterator[Edit]:
    """The first program does the work of the last."""
    texts = {
        source.span(node): f"(tl.num_programs({axis}) - 1 - {source.text(node)})"
        for node, axis in _program_ids(source)
    }
    if texts:
        yield together(source, texts)


@rewrite(
    KERNEL,
    fires=("i = tl.program_id(0)", "i = ((tl.program_id(0) + 1) % tl.num_programs(0))"),
    silent="n = tl.num_programs(0)",
)
def programs_rotated(source: Source) -> Iterator[Edit]:
    """Each program does the work of the next."""
    texts = {
        source.span(node): f"(({source.text(node)} + 1) % tl.num_programs({axis}))"
        for node, axis in _program_ids(source)
    }
    if texts:
        yield together(source, texts)


@rewrite(
    KERNEL,
    fires=(
        "for k in range(0, a, b):\n    s += tl.load(p + k)",
        "for turned_k in range(0, a, b):\n"
        "    k = (tl.cdiv(a, b) - 1) * b - turned_k\n"
        "    s += tl.load(p + k)",
    ),
    silent="for k in range(0, a, b):\n    s = s * x + tl.load(p + k)",
    rounds=True,
)
def loop_reversed(source: Source) -> Iterator[Edit]:
    """A loop that only adds up takes its blocks from the last to the first."""
    for node in source.nodes:
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            continue
        ends = _ends(node, source)
        if ends is not None and _only_adds(node, source):
            name, (end, step) = node.target.id, ends
            start, first = source.span(node.target)[0], source.span(node.body[0])[0]
            indent = " " * node.body[0].col_offset
            turned = f"{name} = (tl.cdiv({end}, {step}) - 1) * {step} - turned_{name}"
            header = f"turned_{name} in {source.text(node.iter)}:\n{indent}{turned}\n{indent}"
            yield Edit(start, first, header)


def _ends(node: ast.For, source: Source) -> tuple[str, str] | None:
    """Return end and step of a range from zero in steps that are no number."""
    call = node.iter
    if not isinstance(call, ast.Call) or source.text(call.func) not in ("range", "tl.range"):
        return None
    if call.keywords or len(call.args) != 3 or source.text(call.args[0]) != "0":
        return None
    return source.operand(call.args[1]), source.operand(call.args[2])


def _only_adds(loop: ast.For, source: Source) -> bool:
    """Whether turns of a loop share sums alone: no state, no memory, no nested statement."""
    if any(
        isinstance(node, ast.If | ast.For | ast.While) for node in ast.walk(loop) if node != loop
    ):
        return False
    if any(source.device_call(node).startswith(("store", "atomic")) for node in ast.walk(loop)):
        return False
    stored = {name for statement in loop.body for name in source.stored(statement)}
    sums: set[str] = set()
    known: set[str] = set()
    for statement in loop.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            sums |= source.stored(statement)
        elif not isinstance(statement, ast.Assign | ast.AnnAssign):
            return False
    for statement in loop.body:
        added = statement.value if isinstance(statement, ast.AugAssign) else None
        read = source.read(statement if added is None else added)
        if read & sums or (read & stored) - known:
            return False
        if added is None and source.stored(statement) & sums:
            return False
        known |= source.stored(statement)
    return bool(sums)
