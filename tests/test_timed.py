"""`trivet bench --timed`: slower than the base is red, unclear not judged, wrong not timed."""

import random
from pathlib import Path

import pytest
import torch
from tests.fakes.devices import FakeDevice
from tests.tiny import contract_of, doubled

from trivet.ci import timed
from trivet.ci.errors import CannotJudgeError
from trivet.ci.progress import Progress
from trivet.ci.timed import Bench, entry_of, gate_of, run_timed
from trivet.properties._collect import Found
from trivet.simulator.gpu import NoGpuError, require_gpu


def found_of(kernel=doubled, **fields):
    return Found("tiny.doubled", contract_of(kernel, **fields), Path("tiny.py"), "doubled", "")


def halved(x):
    return doubled(x) * 0.5


def base(x):
    return doubled(x)


def entry(monkeypatch, cost_of_ours, noise=0.0, red=""):
    """An entry where a call of ours costs so much and one of the base 10 microseconds."""
    rng = random.Random(5)
    monkeypatch.setattr("trivet.ci.timing.base.base_kernel", lambda kernel, files: base)

    def costs(launch, call):
        return (cost_of_ours if launch is doubled else 1e-5) * rng.uniform(1 - noise, 1 + noise)

    return entry_of(Bench(FakeDevice(costs)), found_of(), against=object(), red=red)


def test_a_kernel_as_fast_as_its_base_is_green_and_shows_its_floor(monkeypatch):
    found = entry(monkeypatch, 1e-5, noise=0.01)
    assert (found["verdict"], found["changes"]) == ("green", [])
    assert found["metrics"]["sizes"] == {"N": 100}
    assert found["metrics"]["floor_microseconds"] == 0.001
    assert found["metrics"]["times_floor"] > 1000
    assert 0.98 < found["metrics"]["ratio to base"] < 1.02


def test_a_slower_kernel_is_red_and_says_by_how_much(monkeypatch):
    found = entry(monkeypatch, 1.2e-5, noise=0.01)
    assert (found["verdict"], found["reason"]) == ("red", "slower than the base")
    (change,) = found["changes"]
    assert (change["metric"], change["class"]) == ("microseconds", "HARD")
    assert 1.1 < change["now"] / change["was"] < 1.3


def test_a_faster_kernel_is_green_with_its_ratio(monkeypatch):
    found = entry(monkeypatch, 0.5e-5)
    assert (found["verdict"], found["metrics"]["ratio to base"]) == ("green", 0.5)


def test_times_that_say_nothing_are_not_judged(monkeypatch):
    found = entry(monkeypatch, 1.04e-5, noise=0.4)
    assert (found["verdict"], found["metrics"]["limit"] > 1.03) == ("not_judged", True)
    assert found["reason"].startswith("the times neither exclude a slow-down nor show one")


def test_a_kernel_with_a_red_gate_is_not_timed_however_fast(monkeypatch):
    found = entry(monkeypatch, 1e-7, red="matches_oracle is red on the device")
    assert (found["verdict"], found["metrics"]) == ("not_judged", {})
    assert found["reason"] == "matches_oracle is red on the device: a wrong result has no time"


def test_the_gates_are_asked_where_nobody_did():
    wrong = entry_of(Bench(FakeDevice()), found_of(halved))
    assert wrong["reason"] == "matches_oracle is red on the device: a wrong result has no time"
    assert gate_of(found_of(), "simulator") == ""


def test_a_kernel_that_fails_has_no_time_and_says_why():
    def failing(x):
        raise RuntimeError("no such luck")

    found = entry_of(Bench(FakeDevice()), found_of(failing), red="")
    assert (found["verdict"], found["reason"]) == ("not_judged", "RuntimeError: no such luck")


def test_a_kernel_that_remembers_its_first_result_is_red():
    held = []

    def remembering(x):
        held.append(2 * x)
        return held[0]

    found = entry_of(Bench(FakeDevice(simulated=False)), found_of(remembering), red="")
    assert found["verdict"] == "red"
    assert found["reason"] == "ours returned the same for different inputs"


def test_without_a_gpu_nothing_is_timed():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(NoGpuError):
        require_gpu()
    with pytest.raises(CannotJudgeError, match="--timed needs a GPU: no GPU: torch"):
        run_timed([found_of()], None, Progress())


def test_one_entry_for_each_contract(monkeypatch):
    monkeypatch.setattr("trivet.ci.timing.device.CudaDevice", FakeDevice)
    monkeypatch.setattr(timed, "gate_of", lambda *given: "")
    entries = run_timed([found_of(), found_of()], None, Progress())
    assert [each["verdict"] for each in entries] == ["green", "green"]
