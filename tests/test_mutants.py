"""Mutants: made of what a kernel reaches, loaded from memory, judged for the right reason."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from trivet.faults._judge_mutant import Laws, MutantVerdict, green_laws, judge_mutant
from trivet.faults._mutants import Mutant, diff_of, loaded, mutants_of
from trivet.faults._reach import reached_from
from trivet.properties._collect import Found, find

KERNEL = """
import torch
import triton
import triton.language as tl

from trivet import UNIT_LAST, Contract, Tensor, sizes


@triton.jit
def doubled(x):
    return x * 2.0


@triton.jit
def kernel(x_ptr, y_ptr, x_stride, y_step, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    unused = 3.0 - 1.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + row * N + cols * y_step, doubled(x), mask=cols < N)


def double(x):
    M, N = x.shape
    if N > 20 * 50:
        raise ValueError("too wide")
    y = torch.empty((M, N), dtype=x.dtype)
    kernel[(M,)](x, y, x.stride(0), y.stride(1), N, BLOCK=16)
    return y


def oracle(x):
    return 2 * x


double_contract = Contract(
    kernel=double,
    oracles=[oracle],
    dims={"M": sizes(1, 5), "N": sizes(1, 40)},
    args={"x": Tensor("M N", dtypes=("float32",), layouts=UNIT_LAST)},
)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    path = tmp_path_factory.mktemp("case") / "doubling.py"
    path.write_text(KERNEL)
    return find([str(path)])[0]


@pytest.fixture(scope="module")
def laws(found: Found) -> Laws:
    kept, broken = green_laws(found)
    assert not broken
    return kept


Judge = Callable[[str, str], MutantVerdict]


@pytest.fixture(scope="module")
def verdict_on(found: Found, laws: Laws) -> Judge:
    def judge(operator: str, replacement: str) -> MutantVerdict:
        [mutant] = [
            m
            for m in mutants_of(found.contract)
            if m.operator == operator and m.replacement == replacement
        ]
        return judge_mutant(found, mutant, laws)

    return judge


def test_what_a_kernel_reaches_is_the_users_own(found: Found) -> None:
    reached = {(item.qualified, item.kind) for item in reached_from(found.contract.kernel)}

    assert reached == {("double", "host"), ("kernel", "kernel"), ("doubled", "kernel")}


def test_a_shipped_kernel_reaches_its_family_and_not_the_machinery() -> None:
    [step] = find(["cfc.step"])
    modules = {item.module for item in reached_from(step.contract.kernel)}

    assert {"trivet.impl.cfc.forward", "trivet.impl._elementwise"} <= modules
    assert all(module.startswith("trivet.impl.") for module in modules)
    assert "trivet.impl._checks" not in modules


def test_ids_are_of_the_content_alone(found: Found, tmp_path: Path) -> None:
    moved = tmp_path / "doubling.py"
    moved.write_text("# one more line\n" + KERNEL)
    [other] = find([str(moved)])
    mine, theirs = mutants_of(found.contract), mutants_of(other.contract)

    assert [m.id for m in mine] == [m.id for m in theirs] == sorted(m.id for m in mine)
    assert {n.line - m.line for m, n in zip(mine, theirs, strict=True)} == {1}


def test_a_mutant_is_one_edit_shown_as_a_diff(found: Found) -> None:
    before = found.path.read_text()
    for mutant in mutants_of(found.contract):
        lines = diff_of(mutant).splitlines()
        ast.parse(before[: mutant.start] + mutant.replacement + before[mutant.end :])
        assert lines[0].startswith("--- ")
        assert lines[0].endswith("doubling.py")
        assert f"({mutant.operator})" in lines[1]
        assert sum(line.startswith("-") for line in lines) == 2


def test_the_users_file_stays_as_it_is(found: Found) -> None:
    before = found.path.read_text()
    mutant: Mutant = mutants_of(found.contract)[0]
    kernel = loaded(found.contract, mutant)

    assert kernel is not found.contract.kernel
    assert found.path.read_text() == before


@pytest.mark.parametrize(
    ("operator", "replacement", "law"),
    [
        ("bound_off_by_one", "cols <= N", None),
        ("constant_changed", "4.0", "matches_oracle"),
        ("stride_axis_changed", "1", "matches_oracle"),
        ("workspace_kept", "globals()", "repeats"),
    ],
)
def test_a_killed_mutant_names_its_law(
    found: Found, laws: Laws, operator: str, replacement: str, law: str | None
) -> None:
    mutant, *_ = [
        m
        for m in mutants_of(found.contract)
        if m.operator == operator and m.replacement.startswith(replacement)
    ]
    verdict = judge_mutant(found, mutant, laws)

    assert verdict.verdict == "killed"
    assert verdict.killed_by == law or (law is None and verdict.killed_by in laws["float32"])
    assert verdict.witness
    assert verdict.witness.startswith("float32, M = ")


def test_kernels_decorated_for_the_interpreter_are_judged_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "interpreted.py"
    path.write_text(KERNEL)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    case = find([str(path)])[0]
    laws, broken = green_laws(case)
    [mutant] = [m for m in mutants_of(case.contract) if m.replacement == "cols <= N"][:1]

    assert not broken
    assert judge_mutant(case, mutant, laws).verdict == "killed"


def test_what_the_compiler_drops_is_equivalent(verdict_on: Judge) -> None:
    verdict = verdict_on("difference_to_sum", "3.0 + 1.0")

    assert verdict.verdict == "equivalent"
    assert "the same dataflow" in verdict.detail


def test_a_stride_that_always_is_one_is_equivalent(verdict_on: Judge) -> None:
    assert verdict_on("stride_dropped", "cols").verdict == "equivalent"


def test_lanes_that_nothing_reads_are_dead(verdict_on: Judge) -> None:
    text = "tl.load(x_ptr + row * x_stride + cols, mask=cols < N)"

    assert verdict_on("load_other_dropped", text).verdict == "dead_lane"
    assert verdict_on("load_other_changed", "1").verdict == "dead_lane"


def test_a_guard_that_no_bad_input_tries_survives(verdict_on: Judge) -> None:
    assert verdict_on("guard_dropped", "False").verdict == "survived"


def test_a_refusal_of_legal_input_is_a_crash(verdict_on: Judge) -> None:
    verdict = verdict_on("size_term_dropped", "20")

    assert verdict.verdict == "crash"
    assert "ValueError" in verdict.detail


def test_a_refusal_of_empty_sizes_that_the_original_takes_is_a_crash(
    tmp_path: Path,
) -> None:
    path = tmp_path / "emptied.py"
    path.write_text(KERNEL.replace("sizes(1, 5)", "sizes(0, 5)").replace("N > 20 * 50", "M < 0"))
    case = find([str(path)])[0]
    laws, broken = green_laws(case)
    [mutant] = [m for m in mutants_of(case.contract) if m.replacement == "M <= 0"]
    verdict = judge_mutant(case, mutant, laws)

    assert not broken
    assert verdict.verdict == "crash"
    assert "M = 0" in verdict.detail
    assert "ValueError: too wide" in verdict.detail


def test_what_does_not_compile_is_invalid(verdict_on: Judge) -> None:
    verdict = verdict_on("addend_dropped", "(cols * y_step)")

    assert verdict.verdict == "invalid"
    assert verdict.detail
