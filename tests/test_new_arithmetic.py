"""Dual numbers: derivatives of whole kernels, and of every function there is."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from trivet.ci import _race_kernels
from trivet.simulator import _functions
from trivet.simulator.arithmetic import Shadow
from trivet.simulator.dual import STORED, Dual, DualArithmetic, digamma
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load("runner")


def launch(name, arithmetic, point, direction, step):
    """Outputs at ``point + step * direction``; a structured array for dual numbers."""
    case = _race_kernels.build(name, 20, 0)
    machine = Machine(runner.lowered(case.kernel, typed(case), case.constexprs), arithmetic)
    given, found = [], []
    for key, value in case.arguments.items():
        if not isinstance(value, np.ndarray) or value.dtype != np.float32:
            is_array = isinstance(value, np.ndarray)
            given.append(runner.argument(key, value) if is_array else value)
            continue
        data = point[key] + step * direction[key]
        if isinstance(arithmetic, DualArithmetic):
            data = arithmetic.store(Dual(data, direction[key]), STORED)
        strides = tuple(stride // 4 for stride in value.strides)
        given.append(Argument(key, Allocation(data.reshape(-1), "f32"), 0, value.shape, strides))
        found += [data.reshape(-1)] if key in case.outputs else []
    report = machine.launch((*case.grid, 1, 1)[:3], given, Settings(sanitize=False))
    assert [fault.text for fault in report.faults] == []
    return found


def typed(case):
    return {
        key: runner.argument(key, value) if isinstance(value, np.ndarray) else value
        for key, value in case.arguments.items()
    }


@pytest.mark.parametrize("name", _race_kernels.NAMES)
def test_dual_numbers_give_the_derivative_of_every_race_kernel(name):
    case, rng = _race_kernels.build(name, 20, 0), np.random.default_rng(7)
    floats = {k: v for k, v in typed(case).items() if k in case.arguments and is_float(case, k)}
    point = {key: case.arguments[key].astype(np.float64) for key in floats}
    direction = {
        key: np.zeros_like(value) if key in case.outputs else rng.standard_normal(value.shape)
        for key, value in point.items()
    }
    step = 2.0**-20
    ahead = launch(name, Shadow(), point, direction, step)
    behind = launch(name, Shadow(), point, direction, -step)
    for dual, plus, minus in zip(
        launch(name, DualArithmetic(), point, direction, 0.0), ahead, behind, strict=True
    ):
        quotient = (plus - minus) / (2 * step)
        size = 1 + np.abs(quotient).max()
        assert np.abs(dual["tangent"] - quotient).max() <= size * 2 * step


# Where each function and its derivative are tame; (0.2, 0.8) unless said otherwise.
DOMAINS = {"acosh": (1.2, 2.0), "logb": (0.6, 0.9), "round": (0.1, 0.4), "rint": (0.1, 0.4)}


@pytest.mark.parametrize("name", sorted({*_functions.EXACT_UNARY, *_functions.WIDE_UNARY, "sqrt"}))
def test_every_function_of_one_number_has_its_derivative(name):
    low, high = DOMAINS.get(name, (0.2, 0.48 if name in ("nearbyint", "roundeven") else 0.8))
    x, along = np.linspace(low, high, 9), np.linspace(-2, 3, 9)
    function = Shadow().unary(name, "f64")
    found = DualArithmetic().unary(name, "f64")(Dual(x, along))
    step = 2.0**-17
    quotient = (function(x + step * along) - function(x - step * along)) / (2 * step)
    assert np.array_equal(found.value, function(x))
    assert np.abs(found.tangent - quotient).max() <= 2.0**-20 * (1 + np.abs(quotient).max())


@pytest.mark.parametrize("name", sorted({*_functions.BINARY, *_functions.WIDE_BINARY}))
def test_every_function_of_two_numbers_has_its_derivative(name):
    draw = np.random.default_rng(5)
    x, y = draw.uniform(0.3, 2, 40), draw.uniform(0.3, 2, 40)
    dx, dy = draw.standard_normal(40), draw.standard_normal(40)
    function = Shadow().binary(name, "f64")
    found = DualArithmetic().binary(name, "f64")(Dual(x, dx), Dual(y, dy))
    step = 2.0**-17
    ahead, behind = (function(x + s * dx, y + s * dy) for s in (step, -step))
    quotient = (ahead - behind) / (2 * step)
    assert np.abs(found.tangent - quotient).max() <= 2.0**-20 * (1 + np.abs(quotient).max())


def test_a_constant_stays_one_at_a_pole():
    with np.errstate(all="ignore"):
        found = DualArithmetic().unary("sqrt", "f32")(Dual(np.zeros(1), np.zeros(1)))
    assert found.tangent.tolist() == [0]


def test_digamma_at_known_points():
    """-gamma, and -gamma - 2 log 2 (DLMF 5.4.12 and 5.4.13)."""
    euler = 0.5772156649015329
    wanted = [-euler, -euler - 2 * np.log(2), 1 - euler]
    assert np.abs(digamma(np.array([1.0, 0.5, 2.0])) - wanted).max() < 2.0**-40


def is_float(case, key):
    value = case.arguments[key]
    return isinstance(value, np.ndarray) and value.dtype == np.float32
