"""Text of one operation: operands, attributes and types."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from trivet.simulator._text import closing, split
from trivet.simulator.ir import Block, Operation, Type

_NAME = r"%[\w.$-]+(?:#\d+)?"
_VALUE = re.compile(_NAME)
_RESULTS = re.compile(r"((?:%[\w.$-]+(?::\d+)?(?:, )?)+) = ")
_OPERATION = re.compile(r'"?(\w+\.[\w.]+)"?')
_SHAPED = re.compile(r"((?:\d+x)*)(.*)$")
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_INTEGER = re.compile(r"(-?\d+)(?: : \w+)?$")
_ARRAY = re.compile(r"array<\w+(?:: (.*))?>$")
_BRACES = re.compile(r"<\{|(?<![\w<])\{")
_FOR = re.compile(
    rf"(?: unsigned)? ({_NAME}) = ({_NAME}) to ({_NAME}) step ({_NAME})"
    r"(?: iter_args\((.*?)\))?(?: -> \((.*)\))?\s*(?::\s*(\w+))?$"
)
_WHILE = re.compile(r"(?: \((.*?)\))?\s*: \((.*?)\) -> (.*)$")
_TARGET = re.compile(r"(\^\w+)(?:\((.*?) : .*\))?$")
_PRINT = re.compile(r'\s*"(.*?)"\s*(?::\s*([^:]*?)\s*(?::\s*(.*))?)?$')


@cache
def parse_type(text: str) -> Type:
    """Type of its printed form."""
    text = text.strip()
    if text.startswith("tensor<"):
        shaped = _SHAPED.match(split(text[7:-1])[0])
        assert shaped is not None
        shape = tuple(int(extent) for extent in shaped[1].split("x") if extent)
        return Type(shape, parse_type(shaped[2]).element)
    if text.startswith("!tt.ptr<"):
        return Type((), f"ptr<{parse_type(split(text[8:-1])[0]).element}>")
    if text.startswith("!tt.tensordesc<"):
        inner = text[15:-1]
        block = parse_type(inner if inner.startswith("tensor<") else f"tensor<{inner}>")
        return Type(block.shape, f"desc<{block.element}>")
    return Type((), text)


def parse_types(text: str) -> list[Type]:
    """Types of a list, in parentheses or bare."""
    text = text.strip()
    return [parse_type(part) for part in split(text[1:-1] if text.startswith("(") else text)]


def parse_parameters(text: str) -> tuple[list[str], list[Type]]:
    """Names and types of ``%a: i32 {..}, %b: f32``."""
    names, types = [], []
    for part in split(text):
        name, _, written = part.partition(":")
        names.append(name.strip())
        types.append(parse_type(written.split("{")[0]))
    return names, types


def parse_operation(line: str, tail: str, regions: list[list[Block]]) -> Operation:
    """Operation of ``line``; ``tail`` is what follows the brace that closes its last region."""
    results = _RESULTS.match(line)
    names = _result_names(results[1]) if results else []
    if results:
        line = line[results.end() :]
    head = _OPERATION.match(line)
    if head is None:
        raise ValueError(f"not an operation: {line!r}")
    operation = Operation(head[1], names, regions=regions)
    rest = line[head.end() :]
    if rest.endswith("(") and tail.startswith(")"):
        rest, tail = rest[:-1] + " " + tail[1:].strip(), ""
    elif tail.startswith("attributes"):
        tail = tail[10:].strip()
    if tail.startswith("{"):
        operation.attributes.update(_dictionary(tail[1:-1]))
    _FORMS.get(operation.name, _general)(operation, rest)
    return operation


def _result_names(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(", "):
        name, _, count = part.partition(":")
        names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return names


def _attribute(text: str) -> object:
    text = text.strip()
    integer = _INTEGER.match(text)
    if integer:
        return int(integer[1])
    if text in ("true", "false"):
        return text == "true"
    array = _ARRAY.match(text)
    if array:
        return [_attribute(part) for part in (array[1] or "").split(",") if part.strip()]
    return text[1:-1] if text.startswith('"') else text


def _dictionary(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for part in split(text):
        key, equals, value = part.partition("=")
        found[key.strip().strip('"')] = _attribute(value) if equals else True
    return found


def _take_attributes(operation: Operation, rest: str) -> str:
    """Move every ``{..}`` and ``<{..}>`` of ``rest`` into the operation's attributes."""
    while match := _BRACES.search(rest):
        end = closing(rest, match.end() - 1)
        operation.attributes.update(_dictionary(rest[match.end() : end]))
        end += 1 if match[0] == "<{" else 0
        rest = rest[: match.start()] + rest[end + 1 :]
    return rest


def _for(operation: Operation, rest: str) -> None:
    parts = _FOR.match(rest)
    if parts is None:
        raise ValueError(f"not a loop: {rest!r}")
    carried = [pair.split(" = ") for pair in split(parts[5] or "")]
    operation.operands = [parts[2], parts[3], parts[4], *(pair[1] for pair in carried)]
    operation.result_types = parse_types(parts[6] or "")
    operation.words = ["unsigned"] if rest.startswith(" unsigned") else []
    counter = parse_type(parts[7] or "index")
    operation.operand_types = [counter] * 3 + operation.result_types
    body = operation.regions[0][0]
    body.arguments = [parts[1], *(pair[0] for pair in carried)]
    body.argument_types = [counter, *operation.result_types]


