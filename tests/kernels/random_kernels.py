"""Random well-formed Triton kernels as trees of statements that can be printed and reduced.

Every variable has one element and one shape. Float sums and products of matrices take small whole
numbers, so that the order of summation does not show; casts of floats to integers stay in range,
because outside it NumPy's answer depends on the machine.
"""

import random
import re
from dataclasses import dataclass, replace

import numpy as np

SIDE, FLAT = 16, 256
PROGRAMS, ATOMS = 3, 16
SCALAR, VECTOR, MATRIX, LINE = (), (SIDE,), (SIDE, SIDE), (FLAT,)
SHAPES = (SCALAR, VECTOR, MATRIX, LINE)
FLOATS, SIGNED, UNSIGNED = ("f32", "f64"), ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
WIDE = ("f32", "f64", "i32", "i64", "u32", "u64")
TRITON = {
    **{name: f"tl.float{name[1:]}" for name in FLOATS},
    **{name: f"tl.int{name[1:]}" for name in SIGNED},
    **{name: f"tl.uint{name[1:]}" for name in UNSIGNED},
    "i1": "tl.int1",
}
POINTERS = {
    **{name: f"*fp{name[1:]}" for name in FLOATS},
    **{name: f"*{name}" for name in INTEGERS},
}
ARRAYS = {
    **{name: np.dtype(f"float{name[1:]}") for name in FLOATS},
    **{name: np.dtype(f"int{name[1:]}") for name in SIGNED},
    **{name: np.dtype(f"uint{name[1:]}") for name in UNSIGNED},
}
PLACES = {SCALAR: "0", VECTOR: "lane", MATRIX: "grid", LINE: "line"}
COLUMNS = {SCALAR: "()", VECTOR: "(16,)", MATRIX: "(16, 16)", LINE: "(256,)"}
ATOMIC = ("i32", "i64", "u32", "u64", "f32", "f64")

HEADER = """import triton
import triton.language as tl


@triton.jit
def _mix(a, b):
    return a * 3 + b


@triton.jit
def _larger(a, b):
    return tl.where(a > b, a, b)
"""
_VARIABLE = re.compile(r"\bv\d+\b")
_POINTER = re.compile(r"\b(?:x|cells|atom|out)_[fiu]\d+\b")


@dataclass(frozen=True)
class Variable:
    """A name in scope."""

    name: str
    element: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Statement:
    """One line, or a block: ``foot`` ends its body, ``other`` is the body of its else."""

    head: str
    makes: Variable | None = None
    body: tuple["Statement", ...] = ()
    other: tuple["Statement", ...] = ()
    foot: str = ""

    @property
    def uses(self):
        """Variables that the line itself mentions, without the one it makes."""
        found = set(_VARIABLE.findall(self.head + self.foot))
        return found - {self.makes.name} if self.makes else found

    def lines(self, indent="    "):
        """Source lines."""
        for line in self.head.split("\n"):
            yield indent + line
        for inner in self.body:
            yield from inner.lines(indent + "    ")
        if self.foot:
            yield indent + "    " + self.foot
        if self.other:
            yield indent + "else:"
            for inner in self.other:
                yield from inner.lines(indent + "    ")


