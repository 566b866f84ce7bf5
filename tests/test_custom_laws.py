"""A contract's own laws: what they may ask for by name, and what becomes of what they say."""

import re

import numpy as np
import pytest
import torch
from tests.tiny import contract_of, doubled, twice

from trivet import Choice, Contract, Scalar, Tensor, integers, sizes
from trivet.properties._engine import judge

FEW = {"N": sizes(2, 9)}


def verdict_of(contract, law, dtype="float32"):
    (verdict,) = judge(contract, name="case", laws=[law], dtypes=[dtype])
    return verdict


def asked(**fields):
    """A contract, and what its law saw on each example."""
    seen = []
    return contract_of(doubled, **{"dims": FEW, **fields}), seen


def test_out_ref_and_bound_are_exact_arrays():
    contract, seen = asked()

    @contract.law
    def compares(out, ref, bound, x, N):
        seen.append(N)
        assert out.dtype == ref.dtype == np.float64
        assert out.shape == ref.shape == bound.shape == x.shape == (N,)
        assert (abs(out - ref) <= bound).all()

    verdict = verdict_of(contract, "compares")
    assert (verdict.state, verdict.examples) == ("green", 20)
    assert verdict.elements == sum(seen)


def test_a_law_gets_copies():
    contract, _ = asked(args={"x": Tensor("N", dtypes=("int32",), domain=integers(1, 9))})

    @contract.law
    def spoils(out, ref, x):
        for array in (out, ref, x):
            array[:] = 0

    @contract.law
    def sees(out, ref, x):
        assert (out != 0).all()
        assert (ref != 0).all()
        assert (x != 0).all()

    found = judge(contract, name="case", laws=["spoils", "sees", "matches_oracle"])
    assert {v.law: v.state for v in found} == dict.fromkeys(
        ("matches_oracle", "spoils", "sees"), "green"
    )


def test_launches_are_the_records_of_the_call():
    contract, seen = asked()

    @contract.law
    def launches_once(launches):
        seen.extend(launches)
        return len(launches) == 1

    assert verdict_of(contract, "launches_once").state == "green"
    assert {launch.constexprs["BLOCK"] for launch in seen} == {32}


def scaled_in_place(x, y):
    y.copy_(doubled(x))


def test_args_hold_the_arguments_after_the_call():
    args = {"x": Tensor("N"), "y": Tensor("N", role="inout")}
    contract = contract_of(scaled_in_place, lambda x, y: 2 * x, dims=FEW, args=args)

    @contract.law
    def written(args, x, y, out):
        assert (args.y == 2 * x).all()
        assert (args.x == x).all()
        assert (out == args.y).all()
        assert not hasattr(args, "z")

    assert verdict_of(contract, "written").state == "green"


def with_bias(x, bias: float, sign: int):
    return doubled(x) * sign + bias


def biased(x, bias, sign):
    return 2 * x * sign + bias


def bias_contract():
    args = {"x": Tensor("N"), "bias": Scalar(float, 0, 1), "sign": Choice(1, -1)}
    return contract_of(with_bias, biased, dims=FEW, args=args)


def test_rerun_changes_arguments_by_name():
    contract = bias_contract()

    @contract.law
    def shifts(out, rerun, kernel, x, bias, sign):
        assert (rerun() == out).all()
        assert (kernel(x=x, bias=bias, sign=sign) == out).all()
        assert (rerun(x=2 * x, bias=0.0) == 4 * x * sign).all()
        rounded = float(np.float32(0.1))
        assert (rerun(x=0 * x, bias=0.1) == rounded).all()

    assert verdict_of(contract, "shifts").state == "green"


def test_rerun_refuses_what_is_no_argument():
    contract = bias_contract()

    @contract.law
    def misspelt(rerun):
        rerun(bais=1.0)

    verdict = verdict_of(contract, "misspelt")
    assert verdict.state == "not_judged"
    told, _, place = verdict.reason.partition(" (")
    assert told == "the law crashed: TypeError: rerun: no argument bais; arguments: x, bias, sign"
    assert place.startswith("test_custom_laws.py:")
    assert place.endswith(": rerun(bais=1.0))")


def test_another_host_function_runs_on_the_same_inputs():
    contract = bias_contract()

    @contract.law
    def is_its_parts(out, rerun, bias, sign):
        assert (rerun.other(doubled) * sign + bias == out).all() or bias
        assert (rerun.other(with_bias, bias=0.0, sign=1) == rerun.other(doubled)).all()

    assert verdict_of(contract, "is_its_parts").state == "green"


def test_another_host_function_with_variable_keywords_gets_every_argument():
    contract = bias_contract()

    @contract.law
    def is_itself(out, rerun):
        assert (rerun.other(lambda **everything: with_bias(**everything)) == out).all()

    assert verdict_of(contract, "is_itself").state == "green"


def fragile(x, bias: float, sign: int):
    if bias > 1:
        raise ValueError("too much bias")
    return with_bias(x, bias, sign)


