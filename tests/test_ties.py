"""Cases of exact sums on ties of a narrow result: the least error before the store shows there."""

import ml_dtypes
import numpy as np
import pytest

from trivet import Contract, Tensor, sizes
from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate
from trivet.properties._cases import build
from trivet.properties._ties import tie_cases


def rows_contract(oracle, out=None, rows=8, dtypes=("bfloat16",)):
    tensor = Tensor("R N", dtypes=dtypes)
    outputs = {"out": Tensor("R", dtypes=(out,))} if out else None
    dims = {"R": sizes(1, rows), "N": sizes(1, 1024)}
    return Contract(lambda a, b: a, [oracle], dims, {"a": tensor, "b": tensor}, outputs)


def dots(m, a, b):
    return m.sum(a * b, axis=-1)


def cases(contract, dtype="bfloat16", seed=0):
    return list(tie_cases(contract, dtype, seed=seed, blocks=(64,)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1 + 1e-5, 1 - 1e-5])
def test_a_small_factor_shows_in_a_narrow_result(seed, factor):
    contract = rows_contract(dots)
    shown = []
    for case in cases(contract, seed=seed):
        arrays = build(contract, case, "bfloat16").arrays
        [value] = evaluate(dots, {name: arrays[name] for name in "ab"})
        assert (value.error == 0).all(), "the sums are exact in any order"
        right = value.value.astype(np.float32)
        assert accept(right.astype(ml_dtypes.bfloat16), value).ok.all()
        wrong = (right * np.float32(factor)).astype(ml_dtypes.bfloat16)
        shown.append(bool((~accept(wrong, value).ok).any()))
    assert any(shown)


def test_by_turns_each_argument_is_wide_and_all_are_large():
    found = cases(rows_contract(dots))
    assert {tuple(r.kind != "probe:1" for r in case.recipes.values()) for case in found} == {
        (True, False),
        (False, True),
    }
    assert {case.dims["N"] for case in found} == {1024}
    assert cases(rows_contract(dots)) == found, "the same arguments give the same cases"


def test_wide_results_and_what_is_no_exact_sum_have_none():
    assert not cases(rows_contract(dots, "float32"))
    assert not cases(rows_contract(dots, dtypes=("float32",)), "float32")
    assert not cases(rows_contract(lambda m, a, b: m.sum(m.exp(a) * b, axis=-1)))


def test_a_narrow_result_of_wide_arguments_has_ties():
    assert cases(rows_contract(dots, "float16", dtypes=("float32",)), "float32")


def test_a_reference_that_raises_has_none():
    def broken(m, a, b):
        raise ValueError("out of domain")

    assert not cases(rows_contract(broken))
