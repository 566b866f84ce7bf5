"""The covering design is counted: every class of input that 20 cases promise is really there."""

from collections import Counter
from functools import cache
from itertools import combinations

import hypothesis
import pytest

from trivet import (
    ANY,
    Choice,
    Contract,
    Scalar,
    Tensor,
    divisors,
    integers,
    log_uniform,
    offsets,
    partition,
    reals,
    sizes,
)
from trivet.properties._cases import build, layouts_of
from trivet.properties._dtypes import DTYPES, range_in
from trivet.properties._edges import MOST_ELEMENTS, classes_within, elements, size_classes
from trivet.properties._plan import pilot_cases, plan
from trivet.properties._probes import empty_cases, integer_cases, nonfinite_cases
from trivet.properties._strategy import strategy


def anything(**given):
    return given


def make(dims, **args):
    return Contract(kernel=anything, oracles=[anything], dims=dims, args=args)


def softmax():
    return make(
        {"M": sizes(0, 40), "N": sizes(1, 300)},
        x=Tensor("M N", dtypes=("float32", "bfloat16"), domain=reals(-1e4, 1e4), layouts=ANY),
    )


def cell():
    return make(
        {
            "B": sizes(1, 6),
            "D": sizes(1, 300),
            "H": sizes(1, 300),
            "N": sizes(1, 9),
            "M": sizes(1, 60),
        },
        x=Tensor("B D"),
        h=Tensor("B H"),
        dt=Tensor("B", domain=log_uniform(1e-6, 1e6, zero=True)),
        w=Tensor("H D"),
        table=Tensor("N M", dtypes=("int32",), domain=partition("H")),
    )


def grouped():
    return make(
        {"C": sizes(1, 120), "G": divisors("C"), "P": Choice(8, 16), "T": sizes(0, 200)},
        x=Tensor("T C", domain=reals(nonfinite=True)),
        w=Tensor("C", optional=True),
        b=Tensor(("C", ""), dtypes=("float32",)),
        cu=Tensor("P+1", dtypes=("int32",), domain=offsets("T", full=False)),
        i=Tensor("T", dtypes=("int64",), domain=integers(0, "C-1", sentinel=-1)),
        eps=Scalar(float, 1e-6, 1e-1),
        shift=Scalar(int, -4, "C-1"),
        flag=Choice(True, False),
    )


# In a dict, out of sight of the pytest plugin: these kernels launch nothing.
ALL = {"softmax": (softmax(), (64,)), "cell": (cell(), (16, 64)), "grouped": (grouped(), (32,))}


@cache
def cases(name, seed=0, count=20):
    contract, blocks = ALL[name]
    return plan(contract, contract.dtypes()[0], seed=seed, blocks=blocks, count=count)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", ALL)
