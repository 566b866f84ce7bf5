"""Every rewrite on its own examples."""

import ast

import pytest
from tests.test_mutators import edited, function

from trivet.faults._mutators import source_of
from trivet.faults._rewrites import Rewrite, rewrites


@pytest.mark.parametrize("each", rewrites().values(), ids=rewrites().keys())
def test_a_rewrite_does_what_its_examples_say(each: Rewrite) -> None:
    before, after = each.fires
    source = source_of(function(before), "f", each.place)
    results = [edited(source.file.text, edit) for edit in each.apply(source)]

    assert function(after) == results[0]
    for result in results:
        ast.parse(result)
    assert not list(each.apply(source_of(function(each.silent), "f", each.place)))
    other = "host" if each.place == "kernel" else "kernel"
    assert not list(each.apply(source_of(function(before), "f", other)))


def test_rewrites_are_of_every_kind_that_a_gate_must_forgive() -> None:
    found = rewrites()

    assert {each.group for each in found.values()} == {"algebra", "launches", "memory", "order"}
    assert {"block_doubled", "warps_changed", "loop_reversed", "fusion_off"} < set(found)
    assert all(each.summary.endswith(".") for each in found.values())


def test_every_program_id_of_a_kernel_turns_together() -> None:
    source = source_of(function("i = tl.program_id(0)\nj = tl.program_id(1)"), "f", "kernel")
    [edit] = rewrites()["programs_reversed"].apply(source)

    assert edited(source.file.text, edit).count("num_programs") == 2


def test_a_loop_that_carries_state_keeps_its_order() -> None:
    body = "for k in range(0, a, b):\n    x = s * 2\n    s += tl.load(p + k)"
    source = source_of(function(body), "f", "kernel")

    assert not list(rewrites()["loop_reversed"].apply(source))


def test_blocks_are_found_in_defaults_and_in_tables_of_the_module() -> None:
    text = (
        'T = {"BLOCK_M": 16, "other": 16}\n\n\ndef f(x, *, block_rows=64):\n    return k(x, **T)\n'
    )
    source = source_of(text, "f", "host")
    results = [edited(text, edit) for edit in rewrites()["block_doubled"].apply(source)]

    assert [("block_rows=128" in r, '"BLOCK_M": 32' in r) for r in results] == [
        (True, False),
        (False, True),
    ]