def _while(operation: Operation, rest: str) -> None:
    parts = _WHILE.match(rest)
    if parts is None:
        raise ValueError(f"not a loop: {rest!r}")
    carried = [pair.split(" = ") for pair in split(parts[1] or "")]
    operation.operands = [pair[1] for pair in carried]
    operation.operand_types = parse_types(parts[2])
    operation.result_types = parse_types(parts[3])
    before = operation.regions[0][0]
    before.arguments = [pair[0] for pair in carried]
    before.argument_types = operation.operand_types


def _branch(operation: Operation, rest: str) -> None:
    targets = split(rest)
    if operation.name == "cf.cond_br":
        operation.operands = [targets.pop(0)]
    for target in targets:
        parts = _TARGET.match(target)
        if parts is None:
            raise ValueError(f"not a branch: {rest!r}")
        operation.successors.append((parts[1], split(parts[2] or "")))


def _constant(operation: Operation, rest: str) -> None:
    rest = rest.strip()
    if rest.startswith("{"):
        rest = rest[closing(rest, 0) + 1 :].strip()
    if rest in ("true", "false"):
        operation.words, operation.result_types = [rest], [Type((), "i1")]
        return
    value, _, written = rest.rpartition(" : ")
    operation.words, operation.result_types = [value], [parse_type(written)]


def _print(operation: Operation, rest: str) -> None:
    parts = _PRINT.match(_take_attributes(operation, rest))
    if parts is None:
        raise ValueError(f"not a print: {rest!r}")
    operation.words = [parts[1]]
    operation.operands = _VALUE.findall(parts[2] or "")
    operation.operand_types = parse_types(parts[3] or "")


def _conditional(operation: Operation, rest: str) -> None:
    operation.operands = _VALUE.findall(rest.partition("->")[0])
    operation.operand_types = [Type((), "i1")]
    operation.result_types = parse_types(rest.partition("->")[2])


def _descriptor(operation: Operation, rest: str) -> None:
    head, _, types = _take_attributes(operation, rest).partition(" : ")
    operation.operands = _VALUE.findall(head)
    operation.words = _WORD.findall(_VALUE.sub("", head))
    pointee, block = split(types)[:2]
    written = f"!tt.tensordesc{block}" if block.startswith("<") else block
    operation.result_types = [parse_type(written)]
    operation.operand_types = [Type((), f"ptr{pointee.removeprefix('!tt.ptr')}")]


def _general(operation: Operation, rest: str) -> None:
    rest = _take_attributes(operation, rest)
    strings = _STRING.findall(rest)
    head, _, types = _STRING.sub("", rest).partition(" : ")
    if operation.name == "tt.call":
        callee, _, head = rest.partition("(")
        operation.words = [callee.strip().removeprefix("@").strip('"')]
    else:
        plain = re.sub(r"fastmath<[^>]*>", "", _VALUE.sub("", head))
        operation.words = strings + _WORD.findall(plain.replace("->", " "))
    operation.operands = _VALUE.findall(head)
    operands, arrow, results = types.rpartition(" -> ")
    if arrow:
        operation.result_types = parse_types(results)
        operation.operand_types = parse_types(operands.replace(" * ", ", "))
    elif " to " in types:
        operand, _, result = types.partition(" to ")
        operation.operand_types, operation.result_types = parse_types(operand), parse_types(result)
    elif types:
        operation.operand_types = parse_types(types)
        _infer_results(operation)
    elif " -> " in head:
        operation.result_types = parse_types(head.rpartition(" -> ")[2])
    if operation.name == "tt.split" and len(operation.result_types) == 1:
        operation.result_types *= 2


def _scaled_dot(operation: Operation, rest: str) -> None:
    """``%a scale %s, %b, %c lhs = .. rhs = ..``: note which operands have a scale."""
    _general(operation, rest)
    parts = split(rest.partition(" : ")[0])
    operation.attributes["scaled"] = [" scale " in part for part in parts[:2]]


def _infer_results(operation: Operation) -> None:
    """Result types of operations that print only their operands' types."""
    if not operation.results:
        return
    last = operation.operand_types[-1]
    if operation.name.startswith("arith.cmp"):
        last = Type(last.shape, "i1")
    elif operation.name == "tt.load":
        last = Type(last.shape, last.pointee)
    elif operation.name == "tt.addptr":
        last = operation.operand_types[0]
    elif operation.name == "arith.select" and len(operation.operand_types) == 1:
        operation.operand_types.insert(0, Type((), "i1"))
    operation.result_types = [last] * len(operation.results)
    missing = len(operation.operands) - len(operation.operand_types)
    operation.operand_types += [last] * missing


_FORMS: dict[str, Callable[[Operation, str], None]] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _conditional,
    "cf.br": _branch,
    "cf.cond_br": _branch,
    "arith.constant": _constant,
    "tt.print": _print,
    "tt.dot_scaled": _scaled_dot,
    "tt.make_tensor_descriptor": _descriptor,
}