def test_every_case_can_be_built(name, seed):
    contract, _ = ALL[name]
    for dtype in contract.dtypes():
        for case in cases(name, seed):
            assert build(contract, case, dtype).dims == case.dims


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_plan(name):
    assert cases(name) == cases.__wrapped__(name)
    assert cases(name) != cases(name, seed=1)
    assert len({case.to_json() for case in cases(name)}) == 20


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ALL)
def test_five_size_classes_a_dim_where_its_range_has_them(name, seed):
    contract, blocks = ALL[name]
    seen = Counter()
    for dim, label in {
        item for c in cases(name, seed) for item in size_classes(contract, c.dims, blocks).items()
    }:
        seen[dim] += label != "0"
    ranges = {"M": (1, 40)} if name == "softmax" else {"B": (1, 6), "N": (1, 9), "M": (1, 60)}
    ranges |= {"N": (1, 300)} if name == "softmax" else {"D": (1, 300), "H": (1, 300)}
    if name == "grouped":
        ranges = {"C": (1, 120), "T": (1, 200)}
    for dim, (lo, hi) in ranges.items():
        assert seen[dim] >= min(5, len(classes_within(blocks, lo, hi))), dim


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_every_block_edge_is_met(seed):
    met = {case.dims["N"] for case in cases("softmax", seed)}
    assert {1, 63, 64, 65, 300} <= met
    assert any(size > 128 and size % 64 for size in met)
    assert {1, 40} <= {case.dims["M"] for case in cases("softmax", seed)}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_pairs_of_dims_come_in_all_three_orders(seed):
    orders = set()
    for case in cases("cell", seed):
        for one, other in combinations(("D", "H", "M"), 2):
            left, right = case.dims[one], case.dims[other]
            orders.add((one, other, (left > right) - (left < right)))
    assert len(orders) == 9


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_each_dim_is_small_while_the_others_are_large(seed):
    found = set()
    for case in cases("softmax", seed):
        if case.dims["M"] <= 3 and case.dims["N"] > 64:
            found.add("M")
        if case.dims["N"] <= 3 and case.dims["M"] >= 24:
            found.add("N")
    assert found == {"M", "N"}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_divisor_and_its_quotient_are_both_proper(seed):
    pairs = [(c.dims["C"], c.dims["G"]) for c in cases("grouped", seed)]
    assert all(whole % part == 0 for whole, part in pairs)
    quotients = [whole // part for whole, part in pairs if 1 < part < whole]
    assert any(each & (each - 1) for each in quotients)
    assert {case.dims["P"] for case in cases("grouped", seed)} == {8, 16}


@pytest.mark.parametrize("name", ["softmax", "grouped"])
def test_one_case_of_25_has_one_empty_dim(name):
    empty = [case for case in cases(name, count=50) if 0 in case.dims.values()]
    assert len(empty) == 2
    assert all(list(case.dims.values()).count(0) == 1 for case in empty)


def test_every_kind_and_most_layouts_of_a_first_argument_are_met():
    found = cases("softmax")
    kinds = {case.recipes["x"].kind for case in found}
    assert kinds == set(
        ALL["softmax"][0].tensors()["x"].domain.kinds(ALL["softmax"][0].storage_of("x", "float32"))
    )
    assert {case.recipes["x"].layout for case in found} == set(
        layouts_of(ALL["softmax"][0], "x", 2)
    )
    assert {case.recipes["x"].scale for case in found} == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("seed", [0, 1])
def test_structures_choices_and_scalars_are_met(seed):
    tables = {case.recipes["table"].kind for case in cases("cell", seed)}
    assert tables == set(partition("H").kinds(ALL["cell"][0].storage_of("table", "float32")))
    found = cases("grouped", seed)
    assert {case.scalars["flag"] for case in found} == {0, 1}
    assert {case.recipes["w"].absent for case in found} == {True, False}
    assert {case.recipes["b"].shape for case in found} == {0, 1}
    eps = [case.scalars["eps"] for case in found]
    lo, hi = range_in(DTYPES["float32"], 1e-6, 1e-1)
    assert {lo, hi} <= set(eps)
    assert len(set(eps)) > 5
    shifts = {case.scalars["shift"] for case in found}
    assert {-4, 0, 1, -1} <= shifts
    assert all(-4 <= c.scalars["shift"] <= c.dims["C"] - 1 for c in found)
    assert any(c.scalars["shift"] == c.dims["C"] - 1 for c in found)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_each_choice_meets_sizes_of_several_blocks(seed):
    contract = make(
        {"L": sizes(1, 64), "n": Choice(8, 16)},
        x=Tensor("L n"),
        offset=Scalar(int, 0, "L-1"),
        block=Choice(16, 32, 64),
    )
    found = plan(contract, "float32", seed=seed, blocks=(8, 16), count=20)
    roomy = [case for case in found if case.dims["L"] >= 32]
    assert {case.scalars["block"] for case in roomy} == {0, 1, 2}
    assert {case.dims["n"] for case in roomy} == {8, 16}
    inside = [c.scalars["offset"] for c in roomy if 0 < c.scalars["offset"] < c.dims["L"] - 16]
    assert len(inside) >= 3


def test_a_quarter_of_the_cases_tie_two_arguments():
    ties = [case.relation for case in cases("cell") if case.relation]
    assert len(ties) == 5
    assert all(not {"table", "dt"} & {tie.first, tie.second} for tie in ties)


def test_a_contract_without_dims_has_a_plan():
    fixed = make({}, x=Tensor("7"), eps=Scalar(float, 0, 1))
    found = plan(fixed, "float32", seed=0, blocks=(), count=20)
    assert {build(fixed, case, "float32").arrays["x"].shape for case in found} == {(7,)}
    assert not list(empty_cases(fixed, "float32"))
    assert len(pilot_cases(fixed, "float32")) == 3


def test_the_pilot_grows():
    first, middle, last = pilot_cases(ALL["cell"][0], "float32")
    assert last.dims == {"B": 6, "D": 300, "H": 300, "N": 9, "M": 60}
    assert first.dims["D"] < middle.dims["D"] < last.dims["D"]
    assert all(case.is_plain and case.is_normal for case in (first, middle, last))


def test_huge_domains_are_cut_to_what_can_be_run():
    huge = make({"A": sizes(1, 5000), "B": sizes(1, 5000), "C": sizes(1, 9)}, x=Tensor("A B C"))
    found = plan(huge, "float32", seed=0, blocks=(64,), count=20)
    assert all(elements(huge, case.dims) <= MOST_ELEMENTS for case in found)
    assert {5000} <= {case.dims["A"] for case in found}
    assert {5000} <= {case.dims["B"] for case in found}


def test_integer_cases_take_turns():
    found = list(integer_cases(ALL["cell"][0], "float32", seed=0, blocks=(64,), count=8))
    assert len(found) == 8
    kinds = {(name, r.kind) for case in found for name, r in case.recipes.items()}
    wide = {name for name, kind in kinds if kind.startswith("probe:") and kind != "probe:1"}
    assert wide == {"x", "h", "dt", "w"}
    for case in found:
        arrays = build(ALL["cell"][0], case, "float32").arrays
        for name in ("x", "h", "w"):
            bits = int(case.recipes[name].kind.removeprefix("probe:"))
            step = min(1.0, 8 / 2**bits)  # of the domain reals(-8, 8)
            assert (arrays[name] / step == (arrays[name] / step).round()).all()
            assert (abs(arrays[name]) <= min(8, step * 2**bits)).all()


def test_empty_cases_empty_each_dim_that_admits_it():
    assert [case.dims for case in empty_cases(ALL["softmax"][0], "float32")] == [{"M": 0, "N": 3}]
    assert [case.dims["T"] for case in empty_cases(ALL["grouped"][0], "float32")] == [0]
    assert not list(empty_cases(ALL["cell"][0], "float32"))


def test_nonfinite_cases_plant_one_value_where_the_domain_admits_it():
    assert not list(nonfinite_cases(ALL["softmax"][0], "float32"))
    found = list(nonfinite_cases(ALL["grouped"][0], "float32", blocks=(32,)))
    assert {(plant.where, plant.value) for case in found for plant in case.plants} == {
        (where, value) for where in ("first", "last", "edge:32") for value in ("nan", "inf", "-inf")
    }
    for case in found:
        array = build(ALL["grouped"][0], case, "float32").arrays["x"]
        assert (~(abs(array) < 1e9)).sum() == 1
        assert min(case.dims["T"], case.dims["C"]) > 64


@pytest.mark.parametrize("name", ALL)
def test_hypothesis_draws_legal_cases(name):
    contract, blocks = ALL[name]
    dtype = contract.dtypes()[0]
    seen = []

    @hypothesis.seed(0)
    @hypothesis.settings(
        max_examples=60,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    @hypothesis.given(strategy(contract, dtype, blocks))
    def draw(case):
        seen.append(case)
        assert build(contract, case, dtype).case.dims == case.dims

    draw()
    assert len(seen) == 60
    assert sum(0 in case.dims.values() for case in seen) <= 9
    assert max(list(case.dims.values()).count(0) for case in seen) <= 1
    assert len({tuple(case.dims.values()) for case in seen}) > 15
