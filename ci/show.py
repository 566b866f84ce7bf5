"""One contract's whole case as a page."""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.properties._collect import Found


def page(found: "Found") -> str:
    """Return what the contract promises, how it is judged, and the faults that prove it."""
    from trivet.ci.gate import laws_of

    contract = found.contract
    lines = [
        f"{found.name}   {found.path}:{found.variable}",
        "",
        f"kernel    {_where(contract.kernel)}",
        *(f"oracle    {_where(oracle)}" for oracle in contract.oracles),
        f"backward  {_where(contract.backward or 'not promised')}",
        f"dtypes    {', '.join(contract.dtypes())}",
        f"precision {contract.precision}",
        *_section("dims", contract.dims),
        *_section("args", contract.args),
        *_section("outputs", contract.outputs or {"all": "as the first oracle's"}),
        "",
        "laws",
    ]
    for name, law in laws_of(contract).items():
        removed = contract.removed.get(name)
        lines += _entry(name, law.claim) if removed is None else _entry(f"without {name}", removed)
    lines += ["", "faults" if contract.faults else "faults: none"]
    for fault in contract.faults:
        number = f" (number {fault.number})" if fault.number is not None else ""
        lines += _entry(f"{fault.name}{number}, red at {', '.join(fault.expects)}", fault.story)
    return "\n".join(lines)


def _section(title: str, entries: Any) -> Iterator[str]:
    yield from ("", title)
    width = max((len(name) for name in entries), default=0)
    for name, value in entries.items():
        yield f"  {name:{width}}  {value}"


def _entry(name: str, text: str) -> list[str]:
    prose = " ".join((text or "").split())
    return [f"  {name}", *textwrap.wrap(prose, 96, initial_indent="    ", subsequent_indent="    ")]


def _where(function: Callable[..., Any] | str) -> str:
    """Return a function's name, file and line."""
    if isinstance(function, str):
        return function
    function = inspect.unwrap(getattr(function, "fn", function))
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(function, "__code__", None)
    return f"{name}  {code.co_filename}:{code.co_firstlineno}" if code else name
