"""The engine: what is counted, what is green, red or not judged, and how bugs are told apart."""

import pytest
import torch
import triton
import triton.language as tl
from tests.tiny import contract_of, doubled, twice

from trivet import Tensor, sizes
from trivet.properties._engine import judge


def states(contract, **options):
    return {v.law: v for v in judge(contract, name="case", **options)}


def test_a_right_kernel_is_green_and_counted():
    verdict = states(contract_of(doubled))["matches_oracle"]
    assert verdict.state == "green"
    assert verdict.examples == 20
    assert verdict.launches >= 18  # an empty vector needs no launch
    assert verdict.elements > 0
    assert verdict.size_classes["N"] >= 5
    assert verdict.margin == 0.0


def test_block_sizes_are_learned_from_launches():
    from trivet.properties._engine import Session
    from trivet.properties._profiles import profile_of

    session = Session(contract_of(doubled), "case", "float32", profile_of("quick"), 0, "simulator")
    session.run()
    assert session.generator.blocks == (32,)


def test_verdicts_are_the_same_twice():
    def run():
        return [
            (v.law, v.state, v.examples, v.elements, v.margin)
            for v in judge(contract_of(doubled), name="case", seed=3, profile="ci")
        ]

    assert run() == run()


def test_the_ci_profile_judges_a_hundred_examples():
    assert states(contract_of(doubled), profile="ci")["matches_oracle"].examples == 100


@triton.jit
def _two_bugs(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane, mask=lane <= n, other=0.0)
    tl.store(y_ptr + lane, x * 3, mask=lane < n)


