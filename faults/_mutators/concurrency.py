"""Concurrency: programs that no longer wait for, or add to, each other."""

import ast
from collections.abc import Iterator

from trivet.faults._mutators import operator
from trivet.faults._mutators._source import Edit, Source, keyword

_OTHERS = {"atomic_add": "atomic_max", "atomic_max": "atomic_min", "atomic_min": "atomic_max"}
_ORDER = "the simulator runs one memory order: only a device can show a relaxed one"
_BARRIER = "programs run in step in the simulator: only a device can show a missing barrier"


@operator(
    ast.Call,
    fires=("tl.atomic_add(p, x, mask=m, sem='relaxed')", "tl.store(p, x, mask=m)"),
    silent="old = tl.atomic_add(p, x)",
)
def atomic_to_store(node: ast.Call, source: Source) -> Iterator[str]:
    """Programs overwrite each other's share."""
    if source.device_call(node) in _OTHERS and isinstance(source.parent(node), ast.Expr):
        called = source.call(node, without=("sem", "scope"))
        yield called.replace(source.text(node.func), "tl.store", 1)


@operator(
    ast.Call, fires=("tl.atomic_add(p, x)", "tl.atomic_max(p, x)"), silent="tl.atomic_cas(p, a, b)"
)
def atomic_swapped(node: ast.Call, source: Source) -> Iterator[Edit]:
    """The largest share stands for the sum."""
    if other := _OTHERS.get(source.device_call(node)):
        yield source.replace(node.func, f"tl.{other}")


@operator(
    ast.Call,
    fires=("tl.atomic_add(p, x, mask=m)", "tl.store(p, tl.load(p, mask=m) + x, mask=m)"),
    silent="old = tl.atomic_add(p, x)",
)
def atomic_in_two_steps(node: ast.Call, source: Source) -> Iterator[str]:
    """Two programs read the same sum and one of their additions is lost."""
    added = source.device_call(node) == "atomic_add" and len(node.args) == 2
    if added and isinstance(source.parent(node), ast.Expr):
        pointer, value = (source.text(argument) for argument in node.args)
        mask = keyword(node, "mask")
        masked = f", mask={source.text(mask)}" if mask is not None else ""
        yield f"tl.store({pointer}, tl.load({pointer}{masked}) + {value}{masked})"


@operator(
    ast.Expr,
    fires=("tl.debug_barrier()", "pass"),
    silent="tl.store(p, x)",
    elsewhere=_BARRIER,
)
def barrier_dropped(node: ast.Expr, source: Source) -> Iterator[str]:
    """Threads no longer wait for each other."""
    if source.device_call(node.value) == "debug_barrier":
        yield "pass"


@operator(
    ast.Call,
    fires=("tl.atomic_add(p, x, sem='release')", "tl.atomic_add(p, x, sem='relaxed')"),
    silent="tl.atomic_add(p, x, sem='relaxed')",
    elsewhere=_ORDER,
)
def order_relaxed(node: ast.Call, source: Source) -> Iterator[Edit]:
    """An atomic no longer orders the accesses before and after it."""
    order = keyword(node, "sem")
    strong = isinstance(order, ast.Constant) and order.value != "relaxed"
    if source.device_call(node).startswith("atomic_") and strong:
        assert order is not None
        yield source.replace(order, "'relaxed'")


@operator(
    ast.Call,
    fires=("x = tl.load(p, volatile=True)", "x = tl.load(p)"),
    silent="x = tl.load(p)",
    elsewhere=_ORDER,
)
def volatile_dropped(node: ast.Call, source: Source) -> Iterator[str]:
    """A load may be served from what was read before."""
    if source.device_call(node) == "load" and keyword(node, "volatile") is not None:
        yield source.call(node, without=("volatile",))
