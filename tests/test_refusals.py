"""Bad input: each entry of raises must be refused by the error it names, before any launch."""

import pytest
import torch
from tests.tiny import contract_of, doubled

from trivet import Scalar, Tensor, sizes
from trivet.properties._engine import judge

CLAIM = (
    "case breaks rejects_bad_input at float32\n"
    "  Every bad input that the contract names raises the error it names, before any launch.\n"
)


def checked(x, tau: float):
    if x.dtype != torch.float32:
        raise TypeError(f"x: expected float32, got {x.dtype}")
    if not tau > 0:
        raise ValueError(f"tau = {tau}: expected a positive number")
    return doubled(x)


def unchecked(x, tau: float):
    return doubled(x)


def late(x, tau: float):
    y = doubled(x)
    if not tau > 0:
        raise ValueError("tau: expected a positive number")
    return y


def double_x(x):
    return {"x": x.double()}


def verdict_of(kernel, *raises):
    contract = contract_of(
        kernel,
        lambda x, tau: 2 * x,
        dims={"N": sizes(1, 9)},
        args={"x": Tensor("N"), "tau": Scalar(float, 0.5, 2)},
        raises=raises,
    )
    (verdict,) = judge(contract, name="case", laws=["rejects_bad_input"])
    return verdict


def test_refusals_are_counted():
    nan = (ValueError, "tau", {"tau": float("nan")})
    zero = (ValueError, "tau", lambda tau: {"tau": 0 * tau})
    verdict = verdict_of(checked, nan, zero, (TypeError, "x", double_x))
    assert (verdict.state, verdict.examples) == ("green", 3)


def test_a_tensor_without_memory_is_refused_and_told():
    def to_meta(x):
        return {"x": x.to("meta")}

    def here(x, tau: float):
        if x.device.type != "cpu":
            raise ValueError(f"x: expected cpu, got {x.device}")
        return doubled(x)

    assert verdict_of(here, (ValueError, "x", to_meta)).state == "green"
    text = verdict_of(here, (ValueError, "device", to_meta)).failure.text
    assert text.endswith(" on meta")


def test_a_subclass_of_the_error_will_do():
    assert verdict_of(checked, (Exception, "tau", {"tau": 0.0})).state == "green"


def test_nothing_named_is_nothing_promised():
    verdict = verdict_of(unchecked)
    assert (verdict.state, verdict.reason) == (
        "not_promised",
        "the contract names no bad input (raises)",
    )


def test_bad_input_that_is_refused_after_a_launch():
    failure = verdict_of(late, (ValueError, "tau", {"tau": 0.0})).failure
    assert failure.text == (
        f"{CLAIM}  tau: launched before refusing; expected ValueError naming 'tau'\n"
        "  with tau = 0.0"
    )
    assert (failure.got, failure.wanted) == ("launched before refusing", "ValueError naming 'tau'")


def accepting(x, tau: float):
    return x


def test_bad_input_that_is_taken_silently():
    failure = verdict_of(accepting, (ValueError, "tau", {"tau": 0.0})).failure
    assert failure.text == (
        f"{CLAIM}  tau: accepted; expected ValueError naming 'tau'\n  with tau = 0.0"
    )


@pytest.mark.parametrize(
    ("error", "text", "wanted"),
    [(ValueError, "x", "ValueError naming 'x'"), (TypeError, "dim", "TypeError naming 'dim'")],
)
def test_another_error_or_another_text(error, text, wanted):
    failure = verdict_of(checked, (error, text, double_x)).failure
    head, _, change = failure.text.partition("\n  with x = ")
    got = "raised TypeError: x: expected float32, got torch.float64"
    assert head == f"{CLAIM}  double_x: {got}; expected {wanted}"
    assert change.startswith("float64 (")
    assert (failure.got, failure.wanted) == (got, wanted)


def test_entries_with_one_text_are_told_apart():
    text = verdict_of(
        accepting,
        (ValueError, "tau", {"tau": 0.0}),
        (ValueError, "tau", {"tau": -1.0}),
        (ValueError, "tau", lambda x: {"x": -x}),
    ).failure.text
    assert text.count("case breaks rejects_bad_input") == 3
    assert "  with tau = 0.0\n" in text
    assert "  with tau = -1.0\n" in text
    assert "  with x = float32 (" in text


def misbound(x, tau: float):
    from tests.tiny import _scaled

    _scaled[(1,)](x, missing=tau)


def test_a_launch_that_fails_is_no_refusal():
    failure = verdict_of(misbound, (TypeError, "", {"tau": 0.0})).failure
    assert "launched before refusing" in failure.text


def test_the_arguments_of_other_entries_stay_legal():
    def spoil(x):
        x[:] = float("nan")
        return {"tau": 0.0}

    def finite(x, tau: float):
        if not torch.isfinite(x).all():
            raise OSError("spoiled")
        return checked(x, tau)

    bad = (ValueError, "tau", {"tau": 0.0})
    assert verdict_of(finite, (OSError, "spoiled", spoil), bad).state == "green"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (lambda z: {}, "raises: case <lambda> fails on x, tau: KeyError: 'z'"),
        (lambda x: x / None, "raises: case <lambda> fails on x, tau: TypeError: "),
        (lambda x: None, "raises: case <lambda> returned None, expected new values of x, tau"),
        (lambda x: {"y": x}, "raises: case <lambda> returned y, expected new values of x, tau"),
    ],
)
def test_a_case_that_makes_no_input_is_not_judged(case, reason):
    verdict = verdict_of(checked, (ValueError, "tau", case))
    assert verdict.state == "not_judged"
    assert verdict.reason.startswith(reason)
