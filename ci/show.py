"""One contract's whole case as a page."""

import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci.margins import recall

if TYPE_CHECKING:
    from trivet.properties._collect import Found


def page(found: "Found") -> str:
    """Return what the contract promises, how it is judged, and the faults that prove it."""
    from trivet.ci.gate import laws_of
    from trivet.properties._bound_page import bound_lines
    from trivet.properties._power_page import power_lines

    contract = found.contract
    lines = [
        f"{found.name}   {relative(found.path)}:{found.variable}",
        "",
        f"kernel    {_where(contract.kernel)}",
        *(f"oracle    {_where(oracle)}" for oracle in contract.oracles),
        f"backward  {_where(contract.backward or 'not promised')}",
        f"dtypes    {', '.join(contract.dtypes())}",
        f"precision {readable(contract.precision)}",
        *_section("dims", contract.dims),
        *_section("args", contract.args),
        *_section("outputs", contract.outputs or {"all": "as the first oracle's"}),
        "",
        "bound of the formula",
        *(f"  {line}" for line in bound_lines(contract)),
        "",
        "power",
        *(f"  {line}" for line in power_lines(contract)),
        "",
        "last margins",
        *(f"  {line}" for line in [*recall(found.name)] or ["none yet: run trivet gate"]),
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
        yield f"  {name:{width}}  {readable(value)}"


def readable(value: object) -> str:
    """Return a value as it would be written down: fields that have their default left out."""
    if hasattr(value, "tree") and hasattr(value, "text"):
        return str(value.text).removesuffix(".0")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = [
            (field.name, getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init and getattr(value, field.name) != _default(field)
        ]
        inside = ", ".join(f"{name}={readable(item)}" for name, item in given)
        return f"{type(value).__name__}({inside})"
    if isinstance(value, tuple):
        return f"({', '.join(map(readable, value))})"
    return str(getattr(value, "__qualname__", None) or repr(value))


def _default(field: "dataclasses.Field[Any]") -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


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
    return f"{name}  {relative(code.co_filename)}:{code.co_firstlineno}" if code else name


def relative(path: str | Path) -> str:
    """Return a path as seen from the working directory, unless that lies elsewhere."""
    path = Path(path)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
