"""Statements of random kernels: assignments, stores, atomics, loops, branches, early returns."""

from random_kernels import (
    ATOMIC,
    ATOMS,
    FLAT,
    FLOATS,
    NUMBERS,
    SCALAR,
    SHAPES,
    Program,
    Statement,
    Writer,
)

_KINDS = ("assign", "store", "atomic", "loop", "while", "branch")
_WEIGHTS = (12, 3, 3, 2, 1, 3)
_FLOAT_ATOMICS = ("add", "max", "min")
_INTEGER_ATOMICS = (*_FLOAT_ATOMICS, "and", "or", "xor")


class Composer:
    """Draws the statements of one program."""

    def __init__(self, seed):
        self.writer = Writer(seed)
        self.random = self.writer.random
        self._atoms = 0

    def program(self, name, seed):
        """A program of six to twelve statements at its top level."""
        statements = []
        if self.random.random() < 0.15:
            body = (self._store(),)
            statements.append(Statement("if p % 3 == 1:", body=body, foot="return"))
        statements += [self.assignment() for _ in range(3)]
        for _ in range(self.random.randint(3, 8)):
            statements.append(self.statement(2))
        return Program(name, seed, tuple(statements))

    def statement(self, nesting):
        """Any statement; blocks only while ``nesting`` lasts."""
        kind = self.random.choices(_KINDS, _WEIGHTS)[0]
        if kind == "store":
            return self._store()
        if kind == "atomic":
            return self._atomic()
        if kind == "assign" or nesting == 0 or not self._changeable():
            return self.assignment()
        return {"loop": self._loop, "while": self._while, "branch": self._branch}[kind](nesting - 1)

    def assignment(self):
        """A new variable."""
        shape = self.random.choice(SHAPES)
        if self.random.random() < 0.1:
            item = self.writer.fresh("i1", shape)
            text = self.writer.mask(shape, 2)
        else:
            item = self.writer.fresh(self.random.choice(NUMBERS), shape)
            text = self.writer.value(item.element, shape, 2)
        self.writer.scope.append(item)
        return Statement(f"{item.name} = {text}", item)

    def _changeable(self):
        return [v for v in self.writer.scope if v.name[0] == "v"]

    def _change(self):
        """Another value for a variable that exists."""
        item = self.random.choice(self._changeable())
        if item.element == "i1":
            text = self.writer.mask(item.shape, 1)
        else:
            text = self.writer.value(item.element, item.shape, 1)
        return Statement(f"{item.name} = {text}")

    def _body(self, nesting):
        outer = list(self.writer.scope)
        body = [self.statement(nesting) for _ in range(self.random.randint(0, 2))]
        body += [self._change() for _ in range(self.random.randint(1, 2))]
        self.writer.scope = outer
        return tuple(body)

    def _small(self):
        return f"({self.writer.value('i32', SCALAR, 1)} & 3)"

    def _loop(self, nesting):
        counter = self.writer.fresh("i32", SCALAR).name
        bounds = self.random.choice(("0, {}", "{}, 3", "{}, {}", "0, {}, 1 + {}"))
        bounds = bounds.format(self._small(), self._small())
        outer = list(self.writer.scope)
        # A counter is a plain number in the interpreter: as a tensor it has one type in both.
        inner = self.writer.fresh("i32", SCALAR)
        self.writer.scope.append(inner)
        first = Statement(f"{inner.name} = {counter} + p * 0", inner)
        body = (first, *self._body(nesting))
        self.writer.scope = outer
        return Statement(f"for {counter} in range({bounds}):", body=body)

    def _while(self, nesting):
        counter = self.writer.fresh("i32", SCALAR).name
        head = f"{counter} = {self._small()}\nwhile {counter} > 0:"
        return Statement(head, body=self._body(nesting), foot=f"{counter} -= 1")

    def _branch(self, nesting):
        condition = self.writer.mask(SCALAR, 1)
        body = self._body(nesting)
        other = self._body(nesting) if self.random.random() < 0.6 else ()
        return Statement(f"if {condition}:", body=body, other=other)

    def _store(self):
        element, shape = self.random.choice(NUMBERS), self.random.choice(SHAPES)
        value = self.writer.value(element, shape, 1)
        place = self.writer.place(shape, False)
        masked = shape and self.random.random() < 0.6
        mask = f", mask={self.writer.mask(shape, 1)}" if masked else ""
        return Statement(f"tl.store(cells_{element} + row + {place}, {value}{mask})")

    def _atomic(self):
        """An update of a program's own elements, whose old values are used, or of shared ones.

        Updates of shared elements are of one kind each and of integers, so that their order does
        not show.
        """
        element, shape = self.random.choice(ATOMIC), self.random.choice(SHAPES)
        kinds = _FLOAT_ATOMICS if element in FLOATS else _INTEGER_ATOMICS
        kind = self.random.choice(kinds)
        value, place = self.writer.value(element, shape, 1), self.writer.place(shape, False)
        mask = f", mask={self.writer.mask(shape, 1)}" if self.random.random() < 0.5 else ""
        self._atoms += 1
        if self._atoms < ATOMS and element not in FLOATS and self.random.random() < 0.4:
            pointer = f"atom_{element} + {self._atoms * FLAT} + {place}"
            return Statement(f"tl.atomic_{kind}({pointer}, {value}{mask})")
        pointer = f"cells_{element} + row + {place}"
        if mask:
            return Statement(f"tl.atomic_{kind}({pointer}, {value}{mask})")
        if element not in FLOATS:  # the interpreter exchanges no floats
            kind = self.random.choice((kind, kind, "xchg"))
        item = self.writer.fresh(element, shape)
        self.writer.scope.append(item)
        return Statement(f"{item.name} = tl.atomic_{kind}({pointer}, {value})", item)


def program(seed):
    """The program of a seed."""
    return Composer(seed).program(f"kernel_{seed}", seed)
