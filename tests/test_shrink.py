"""Quality of shrinking: planted bugs whose smallest inputs are known."""

from functools import cache

import pytest

from trivet import ANY, Choice, Contract, Scalar, Tensor, divisors, partition, reals, sizes
from trivet.properties._cases import Case, Recipe, Relation, build
from trivet.properties._plan import plan
from trivet.properties._shrink import shrink, simplify


def anything(**given):
    return given


def make(dims, **args):
    return Contract(kernel=anything, oracles=[anything], dims=dims, args=args)


@cache
def rows():
    return make(
        {"M": sizes(0, 40), "N": sizes(1, 300)},
        x=Tensor("M N", domain=reals(-1e4, 1e4), layouts=ANY),
    )


HARD = {"x": Recipe("wide", 77, 1.0, layout="every:1")}
PLAIN = Recipe("simplest")


def smallest(contract, case, fails, budget=400):
    runs = []

    def counted(candidate):
        runs.append(candidate)
        return fails(candidate)

    assert fails(case)
    found = shrink(case, counted, contract, contract.dtypes()[0], budget)
    assert fails(found)
    assert len(runs) <= budget
    assert len(set(runs)) == len(runs)
    return found, len(runs)


@pytest.mark.parametrize(
    ("fails", "dims"),
    [
        (lambda d: d["N"] > 64 and d["M"] >= 2, {"M": 2, "N": 65}),
        (lambda d: d["N"] >= 1, {"M": 0, "N": 1}),
        (lambda d: d["M"] > 0 and d["N"] % 64 == 1 and d["N"] > 64, {"M": 1, "N": 65}),
        (lambda d: d["M"] >= 37, {"M": 37, "N": 1}),
        (lambda d: d["M"] > 0 and d["N"] > 131, {"M": 1, "N": 132}),
        (lambda d: d["M"] == 40, {"M": 40, "N": 1}),
    ],
)
def test_sizes_end_at_the_smallest_that_fail(fails, dims):
    start = Case({"M": 40, "N": 257}, HARD)
    if fails(start.dims):
        found, runs = smallest(rows(), start, lambda case: fails(case.dims))
        assert dict(found.dims) == dims
        assert found.recipes["x"] == PLAIN
        assert runs <= 80


def test_every_failing_case_of_a_plan_shrinks_to_the_same():
    for case in plan(rows(), "float32", seed=1, blocks=(64,), count=20):
        if case.dims["N"] > 64 and case.dims["M"] >= 2:
            found, _ = smallest(rows(), case, lambda c: c.dims["N"] > 64 and c.dims["M"] >= 2)
            assert dict(found.dims) == {"M": 2, "N": 65}


@pytest.mark.parametrize("start", [(240, 8), (260, 2), (130, 130), (299, 13), (66, 3)])
def test_sizes_tied_by_divisors_move_together(start):
    tied = make({"D": sizes(1, 300), "H": divisors("D")}, x=Tensor("D"))
    case = Case(dict(zip(("D", "H"), start, strict=True)), {})
    found, _ = smallest(tied, case, lambda c: c.dims["D"] >= 65 and c.dims["H"] >= 2)
    assert dict(found.dims) in ({"D": 65, "H": 5}, {"D": 66, "H": 2})


def test_derived_sizes_and_choices_follow():
    tied = make(
        {"E": sizes(1, 99), "D": "2*E", "B": sizes(1, 9), "C": Choice(1, "B")}, x=Tensor("D")
    )
    case = Case({"E": 80, "D": 160, "B": 7, "C": 7}, {})
    found, _ = smallest(tied, case, lambda c: c.dims["D"] > 64 and c.dims["C"] == c.dims["B"] > 1)
    assert dict(found.dims) == {"E": 33, "D": 66, "B": 2, "C": 2}


@cache
def buckets():
    return make(
        {"H": sizes(1, 300), "N": sizes(1, 9), "M": sizes(1, 60)},
        table=Tensor("N M", dtypes=("int32",), domain=partition("H")),
    )


def table_of(case):
    return build(buckets(), case, "int32").arrays["table"]