def two_bugs(x):
    y = torch.empty_like(x)
    if x.numel():
        _two_bugs[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
    return y


def test_two_bugs_at_once_are_reported_as_two():
    found = states(contract_of(two_bugs))
    bounds, values = found["stays_in_bounds"].failure, found["matches_oracle"].failure
    assert "x_ptr (1,)" in bounds.text
    assert "mask=lane <= n" in bounds.text
    assert "out[0] = 3, oracle 2" in values.text
    assert "N = 1" in bounds.text
    assert "N = 1" in values.text


@triton.jit
def _two_places(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane, mask=lane <= n, other=0.0)
    tl.store(y_ptr + lane, x * 2, mask=lane <= n)


def two_places(x):
    y = torch.empty_like(x)
    if x.numel():
        _two_places[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
    return y


def test_two_lines_that_break_one_law_are_both_named():
    text = states(contract_of(two_places))["stays_in_bounds"].failure.text
    assert text.count("case breaks stays_in_bounds") == 2
    assert "x = tl.load" in text
    assert "tl.store(y_ptr" in text


@triton.jit
def _endless(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    while tl.load(x_ptr) < 100:
        tl.store(y_ptr, 1.0)


def swallowed(x):
    y = torch.zeros_like(x)
    try:
        _endless[(1,)](x, y, x.numel(), BLOCK=32)
    except Exception:
        y = x * 2
    return y


def test_an_executors_failure_is_never_a_rejection():
    fields = {"dims": {"N": sizes(1, 4)}}
    verdict = states(contract_of(swallowed, **fields), laws=["matches_oracle"])["matches_oracle"]
    assert verdict.rejected == 0
    assert verdict.state == "not_judged"
    assert "_endless" in verdict.reason


def choosy(x):
    if x.numel() == 0:
        raise ValueError("x is empty")
    return doubled(x)


def test_refusing_an_empty_size_is_counted_not_red():
    verdict = states(contract_of(choosy), profile="ci")["matches_oracle"]
    assert verdict.state == "green"
    assert verdict.rejected > 0


def broken(x):
    if x.numel() > 40:
        raise RuntimeError("too long for me")
    return doubled(x)


def test_refusing_plain_inputs_of_the_contract_is_red():
    failure = states(contract_of(broken))["matches_oracle"].failure
    raised = "the kernel raised RuntimeError on inputs of its contract: too long for me"
    assert raised in failure.text
    assert "N = 41" in failure.text


def host_only(x):
    return x * 2


def test_a_kernel_that_launches_nothing_is_red():
    found = states(contract_of(host_only))
    assert found["does_work"].state == "red"
    assert "launched nothing" in found["does_work"].failure.text
    assert found["matches_oracle"].state == "red"
    assert "vacuous: the kernel launched nothing" in found["matches_oracle"].failure.text


def test_an_oracle_of_another_shape_is_red_with_both_shapes():
    failure = states(contract_of(doubled, lambda x: x.sum()))["matches_oracle"].failure
    assert "out has shape (0,), the oracle gives ()" in failure.text


def test_an_oracle_of_another_count_is_not_judged():
    verdict = states(contract_of(doubled, lambda x: (x, x)))["matches_oracle"]
    assert verdict.state == "not_judged"
    assert "the oracle returned 2 output(s), the kernel 1 (out)" in verdict.reason


def test_an_oracle_that_cannot_be_traced_is_not_judged_and_named():
    def special(x):
        import math

        return math.gamma(x[0])

    fields = {"dims": {"N": sizes(1, 4)}}
    verdict = states(contract_of(doubled, special, **fields))["matches_oracle"]
    assert verdict.state == "not_judged"
    assert "special" in verdict.reason


def picky(x):
    if x.size > 20:
        raise ValueError("the reference takes twenty at most")
    return twice(x)


def test_too_many_inputs_outside_the_references_domain_are_not_judged():
    verdict = states(contract_of(doubled, picky))["matches_oracle"]
    assert verdict.state == "not_judged"
    assert "discarded" in verdict.reason
    assert "the reference takes twenty at most" in verdict.reason


def test_an_unmet_assumption_is_named():
    contract = contract_of(doubled)

    @contract.assume
    def never(x):
        return False

    verdict = states(contract)["matches_oracle"]
    assert verdict.state != "green"
    assert "never" in (verdict.reason or "")


def test_a_removed_law_shows_its_reason():
    contract = contract_of(doubled)
    contract.without("ignores_batch", "rows are not independent")
    verdict = states(contract)["ignores_batch"]
    assert verdict.state == "not_promised"
    assert verdict.reason == "removed: rows are not independent"


def test_an_unknown_law_is_refused():
    with pytest.raises(ValueError, match="law 'is_pretty': expected one of matches_oracle"):
        judge(contract_of(doubled), name="case", laws=["is_pretty"])


def test_two_oracles_that_disagree_give_no_verdict():
    from trivet import Contract

    contract = Contract(
        kernel=doubled,
        oracles=[twice, lambda x: 2.001 * x],
        dims={"N": sizes(1, 4)},
        args={"x": Tensor("N")},
    )
    verdict = states(contract)["matches_oracle"]
    assert verdict.state == "not_judged"
    assert "oracles disagree at out[0]" in verdict.reason


def test_a_scalar_oracle_votes_on_single_elements():
    from trivet import Contract

    asked = []

    def scalar(index, x):
        asked.append(index)
        return 2 * float(x[index])

    contract = Contract(
        kernel=doubled, oracles=[twice, scalar], dims={"N": sizes(1, 100)}, args={"x": Tensor("N")}
    )
    assert states(contract)["matches_oracle"].state == "green"
    assert asked


@triton.jit
def _times(x_ptr, y_ptr, n, factor: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane, mask=lane < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + lane, x * factor, mask=lane < n)


def times(factor):
    def kernel(x):
        y = torch.empty_like(x)
        if x.numel():
            _times[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), factor, BLOCK=32)
        return y

    return kernel


def test_a_literal_of_more_digits_than_float32_holds_is_no_wrong_logic():
    found = states(contract_of(times(0.7978845608028654), lambda x: x * 0.7978845608028654))
    assert (found["logic_matches"].state, found["matches_oracle"].state) == ("green", "green")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_wrong_factor_below_the_storages_resolution_is_wrong_logic(dtype):
    contract = contract_of(times(1.0001), lambda x: x, args={"x": Tensor("N", dtypes=(dtype,))})
    failure = states(contract)["logic_matches"].failure
    assert "in float64, oracle" in failure.text
