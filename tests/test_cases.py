import dataclasses

import numpy as np
import pytest
import torch

from trivet import ANY, Choice, Contract, Scalar, Tensor, integers, log_uniform, reals, sizes
from trivet.properties._cases import (
    Case,
    Plant,
    Recipe,
    Relation,
    assumption_failed,
    build,
    dtypes_of,
)
from trivet.properties._plan import plan
from trivet.properties._relations import relations_of


def attention(q, k, out, causal, scale, N):
    return q


def oracle(q):
    return q


@pytest.fixture
def contract():
    return Contract(
        kernel=attention,
        oracles=[oracle],
        dims={"M": sizes(0, 40), "N": sizes(1, 90)},
        args={
            "q": Tensor("M N", dtypes=("float32", "bfloat16"), layouts=ANY),
            "k": Tensor("M N", dtypes="q", optional=True, domain=reals(0, 1)),
            "out": Tensor("M", role="out", dtypes=("int32",)),
            "causal": Choice(True, "left", None),
            "scale": Scalar(float, 1e-3, "N"),
        },
    )


def case(**changes):
    plain = Case(
        dims={"M": 5, "N": 70},
        recipes={"q": Recipe("normal", 3, 0.5, layout="order:1,0"), "k": Recipe("uniform", 4)},
        scalars={"causal": 1, "scale": 0.1},
    )
    return dataclasses.replace(plain, **changes)


def test_the_kernel_is_given_every_argument_and_the_dims_it_names(contract):
    found = build(contract, case(), "bfloat16")
    assert set(found.tensors) == {"q", "k", "out", "causal", "scale", "N"}
    assert set(found.arrays) == {"q", "k", "out", "causal", "scale", "M", "N"}
    assert found.tensors["q"].dtype is found.tensors["k"].dtype is torch.bfloat16
    assert found.tensors["q"].stride() == (1, 5)
    assert found.tensors["out"].dtype is torch.int32
    assert found.tensors["causal"] == found.arrays["causal"] == "left"
    assert found.tensors["N"] == found.arrays["N"] == 70
    assert dtypes_of(contract) == ("float32", "bfloat16")


def test_floats_are_float32_for_kernel_and_oracle(contract):
    scale = build(contract, case(), "float32").tensors["scale"]
    assert scale == float(np.float32(0.1)) != 0.1
    lowest = build(contract, case(scalars={"causal": 0, "scale": -9}), "float32").arrays["scale"]
    assert 1e-3 <= lowest < 1.001e-3
    assert build(contract, case(scalars={"scale": 1e9}), "float32").arrays["scale"] == 70
    chosen = Contract(
        kernel=lambda x, eps: x,
        oracles=[oracle],
        dims={},
        args={"x": Tensor(""), "eps": Choice(0.1)},
    )
    assert build(chosen, Case({}, {}), "float32").tensors["eps"] == float(np.float32(0.1))


def test_the_oracle_sees_exactly_what_is_stored(contract):
    for dtype in dtypes_of(contract):
        found = build(contract, case(), dtype)
        for name in ("q", "k"):
            assert found.arrays[name].dtype == np.float64
            assert (found.tensors[name].double().numpy() == found.arrays[name]).all()


def test_a_case_is_json_both_ways_and_hashable(contract):
    whole = case(
        relation=Relation("copy", "q", "k"),
        plants=(Plant("q", "last", "nan"), Plant("k", "edge:64", "-inf")),
        label="nonfinite",
    )
    again = Case.from_json(whole.to_json())
    assert again == whole
    assert hash(again) == hash(whole)
    assert len({whole, again, case()}) == 2
    for planned in plan(contract, "float32", seed=0, blocks=(64,), count=20):
        assert Case.from_json(planned.to_json()) == planned


def test_building_twice_gives_the_same_bits_at_other_addresses(contract):
    for planned in plan(contract, "bfloat16", seed=5, blocks=(64,), count=20):
        first, second = (build(contract, planned, "bfloat16") for _ in range(2))
        for name in ("q", "k"):
            one, other = first.tensors[name], second.tensors[name]
            if one is None:
                assert other is None
                continue
            assert torch.equal(one, other)
            assert one.stride() == other.stride()
            assert not one.numel() or one.data_ptr() != other.data_ptr()


def test_smaller_sizes_keep_the_values(contract):
    whole = build(contract, case(), "float32").arrays
    part = build(contract, case(dims={"M": 2, "N": 33}), "float32").arrays
    for name in ("q", "k"):
        assert (whole[name][:2, :33] == part[name]).all()


