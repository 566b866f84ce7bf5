"""The power certificate: each mutation of a plan, where it shows, and gates that show nothing."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.tiny import contract_of, doubled

from trivet import Contract, Precision, Tensor, reals, sizes
from trivet.ci.report import print_gates
from trivet.oracles import _cache
from trivet.oracles._cache import ValueCache, evaluate_once, key_of
from trivet.oracles._evaluate import evaluate
from trivet.oracles._mutants import Survey, mutated
from trivet.oracles._mutations import MUTATIONS
from trivet.properties._engine import judge
from trivet.properties._power import FACTORS, certificate
from trivet.properties._power_page import power_lines


def softmax(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def layer_norm(m, x):
    centred = x - m.mean(x, axis=-1, keepdims=True)
    return centred / m.sqrt(m.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def rows(m, x):
    state = x[0]
    for row in range(1, x.shape[0]):
        state = 0.5 * state + x[row]
    return state


# What each mutation needs: a plan with such a step, and inputs on which it matters.
PLANS = {
    "drops the last term": (lambda m, x: m.sum(x, axis=-1), 1.0),
    "accumulates in half precision": (lambda m, x: x @ m.transpose(x), 1.0),
    "takes tf32 inputs": (lambda m, x: x @ m.transpose(x), 1.0),
    "drops eps": (layer_norm, 1e-3),
    "carries a stale state": (rows, 1.0),
    "computes expm1 as exp(x) - 1": (lambda m, x: m.expm1(x), 1e-4),
    "computes log1p as log(1 + x)": (lambda m, x: m.log1p(m.abs(x)), 1e-4),
    "computes softplus as log(1 + exp(x))": (lambda m, x: m.softplus(x), 100.0),
    "computes tanh as 2 sigmoid(2x) - 1": (lambda m, x: m.tanh(x), 1e-4),
    "computes the variance in one pass": (lambda m, x: m.var(x + 1000.0, axis=-1), 1.0),
    "does not subtract the maximum": (softmax, 1e3),
}
APPROXIMATE = {
    "computes expm1 as exp(x) - 1": "expm1",
    "computes log1p as log(1 + x)": "log1p",
    "computes softplus as log(1 + exp(x))": "softplus",
    "computes tanh as 2 sigmoid(2x) - 1": "tanh",
    "computes the variance in one pass": "variance",
    "takes tf32 inputs": "tf32",
}


def normal(scale=1.0, shape=(6, 70)):
    drawn = np.random.default_rng(3).normal(size=shape) * scale
    return drawn.astype(np.float32).astype(np.float64)


def mutants_of(oracle, precision=None, **arguments):
    survey = Survey()
    with survey.watching():
        evaluate(oracle, arguments, precision=precision)
    return list(survey.mutants)


def separated(oracle, mutant, **arguments):
    [right] = evaluate(oracle, arguments)
    with mutated(mutant):
        [wrong] = evaluate(oracle, arguments)
    assert not np.isinf(right.error).all()
    return bool((~(np.abs(wrong.value - right.value) <= right.error)).any())


def test_every_mutation_has_an_example():
    assert set(PLANS) == set(MUTATIONS)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_separated_where_it_matters(name):
    oracle, scale = PLANS[name]
    found = [m for m in mutants_of(oracle, x=normal(scale)) if m.mutation == name]
    assert found
    assert any(separated(oracle, mutant, x=normal(scale)) for mutant in found)


@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_form_that_the_contract_allows_is_no_mistake(name):
    precision = Precision(approx=(APPROXIMATE[name],))
    names = {m.mutation for m in mutants_of(PLANS[name][0], precision, x=normal())}
    assert name not in names


def test_half_accumulation_is_no_mistake_where_it_is_declared():
    precision = Precision(accumulate="float16")
    names = {m.mutation for m in mutants_of(softmax, precision, x=normal())}
    assert "accumulates in half precision" not in names


@pytest.mark.parametrize(
    "oracle",
    [
        lambda m, x: m.sum(x, axis=(0, 1)),
        lambda m, x: m.mean(x, axis=0),
        lambda m, x: m.cumsum(x, axis=-1),
        lambda m, x: m.einsum("ij,kj->ik", x, x),
        lambda m, x: m.einsum("...j,j->...", x, x[0]),
        lambda m, x: m.linear_scan(0.9 * m.ones_like(x), x, axis=0),
        lambda m, x: m.logsumexp(x, axis=-1),
    ],
)
def test_terms_and_accumulators_are_mutated_in_every_reduction(oracle):
    x = normal(shape=(6, 8))
    found = mutants_of(oracle, x=x)
    for name in ("drops the last term", "accumulates in half precision"):
        chosen = [m for m in found if m.mutation == name]
        assert any(separated(oracle, mutant, x=x) for mutant in chosen), name


def test_a_numpy_reference_is_mutated_as_it_is():
    def reference(x):
        return np.exp(x - x.max(-1, keepdims=True)) @ x.T

    names = {m.mutation for m in mutants_of(reference, x=normal())}
    assert {"does not subtract the maximum", "takes tf32 inputs"} <= names


def test_a_site_is_the_line_of_the_oracle():
    [mutant, *_] = [m for m in mutants_of(softmax, x=normal()) if m.mutation.startswith("drops")]
    assert "test_power_certificate.py" in str(mutant.site)
    assert "m.sum(e" in str(mutant.site)


def test_a_mutation_leaves_nothing_behind():
    [before] = evaluate(softmax, {"x": normal()})
    with mutated(mutants_of(softmax, x=normal())[0]):
        evaluate(softmax, {"x": normal()})
    [after] = evaluate(softmax, {"x": normal()})
    assert np.array_equal(before.value, after.value)
    assert np.array_equal(before.error, after.error)


def rows_contract(oracle, domain=None, dtypes=("float32",), **fields):
    return Contract(
        kernel=lambda x: x,
        oracles=[oracle],
        dims={"M": sizes(1, 20), "N": sizes(1, 100)},
        args={"x": Tensor("M N", dtypes=dtypes, domain=domain or reals(-8, 8))},
        **fields,
    )


def test_a_contract_lists_what_its_inputs_cannot_show():
    narrow = certificate(rows_contract(softmax), "float32")
    assert [m.mutation for m in narrow.unseparated] == ["does not subtract the maximum"]
    assert "does not subtract the maximum" in narrow.note()
    assert narrow.vacuity is None

    wide = certificate(rows_contract(softmax, reals(-1e4, 1e4)), "float32")
    assert not wide.unseparated
    assert "not:" not in wide.note()


def test_each_entry_names_the_case_that_separates():
    for mutant in certificate(rows_contract(layer_norm), "float32").mutants:
        assert mutant.separated == (mutant.case is not None)
        assert mutant.separated >= mutant.certain
        assert mutant.applicable >= mutant.separated


def test_mutations_without_a_step_are_not_applicable():
    found = {m.mutation: m for m in certificate(rows_contract(softmax), "float32").mutants}
    assert set(found) == {*MUTATIONS, *FACTORS}
    assert not found["takes tf32 inputs"].applicable


def test_bfloat16_outputs_hide_small_factors():
    contract = rows_contract(lambda m, x: m.exp(x), reals(-1, 1), ("bfloat16",))
    found = {m.mutation: m for m in certificate(contract, "bfloat16").mutants}
    assert found["is twice as large"].separated


def test_the_same_seed_gives_the_same_certificate():
    first, second = (certificate(rows_contract(layer_norm), "float32", seed=5) for _ in "ab")
    assert list(first.mutants) == list(second.mutants)


def test_the_gate_notes_its_power():
    [verdict] = judge(contract_of(doubled), name="doubled", laws=["matches_oracle"])
    assert verdict.state == "green"
    assert verdict.reason == "power: 2 of 2 plan mutants separated"


def test_a_gate_that_separates_no_mutant_is_vacuous(monkeypatch):
    monkeypatch.setattr("trivet.properties._power.accept", everything_is_right)
    [verdict] = judge(contract_of(doubled), name="doubled", laws=["matches_oracle"])
    assert verdict.state == "red"
    assert verdict.reason == "vacuous: no input separates any of the 2 mutants of the plan"


def everything_is_right(actual, value):
    from trivet.oracles._accept import Acceptance

    everywhere = np.ones(actual.shape, bool)
    return Acceptance(everywhere, ~everywhere, np.zeros(actual.shape))


@pytest.mark.parametrize("oracle", [lambda x: 0 * x, lambda x: np.argsort(x)])
def test_zeros_and_integers_have_no_mutants_and_are_not_vacuous(oracle):
    contract = Contract(
        kernel=lambda x: x,
        oracles=[oracle],
        dims={"N": sizes(1, 50)},
        args={"x": Tensor("N", dtypes=("int32",))},
    )
    found = certificate(contract, "int32")
    assert not found.applicable
    assert found.vacuity is None
    assert list(power_lines(contract)) == ["no mutant applies: the plan computes no number"]


def test_the_page_lists_the_mutants_left():
    lines = list(power_lines(rows_contract(softmax)))
    assert lines[0] == "4 of 5 mutants of the plan separated at float32"
    assert lines[1].startswith("not separated: does not subtract the maximum (exp at ")


def test_the_report_names_what_the_inputs_would_not_show():
    console = Console(file=StringIO(), width=200)
    green = {"verdict": "green", "dtype": "float32", "law": "matches_oracle", "margin": None}
    green |= {"examples": 20, "seconds": 1.0, "failure": None}
    notes = ["power: 2 of 2 plan mutants separated", "power: 1 of 2 plan mutants separated; not: x"]
    contracts = [
        {"name": name, "gates": [{**green, "reason": reason}]}
        for name, reason in zip(("sharp", "blunt"), notes, strict=True)
    ]
    print_gates({"verdict": "green", "contracts": contracts}, console)
    text = console.file.getvalue()
    assert f"what the inputs would not show\n  blunt[float32]: {notes[1]}\n" in text
    assert "sharp[float32]" not in text


def exponential(m, x):
    return m.exp(x)


def ask(oracle, x, precision=None, profile="simulator"):
    return evaluate_once(oracle, {"x": x}, precision=precision or Precision(), profile=profile)


@pytest.fixture
def evaluations(monkeypatch):
    """A list that grows with each evaluation; the cache is empty."""
    seen = []

    def counted(oracle, arguments, **settings):
        seen.append(settings)
        return evaluate(oracle, arguments, **settings)

    monkeypatch.setattr(_cache, "CACHE", ValueCache())
    monkeypatch.setattr(_cache, "evaluate", counted)
    return seen


def test_an_oracle_is_asked_once_for_the_same_inputs(evaluations):
    first, again = (ask(exponential, normal())[0] for _ in "ab")
    assert len(evaluations) == 1
    assert again is first
    with pytest.raises(ValueError, match="read-only"):
        again.value[0] = 1.0


def test_other_inputs_precision_profile_or_code_are_asked_anew(evaluations):
    ask(exponential, normal())
    ask(softmax, normal())
    ask(exponential, normal(2.0))
    ask(exponential, normal().reshape(-1))
    ask(exponential, normal(), Precision(depth=3))
    ask(exponential, normal(), profile="gpu")
    ask(exponential, normal().astype(np.float32))
    assert len(evaluations) == 7


def scale_of(factor):
    return lambda m, x: factor * x


def test_closures_and_helpers_count_as_code():
    keys = {key_of(scale_of(f), {"x": normal()}, Precision(), "simulator") for f in (1.0, 2.0, 2.0)}
    assert len(keys) == 2
    assert key_of(scale_of(object()), {"x": normal()}, Precision(), "simulator") is None


def test_a_mutated_plan_is_not_kept(evaluations):
    [mutant, *_] = mutants_of(softmax, x=normal())
    with mutated(mutant):
        ask(softmax, normal())
    assert not _cache.CACHE.size
    ask(softmax, normal())
    assert _cache.CACHE.size


def test_the_cache_forgets_the_oldest_first():
    cache = ValueCache(capacity=10)
    for key in (b"a", b"b", b"c"):
        cache.put(key, [], 4)
    assert cache.get(b"a") is None
    assert cache.get(b"b") == []
    cache.put(b"d", [], 4)
    assert cache.get(b"c") is None
    assert cache.get(b"b") == []
    cache.put(b"huge", [], 11)
    assert cache.get(b"huge") is None
    assert cache.size == 8
