"""Pointers from memory, mapped functions, prints, inline assembly, casts of pointers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from trivet.simulator.executors import Simulator


def load(name):
    path = Path(__file__).parent / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pointers, runner = load("pointers"), load("runner")


def gathered(rows, add=0, keep=None):
    table = torch.tensor([row.data_ptr() for row in rows]) + add
    if keep is not None:
        rows = [row.clone() for row in rows]
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int32)
    out = torch.zeros(len(rows), 16)
    pointers.add_tables[(len(rows),)](table, lengths, out, 16, BLOCK=16)
    return out


def test_a_table_of_pointers_reaches_its_tensors():
    rows = [torch.arange(16.0) + 100 * number for number in range(5)]
    run = Simulator(shadow=True).run(gathered, {"rows": [row[:n] for n, row in enumerate(rows)]})
    assert (run.faults, run.error, run.shadow_failure) == ([], None, None)
    out = run.outputs[0]
    for number, row in enumerate(rows):
        assert torch.equal(out[number, :number], row[:number])
        assert not out[number, number:].any()
    assert np.array_equal(run.shadow_of(out), out.double())


def test_an_access_beyond_a_tables_tensor_is_out_of_bounds():
    def short(rows):
        rows = [row[:9] for row in rows]
        lengths = torch.full((2,), 12, dtype=torch.int32)
        table, out = torch.tensor([row.data_ptr() for row in rows]), torch.zeros(2, 16)
        pointers.add_tables[(2,)](table, lengths, out, 16, BLOCK=16)
        return out

    run = Simulator().run(short, {"rows": [torch.ones(16), torch.ones(16)]})
    assert [fault.kind for fault in run.faults] == ["out_of_bounds"]
    assert "element 9 of a table's tensor (9,)" in run.faults[0].text


@pytest.mark.parametrize("add", [1 << 40, 2])
def test_an_address_in_no_tensor_is_out_of_bounds(add):
    run = Simulator().run(gathered, {"rows": [torch.ones(4)], "add": add})
    assert [fault.kind for fault in run.faults] == ["out_of_bounds"]
    assert "accesses an address that lies in no tensor, at pointers.py:" in run.faults[0].text


def doubled(rows):
    table = torch.tensor([row.data_ptr() for row in rows])
    pointers.scale_tables[(len(rows),)](table, BLOCK=8)


def test_stores_through_pointers_from_memory_reach_the_tensors_and_race():
    rows = [torch.ones(8), torch.full((8,), 3.0)]
    run = Simulator().run(doubled, {"rows": rows})
    assert run.faults == []
    assert torch.equal(torch.stack(rows), torch.tensor([[2.0], [6.0]]).expand(2, 8))
    run = Simulator().run(doubled, {"rows": [rows[0], rows[0]]})
    assert {fault.kind for fault in run.faults} == {"race_read_write", "same_value_write"}


def test_an_address_counts_bytes():
    given = {"x": np.zeros(4, np.float32), "out": np.zeros(1, np.int64), "steps": 3}
    assert runner.run(pointers.distance, 1, given).faults == []
    assert given["out"][0] == 12


def test_a_pointer_to_elements_of_another_size_is_refused_in_words():
    given = {"x": np.zeros(4, np.float32), "out": np.zeros(16, np.int8)}
    fault = runner.run(pointers.octets, 1, given, {"BLOCK": 16}).faults[0]
    assert fault.kind == "unsupported"
    assert "a pointer to f32 taken as a pointer to i8" in fault.text
    assert fault.line.startswith("pointers.py:")


@pytest.mark.parametrize("chunk", [None, 1])
def test_mapped_functions_branch_loop_and_take_packs(chunk):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3, 16)).astype(np.float32)
    whole = rng.integers(1, 30, (3, 16)).astype(np.int32)
    given = {"x": x, "y": y, "whole": whole, "out": np.zeros_like(x)}
    given |= {"steps": np.zeros_like(whole), "crossed": np.zeros_like(x)}
    assert runner.run(pointers.mapped, 3, given, {"BLOCK": 16}, chunk=chunk).faults == []
    assert np.array_equal(given["out"], np.where(x > y, x - y, y * 2))
    assert given["steps"].tolist() == [[collatz(int(n)) for n in row] for row in whole]
    wanted = np.stack([x[:, ::2] + y[:, 1::2], x[:, 1::2] - y[:, ::2]], -1).reshape(3, 16)
    assert np.array_equal(given["crossed"], wanted)


def collatz(number):
    steps = 0
    while number > 1:
        number, steps = (number // 2 if number % 2 == 0 else 3 * number + 1), steps + 1
    return steps


def test_inline_assembly_that_computes_nothing_runs():
    given = {"x": np.arange(8, dtype=np.int32), "out": np.zeros(8, np.int32)}
    assert runner.run(pointers.waits, 1, given, {"BLOCK": 8}).faults == []
    assert np.array_equal(given["out"], given["x"])


def test_prints_come_once_a_program_and_are_bounded(capsys):
    given = {"x": np.arange(4000, dtype=np.float32)}
    assert runner.run(pointers.talks, 1000, given, {"BLOCK": 4}).faults == []
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "program (0, 0, 0) value: [0. 1. 2. 3.] 0"
    assert lines[1] == "program (1, 0, 0) value: [4. 5. 6. 7.] 1"
    assert lines[-1] == "talks prints more; the rest is left out"
    assert len(lines) < 400
    assert runner.run(pointers.talks, 2, given, {"BLOCK": 4}).faults == []
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "program (1, 0, 0) bits: [0x40800000 0x40a00000 0x40c00000 0x40e00000]"


def test_float_extremes_by_atomics_lose_nothing_in_the_shadow():
    x = torch.linspace(-1, 1, 24, dtype=torch.float32) / 3

    def host(x):
        high, low = torch.full((4,), -5.0), torch.full((1,), 5.0)
        pointers.extremes[(3,)](x / 7, high, low, BLOCK=8)
        return high, low

    run = Simulator(shadow=True).run(host, {"x": x})
    assert (run.faults, run.error, run.shadow_failure) == ([], None, None)
    exact = x.double().numpy().reshape(6, 4) / 7
    assert np.array_equal(run.shadow_of(run.outputs[0]), exact.max(0))
    assert np.array_equal(run.shadow_of(run.outputs[1]), [exact.min()])
