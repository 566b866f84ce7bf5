"""IR printed by every supported Triton parses and computes the same bits."""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from trivet.ci import _race_kernels
from trivet.simulator.arithmetic import Native
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.parser import parse

FOLDER = Path(__file__).parents[1] / "fixtures" / "ttir"
GOLDEN = sorted(FOLDER.glob("*/*.ttir"))


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load("runner")


def outputs(module, name):
    case = _race_kernels.build(name, 20, 0)
    given = {
        key: runner.argument(key, value) if isinstance(value, np.ndarray) else value
        for key, value in case.arguments.items()
    }
    module = module or runner.lowered(case.kernel, given, case.constexprs)
    grid = (*case.grid, 1, 1)[:3]
    assert Machine(module, Native()).launch(grid, list(given.values()), Settings()).faults == []
    return [case.arguments[key] for key in case.outputs]


@cache
def of_this_triton(name):
    return outputs(None, name)


def test_every_supported_version_has_golden_files():
    assert {path.parent.name for path in GOLDEN} == {"3.6", "3.7", "3.8", "3.9"}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_file_computes_the_same_bits(path):
    module = parse(path.read_text())
    for got, wanted in zip(outputs(module, path.stem), of_this_triton(path.stem), strict=True):
        assert np.array_equal(got, wanted)
    lines = [module.frames(op.location) for op in module.entry.blocks[0].operations]
    assert any(frames and frames[-1].file == "_race_kernels.py" for frames in lines)


# Triton 3.6 rewrites block pointers into plain ones; 3.9 has none, so that only the file shows it.
@pytest.mark.parametrize(("short", "kinds"), [(0, []), (1, ["out_of_bounds"])])
def test_block_pointers_as_triton_36_lowers_them(short, kinds):
    rows, columns, inner = 20, 37, 50
    left = np.arange(rows * inner, dtype=np.float32).reshape(rows, inner) % 7 - 3
    right = np.arange(inner * columns, dtype=np.float32).reshape(inner, columns) % 5 - 2
    out = np.zeros((rows - short, columns), dtype=np.float32)
    given = {"a": left, "b": right, "c": out}
    arguments = [runner.argument(name, array) for name, array in given.items()]
    module = parse((FOLDER / "3.6" / "block_pointers" / "product.ttir").read_text())
    arguments += [rows, columns, inner]
    report = Machine(module, Native()).launch((2, 3, 1), arguments, Settings())
    assert runner.kinds(report) == kinds
    assert np.array_equal(out, (left @ right)[: rows - short])
