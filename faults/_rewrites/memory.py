"""Memory: wider indices, hints for caches, a value for lanes that are masked off."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators._source import Edit, Source, keyword
from trivet.faults._rewrites import HOST, KERNEL, rewrite

_ZEROED = {"empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros"}


def _loads(source: Source) -> Iterator[ast.Call]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and source.device_call(node) == "load":
            yield node


def _with(node: ast.Call, source: Source, word: str) -> Edit:
    """Return the edit that adds a keyword at the end of a call."""
    end = source.span(node)[1] - 1
    given = [*node.args, *(each.value for each in node.keywords)]
    start = source.file.text.rindex(source.text(given[-1]), 0, end) + len(source.text(given[-1]))
    closing = source.file.text[start:end]
    return Edit(start, end, f", {word}{'' if ',' in closing else closing}")


@rewrite(
    KERNEL,
    fires=("y = tl.load(p)", "y = tl.load(p, eviction_policy='evict_last')"),
    silent="tl.store(p, x)",
)
def load_kept_in_cache(source: Source) -> Iterator[Edit]:
    """A load asks the cache to keep what it brings."""
    for node in _loads(source):
        if keyword(node, "eviction_policy") is None and len(node.args) < 7:
            yield _with(node, source, "eviction_policy='evict_last'")


@rewrite(
    KERNEL,
    fires=("y = tl.load(p, mask=m)", "y = tl.load(p, mask=m, other=0)"),
    silent="y = tl.load(p, mask=m, other=1)",
)
def lanes_filled(source: Source) -> Iterator[Edit]:
    """Lanes that are masked off hold zero instead of anything."""
    for node in _loads(source):
        masked = keyword(node, "mask") is not None and len(node.args) < 2
        if masked and keyword(node, "other") is None:
            yield _with(node, source, "other=0")


@rewrite(
    KERNEL,
    fires=("i = tl.arange(0, b)", "i = tl.arange(0, b).to(tl.int64)"),
    silent="i = tl.arange(0, b)\nx = tl.rand(s, i)",
)
def indices_widened(source: Source) -> Iterator[Edit]:
    """Indices are 64 bits wide; random numbers, which depend on the width, are left alone."""
    if "rand" in ast.unparse(source.function):
        return
    for node in source.nodes:
        if source.device_call(node) == "arange":
            yield source.replace(node, f"{source.text(node)}.to(tl.int64)")


@rewrite(HOST, fires=("y = torch.empty(n)", "y = torch.zeros(n)"), silent="y = torch.zeros(n)")
def buffer_zeroed(source: Source) -> Iterator[Edit]:
    """A buffer that is written whole starts with zeros."""
    for node in source.nodes:
        name = _ZEROED.get(source.method(node))
        if name is not None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield source.replace(node.func, f"{source.text(node.func.value)}.{name}")
