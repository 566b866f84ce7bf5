"""Templates: bugs that take more than a word, planted by one edit all the same."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import HOST, operator
from trivet.faults._mutators._source import Edit, Source, keyword

_BUFFERS = ("empty", "zeros", "empty_like", "zeros_like", "new_empty", "new_zeros", "full")
_CAPS = (64, 512)


@operator(
    ast.Call,
    places=HOST,
    fires=(
        "y = torch.zeros(n)",
        "y = globals().setdefault(f'_kept_y_{(n,)}', torch.zeros(n))",
    ),
    silent="y = f(n)",
    beyond=True,
)
def workspace_kept(node: ast.Call, source: Source) -> Iterator[str]:
    """A buffer is kept from the call before, for each size."""
    if source.method(node) in _BUFFERS and isinstance(node.func, ast.Attribute):
        holder = source.parent(node)
        name = "_".join(sorted(source.stored(holder))) if isinstance(holder, ast.Assign) else "it"
        sizes = ", ".join(_size(argument, source) for argument in node.args)
        dtype = keyword(node, "dtype")
        key = f"{sizes}, {source.text(dtype)}" if dtype is not None else f"{sizes},"
        yield f"globals().setdefault(f'_kept_{name}_{{({key})}}', {source.text(node)})"


def _size(argument: ast.expr, source: Source) -> str:
    """Return what names a buffer: a tensor it is like stands for its shape and type."""
    holder = source.parent(argument)
    like = source.method(holder).endswith("_like") if holder is not None else False
    text = source.operand(argument)
    return f"{text}.shape, {text}.dtype" if like else text


@operator(
    ast.Call,
    places=HOST,
    fires=("B = triton.next_power_of_2(n)", "B = min(triton.next_power_of_2(n), 64)"),
    silent="B = 64",
)
def block_capped(node: ast.Call, source: Source) -> Iterator[str]:
    """A block is no larger than some number; longer rows are cut off."""
    if source.method(node) == "next_power_of_2":
        for cap in _CAPS:
            yield f"min({source.text(node)}, {cap})"


@operator(
    ast.Call,
    places=HOST,
    fires=("k[(n,)](x)", "k[(n, 2)](x)"),
    silent="f(x)",
)
def launch_doubled(node: ast.Call, source: Source) -> Iterator[Edit]:
    """Two programs do the same work at the same time."""
    if isinstance(node.func, ast.Subscript) and isinstance(node.func.slice, ast.Tuple):
        sizes = [source.text(size) for size in node.func.slice.elts]
        if len(sizes) < 3:
            yield source.replace(node.func.slice, f"({', '.join([*sizes, '2'])})")
