"""Every operator on its own examples, and what its edits do to a function's text."""

import ast
import textwrap

import pytest

from trivet.faults._mutators import Operator, edits_of, operators, source_of
from trivet.faults._mutators._source import Edit, Text

GROUPS = {
    "masks",
    "bounds",
    "indexing",
    "numerics",
    "reductions",
    "state",
    "concurrency",
    "host",
    "templates",
}
PARAMETERS = "p, q, x, m, a, b, k, r, s"


def function(statements: str) -> str:
    return f"def f({PARAMETERS}):\n" + textwrap.indent(statements, "    ") + "\n"


def edited(text: str, edit: Edit) -> str:
    return text[: edit.start] + edit.text + text[edit.end :]


@pytest.mark.parametrize("operator", operators().values(), ids=operators().keys())
def test_an_operator_does_what_its_examples_say(operator: Operator) -> None:
    before, after = operator.fires
    for place in operator.places:
        source = source_of(function(before), "f", place)
        results = [edited(source.file.text, edit) for edit in operator.apply(source)]

        assert function(after) == results[0]
        for result in results:
            ast.parse(result)
        assert not list(operator.apply(source_of(function(operator.silent), "f", place)))
    for place in {"kernel", "host"} - set(operator.places):
        assert not list(operator.apply(source_of(function(before), "f", place)))


def test_there_are_many_operators_in_every_group() -> None:
    found = operators()

    assert len(found) >= 50
    assert {each.group for each in found.values()} == GROUPS
    assert all(each.summary.endswith(".") for each in found.values())


def test_the_same_edit_comes_once() -> None:
    source = source_of(function("y = a + b\nt = tl.load(p, mask=m & k, other=0.0)"), "f", "kernel")
    found = [edit for _, edit in edits_of(source)]

    assert len(found) == len(set(found)) > 4


def test_names_of_what_is_no_body_are_left_alone() -> None:
    text = '@wrap(1.5)\ndef f(x, y: int = 2.5):\n    """The docstring: 1.5."""\n    return x\n'

    assert not list(edits_of(source_of(text, "f", "kernel")))


def test_offsets_count_characters_not_bytes() -> None:
    text = "def f(a, b):\n    s = 'é'; y = a - b\n"
    source = source_of(text, "f", "kernel")
    results = {edited(text, edit) for _, edit in edits_of(source)}

    assert "def f(a, b):\n    s = 'é'; y = b - a\n" in results


def test_methods_of_classes_are_found_by_their_qualified_names() -> None:
    text = Text("class A:\n    def f(self):\n        pass\nif True:\n    def g():\n        pass\n")

    assert list(text.functions()) == ["A.f", "g"]
