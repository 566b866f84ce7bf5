"""When oracles vote: what a scalar oracle is, and how far float64 may stand from its answer."""

import mpmath
import numpy as np
from tests.tiny import contract_of, doubled

from trivet import Tensor, sizes
from trivet.oracles._evaluate import evaluate
from trivet.oracles._exact import carried
from trivet.properties._engine import judge
from trivet.properties._votes import is_scalar


def of_element(index, x):
    return 2 * x[index]


def of_array(index, x):
    return x + x


def verdict_of(kernel, oracles, **fields):
    contract = contract_of(kernel, **fields)
    object.__setattr__(contract, "oracles", oracles)
    [verdict] = judge(contract, name="voted", laws=["matches_oracle"])
    return verdict


def test_a_first_parameter_called_index_makes_a_scalar_oracle():
    assert is_scalar(of_element, ["x"])
    assert not is_scalar(lambda x: x, ["x"])
    twice = contract_of(doubled).oracles[0]
    assert verdict_of(doubled, [twice, of_element]).state == "green"


def test_not_where_the_contract_has_an_argument_of_that_name():
    assert not is_scalar(of_array, ["index", "x"])

    def kernel(index, x):
        return doubled(x)

    index = Tensor("N", dtypes=("int32",))
    fields = {"args": {"index": index, "x": Tensor("N")}, "dims": {"N": sizes(1, 100)}}
    twice = contract_of(doubled).oracles[0]
    assert verdict_of(kernel, [twice, of_array], **fields).state == "green"


def of_keywords(index, **arguments):
    return 2 * arguments["x"][index]


def test_a_scalar_oracle_with_variable_keywords_gets_every_argument():
    verdict = verdict_of(doubled, [lambda m, x: 2 * x, of_keywords])
    assert verdict.state == "green", verdict.reason


def test_float64_stands_within_a_spacing_and_its_share_of_the_bound():
    def oracle(m, x):
        return m.exp(x) / m.sum(m.tanh(x) ** 2, axis=-1, keepdims=True)

    x = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float32).astype(float)
    [value] = evaluate(oracle, {"x": x})
    allowed = carried(value.value, value.error)
    with mpmath.workprec(113):
        for row, column in np.ndindex(*x.shape):
            total = mpmath.fsum(mpmath.tanh(mpmath.mpf(v)) ** 2 for v in x[row])
            exact = mpmath.exp(mpmath.mpf(x[row, column])) / total
            assert abs(value.value[row, column] - exact) <= allowed[row, column]
    assert (allowed < 1e-8 * value.error + np.spacing(np.abs(value.value)) * 1.01).all()


def test_infinities_carry_nothing():
    assert carried(np.array([np.inf]), np.array([np.inf])).tolist() == [0.0]
