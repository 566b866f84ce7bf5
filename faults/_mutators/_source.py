"""The source of one function, parsed once, as operators read and edit it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Statement = ast.Assign | ast.AugAssign | ast.Expr
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.Tuple, ast.List)
_DEVICE = ("tl", "triton.language", "language", "libdevice", "tl.math")


@dataclass(frozen=True, slots=True)
class Edit:
    """One text edit: the characters ``start`` to ``end`` of a file become ``text``."""

    start: int
    end: int
    text: str


class Text:
    """A file's text; positions of its syntax tree as character offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Return the character offset of a line (from 1) and a column in bytes of UTF-8."""
        content = self._lines[line - 1]
        if content.isascii():
            return self._starts[line - 1] + column
        return self._starts[line - 1] + len(content.encode()[:column].decode())

    def line_of(self, offset: int) -> int:
        """Return the line, from 1, in which a character stands."""
        return self.text.count("\n", 0, offset) + 1

    def functions(self) -> dict[str, ast.FunctionDef]:
        """Return every function of the module and its classes by qualified name."""
        return dict(_functions(self.tree.body, ""))


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node.body, prefix)


class Source:
    """One function of a file; ``kind`` says whether it runs on the device or on the host."""

    def __init__(self, text: Text, function: ast.FunctionDef, kind: str) -> None:
        self.file = text
        self.function = function
        self.kind = kind

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the body in reading order: no decorator, default or annotation."""
        found: list[ast.AST] = []
        pending: list[ast.AST] = [*reversed(self._body())]
        while pending:
            node = pending.pop()
            found.append(node)
            children = [child for child in ast.iter_child_nodes(node) if not _is_hint(node, child)]
            pending.extend(reversed(children))
        return found

    def _body(self) -> list[ast.stmt]:
        body = self.function.body
        documented = ast.get_docstring(self.function, clean=False) is not None
        return body[1:] if documented else body

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        tree = ast.walk(self.function)
        return {child: node for node in tree for child in ast.iter_child_nodes(node)}

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds ``node``."""
        return self._parents.get(node)

    def enclosing(self, node: ast.AST, kind: type[ast.AST]) -> ast.AST | None:
        """Return the nearest node of a kind that holds ``node``, within the function."""
        found = self.parent(node)
        while found is not None and not isinstance(found, kind):
            found = self.parent(found)
        return found

    @property
    def parameters(self) -> list[str]:
        """The parameters that are no constexpr."""
        arguments = self.function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return [a.arg for a in every if "constexpr" not in ast.unparse(a.annotation or ast.Pass())]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where ``node`` begins and ends in the file."""
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.file.offset(node.lineno, node.col_offset)
        return start, self.file.offset(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.AST) -> str:
        """Return the text of ``node`` as written, without parentheses around it."""
        start, end = self.span(node)
        return self.file.text[start:end]

    def operand(self, node: ast.AST) -> str:
        """Return the text of ``node``, in parentheses unless it needs none anywhere."""
        return self.text(node) if isinstance(node, _ATOMS) else f"({self.text(node)})"

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Return the edit that puts ``text`` in the place of ``node``."""
        return Edit(*self.span(node), text)

    def device_call(self, node: ast.AST) -> str:
        """Return what of triton.language ``node`` calls ("load"), empty where nothing."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            return node.func.attr if owner in _DEVICE else ""
        return ""

    def method(self, node: ast.AST) -> str:
        """Return the last name of what ``node`` calls: ``x.contiguous()`` gives contiguous."""
        if not isinstance(node, ast.Call):
            return ""
        return ast.unparse(node.func).rpartition(".")[2]

    def call(
        self, node: ast.Call, *, without: tuple[str, ...] = (), keep: int | None = None
    ) -> str:
        """Return the text of a call without some keywords, or with the first arguments alone."""
        positional = [self.text(argument) for argument in node.args[:keep]]
        named = [self.text(word) for word in node.keywords if word.arg not in without]
        return f"{self.text(node.func)}({', '.join([*positional, *named])})"

    def stored(self, node: ast.AST) -> set[str]:
        """Return the names that ``node`` assigns."""
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        return {name.id for name in names if isinstance(name.ctx, ast.Store)}

    def read(self, node: ast.AST) -> set[str]:
        """Return the names that ``node`` reads; an augmented assignment reads its target."""
        names = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        }
        return names | (self.stored(node) if isinstance(node, ast.AugAssign) else set())


def _is_hint(node: ast.AST, child: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and child is node.annotation


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword of a call, None without it."""
    return next((word.value for word in node.keywords if word.arg == name), None)
