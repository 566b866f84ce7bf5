"""The states of a gate: what is counted, what is discarded, what one example must not decide."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from tests.tiny import contract_of, doubled, twice

from trivet import ANY, Choice, Contract, Tensor, reals, sizes
from trivet.properties._cases import Case
from trivet.properties._engine import judge
from trivet.properties._gate import Gate
from trivet.properties._laws import Tally
from trivet.properties._verdict import Violation

FEW = {"N": sizes(1, 40)}


def states(contract, *laws, **options):
    return {v.law: v for v in judge(contract, name="case", laws=laws or None, **options)}


def gate(law="matches_oracle", kind="observes", **counts):
    made = Gate(law, "It holds.", kind)
    for name, count in counts.items():
        setattr(made, name, count)
    return made


def judged(made, examples, elements=10, undecided=0, normal=True):
    for _ in range(examples):
        made.tried += 1
        made.add(Tally(elements, undecided), launches=1, normal=normal)
    return made


def test_a_fifth_of_the_inputs_may_be_discarded():
    made = judged(gate(), 16)
    for _ in range(4):
        made.discard("too large")
    assert made.state() == ("green", "4 of 20 inputs were discarded: too large")
    made.discard("odd")
    assert made.state() == ("not_judged", "5 of 21 inputs were discarded: too large")


def test_a_law_on_some_examples_counts_all_inputs():
    """A quarter of eighteen examples and two discards are no share of a half."""
    made = judged(gate(), 4)
    made.tried += 14
    for _ in range(2):
        made.discard("too large")
    assert made.state()[0] == "green"


@pytest.mark.parametrize(
    ("normal", "undecided", "state", "reason"),
    [
        (True, 1, "green", None),
        (True, 2, "not_judged", "2.0% of the elements of normal inputs are undecidable"),
        (False, 50, "green", None),
        (False, 51, "not_judged", "51.0% of the elements of special inputs are undecidable"),
    ],
)
def test_undecidable_elements_are_capped_by_kind(normal, undecided, state, reason):
    made = judged(gate(), 1, elements=100, undecided=undecided, normal=normal)
    assert made.state() == (state, reason)


def test_undecidable_elements_of_empty_sizes_are_capped():
    made = judged(gate("handles_empty", "observes_cases"), 1, 4, undecided=3, normal=False)
    assert made.state()[0] == "not_judged"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (gate(), "vacuous: no example was judged (0 rejected by the kernel)"),
        (gate(rejected=3), "vacuous: no example was judged (3 rejected by the kernel)"),
        (gate(examples=1, elements=9), "vacuous: the kernel launched nothing"),
        (gate(examples=1, launches=1), "vacuous: no element was judged"),
    ],
)
def test_a_gate_that_judged_nothing_is_red(made, reason):
    assert made.state() == ("red", reason)


def test_red_stands_before_every_other_state():
    made = gate()
    made.break_with(Violation("wrong", key="y"), Case({}, {}))
    made.not_judged = made.not_promised = made.elsewhere = "a reason"
    assert made.state() == ("red", None)


def test_each_bug_keeps_its_first_case():
    made = gate()
    first, second = Case({"N": 1}, {}), Case({"N": 2}, {})
    wide = Violation("a", key="a")
    wide.further = (Violation("b", key="b"),)
    made.break_with(wide, first, 4)
    made.break_with(Violation("b again", key="b"), second, 5)
    assert {k: (r.case, r.example, r.violation.text) for k, r in made.reds.items()} == {
        "a": (first, 4, "a"),
        "b": (first, 4, "b"),
    }


def choosy(x):
    if not x.numel():
        raise ValueError("x is empty")
    return doubled(x)


def test_refusing_every_empty_size_is_an_answer():
    verdict = states(contract_of(choosy), "handles_empty")["handles_empty"]
    assert (verdict.state, verdict.reason) == ("green", "the kernel refuses every empty size")
    assert verdict.rejected > 0


def largest(x):
    y = torch.full((), x.max() if x.numel() else 0.0)
    return doubled(y.reshape(1)).reshape(())


def test_empty_sizes_the_reference_has_no_answer_for_are_not_promised():
    verdict = states(contract_of(largest, lambda x: 2 * np.max(x)), "handles_empty")[
        "handles_empty"
    ]
    assert verdict.state == "not_promised"
    assert verdict.reason.startswith("1 of 1 inputs were discarded: ValueError: ")


def short(x):
    if len(x) > 30:
        raise ValueError("thirty at most")
    return doubled(x)


def shorter(x):
    if x.size > 30:
        raise ValueError("the reference takes thirty at most")
    return twice(x)


def test_inputs_that_reference_and_kernel_both_refuse_are_discarded():
    found = states(contract_of(short, shorter, dims={"N": sizes(1, 60)}))["matches_oracle"]
    assert found.state == "not_judged", found
    assert found.reason.endswith("discarded: ValueError: the reference takes thirty at most")


def test_a_law_alone_keeps_its_reason():
    verdict = states(contract_of(doubled), "gradients_match")["gradients_match"]
    assert (verdict.state, verdict.reason) == ("not_promised", "the contract has no backward")


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=[])
@triton.jit
def _tuned(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < n
    y = tl.load(y_ptr + lane, mask=inside) + 2 * tl.load(x_ptr + lane, mask=inside)
    tl.store(y_ptr + lane, y, mask=inside)


def accumulated(x):
    """Right, but for the call that tunes: it adds once for every configuration."""
    y = torch.zeros_like(x)
    if x.numel() > 2:
        _tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y
    return doubled(x)


def test_a_call_that_tunes_first_gives_the_same():
    found = states(contract_of(accumulated), "repeats", "matches_oracle")
    assert found["matches_oracle"].state == "green"
    assert found["repeats"].state == "red"
    assert "in a call that tunes first, on these buffers" in found["repeats"].failure.text


@pytest.mark.parametrize("seed", range(3))
def test_an_example_without_a_launch_does_not_close_a_law(seed):
    found = states(contract_of(accumulated), "ignores_block_size", seed=seed)
    verdict = found["ignores_block_size"]
    assert (verdict.state, verdict.reason) == ("green", "bitwise")
    assert 0 < verdict.examples < 20


def in_place(x, y):
    y.copy_(doubled(x))


def test_an_example_of_shared_storage_does_not_close_a_law():
    args = {"x": Tensor("N", alias=("y",)), "y": Tensor("N", role="inout")}
    contract = contract_of(in_place, lambda x, y: 2 * x, dims=FEW, args=args)
    verdict = states(contract, "leaves_inputs_unchanged")["leaves_inputs_unchanged"]
    assert (verdict.state, verdict.elements > 0) == ("green", True)


def block_chosen(x, block: int):
    y = torch.empty_like(x)
    if x.numel():
        grid = (triton.cdiv(x.numel(), block),)
        _blocked[grid](x, y, x.numel(), BLOCK=block)
    return y


@triton.jit
def _blocked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + lane, 2 * tl.load(x_ptr + lane, mask=lane < n), mask=lane < n)
    if BLOCK == 64:
        tl.store(y_ptr, 7.0)


def test_block_sizes_outside_the_assumptions_are_not_tried():
    contract = contract_of(
        block_chosen,
        lambda x, block: 2 * x,
        dims=FEW,
        args={"x": Tensor("N"), "block": Choice(16, 32, 64)},
    )

    @contract.assume
    def small(block):
        return block < 64

    verdict = states(contract, "ignores_block_size", profile="ci")["ignores_block_size"]
    assert verdict.failure is None


def oracle_pair(second, args=None, **fields):
    return Contract(doubled, [twice, second], FEW, args or {"x": Tensor("N")}, **fields)


def reason(second, **fields):
    verdict = states(oracle_pair(second, **fields), "matches_oracle")["matches_oracle"]
    assert verdict.state == "not_judged", verdict
    return verdict.reason


def test_oracles_of_other_shapes_counts_or_nothing_disagree():
    def other_shape(x):
        return 2 * x[None]

    def two_outputs(x):
        return 2 * x, x

    def nothing(x):
        return (None,)

    assert reason(other_shape).startswith("oracles disagree at out: the first gives (")
    assert reason(two_outputs) == ("oracles disagree: the first returns 1 output(s), two_outputs 2")
    assert "oracles disagree at out: the first gives (" in reason(nothing)
    assert reason(nothing).endswith("nothing gives None")


def test_an_oracle_that_alone_refuses_inputs_disagrees():
    def fussy(x):
        raise ValueError("not these")

    assert reason(fussy) == "oracles disagree: fussy alone refuses inputs: ValueError: not these"


def test_a_nan_of_one_oracle_disagrees():
    args = {"x": Tensor("N", domain=reals(-8, 8, nonfinite=True))}

    def loses_nan(m, x):
        return 2 * m.where(x == x, x, 0.0)

    def scalar(index, x):
        return 2 * float(x[index]) if np.isfinite(x[index]) else 0.0

    assert "nan, loses_nan gives 0.0" in reason(loses_nan, args=args)
    assert (
        states(oracle_pair(twice, args=args), "matches_oracle")["matches_oracle"].state == "green"
    )
    assert (
        "scalar gives 0.0"
        in states(oracle_pair(scalar, args=args), "matches_oracle", profile="ci")[
            "matches_oracle"
        ].reason
    )


def test_strided_rows_are_shrunk_with_the_shadow_of_a_closed_law():
    """logic_matches may find one bug and then no promise: the bug still shrinks."""
    made = gate("logic_matches")
    made.break_with(Violation("wrong"), Case({}, {}))
    made.not_promised = "the kernel computes with rounding"
    from trivet.properties._judges import Judges

    judges = Judges(contract_of(doubled, args={"x": Tensor("N", layouts=ANY)}), "simulator")
    judges.gates["logic_matches"] = made
    assert judges.executor_for(0).shadow
    made.reds.clear()
    assert not judges.executor_for(0).shadow
