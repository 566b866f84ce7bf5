"""Running errors: no kernel's native run lies outside them, and few lie far inside."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from trivet.ci import _race_kernels
from trivet.oracles._precision import Precision
from trivet.simulator import _functions
from trivet.simulator.arithmetic import Native
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument
from trivet.simulator.running import STORED, Number, Running


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load("runner")
# Long sums round in both directions, which a bound cannot know; half precision errs 8192 times.
_FAR_INSIDE = 1000


def launched(case, arithmetic):
    """The float outputs after one launch, and the arithmetic's memory of them."""
    typed = {
        key: runner.argument(key, value) if isinstance(value, np.ndarray) else value
        for key, value in case.arguments.items()
    }
    module, given, found = runner.lowered(case.kernel, typed, case.constexprs), [], []
    for key, value in case.arguments.items():
        if not isinstance(value, np.ndarray):
            given.append(value)
            continue
        if value.dtype != np.float32:
            given.append(runner.argument(key, value.copy()))
            continue
        data = value.reshape(-1).copy()
        if isinstance(arithmetic, Running):
            wide = data.astype(np.float64)
            data = arithmetic.store(Number(wide, np.zeros(wide.shape)), STORED)
        strides = tuple(stride // 4 for stride in value.strides)
        given.append(Argument(key, Allocation(data, "f32"), 0, value.shape, strides))
        found += [data] if key in case.outputs else []
    report = Machine(module, arithmetic).launch(
        (*case.grid, 1, 1)[:3], given, Settings(sanitize=False)
    )
    assert [fault.text for fault in report.faults] == []
    return found


@pytest.mark.parametrize("name", _race_kernels.NAMES)
def test_native_runs_lie_within_their_running_errors(name):
    for seed in range(3):
        case = _race_kernels.build(name, 20, seed)
        running = Running(Precision())
        outputs = zip(launched(case, Native()), launched(case, running), strict=True)
        for native, known in outputs:
            with np.errstate(all="ignore"):
                apart = np.abs(native.astype(np.float64) - known["value"])
            assert not running.doubt
            assert ((apart <= known["error"]) | np.isnan(native)).all()
            assert np.nanmax(known["error"]) <= _FAR_INSIDE * np.nanmax(apart)


def number(rng, count=4000):
    """Values over many sizes, with errors of up to a few ulp, and a native float32 run of them."""
    value = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 5, count)
    error = np.abs(value) * 2.0 ** rng.integers(-24, -18, count) * rng.integers(0, 2, count)
    value = value.astype(np.float32).astype(np.float64)
    native = (value + error * rng.uniform(-1, 1, count)).astype(np.float32)
    inside = np.abs(native.astype(np.float64) - value) <= error
    return Number(value, error), np.where(inside, native, value.astype(np.float32))


def held(native, known):
    with np.errstate(all="ignore"):
        apart = np.abs(native.astype(np.float64) - known.value)
        same = np.isnan(native) | (native == known.value.astype(np.float32))
        return same | (apart <= known.error)


@pytest.mark.parametrize("name", [*_functions.EXACT_UNARY, *_functions.WIDE_UNARY, "sqrt"])
def test_a_function_of_a_native_number_lies_within_the_error(name):
    known, native = number(np.random.default_rng(1), 400)
    with np.errstate(all="ignore"):
        result = Native().unary(name, "f32")(native)
        bounded = Running(Precision()).unary(name, "f32")(known)
    bad = ~held(result, bounded)
    assert not bad.any(), (native[bad][:3], result[bad][:3], bounded.value[bad][:3])


@pytest.mark.parametrize("name", [*_functions.BINARY, *_functions.WIDE_BINARY])
def test_an_operation_on_native_numbers_lies_within_the_error(name):
    rng = np.random.default_rng(2)
    (a, first), (b, second) = number(rng), number(rng)
    function = Running(Precision()).binary(name, "f32")
    if function is None or name == "ldexp":
        assert name in ("nextafter", "ldexp")
        return
    with np.errstate(all="ignore"):
        result, bounded = Native().binary(name, "f32")(first, second), function(a, b)
    bad = ~held(result, bounded)
    assert not bad.any(), (first[bad][:3], second[bad][:3], result[bad][:3])