@dataclass(frozen=True)
class Program:
    """A kernel: its statements, and the stores of the variables at its top level."""

    name: str
    seed: int
    statements: tuple[Statement, ...]

    def results(self):
        """Variables that are stored at the end."""
        return [s.makes for s in self.statements if s.makes]

    def source(self):
        """Text of the kernel."""
        results = self.results()
        body = [line for statement in self.statements for line in statement.lines()]
        for number, item in enumerate(results):
            element, text = item.element, item.name
            if element == "i1":
                element, text = "i8", f"{item.name}.to(tl.int8)"
            place = f"(p * {len(results)} + {number}) * {FLAT} + {PLACES[item.shape]}"
            body.append(f"    tl.store(out_{element} + {place}, {text})")
        pointers = sorted(set(_POINTER.findall("\n".join(body))))
        head = [
            "@triton.jit",
            f"def {self.name}({', '.join(pointers)}):",
            "    p = tl.program_id(0)",
            f"    row = p * {FLAT}",
            f"    lane, line = tl.arange(0, {SIDE}), tl.arange(0, {FLAT})",
            f"    grid = lane[:, None] * {SIDE} + lane[None, :]",
        ]
        return "\n".join([*head, *body]) + "\n"

    def pointers(self):
        """Names of the kernel's arguments, in order."""
        return re.search(r"def \w+\((.*)\):", self.source())[1].split(", ")

    def arguments(self):
        """Fresh arrays by name; the same ones for the same seed."""
        slots = len(self.results())
        shapes = {"x": (PROGRAMS, FLAT), "cells": (PROGRAMS, FLAT), "atom": (ATOMS, FLAT)}
        shapes["out"] = (PROGRAMS, slots, FLAT)
        found = {}
        for name in self.pointers():
            role, element = name.split("_")
            rng = np.random.default_rng([self.seed, *name.encode()])
            shape = shapes[role]
            given = interesting(rng, element, shape) if role == "x" else np.zeros(shape)
            found[name] = given.astype(ARRAYS[element])
        return found

    def reduced(self):
        """Smaller programs: without one statement and all that needs it."""
        for path in _paths(self.statements):
            kept = _without_users(*_dropped(self.statements, path))
            if kept:
                yield replace(self, statements=kept)


