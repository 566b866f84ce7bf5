"""The host function: buffers, layouts, grids, arguments and refusals."""

import ast
from collections.abc import Iterator
from itertools import pairwise

from trivet.faults._mutators import HOST, operator
from trivet.faults._mutators._source import Edit, Source, keyword

_COPIES = ("contiguous", "clone")
_EMPTIES = {"empty", "empty_like", "new_empty", "empty_strided"}


def _is_launch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


def _renamed(node: ast.Call, source: Source, names: dict[str, str]) -> Iterator[Edit]:
    if isinstance(node.func, ast.Attribute) and node.func.attr in names:
        owner = source.text(node.func.value)
        yield source.replace(node.func, f"{owner}.{names[node.func.attr]}")


@operator(
    ast.Call,
    places=HOST,
    fires=("y = torch.zeros(n)", "y = torch.empty(n)"),
    silent="y = torch.empty(n)",
)
def zeros_to_empty(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A buffer that the kernel adds to starts with whatever memory held."""
    names = {"zeros": "empty", "zeros_like": "empty_like", "new_zeros": "new_empty"}
    yield from _renamed(node, source, names)


@operator(
    ast.Call,
    places=HOST,
    fires=("y = torch.zeros(n)", "y = torch.ones(n)"),
    silent="y = torch.empty(n)",
)
def fill_changed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A buffer starts at one instead of zero."""
    names = {"zeros": "ones", "zeros_like": "ones_like", "new_zeros": "new_ones"}
    yield from _renamed(node, source, names)


@operator(ast.Call, places=HOST, fires=("y = x.contiguous()", "y = x"), silent="y = x.float()")
def copy_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A tensor is taken in the caller's layout, or the caller's own memory is written."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
        yield source.operand(node.func.value)


@operator(
    ast.If,
    places=HOST,
    fires=("if a:\n    raise ValueError", "if False:\n    raise ValueError"),
    silent="if a:\n    f()",
    beyond=True,
)
def guard_dropped(node: ast.If, source: Source) -> Iterator[Edit]:
    """Bad input is no longer refused."""
    if any(isinstance(each, ast.Raise) for each in node.body):
        yield source.replace(node.test, "False")


@operator(
    ast.Call, places=HOST, fires=("g = triton.cdiv(n, B)", "g = (n // B)"), silent="g = n // B"
)
def grid_floored(node: ast.Call, source: Source) -> Iterator[str]:
    """No program takes the last block where it is not full."""
    if source.method(node) == "cdiv" and len(node.args) == 2:
        size, block = (source.operand(argument) for argument in node.args)
        yield f"({size} // {block})"
        yield f"max(1, {size} // {block})"


@operator(
    ast.Subscript, places=HOST, fires=("k[(m, n)](x)", "k[(m - 1, n)](x)"), silent="k[(m, n)]"
)
def grid_short(node: ast.Subscript, source: Source) -> Iterator[Edit]:
    """One program too few is launched along an axis."""
    for size in _grid(node, source):
        yield source.replace(size, f"{source.operand(size)} - 1")


def _grid(node: ast.Subscript, source: Source) -> list[ast.expr]:
    """Return the sizes of a launch's grid, where they are written in the launch."""
    parent = source.parent(node)
    launched = isinstance(parent, ast.Call) and parent.func is node
    grid = node.slice
    return list(grid.elts) if launched and isinstance(grid, ast.Tuple) else []


@operator(ast.Subscript, places=HOST, fires=("k[(m, n)](x)", "k[(n, m)](x)"), silent="k[(m,)](x)")
def grid_axes_swapped(node: ast.Subscript, source: Source) -> Iterator[Edit]:
    """Rows of programs become columns."""
    sizes = _grid(node, source)
    for first, second in pairwise(sizes):
        yield _swapped(first, second, source)


def _swapped(first: ast.expr, second: ast.expr, source: Source) -> Edit:
    start, middle = source.span(first)
    after, end = source.span(second)
    between = source.file.text[middle:after]
    return Edit(start, end, f"{source.text(second)}{between}{source.text(first)}")


@operator(ast.Call, places=HOST, fires=("k[(m,)](x, y, z)", "k[(m,)](y, x, z)"), silent="f(x, y)")
def arguments_swapped(node: ast.Call, source: Source) -> Iterator[Edit]:
    """Two neighbouring arguments of a launch change places."""
    if _is_launch(node):
        for first, second in pairwise(node.args):
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                yield _swapped(first, second, source)


@operator(
    ast.Call, places=HOST, fires=("s = x.stride(0)", "s = x.stride(1)"), silent="s = x.stride()"
)
def stride_axis_changed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """The stride of another dim is handed over."""
    if source.method(node) in ("stride", "size") and len(node.args) == 1:
        axis = ast.unparse(node.args[0])
        yield source.replace(node.args[0], "1" if axis in ("0", "-2") else "0")


@operator(
    ast.Call,
    places=HOST,
    fires=("y = torch.empty(n, dtype=x.dtype)", "y = torch.empty(n, dtype=torch.float16)"),
    silent="y = torch.empty(n)",
)
def buffer_narrowed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A result or a workspace has a narrower type."""
    dtype = keyword(node, "dtype")
    floating = dtype is not None and "int" not in ast.unparse(dtype)
    if source.method(node) in _EMPTIES | {"zeros", "full"} and floating:
        assert dtype is not None
        yield source.replace(dtype, "torch.float16")


@operator(
    ast.Call,
    places=HOST,
    fires=("y = torch.empty((m, n))", "y = torch.empty((n, m))"),
    silent="y = torch.empty(n)",
)
def shape_axes_swapped(node: ast.Call, source: Source) -> Iterator[Edit]:
    """A buffer has its dims in another order."""
    if source.method(node) in _EMPTIES | {"zeros", "full"} and node.args:
        shape = node.args[0]
        if isinstance(shape, ast.Tuple | ast.List) and len(shape.elts) > 1:
            for first, second in pairwise(shape.elts):
                yield _swapped(first, second, source)


@operator(ast.Return, places=HOST, fires=("return y, mean", "return mean, y"), silent="return y")
def results_swapped(node: ast.Return, source: Source) -> Iterator[Edit]:
    """Two results change places."""
    if isinstance(node.value, ast.Tuple):
        for first, second in pairwise(node.value.elts):
            yield _swapped(first, second, source)


@operator(
    ast.Call,
    places=HOST,
    fires=("y = x.transpose(0, 1)", "y = x"),
    silent="y = x.sum(0)",
)
def view_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A tensor is handed over with its axes as they came."""
    if source.method(node) in ("transpose", "t", "permute", "flip"):
        assert isinstance(node.func, ast.Attribute)
        yield source.operand(node.func.value)


@operator(ast.BinOp, places=HOST, fires=("n = a + b", "n = a"), silent="n = a / b")
def size_term_dropped(node: ast.BinOp, source: Source) -> Iterator[str]:
    """A term or a factor of a size is forgotten."""
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod):
        yield source.operand(node.left)


@operator(
    ast.Call,
    places=HOST,
    fires=("B = triton.next_power_of_2(n)", "B = (triton.next_power_of_2(n) // 2)"),
    silent="B = 64",
)
def block_halved(node: ast.Call, source: Source) -> Iterator[str]:
    """A block that should hold a whole row holds half of it."""
    if source.method(node) == "next_power_of_2":
        yield f"({source.text(node)} // 2)"