def test_arguments_have_streams_of_their_own(contract):
    same = {name: Recipe("normal", 3) for name in ("q", "k")}
    found = build(contract, case(recipes=same), "float32").arrays
    assert not (np.abs(found["q"]) == np.abs(found["k"])).any()


def test_an_optional_argument_may_be_absent(contract):
    found = build(contract, case(recipes={"k": Recipe(absent=True)}), "float32")
    assert found.tensors["k"] is None
    assert found.arrays["k"] is None


def test_plants_stand_first_last_and_before_a_block_edge():
    bound = Contract(
        kernel=oracle,
        oracles=[oracle],
        dims={"M": sizes(0, 40), "N": sizes(1, 90)},
        args={"q": Tensor("M N", domain=reals(nonfinite=True))},
    )
    for where, index in (("first", (0, 0)), ("last", (4, 69)), ("edge:64", (4, 63))):
        planted = case(recipes={}, scalars={}, plants=(Plant("q", where, "-inf"),))
        array = build(bound, planted, "float32").arrays["q"]
        assert np.argwhere(np.isinf(array)).tolist() == [list(index)]
    empty = case(dims={"M": 0, "N": 3}, recipes={}, scalars={}, plants=(Plant("q", "last", "nan"),))
    assert build(bound, empty, "float32").arrays["q"].shape == (0, 3)


def related(kind, first="a", second="b"):
    bound = Contract(
        kernel=lambda a, b, c: a,
        oracles=[lambda a: a],
        dims={"M": sizes(1, 9), "K": sizes(1, 9), "N": sizes(1, 9)},
        args={
            "a": Tensor("M N"),
            "b": Tensor("M N", domain=reals(-2, 2)),
            "c": Tensor("K N"),
        },
    )
    recipes = {name: Recipe("normal", 1, 1.0) for name in "abc"}
    tied = Case({"M": 6, "K": 4, "N": 5}, recipes, relation=Relation(kind, first, second))
    return bound, build(bound, tied, "float32").arrays


def test_ties_between_arguments():
    bound, copied = related("copy")
    assert (copied["b"] == np.clip(copied["a"], -2, 2)).all()
    assert (np.abs(copied["a"]) > 2).any()
    equal = related("equal_rows", "a", "c")[1]
    assert (equal["a"] == equal["a"][0]).all()
    assert (equal["c"] == equal["a"][0]).all()
    zeros = related("zero_rows")[1]
    assert ((zeros["a"] == 0).all(axis=1) == (zeros["b"] == 0).all(axis=1)).all()
    assert (zeros["a"] == 0).all(axis=1).any()
    near = related("correlated")[1]
    inside = np.abs(near["a"]) < 1.9
    assert 0 < np.abs(near["a"] - near["b"])[inside].max() < 0.1
    kinds = {tie.kind for tie in relations_of(bound)}
    assert kinds == {"copy", "equal_rows", "zero_rows", "correlated"}


def test_assumptions_name_the_first_that_fails(contract):
    @contract.assume
    def rows_are_many(M):
        return M >= 2

    @contract.assume
    def nothing_is_negative(k):
        return k is None or (k >= 0).all()

    assert assumption_failed(contract, build(contract, case(), "float32")) is None
    small = build(contract, case(dims={"M": 1, "N": 3}), "float32")
    assert assumption_failed(contract, small) == "rows_are_many"


def test_a_case_out_of_the_domain_is_moved_into_it():
    bound = Contract(
        kernel=lambda index, table, shift: index,
        oracles=[lambda index: index],
        dims={"V": sizes(0, 20), "N": sizes(0, 9)},
        args={
            "index": Tensor("N", dtypes=("int64",), domain=integers(0, "V-1")),
            "table": Tensor("V", domain=log_uniform("V", 100)),
            "shift": Scalar(int, 0, "V"),
        },
    )
    found = build(bound, Case({"V": 0, "N": 4}, {}, {"shift": 7}), "float32")
    assert found.dims["V"] >= 1
    assert found.arrays["shift"] <= found.dims["V"]
    assert (found.arrays["index"] < found.dims["V"]).all()


def test_what_is_plain_and_normal():
    assert Case({"N": 3}, {"x": Recipe("normal")}).is_plain
    assert not Case({"N": 0}, {"x": Recipe("normal")}).is_plain
    assert not Case({"N": 3}, {"x": Recipe("normal", layout="order:1,0")}).is_plain
    assert Case({"N": 3}, {"x": Recipe("normal", layout="order:1,0")}).is_normal
    assert not Case({"N": 3}, {"x": Recipe("subnormal")}).is_normal
    assert not Case({"N": 3}, {}, plants=(Plant("x", "first", "nan"),)).is_normal
