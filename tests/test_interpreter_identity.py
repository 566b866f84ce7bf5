"""The machine with the interpreter's arithmetic gives the interpreter's bits."""

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from trivet.ci import _race_kernels
from trivet.simulator.arithmetic import AsInterpreter, Native
from trivet.simulator.frontend import lower
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument

KERNELS = Path(__file__).parent / "kernels"
PROGRAMS, SEED = 20, 3
ELEMENTS = {"float16": "f16", "float32": "f32", "float64": "f64", "int32": "i32"}
TYPES = {"float16": "*fp16", "float32": "*fp32", "float64": "*fp64", "int32": "*i32"}

EXACT = ("add", "halving", "early_return", "largest", "sorted_rows", "random_numbers", "integers")


@cache
def identity_module():
    spec = importlib.util.spec_from_file_location("identity", KERNELS / "identity.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_cases():
    race = [_race_kernels.build(name, PROGRAMS, SEED) for name in _race_kernels.NAMES]
    return {case.name: case for case in race + identity_module().cases(PROGRAMS, SEED)}


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """Outputs of every case under TRITON_INTERPRET=1, from a process of its own."""
    target = tmp_path_factory.mktemp("interpreter") / "outputs.npz"
    subprocess.run(
        [sys.executable, str(KERNELS / "interpret.py"), str(target), str(PROGRAMS), str(SEED)],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        check=True,
    )
    return np.load(target)


@cache
def machine(name, arithmetic):
    case = all_cases()[name]
    signature = {key: _type_of(value) for key, value in case.arguments.items()}
    return Machine(lower(case.kernel, signature, case.constexprs).module, arithmetic())


def _type_of(value):
    if isinstance(value, np.ndarray):
        return TYPES[str(value.dtype)]
    return "fp32" if isinstance(value, float) else "i32"


def outputs(name, arithmetic, settings):
    case = all_cases()[name]
    given = []
    for key, value in case.arguments.items():
        if isinstance(value, np.ndarray):
            strides = tuple(stride // value.itemsize for stride in value.strides)
            allocation = Allocation(value.reshape(-1), ELEMENTS[str(value.dtype)], name=key)
            given.append(Argument(key, allocation, 0, value.shape, strides))
        else:
            given.append(value)
    grid = (*case.grid, 1, 1)[:3]
    report = machine(name, arithmetic).launch(grid, given, settings)
    assert [fault.text for fault in report.faults] == []
    assert report.programs == PROGRAMS
    return {f"{name}.{key}": case.arguments[key] for key in case.outputs}


@pytest.mark.parametrize("chunk", [1, 7, 16, None])
@pytest.mark.parametrize("name", all_cases())
def test_bits_are_those_of_the_interpreter(interpreted, name, chunk):
    for key, got in outputs(name, AsInterpreter, Settings(chunk=chunk)).items():
        wanted = interpreted[key].reshape(got.shape)
        bits = f"u{got.itemsize}"
        assert np.array_equal(got.view(bits), wanted.view(bits)), (key, got, wanted)


@pytest.mark.parametrize("name", all_cases())
def test_native_arithmetic_does_not_depend_on_the_chunk(name):
    whole = outputs(name, Native, Settings())
    for settings in (Settings(chunk=3), Settings(chunk=1)):
        for key, got in outputs(name, Native, settings).items():
            assert np.array_equal(got, whole[key], equal_nan=True), key


@pytest.mark.parametrize("name", EXACT)
def test_native_arithmetic_agrees_where_nothing_depends_on_order_or_functions(interpreted, name):
    for key, got in outputs(name, Native, Settings()).items():
        assert np.array_equal(got, interpreted[key].reshape(got.shape)), key


@pytest.mark.parametrize("name", ["add", "matmul", "gated_scan", "branch_gather", "sorted_rows"])
@pytest.mark.parametrize("order", ["reverse", "shuffled", "halves"])
def test_order_of_programs_does_not_matter_where_they_are_independent(name, order):
    whole = outputs(name, Native, Settings())
    for key, got in outputs(name, Native, Settings(order=order, chunk=6)).items():
        assert np.array_equal(got, whole[key]), key
