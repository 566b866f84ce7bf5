"""Launches: other warps, stages, blocks; no fused multiply-add; the grid as a function."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators._source import Edit, Source, keyword
from trivet.faults._rewrites import HOST, rewrite

_SMALLEST = 16


def _launches(source: Source) -> Iterator[ast.Call]:
    """Yield the launches of a host function; none in a file where a tuner sets their options."""
    if "autotune" in source.file.text:
        return
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            yield node


def _option(node: ast.Call, source: Source, name: str, values: tuple[str, str]) -> Iterator[Edit]:
    """Yield the edit that sets an option of a launch to the first value that it has not."""
    known = keyword(node, name)
    if known is not None:
        if isinstance(known, ast.Constant):
            value = values[1] if source.text(known) == values[0] else values[0]
            yield source.replace(known, value)
    elif not any(word.arg is None for word in node.keywords) and (node.args or node.keywords):
        given = [*node.args, *node.keywords]
        last = source.span(given[-1])[1]
        yield Edit(last, last, f", {name}={values[0]}")


@rewrite(HOST, fires=("k[(1,)](x)", "k[(1,)](x, num_warps=8)"), silent="k(x)")
def warps_changed(source: Source) -> Iterator[Edit]:
    """A program has another number of warps."""
    for node in _launches(source):
        yield from _option(node, source, "num_warps", ("8", "4"))


@rewrite(HOST, fires=("k[(1,)](x)", "k[(1,)](x, num_stages=1)"), silent="k(x)")
def stages_changed(source: Source) -> Iterator[Edit]:
    """Loops are pipelined otherwise."""
    for node in _launches(source):
        yield from _option(node, source, "num_stages", ("1", "2"))


@rewrite(HOST, fires=("k[(1,)](x)", "k[(1,)](x, enable_fp_fusion=False)"), silent="k(x)")
def fusion_off(source: Source) -> Iterator[Edit]:
    """Products and sums are not fused."""
    for node in _launches(source):
        yield from _option(node, source, "enable_fp_fusion", ("False", "True"))


@rewrite(HOST, fires=("k[(m, 1)](x)", "k[lambda meta: (m, 1)](x)"), silent="k[g](x)")
def grid_as_function(source: Source) -> Iterator[Edit]:
    """The grid is a function of the launch's constants."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            grid = node.func.slice
            if isinstance(grid, ast.Tuple):
                text = source.text(grid)
                wrapped = text if text.startswith("(") else f"({text})"
                yield source.replace(grid, f"lambda meta: {wrapped}")


@rewrite(
    HOST,
    fires=("BLOCK = triton.next_power_of_2(n)", "BLOCK = (2 * triton.next_power_of_2(n))"),
    silent="n = 64",
    rounds=True,
)
def block_doubled(source: Source) -> Iterator[Edit]:
    """A block is twice as large."""
    for node in source.nodes:
        if source.method(node) == "next_power_of_2":
            yield source.replace(node, f"(2 * {source.text(node)})")
    for _, constant in _blocks(source):
        yield source.replace(constant, str(2 * int(source.text(constant))))


@rewrite(
    HOST,
    fires=(
        "BLOCK = 64\nk[(triton.cdiv(n, BLOCK),)](x)",
        "BLOCK = 32\nk[(triton.cdiv(n, BLOCK),)](x)",
    ),
    silent="BLOCK = 64\nk[(n,)](x)",
    rounds=True,
)
def block_halved(source: Source) -> Iterator[Edit]:
    """A block that is one of many is half as large, where a matrix product still fits."""
    counted = [
        source.text(node.args[1])
        for node in source.nodes
        if isinstance(node, ast.Call) and source.method(node) == "cdiv" and len(node.args) == 2
    ]
    for name, constant in _blocks(source):
        large = int(source.text(constant)) >= 2 * _SMALLEST
        if large and any(name in text for text in counted):
            yield source.replace(constant, str(int(source.text(constant)) // 2))


def _blocks(source: Source) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the powers of two that a host function's block sizes are set to, by their names."""
    for name, value in _named_values(source):
        if "block" not in name.lower() or not isinstance(value, ast.Constant):
            continue
        number = value.value
        if type(number) is int and number >= 2 and number & (number - 1) == 0:
            yield name, value


def _named_values(source: Source) -> Iterator[tuple[str, ast.expr]]:
    arguments = source.function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    yield from _pairs(plain[len(plain) - len(arguments.defaults) :], arguments.defaults)
    yield from _pairs(arguments.kwonlyargs, arguments.kw_defaults)
    read = source.read(source.function)
    above = [n for n in source.file.tree.body if isinstance(n, ast.Assign)]
    for node in [*source.nodes, *(n for n in above if source.stored(n) & read)]:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
            yield from _entries(node.value)


def _pairs(
    arguments: list[ast.arg], values: "list[ast.expr] | list[ast.expr | None]"
) -> Iterator[tuple[str, ast.expr]]:
    for argument, value in zip(arguments, values, strict=True):
        if value is not None:
            yield argument.arg, value


def _entries(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the entries of a dictionary that is written out."""
    if isinstance(value, ast.Dict):
        for key, each in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), each
