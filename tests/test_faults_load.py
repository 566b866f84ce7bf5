"""Loading faults: the kernel from edited source, the user's modules and files untouched."""

import importlib
import inspect
import re
import sys
import textwrap

import pytest

from trivet.faults._judge import judge_fault
from trivet.faults._load import FaultError, edited, kernel_of
from trivet.properties._collect import find

HELPERS = """
    FACTOR = 2

    class Holder:
        pass

    def factor():
        return FACTOR
"""
KERNELS = """
    from dataclasses import dataclass
    from family_of_kernels import helpers

    @dataclass
    class Options:
        bias: int = 0

    def scaled(x):
        return x * helpers.factor() + Options().bias

    class Namespace:
        @staticmethod
        def held(x):
            return x + 1

    def kept(): return helpers.Holder
"""


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A package of two modules, imported."""
    folder = tmp_path / "family_of_kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helpers.py").write_text(textwrap.dedent(HELPERS))
    (folder / "kernels.py").write_text(textwrap.dedent(KERNELS))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield importlib.import_module("family_of_kernels.kernels")
    for name in [n for n in sys.modules if n.startswith("family_of_kernels")]:
        del sys.modules[name]


def imported():
    return {n: m for n, m in sys.modules.items() if n.startswith("family_of_kernels")}


def test_an_edit_in_the_file_of_the_kernel(family):
    text = inspect.getsource(family)
    wrong = edited(family.scaled, "bias: int = 0", "bias: int = 5")
    assert (wrong(3), family.scaled(3)) == (11, 6)
    assert inspect.getsource(family) == text
    assert sys.modules["family_of_kernels.kernels"] is family


def test_an_edit_in_another_module_of_the_family(family):
    before = imported()
    text = inspect.getsource(family.helpers)
    wrong = edited(family.scaled, "FACTOR = 2", "FACTOR = 7", module="family_of_kernels.helpers")
    assert (wrong(3), family.scaled(3)) == (21, 6)
    assert imported() == before
    assert sys.modules["family_of_kernels"].helpers is before["family_of_kernels.helpers"]
    assert inspect.getsource(family.helpers) == text
    assert wrong.__globals__["kept"]() is not family.kept()


def test_a_family_is_put_back_after_a_failing_edit(family):
    before, finders = imported(), [*sys.meta_path]
    with pytest.raises(FaultError, match="fault late: the edit fails: ZeroDivisionError: "):
        edited(
            family.scaled,
            "FACTOR = 2",
            "FACTOR = 1 / 0",
            module="family_of_kernels.helpers",
            fault="late",
        )
    assert imported() == before
    assert sys.meta_path == finders


def test_an_edit_that_is_no_python_is_a_fault_that_cannot_be_made(family):
    before = imported()
    with pytest.raises(FaultError, match="fault edit: the edit fails: SyntaxError: "):
        edited(family.scaled, "bias: int = 0", "bias: int = (")
    assert imported() == before


@pytest.mark.parametrize(("old", "count"), [("no such text", 0), ("Options", 2), ("aa", 2)])
def test_a_text_that_is_not_found_once(family, old, count):
    path = inspect.getsourcefile(family)
    with open(path, "a") as file:
        file.write("# aaa\n")
    with pytest.raises(FaultError) as found:
        edited(family.scaled, old, "other", fault="stale")
    assert str(found.value) == (f"fault stale: {path}: {old!r} occurs {count} times, expected once")


def test_a_function_of_a_class_is_found_again(family):
    assert edited(family.Namespace.held, "x + 1", "x + 2")(1) == 3


def test_a_module_that_is_gone_is_named(family):
    with pytest.raises(FaultError, match=r"fault edit: family_of_kernels\.gone cannot be imported"):
        edited(family.scaled, "a", "b", module="family_of_kernels.gone")


def test_a_kernel_without_a_module_cannot_be_edited():
    with pytest.raises(FaultError, match="must be a function of a module, to be edited"):
        edited(lambda x: x, "a", "b")


def test_names_and_lines_are_those_of_the_file(family):
    wrong = edited(family.scaled, "x * helpers", "x[0] * helpers", fault="crash")
    with pytest.raises(TypeError) as found:
        wrong(3)
    last = found.traceback[-1]
    assert re.fullmatch(r"<fault crash \d+>/kernels\.py", last.frame.code.raw.co_filename)
    assert last.lineno == inspect.getsourcelines(family.scaled)[1]  # traceback counts from 0
    assert "x[0] * helpers" in inspect.getsource(wrong)


CASE = """
    import torch
    import triton
    from kernels_of_case import launch
    from trivet import Contract, Tensor, sizes

    def doubled(x):
        y = torch.empty_like(x)
        launch[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
        return y

    doubling = Contract(doubled, [lambda x: 2 * x], {"N": sizes(1, 40)}, {"x": Tensor("N")})

    @doubling.fault(expects=("writes_every_element",))
    def last_is_lost(edit):
        return edit("(x.numel(), 32)", "(x.numel() - 1, 32)")

    @doubling.fault(expects=("stays_in_bounds",))
    def one_too_far(edit):
        \"\"\"The mask: lane < n.\"\"\"
        return edit("lane < n", "lane <= n", module="kernels_of_case")

    @doubling.fault(expects=("matches_oracle",), number=3)
    def forgets(x):
        doubled(x)
        return doubled(1.5 * x)

    @doubling.fault(expects=("matches_oracle",))
    def does_nothing(x):
        return 2 * x

    @doubling.fault(expects=("is_race_free",))
    def is_right(x):
        return doubled(x)

    @doubling.fault(expects=("repeats",))
    def is_stale(edit):
        return edit("once upon a time", "")

    @doubling.fault(expects=("repeats",))
    def makes_nothing(edit):
        return None

    @doubling.fault(expects=("matches_oracle",))
    def crashes(x):
        raise RuntimeError("at once")
"""
LAUNCHED = """
    import triton
    import triton.language as tl

    @triton.jit
    def launch(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = lane < n
        tl.store(y_ptr + lane, 2 * tl.load(x_ptr + lane, mask=inside), mask=inside)
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A contract in a file of its own, whose launched kernel is in another."""
    folder = tmp_path_factory.mktemp("case")
    (folder / "case.py").write_text(textwrap.dedent(CASE))
    (folder / "kernels_of_case.py").write_text(textwrap.dedent(LAUNCHED))
    before = [*sys.path]
    importlib.invalidate_caches()
    (found,) = find([str(folder / "case.py")])
    yield found
    sys.path[:] = before


def fault_of(case, name):
    (fault,) = [fault for fault in case.contract.faults if fault.name == name]
    return fault


def test_a_replacement_is_its_own_kernel(case):
    fault = fault_of(case, "forgets")
    assert kernel_of(fault, case.contract.kernel) is fault.make


def test_the_text_of_a_fault_does_not_count(case):
    """`(x.numel(), 32)` stands in the fault as well as in the kernel."""
    kernel = kernel_of(fault_of(case, "last_is_lost"), case.contract.kernel)
    assert "x.numel() - 1" in inspect.getsource(kernel)
    assert len(case.contract.faults) == 8


@pytest.mark.parametrize(
    ("name", "verdict", "detail"),
    [
        ("last_is_lost", "killed", "out[0] was never written"),
        ("one_too_far", "killed", "kernels_of_case.py:9: tl.store"),
        ("forgets", "killed", "oracle"),
        ("does_nothing", "not_judged", "vacuous: the kernel launched nothing"),
        ("is_right", "survived", ""),
        ("is_stale", "not_judged", "'once upon a time' occurs 0 times, expected once"),
        ("makes_nothing", "not_judged", "returned None, expected the edited kernel"),
        ("crashes", "not_judged", "the kernel raised RuntimeError"),
    ],
)
def test_what_the_gates_make_of_a_fault(case, name, verdict, detail):
    found = judge_fault(case, fault_of(case, name))
    assert (found.verdict, found.conventional) == (verdict, None), found.detail
    assert detail in found.detail


def test_killed_by_another_law_is_said(case):
    fault = fault_of(case, "forgets")
    other = type(fault)(fault.name, fault.story, ("is_race_free",), fault.number, fault.make)
    found = judge_fault(case, other)
    assert (found.verdict, found.number) == ("wrong_law", 3)
    assert "matches_oracle" in found.red