def test_a_rerun_that_raises_breaks_the_law():
    args = {"x": Tensor("N"), "bias": Scalar(float, 0, 1), "sign": Choice(1, -1)}
    contract = contract_of(fragile, biased, dims=FEW, args=args)

    @contract.law
    def takes_more(rerun):
        rerun(bias=2.0)

    verdict = verdict_of(contract, "takes_more")
    assert verdict.state == "red"
    assert "the rerun raised ValueError: too much bias" in verdict.failure.text


def parted(x, n: int):
    return doubled(x), (x > 0), None


def test_several_outputs_are_a_named_tuple():
    contract = Contract(
        parted,
        [lambda x, n: (2 * x, x > 0, None)],
        {"n": sizes(2, 9)},
        {"x": Tensor("n")},
        outputs={"y": Tensor("n", dtypes="x"), "up": Tensor("n", dtypes=("bool",))},
    )

    @contract.law
    def named(out, ref, bound, n):
        assert out._fields == ref._fields == bound._fields == ("y", "up", "out2")
        assert out.y.shape == (n,)
        assert out.up.dtype == bool
        assert (bound.up == 0).all()
        assert out.out2 is None
        assert bound.out2 is None

    assert verdict_of(contract, "named").state == "green"


class Square(torch.autograd.Function):
    """x * x, with a launch in each direction."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return doubled(x) * x / 2

    @staticmethod
    def backward(ctx, g):
        return doubled(ctx.saved_tensors[0]) * g


def backward_of_square(g, x):
    return {"x": doubled(x) * g}


@pytest.mark.parametrize("backward", ["autograd", backward_of_square])
def test_grads_are_the_gradients_of_the_backward_function(backward):
    fields = {"dims": FEW, "args": {"x": Tensor("N")}, "backward": backward}
    contract = Contract(lambda x: Square.apply(x), [lambda x: x * x], **fields)

    @contract.law
    def is_linear(grads, x):
        assert (grads()["x"] == 2 * x).all()
        assert (grads(out=4 * np.ones_like(x))["x"] == 8 * x).all()

    assert verdict_of(contract, "is_linear").state == "green"


class Halved(torch.autograd.Function):
    """x / 2, whose backward pass leaves its result in the gradient it is given."""

    @staticmethod
    def forward(ctx, x):
        return doubled(x) / 4

    @staticmethod
    def backward(ctx, g):
        return g.mul_(0.5)


def test_a_backward_pass_in_place_is_judged_by_the_gradient_it_was_given():
    fields = {"dims": FEW, "args": {"x": Tensor("N")}, "backward": "autograd"}
    contract = Contract(lambda x: Halved.apply(x), [lambda m, x: x / 2], **fields)

    assert verdict_of(contract, "gradients_match").state == "green"


def test_grads_without_a_backward_function_are_not_judged():
    contract, _ = asked()

    @contract.law
    def has_gradients(grads):
        grads()

    reason = "the law crashed: TypeError: grads: the contract has no backward; outputs: out"
    assert verdict_of(contract, "has_gradients").reason.startswith(
        f"{reason} (test_custom_laws.py:"
    )


def test_dims_come_by_name_even_where_the_kernel_does_not_take_them():
    contract, _ = asked(dims={"M": sizes(1, 3), "N": "2 * M"})

    @contract.law
    def twice_as_long(M, N, x):
        return N == 2 * M == len(x)

    assert verdict_of(contract, "twice_as_long").state == "green"


def test_a_law_of_some_dtypes_is_not_promised_at_others():
    contract, seen = asked(args={"x": Tensor("N", dtypes=("float32", "bfloat16"))})

    @contract.law(dtypes=("float32",))
    def only_wide(out):
        seen.append(out)

    assert verdict_of(contract, "only_wide").state == "green"
    count = len(seen)
    verdict = verdict_of(contract, "only_wide", "bfloat16")
    assert (verdict.state, verdict.reason) == (
        "not_promised",
        "the contract states it for float32 alone",
    )
    assert len(seen) == count


def test_a_law_that_crashes_is_not_judged():
    contract, _ = asked()

    @contract.law
    def divides(N):
        return N / 0

    verdict = verdict_of(contract, "divides")
    assert verdict.state == "not_judged"
    told, _, place = verdict.reason.partition(" (")
    assert told == "the law crashed: ZeroDivisionError: division by zero"
    assert place.endswith(": return N / 0)")


@pytest.mark.parametrize("said", [False, np.bool_(False)])
def test_returning_false_breaks_a_law(said):
    contract, _ = asked()

    @contract.law
    def never(x):
        return said

    verdict = verdict_of(contract, "never")
    assert verdict.state == "red"
    assert "\n  never returned False\n" in verdict.failure.text


def test_a_bare_assertion_tells_its_line():
    contract = contract_of(doubled, twice, dims=FEW)

    @contract.law
    def never(x):
        """No array is ever right."""
        raise AssertionError

    text = verdict_of(contract, "never").failure.text
    assert text.startswith("case breaks never at float32\n  No array is ever right.\n")
    assert re.search(r"\n  test_custom_laws.py:\d+: raise AssertionError\n", text)