def test_a_bucket_that_is_not_full():
    case = Case({"H": 120, "N": 7, "M": 40}, {"table": Recipe("skewed", 5)})
    found, _ = smallest(buckets(), case, lambda c: (table_of(c) == -1).any())
    assert dict(found.dims) == {"H": 1, "N": 1, "M": 2}


def test_a_table_that_is_not_contiguous_keeps_its_structure():
    def scattered(case):
        table = table_of(case)
        live = table[table >= 0]
        return bool((live != sorted(live)).any())

    case = Case({"H": 90, "N": 8, "M": 30}, {"table": Recipe("mixed", 5)})
    found, _ = smallest(buckets(), case, scattered)
    assert found.dims["H"] <= 4
    assert found.dims["N"] == 2
    assert found.dims["M"] <= 3


def test_a_spike_keeps_its_kind_and_loses_the_rest():
    def misses_the_last(case):
        array = build(rows(), case, "float32").arrays["x"]
        late = array[:, 64:]
        return bool(late.size and (late.max(axis=1) > array[:, :64].max(axis=1) + 3).any())

    case = Case({"M": 9, "N": 131}, {"x": Recipe("spike", 99, 1.0, layout="order:1,0")})
    found, runs = smallest(rows(), case, misses_the_last)
    assert dict(found.dims) == {"M": 1, "N": 65}
    assert found.recipes["x"] == Recipe("spike")
    assert runs <= 100


def test_a_layout_that_matters_stays_and_others_go():
    two = make(
        {"M": sizes(1, 40), "N": sizes(1, 40)},
        x=Tensor("M N", layouts=ANY),
        y=Tensor("M N", layouts=ANY),
    )
    recipes = {
        "x": Recipe("wide", 1, 1.0, layout="order:1,0"),
        "y": Recipe("ties", 2, layout="last:0"),
    }
    case = Case({"M": 9, "N": 17}, recipes, relation=Relation("copy", "x", "y"))

    def inner_stride_taken_for_one(candidate):
        x = build(two, candidate, "float32").tensors["x"]
        return x.size(1) > 1 and x.stride(1) != 1

    found, _ = smallest(two, case, inner_stride_taken_for_one)
    assert dict(found.dims) == {"M": 2, "N": 2}
    assert found.recipes == {"x": Recipe("simplest", layout="order:1,0"), "y": PLAIN}
    assert found.relation is None


def test_scalars_and_choices_become_plain():
    bound = make(
        {"L": sizes(1, 64)},
        x=Tensor("L"),
        y=Tensor("L", optional=True),
        offset=Scalar(int, 0, "L-1"),
        rate=Scalar(float, 2, 10),
        mode=Choice("a", "b", "c"),
    )
    scalars = {"offset": 40, "rate": 7.3, "mode": 2}
    case = Case({"L": 64}, {"x": Recipe("wide", 8), "y": Recipe("ties", 9)}, scalars)
    found, _ = smallest(bound, case, lambda c: c.scalars["offset"] >= 3)
    assert dict(found.dims) == {"L": 4}
    assert found.scalars == {"offset": 3, "rate": 2, "mode": 0}
    assert found.recipes["y"].absent
    kept, _ = smallest(bound, case, lambda c: c.scalars["rate"] > 4 and c.scalars["mode"] == 2)
    assert kept.scalars["mode"] == 2
    assert kept.scalars["rate"] == 7


def test_simplify_offers_legal_simpler_cases_and_a_greedy_walk_ends_small():
    case = Case({"M": 40, "N": 300}, HARD)
    while True:
        steps = (
            c for c in simplify(rows(), case, "float32") if c.dims["N"] > 64 and c.dims["M"] > 1
        )
        simpler = next(steps, None)
        if simpler is None:
            break
        assert build(rows(), simpler, "float32").dims == simpler.dims
        case = simpler
    assert dict(case.dims) == {"M": 2, "N": 65}
    assert case.recipes["x"] == PLAIN


def test_the_budget_is_kept():
    case = Case({"M": 40, "N": 300}, HARD)
    _, runs = smallest(rows(), case, lambda c: c.dims["N"] > 64, budget=7)
    assert runs <= 7
