"""Functions composed of exp, log and division: what they err by, and that the bound counts it."""

import numpy as np
import pytest
import torch

from trivet.ci.sweep import DEVICES
from trivet.oracles._accept import accept
from trivet.oracles._composed import COMPOSED
from trivet.oracles._evaluate import evaluate
from trivet.oracles._profile import profile_named

f32 = np.float32
# Below 2^-13 the correction is less than half an ulp; beyond the last tanh and expm1 are constant
# or overflow.
REACH = {"tanh": [(2.0**-13, 10.0, 1)], "log1p": [(2.0**-13, 2.0**13, 1)]}
REACH["expm1"] = [(2.0**-13, 88.7, 1), (2.0**-13, 18.0, -1)]
EXACT = {"tanh": np.tanh, "expm1": np.expm1, "log1p": np.log1p}
BLOCK = 2**22


def bits(number):
    return int(np.array(number, f32).view(np.uint32))


def blocks(name, stride):
    """All float32 numbers of a function's reach, or every one in `stride`, in blocks."""
    for low, high, sign in REACH[name]:
        for start in range(bits(low), bits(high), BLOCK * stride):
            stop = min(start + BLOCK * stride, bits(high))
            yield sign * np.arange(start, stop, stride, dtype=np.uint32).view(f32)


def composed(name, x):
    _, on_simulator = DEVICES["simulator"]()
    return on_simulator(f"composed_{name}", torch.from_numpy(x)).numpy()


def largest(name, stride):
    """The largest relative error in units of 2^-24."""
    found = 0.0
    for x in blocks(name, stride):
        exact = EXACT[name](x.astype(float))
        found = max(found, float(np.abs(composed(name, x) / exact - 1).max()) * 2.0**24)
    return found


@pytest.mark.parametrize("name", COMPOSED)
def test_a_share_of_all_numbers_errs_by_more_than_one_rounding_and_no_more_than_counted(name):
    assert 1.1 < largest(name, 509) <= COMPOSED[name].measured


@pytest.mark.night
@pytest.mark.parametrize("name", COMPOSED)
def test_all_numbers_err_by_no_more_than_counted(name):
    assert largest(name, 1) <= COMPOSED[name].measured


@pytest.mark.parametrize("name", COMPOSED)
def test_the_bound_of_the_name_admits_the_composed_form(name):
    for x in blocks(name, 4099):
        [value] = evaluate(lambda m, x: getattr(m, name)(x), {"x": x.astype(float)})
        judged = accept(composed(name, x), value)
        assert judged.ok.all()


@pytest.mark.parametrize("profile", ["gpu", "gfx942", "interpreter"])
@pytest.mark.parametrize("name", COMPOSED)
def test_other_backends_count_what_their_exp_and_division_add(name, profile):
    x = np.array([1e-3, 0.7, 1.0, 5.0])
    oracle = lambda m, x: getattr(m, name)(x)  # noqa: E731
    [here], [there] = (evaluate(oracle, {"x": x}, profile=p) for p in ("simulator", profile))
    own = profile_named(profile).relative(name) * np.abs(there.value)
    assert (there.error >= own).all()
    assert (there.error > here.error).all()