def interesting(rng, element, shape):
    """Values of every size, with the special ones of the type."""
    if element in FLOATS:
        values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 6, shape)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e30, 3.0]
    else:
        limits = np.iinfo(ARRAYS[element])
        values = rng.integers(limits.min, limits.max, shape, ARRAYS[element], endpoint=True)
        values = np.where(rng.random(shape) < 0.5, values % 50, values)
        special = [0, 1, limits.min, limits.max, limits.max // 2]
    special = np.array(special, ARRAYS[element])
    return np.where(rng.random(shape) < 0.1, rng.choice(special, shape), values)


def _paths(statements, before=()):
    for number, statement in enumerate(statements):
        yield (*before, number)
        yield from _paths(statement.body, (*before, number, "body"))
        yield from _paths(statement.other, (*before, number, "other"))


def _dropped(statements, path):
    """Statements without the one at ``path``, and the names it made."""
    number, *rest = path
    if not rest:
        gone = statements[number]
        made = {gone.makes.name} if gone.makes else set()
        return statements[:number] + statements[number + 1 :], made
    inner, made = _dropped(getattr(statements[number], rest[0]), rest[1:])
    changed = replace(statements[number], **{rest[0]: inner})
    return (*statements[:number], changed, *statements[number + 1 :]), made


def _without_users(statements, gone):
    kept = []
    for statement in statements:
        if statement.uses & gone:
            gone = gone | ({statement.makes.name} if statement.makes else set())
            continue
        if statement.head.endswith(":"):
            body = _without_users(statement.body, gone)
            if not body:
                continue
            other = _without_users(statement.other, gone)
            statement = replace(statement, body=body, other=other)
        kept.append(statement)
    return tuple(kept)


class Writer:
    """Draws expressions of a wanted type from the variables in scope."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scope = [
            Variable("p", "i32", SCALAR),
            Variable("lane", "i32", VECTOR),
            Variable("grid", "i32", MATRIX),
            Variable("line", "i32", LINE),
        ]
        self._count = 0

    def fresh(self, element, shape):
        """A new variable, not yet in scope."""
        self._count += 1
        return Variable(f"v{self._count}", element, shape)

    def value(self, element, shape, depth):
        """Text of an expression."""
        makers = [self._leaf]
        if depth > 0:
            makers += [self._binary, self._binary, self._choice, self._cast, self._shaped]
            makers += [self._special, self._folded]
        return self.random.choice(makers)(element, shape, depth - 1)

    def mask(self, shape, depth):
        """Text of a condition."""
        kind = self.random.randrange(5) if depth > 0 else 0
        if kind == 1:
            operator = self.random.choice("&|^")
            return f"({self.mask(shape, depth - 1)} {operator} {self.mask(shape, depth - 1)})"
        if kind == 2:
            return f"(~{self.mask(shape, depth - 1)})"
        if kind == 3:
            return f"({self.value(self.random.choice(INTEGERS), shape, 0)} & 1).to(tl.int1)"
        element = self.random.choice(NUMBERS)
        operator = self.random.choice(("<", "<=", ">", ">=", "==", "!="))
        one, other = (self.value(element, shape, depth - 1) for _ in range(2))
        return f"({one} {operator} {other})"

    def place(self, shape, mask):
        """Index into 256 elements."""
        if mask or self.random.random() < 0.6:
            return PLACES[shape]
        index = self.random.choice(("i32", "i64", "u32"))
        return f"({self.value(index, shape, 1)} & {FLAT - 1})"

    def _leaf(self, element, shape, depth):
        known = [v for v in self.scope if v.element == element and v.shape == shape]
        if known and self.random.random() < 0.7:
            return self.random.choice(known[-4:]).name
        alike = [v for v in self.scope if v.shape == shape and v.element in INTEGERS]
        if self.random.random() < 0.4 and alike:
            return f"{self.random.choice(alike).name}.to({TRITON[element]})"
        role = self.random.choice(("x", "x", "x", "cells"))
        pointer = f"{role}_{element} + row + {PLACES[shape]}"
        if self.random.random() < 0.3 and shape:
            pointer = f"{role}_{element} + row + {self.place(shape, False)}"
            return f"tl.load({pointer}, mask={self.mask(shape, 0)}, other={self._constant()})"
        return f"tl.load({pointer})"

    def _constant(self):
        return self.random.choice((0, 1, 2, 5, 7, 100))

    def _binary(self, element, shape, depth):
        a, b = self.value(element, shape, depth), self.value(element, shape, depth)
        if element in FLOATS:
            operator = self.random.choice("+-*/%")
            return f"({a} {operator} {b})"
        operator = self.random.choice(("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"))
        if operator in ("//", "%"):
            b = f"({b} | 1)"
        if operator in ("<<", ">>"):
            b = f"({b} & {self.random.choice((7, 31, 63))})"
        return f"({a} {operator} {b})"

    def _choice(self, element, shape, depth):
        a, b = self.value(element, shape, depth), self.value(element, shape, depth)
        kind = self.random.randrange(3)
        if kind == 0:
            return f"tl.where({self.mask(shape, depth)}, {a}, {b})"
        # Which zero the larger of two zeros is depends on the place in NumPy's array.
        positive = " + 0.0" if element in FLOATS else ""
        return f"(tl.{('minimum', 'maximum')[kind - 1]}({a}, {b}){positive})"

    def _cast(self, element, shape, depth):
        source = self.random.choice([name for name in (*NUMBERS, "i1") if name != element])
        if source == "i1":
            return f"{self.mask(shape, depth)}.to({TRITON[element]})"
        text = self.value(source, shape, depth)
        if source in FLOATS and element in INTEGERS:
            low = "0.0" if element in UNSIGNED else "-100.0"
            text = f"tl.clamp({text}, {low}, 100.0)"
        return f"({text}).to({TRITON[element]})"

    def _shaped(self, element, shape, depth):
        if shape == SCALAR:
            return f"({self.value(element, SCALAR, depth)} + {self._constant()})"
        if self.random.random() < 0.3:
            scalar = self.value(element, SCALAR, depth)
            return f"({self.value(element, shape, depth)} * {scalar})"
        if shape == VECTOR:
            index = self.value("i32", VECTOR, 0)
            return f"tl.gather({self.value(element, VECTOR, depth)}, {index} & 15, 0)"
        if shape == LINE:
            return f"tl.reshape({self.value(element, MATRIX, depth)}, {COLUMNS[LINE]})"
        kind = self.random.randrange(3)
        if kind == 0:
            return f"tl.trans({self.value(element, MATRIX, depth)})"
        if kind == 1:
            return f"tl.reshape({self.value(element, LINE, depth)}, {COLUMNS[MATRIX]})"
        one, other = (self.value(element, VECTOR, depth) for _ in range(2))
        return f"({one}[:, None] {self.random.choice('+-*')} {other}[None, :])"

    def _whole(self, element, shape, depth):
        """Small whole numbers; for integers anything."""
        text = self.value(element, shape, depth)
        if element in INTEGERS:
            return text
        return f"(tl.floor(tl.clamp({text}, -50.0, 50.0)) + 0.0)"

    def _function(self, element, shape, depth):
        a = self.value(element, shape, depth)
        kind = self.random.randrange(6)
        if kind < 2:
            name = self.random.choice(("exp", "exp2", "sin", "cos", "log", "log2"))
            return f"tl.{name}({a})" if element == "f32" else f"tl.abs({a})"
        if kind == 2:
            return f"tl.sqrt(tl.abs({a}))"
        if kind == 3:
            return f"tl.{self.random.choice(('floor', 'ceil', 'abs'))}({a})"
        if kind == 4:
            b, c = (self.value(element, shape, 0) for _ in range(2))
            return f"tl.fma({a}, {b}, {c})"
        return f"({a}).to(tl.float16).to({TRITON[element]})"

    def _special(self, element, shape, depth):
        if element == "f32" and shape == MATRIX and self.random.random() < 0.5:
            one, other = (self._whole("f32", MATRIX, depth) for _ in range(2))
            return f"tl.dot({one}, {other}, input_precision='ieee')"
        if element in FLOATS:
            return self._function(element, shape, depth)
        a = self.value(element, shape, depth)
        if element in ("i32", "i64", "u32", "u64") and self.random.random() < 0.3:
            return f"tl.umulhi({a}, {self.value(element, shape, 0)})"
        form = self.random.choice(("(~{})", "(-{})", "tl.abs({})"))
        return form.format(a)

    def _folded(self, element, shape, depth):
        if element not in WIDE:
            return self._binary(element, shape, depth)
        if shape in (SCALAR, VECTOR) and self.random.random() < 0.6:
            source, axis = (self.random.choice((VECTOR, LINE)), 0), self.random.randrange(2)
            tile, axis = source if shape == SCALAR else (MATRIX, axis)
            return self._reduction(element, tile, axis, depth)
        if shape == SCALAR:
            return self._binary(element, shape, depth)
        a, axis = self.value(element, shape, depth), self.random.randrange(len(shape))
        reverse = self.random.choice((True, False))
        names = ("tl.cumsum", "tl.cumprod", "_mix", "_larger")
        name = self.random.choices(names, (4, 4, 1, 1))[0]
        if name[0] == "_":
            return f"tl.associative_scan({a}, {axis}, {name}, reverse={reverse})"
        return f"{name}({a}, {axis}, reverse={reverse})"

    def _reduction(self, element, shape, axis, depth):
        if element == "i32" and self.random.random() < 0.3:
            name, inner = self.random.choice(("argmax", "argmin")), self.value("i32", shape, depth)
            return f"tl.{name}({inner}, {axis})"
        a = self._whole(element, shape, depth)
        name = self.random.choices(("sum", "max", "min", "_mix"), (4, 4, 4, 1))[0]
        if name == "_mix":
            return f"tl.reduce({a}, {axis}, _mix)"
        return f"tl.{name}({a}, {axis})"
