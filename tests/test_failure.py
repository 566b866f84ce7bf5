"""What a stranger reads when a gate is red: the whole text, pinned."""

import inspect

import pytest
import torch
import triton
import triton.language as tl
from tests.tiny import contract_of, doubled, twice

from trivet import ANY, Contract, Tensor, reals, sizes
from trivet.properties._engine import judge
from trivet.properties._failure import describe, failure_of, joined
from trivet.properties._verdict import Failure, Violation

FEW = {"N": sizes(1, 70)}


def failure(contract, law, **options):
    (verdict,) = judge(contract, name="case", laws=[law], **options)
    assert verdict.state == "red", verdict
    return verdict.failure


def line_of(function, text):
    """Where ``text`` stands in this file, as failures say it."""
    lines, first = inspect.getsourcelines(getattr(function, "fn", function))
    (number,) = [n for n, line in enumerate(lines, first) if text in line]
    return f"test_failure.py:{number}"


@triton.jit
def _copied(x_ptr, y_ptr, n, step, factor, load_end, store_end, lost, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane * step, mask=lane < load_end, other=0.0)
    tl.store(y_ptr + lane // lost, x * factor, mask=lane < store_end)


def copied(x, factor=2.0, load=0, store=0, lost=1, step=None):
    y = torch.empty(x.shape, dtype=x.dtype)
    n = x.numel()
    grid = (triton.cdiv(n, 32),)
    step = x.stride(0) if step is None else step
    _copied[grid](x, y, n, step, factor, n + load, n + store, lost, BLOCK=32)
    return y


def wrong_factor(x):
    return copied(x, factor=3.0)


def test_matches_oracle():
    found = failure(contract_of(wrong_factor, dims=FEW), "matches_oracle")
    assert found.text == (
        "case breaks matches_oracle at float32\n"
        "  Every output has the oracle's shape and dtype, and every element lies in its interval.\n"
        "  out[0] = 3, oracle 2: error 1 (4.19e+06 ulp) > bound 0 (no step rounds)\n"
        "  smallest inputs found: N = 1\n"
        "    x = float32 (1,): [1.]"
    )
    assert (found.index, found.got, found.wanted, found.bound) == ("out[0]", "3.0", "2.0", "0")
    assert found.witness is found.replay is found.line is None


def beyond(x):
    return copied(x, load=1)


def test_stays_in_bounds():
    found = failure(contract_of(beyond, dims=FEW), "stays_in_bounds")
    line = line_of(_copied, "x = tl.load")
    assert found.text == (
        "case breaks stays_in_bounds at float32\n"
        "  No program loads or stores outside the view of an argument it was given.\n"
        "  program (0, 0, 0) of _copied accesses element 1 of x_ptr (1,), which lies outside it, "
        f"at {line}\n"
        f"  {line}: x = tl.load(x_ptr + lane * step, mask=lane < load_end, other=0.0)\n"
        "  smallest inputs found: N = 1\n"
        "    x = float32 (1,): [1.]"
    )
    assert found.line == line


def short(x):
    return copied(x, store=-1)


def test_writes_every_element():
    found = failure(contract_of(short, dims=FEW), "writes_every_element")
    assert found.text == (
        "case breaks writes_every_element at float32\n"
        "  Every element of every output is written by a launch or by the host.\n"
        "  out[0] was never written; 1 of 1 elements were not\n"
        "  smallest inputs found: N = 1\n"
        "    x = float32 (1,): [1.]"
    )
    assert (found.index, found.got, found.wanted) == ("out[0]", "unwritten", "written")


def crowded(x):
    return copied(x, lost=64)


def test_is_race_free():
    found = failure(contract_of(crowded, dims=FEW), "is_race_free")
    line = line_of(_copied, "tl.store")
    assert found.text == (
        "case breaks is_race_free at float32\n"
        "  No two programs of a launch access one element unordered, one of them writing.\n"
        f"  program (0, 0, 0) of _copied writes element [0] of y_ptr (33,) at {line}, and program "
        f"(1, 0, 0) writes the same value there at {line} with nothing to order the two\n"
        f"  {line}: tl.store(y_ptr + lane // lost, x * factor, mask=lane < store_end)\n"
        "  smallest inputs found: N = 33\n"
        "    x = float32 (33,): all 1.0"
    )
    assert found.line == line


def unstrided(x):
    return copied(x, step=1)


def test_ignores_layout():
    args = {"x": Tensor("N", layouts=ANY)}
    found = failure(contract_of(unstrided, dims=FEW, args=args), "ignores_layout")
    assert found.text == (
        "case breaks ignores_layout at float32\n"
        "  Dense copies of the arguments give the same result as the layouts they came in.\n"
        "  out[1] = 0, in the layout drawn the oracle gives 2: "
        "error 2 (8.39e+06 ulp) > bound 0 (no step rounds)\n"
        "  smallest inputs found: N = 2\n"
        "    x = float32 (2,) with strides (2,): [1., 1.]"
    )


def test_a_custom_law():
    contract = contract_of(doubled, twice, dims=FEW)

    @contract.law
    def stays_small(out):
        """Outputs stay below two."""
        index = int(out.argmax())
        if out[index] >= 2:
            raise AssertionError(f"out[{index}] = {out[index]}, wanted below 2")

    assert failure(contract, "stays_small").text == (
        "case breaks stays_small at float32\n"
        "  Outputs stay below two.\n"
        "  out[0] = 2.0, wanted below 2\n"
        "  smallest inputs found: N = 1\n"
        "    x = float32 (1,): [1.]"
    )


def refusing(x):
    if x.numel() > 40:
        raise RuntimeError("too long")
    return doubled(x)


def test_a_kernel_that_raises():
    found = failure(contract_of(refusing, dims=FEW), "matches_oracle")
    assert found.text == (
        "case breaks matches_oracle at float32\n"
        "  Every output has the oracle's shape and dtype, and every element lies in its interval.\n"
        "  the kernel raised RuntimeError on inputs of its contract: too long\n"
        "  smallest inputs found: N = 41\n"
        "    x = float32 (41,): all 1.0"
    )


def host_only(x):
    return x * 2


def test_a_vacuous_gate():
    (verdict,) = judge(contract_of(host_only), name="case", laws=["matches_oracle"])
    assert verdict.reason == "vacuous: the kernel launched nothing"
    assert verdict.failure.text == (
        "case breaks matches_oracle at float32\n"
        "  Every output has the oracle's shape and dtype, and every element lies in its interval.\n"
        "  vacuous: the kernel launched nothing"
    )


def not_a_number(x):
    return copied(x, factor=float("nan"))


@pytest.mark.parametrize("law", ["matches_oracle", "exact_on_integers", "logic_matches"])
def test_nan_fails(law):
    found = failure(contract_of(not_a_number, dims=FEW), law)
    assert found.got == "nan"
    assert "out[0] = nan, " in found.text


def test_nan_fails_where_the_oracle_has_an_infinity():
    args = {"x": Tensor("N", domain=reals(-1, 1, nonfinite=True))}
    contract = Contract(not_a_number, [twice], FEW, args)
    assert failure(contract, "propagates_nonfinite").got == "nan"


FAILURE = {"contract": "case", "law": "holds", "claim": "It holds.", "dtype": "float32"}


def test_every_line_of_a_failure_is_indented_and_the_replay_comes_last():
    violation = Violation("first\n    second", index="out[1]", got="1", wanted="2", bound="0")
    told = failure_of(
        violation, **FAILURE, dims={"N": 2}, arguments={"N": 2, "k": None}, witness="w.json"
    )
    assert told == Failure(
        text=(
            "case breaks holds at float32\n"
            "  It holds.\n"
            "  first\n"
            "  second\n"
            "  smallest inputs found: N = 2\n"
            "    k = None\n"
            "  replay: trivet replay w.json"
        ),
        index="out[1]",
        got="1",
        wanted="2",
        bound="0",
        witness="w.json",
        replay="trivet replay w.json",
    )


def test_several_bugs_are_told_one_after_another():
    first, second = (
        failure_of(Violation(text), **FAILURE, dims={}, arguments={}, witness=text)
        for text in ("one", "two")
    )
    both = joined([first, second])
    assert both.text == f"{first.text}\n{second.text}"
    assert both.witness == "one"
    assert joined([]) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (None, "None"),
        ("relu", "'relu'"),
        (torch.tensor(2.5), "float32 (): 2.5"),
        (torch.empty(0, 3), "float32 (0, 3)"),
        (torch.tensor([[1, 2], [3, 4]]), "int64 (2, 2): [[1, 2], [3, 4]]"),
        (torch.ones(2, 2, 2, dtype=torch.bool)[..., 0].T, "bool (2, 2)"),
        (torch.ones(4).bfloat16(), "bfloat16 (4,): [1., 1., 1., 1.]"),
        (torch.zeros(20), "float32 (20,): all 0.0"),
        (torch.full((20,), float("nan")), "float32 (20,): all nan"),
        (torch.arange(20), "int64 (20,): 20 distinct values from 0 to 19"),
        (torch.arange(20) % 2 == 0, "bool (20,): 2 distinct values from False to True"),
        (torch.arange(40.0)[::2], "float32 (20,) with strides (2,): "),
        (torch.zeros(3, 2, device="meta"), "float32 (3, 2) on meta"),
        (torch.zeros(21)[1:], "float32 (20,) with storage offset 1: all 0.0"),
    ],
)
def test_arguments_are_described_in_a_line(value, text):
    found = describe(value)
    assert found.startswith(text)
    assert "\n" not in found


def test_exceptions_are_named():
    x = torch.zeros(5, 8)
    x[1, 2], x[4, 7] = 3, float("nan")
    assert describe(x) == "float32 (5, 8): all 0.0 except [1, 2] = 3.0, [4, 7] = nan"


def test_nan_among_many_values_is_told():
    x = torch.arange(20.0)
    x[3:9] = float("nan")
    assert describe(x) == "float32 (20,): 15 distinct values from 0.0 to 19.0, nan among them"
    x = torch.ones(20)
    x[3:9] = float("nan")
    assert describe(x) == "float32 (20,): 2 distinct values from 1.0 to 1.0, nan among them"


def wrong_gradient(g, x):
    found = 2 * g
    if found.numel():
        found[-1, -1] += 1
    return {"x": found}


def test_gradients_match_names_the_element_of_the_argument():
    fields = {"dims": {"M": sizes(1, 3), "N": sizes(2, 3)}, "args": {"x": Tensor("M N")}}
    found = failure(contract_of(doubled, backward=wrong_gradient, **fields), "gradients_match")
    assert found.index == "gradient of x[0, 1]"
    assert "gradient of x[0, 1] = " in found.text
    assert " ulp) > bound " in found.text
