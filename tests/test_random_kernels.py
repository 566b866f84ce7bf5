"""Random kernels give the same bits on the simulator and in Triton's interpreter."""

import importlib.util
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trivet.simulator.arithmetic import AsInterpreter, Native
from trivet.simulator.frontend import lower
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Allocation, Argument
from trivet.simulator.operations import integers

KERNELS = Path(__file__).parent / "kernels"
CI, NIGHT, BATCH = 50, 1000, 50
FIRST_SEED = 1


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


random_kernels = load("random_kernels", KERNELS / "random_kernels.py")
random_programs = load("random_programs", KERNELS / "random_programs.py")


class Batch:
    """Programs written to one module and run by the interpreter in one process."""

    def __init__(self, programs, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.programs = programs
        text = [random_kernels.HEADER, *(program.source() for program in programs)]
        (folder / "kernels.py").write_text("\n\n".join(text))
        (folder / "programs.pickle").write_bytes(pickle.dumps(programs))
        subprocess.run(
            [sys.executable, str(KERNELS / "random_child.py"), str(folder)],
            env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
            check=True,
        )
        self._kernels = load(f"random_{folder.name}", folder / "kernels.py")
        with np.load(folder / "outputs.npz") as outputs:
            self._wanted = dict(outputs)

    def complaint(self, program):
        """What differs between the simulator and the interpreter, "" when nothing does."""
        error = self._wanted.get(f"{program.name}.error")
        if error is not None:
            return f"the interpreter raises {error}"
        try:
            module = self._lowered(program)
        except Exception as error:
            return f"the frontend raises {type(error).__name__}: {error}"
        for chunk in (None, 3):
            arrays, faults = run(module, AsInterpreter(), program, chunk)
            if faults:
                return faults[0].text
            for name, got in arrays.items():
                wanted = self._wanted[f"{program.name}.{name}"]
                if not same(got, wanted):
                    return difference(name, got, wanted)
        whole, _ = run(module, Native(), program, None)
        parts, _ = run(module, Native(), program, 1)
        unlike = [name for name in whole if not same(whole[name], parts[name])]
        return f"native {unlike[0]} depends on the chunk" if unlike else ""

    def _lowered(self, program):
        kinds = {n: random_kernels.POINTERS[n.partition("_")[2]] for n in program.pointers()}
        return lower(getattr(self._kernels, program.name), kinds, {}).module


def run(module, arithmetic, program, chunk):
    """Arrays that the simulator leaves, without those that are only read, and its faults."""
    arrays = program.arguments()
    given = []
    for name, array in arrays.items():
        element = name.partition("_")[2].replace("u", "i")
        allocation = Allocation(array.reshape(-1), element, name=name)
        strides = tuple(stride // array.itemsize for stride in array.strides)
        given.append(Argument(name, allocation, 0, array.shape, strides))
    grid = (random_kernels.PROGRAMS, 1, 1)
    report = Machine(module, arithmetic).launch(grid, given, Settings(chunk=chunk))
    return {name: array for name, array in arrays.items() if name[0] != "x"}, report.faults


def same(a, b):
    """Equal bits; any NaN equals any other."""
    equal = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    return (equal | ((a != a) & (b != b))).all()


def difference(name, got, wanted):
    unlike = (got != wanted) & ~((got != got) & (wanted != wanted))
    unlike |= np.signbit(got) != np.signbit(wanted) if got.dtype.kind == "f" else False
    index = tuple(map(int, np.argwhere(unlike)[0]))
    return f"{name}{list(index)} is {got[index]} here, {wanted[index]} in the interpreter"


def reduced(program, folder):
    """The smallest program found by dropping statements that still disagrees, and why."""
    complaint = Batch([program], folder / "0").complaint(program)
    for turn in range(1, 20):
        smaller = [
            replace(candidate, name=f"{program.name}_{number}")
            for number, candidate in enumerate(program.reduced())
        ]
        if not smaller:
            break
        batch = Batch(smaller, folder / str(turn))
        failing = {s.name: text for s in smaller if (text := batch.complaint(s))}
        kept = [s for s in smaller if s.name in failing and "raises" not in failing[s.name]]
        if not kept:
            break
        best = min(kept, key=lambda candidate: len(candidate.source()))
        program, complaint = replace(best, name=program.name), failing[best.name]
    return program, complaint


def check(batch, folder):
    for program in batch.programs:
        if batch.complaint(program):
            small, complaint = reduced(program, folder / program.name)
            pytest.fail(f"seed {program.seed}: {complaint}\n{small.source()}")


def batch_from(seed, count, folder):
    programs = [random_programs.program(seed + number) for number in range(count)]
    return Batch(programs, folder / f"from_{seed}")


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    return batch_from(FIRST_SEED, CI, tmp_path_factory.mktemp("random"))


def test_random_kernels(some, tmp_path):
    check(some, tmp_path)


MISTAKES = {
    "arith.remsi": np.remainder,
    "arith.shrsi": np.left_shift,
    "arith.maxsi": np.minimum,
    "arith.muli": lambda a, b: np.multiply(a, b) | 1,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_random_kernels_see_a_planted_mistake(name, some, monkeypatch):
    monkeypatch.setitem(integers._BINARY, name, MISTAKES[name])
    assert any(some.complaint(program) for program in some.programs)


@pytest.mark.night
def test_a_failing_kernel_is_reduced_to_what_fails(some, monkeypatch, tmp_path):
    monkeypatch.setitem(integers._BINARY, "arith.remsi", np.remainder)
    failing = next(program for program in some.programs if some.complaint(program))
    small, complaint = reduced(failing, tmp_path)
    assert "in the interpreter" in complaint
    assert len(small.statements) <= 2
    assert "%" in small.source()


@pytest.mark.night
@pytest.mark.parametrize("first", range(10_000, 10_000 + NIGHT, BATCH))
def test_random_kernels_all_night(first, tmp_path):
    check(batch_from(first, BATCH, tmp_path), tmp_path)
