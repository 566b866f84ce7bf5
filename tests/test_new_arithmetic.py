"""A number system of one's own needs nothing but the arithmetic's face: dual numbers."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from trivet.ci import _race_kernels
from trivet.simulator.arithmetic import Arithmetic, Shadow
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument

STORED = np.dtype([("value", np.float64), ("tangent", np.float64)])
PLAIN = Shadow()


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load("runner")


@dataclass
class Number:
    """Value and directional derivative."""

    value: np.ndarray
    tangent: np.ndarray

    @property
    def shape(self):
        return self.value.shape


class Dual(Arithmetic):
    """Forward-mode derivatives of the operations that the tested kernels use."""

    name = "dual"

    def map(self, function, *values):
        value = function(*(number.value for number in values))
        return Number(value, function(*(number.tangent for number in values)))

    def constant(self, value, element):
        return Number(np.asarray(value, np.float64), np.asarray(0.0))

    def load(self, stored, element):
        return Number(stored["value"].copy(), stored["tangent"].copy())

    def store(self, value, dtype):
        stored = np.empty(value.shape, STORED)
        stored["value"], stored["tangent"] = value.value, value.tangent
        return stored

    def binary(self, name, element):
        rules = {
            "addf": lambda x, y, dx, dy: dx + dy,
            "subf": lambda x, y, dx, dy: dx - dy,
            "mulf": lambda x, y, dx, dy: dx * y + x * dy,
            "divf": lambda x, y, dx, dy: (dx - x / y * dy) / y,
            "maxnumf": lambda x, y, dx, dy: np.where(x >= y, dx, dy),
        }
        function, rule = PLAIN.binary(name, element), rules[name.partition(".")[2]]
        return lambda a, b: Number(
            function(a.value, b.value), rule(a.value, b.value, a.tangent, b.tangent)
        )

    def unary(self, name, element):
        rules = {
            "exp": lambda x, y: y,
            "sqrt": lambda x, y: 0.5 / y,
            "negf": lambda x, y: -1.0,
            "absf": lambda x, y: np.sign(x),
        }

        def apply(a):
            result = PLAIN.unary(name, element)(a.value)
            return Number(result, rules[name](a.value, result) * a.tangent)

        return apply

    def fma(self, element):
        raise KeyError("no kernel here uses it")

    def compare(self, predicate):
        return lambda a, b: PLAIN.compare(predicate)(a.value, b.value)

    def cast(self, source, target, rounding):
        return lambda a: a

    def from_integer(self, element):
        return lambda a: Number(a.astype(np.float64), np.zeros(a.shape))

    def to_integer(self, dtype):
        return lambda a: PLAIN.to_integer(dtype)(a.value)

    def bits(self, element):
        return lambda a: PLAIN.bits(element)(a.value)

    def from_bits(self, element):
        return lambda a: Number(PLAIN.from_bits(element)(a), np.zeros(a.shape))

    def dot(self, sources, element, precision):
        return lambda a, b, c: Number(
            a.value @ b.value + c.value, a.tangent @ b.value + a.value @ b.tangent + c.tangent
        )

    def reduce(self, name, element):
        return None

    def scan(self, name, element):
        return None


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
        if isinstance(arithmetic, Dual):
            data = arithmetic.store(Number(data, direction[key]), STORED)
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
        launch(name, Dual(), point, direction, 0.0), ahead, behind, strict=True
    ):
        quotient = (plus - minus) / (2 * step)
        size = 1 + np.abs(quotient).max()
        assert np.abs(dual["tangent"] - quotient).max() <= size * 2 * step


def is_float(case, key):
    value = case.arguments[key]
    return isinstance(value, np.ndarray) and value.dtype == np.float32
