"""The sweep of functions: what it measures, that it resumes, and the profiles it is compared to."""

import json
import math

import numpy as np
import pytest
import torch

from trivet.ci import sweep
from trivet.ci.sweep import Record, Sweep, exactly, inputs_of, main, measure, references
from trivet.oracles import _profile
from trivet.oracles._evaluate import evaluate
from trivet.oracles._profile import PROFILES, profile_named, swept
from trivet.simulator.gpu import profile_of

SMALL = 2**14


def options(path, *more):
    return ["--inputs", str(SMALL), "--block", str(SMALL // 4), "--out", str(path), *more]


def test_the_simulator_rounds_every_function_once(tmp_path, capsys):
    path = tmp_path / "sweep.json"
    assert main(options(path)) == 0
    document = json.loads(path.read_text())
    assert set(document["functions"]) == set(references())
    bound = profile_named("simulator").default
    for name, record in document["functions"].items():
        assert 0.4 < record["ulp"] <= bound, name
        assert (record["blocks"], record["wrong"]) == (4, 0), name
        assert off_when_rounded(name, record["worst"]) == record["ulp"]
    assert "arctanh" in capsys.readouterr().out


def off_when_rounded(name, worst):
    x = float.fromhex(worst)
    true = exactly(references()[name][1], x)
    return abs(float(np.float32(true)) - true) / 2.0 ** (math.frexp(true)[1] - 24)


def test_a_million_inputs_take_seconds(tmp_path):
    million = ["--inputs", "1048576", "--block", "262144", "--functions", "exp,log"]
    assert main([*million, "--out", str(tmp_path / "sweep.json")]) == 0


def test_an_interrupted_sweep_goes_on_after_its_last_block(tmp_path, monkeypatch):
    path = tmp_path / "sweep.json"
    seen = []

    def measured(record, name, x, y):
        seen.append(float(x[0]))
        if len(seen) == 3:
            raise KeyboardInterrupt
        measure(record, name, x, y)

    monkeypatch.setattr(sweep, "measure", measured)
    with pytest.raises(KeyboardInterrupt):
        main(options(path, "--functions", "exp"))
    assert json.loads(path.read_text())["functions"]["exp"]["blocks"] == 2
    monkeypatch.setattr(sweep, "measure", measure)
    main(options(path, "--functions", "exp"))
    whole = tmp_path / "whole.json"
    main(options(whole, "--functions", "exp"))
    assert json.loads(path.read_text())["functions"] == json.loads(whole.read_text())["functions"]


def test_another_sweep_is_not_written_over(tmp_path, capsys):
    path = tmp_path / "sweep.json"
    main(options(path, "--functions", "sqrt"))
    before = path.read_text()
    assert main(["--inputs", "1024", "--out", str(path)]) == 2
    assert "holds a sweep with inputs 16384, not 1024" in capsys.readouterr().err
    assert path.read_text() == before


def test_an_unknown_function_and_a_missing_gpu_are_named(tmp_path, capsys):
    assert main(options(tmp_path / "a.json", "--functions", "exq")) == 2
    assert "no function exq: expected exp, " in capsys.readouterr().err
    if torch.cuda.is_available():
        return
    assert main(options(tmp_path / "b.json", "--on", "gpu")) == 2
    assert "GPU" in capsys.readouterr().err


def test_all_bit_patterns_are_swept_once():
    inputs, size = 2**32, 2**12
    first = inputs_of(0, size, inputs, "cpu").view(torch.int32)
    last = inputs_of(2**20 - 1, size, inputs, "cpu").view(torch.int32)
    assert first.tolist() == list(range(size))
    assert last.tolist() == list(range(-size, 0))


def test_a_sparse_sweep_reaches_every_exponent_and_varies_low_bits():
    x = torch.cat([inputs_of(block, SMALL // 4, SMALL, "cpu") for block in range(4)])
    bits = x.view(torch.int32).numpy().view(np.uint32)
    assert len(np.unique(bits)) == SMALL
    assert len(np.unique(bits >> 23)) == 512
    assert len(np.unique(bits & 0xFFF)) > 1000


def measured(name, x, y):
    record = Record()
    measure(record, name, torch.tensor(x), torch.tensor(y))
    return record


def test_errors_are_in_ulps_of_the_true_value():
    one = np.float32(1.0)
    record = measured(
        "exp", [0.0, 1.0], [float(one + 3 * np.spacing(one)), float(np.float32(math.e))]
    )
    assert record.ulp == 3.0
    assert record.worst == (0.0).hex()


def test_flushed_results_wrong_infinities_and_nans_are_counted_apart():
    record = measured("exp", [-100.0, 100.0, 1.0, 2.0], [0.0, math.inf, math.nan, math.inf])
    assert (record.flushed, record.wrong) == (1, 2)
    assert record.wrong_at == (1.0).hex()


def test_a_result_at_the_edge_of_overflow_may_be_either():
    largest = float(np.finfo(np.float32).max)
    edge = math.nextafter(math.log(largest), 0.0)
    assert not measured("exp", [edge], [math.inf]).wrong


def test_subnormal_inputs_are_measured_apart():
    record = measured("sqrt", [1e-40, 4.0], [0.0, 2.0])
    assert record.subnormal_ulp > 1e6
    assert record.ulp == 0.0


@pytest.mark.parametrize("name", ["sm_80", "sm_90", "gfx942"])
def test_a_device_has_a_seed_for_every_swept_function(name):
    profile = PROFILES[name]
    assert profile.flush
    assert set(references()) <= set(profile.ulp)
    assert min(profile.ulp.values()) > 0.5


def test_sweeps_are_opened_once(tmp_path):
    opened = Sweep.opened(tmp_path / "new.json", "simulator", 100, 30)
    assert (opened.blocks, opened.records) == (4, {})


def test_a_device_is_judged_by_its_own_profile():
    assert profile_of("", (9, 0)) == "sm_90"
    assert profile_of("gfx942:sramecc+:xnack-", (9, 4)) == "gfx942"
    assert profile_of("", (7, 5)) == profile_of("gfx1100", (11, 0)) == "gpu"


def small_sweep(tmp_path, functions="exp,sqrt"):
    path = tmp_path / "sweep.json"
    assert main(options(path, "--functions", functions)) == 0
    return path


def test_a_whole_sweep_becomes_the_profile_of_its_device(tmp_path, monkeypatch):
    path = small_sweep(tmp_path)
    measured = json.loads(path.read_text())["functions"]
    kept = sweep.keep(path, "sm_90", tmp_path / "profiles", inputs=SMALL)
    document = json.loads(kept.read_text())
    profile = swept(PROFILES["sm_90"], document, SMALL)
    assert profile.ulp["exp"] == measured["exp"]["ulp"] + 2.0**-20 < PROFILES["sm_90"].ulp["exp"]
    assert profile.ulp["tanh"] == PROFILES["sm_90"].ulp["tanh"], "not swept: the table's"
    assert (profile.name, profile.flush) == ("sm_90", True)

    whole = {**document, "inputs": 2**32, "block": 2**30}
    kept.write_text(json.dumps(whole))
    monkeypatch.setattr(_profile, "SWEEPS", kept.parent)
    profile_named.cache_clear()
    try:
        assert profile_named("sm_90") == profile
        assert profile_named("sm_80") == PROFILES["sm_80"]
        bounds = [
            evaluate(lambda m, x: m.sqrt(x), {"x": np.array([2.0])}, profile=p)[0].error[0]
            for p in ("sm_90", "sm_80")
        ]
        assert bounds[0] < bounds[1]
    finally:
        profile_named.cache_clear()


def test_half_a_sweep_wrong_results_and_flushed_ones_make_no_profile(tmp_path, capsys):
    path = small_sweep(tmp_path, "exp")
    assert main(options(path, "--functions", "exp", "--keep")) == 2
    assert "exp was not swept on every input" in capsys.readouterr().err
    document = json.loads(path.read_text())
    record = document["functions"]["exp"]
    for change, text in (
        ({"blocks": 3}, "exp was not swept on every input"),
        ({"wrong": 2, "wrong_at": "0x1p+0"}, "exp gave 2 wrong results, the first at 0x1p"),
        ({"flushed": 1}, "exp flushes subnormal results, which this profile keeps"),
    ):
        spoiled = {**document, "functions": {"exp": {**record, **change}}}
        with pytest.raises(ValueError, match=text.replace("+", r"\+")):
            swept(PROFILES["simulator"], spoiled, SMALL)


def test_composed_functions_are_none_of_the_device(tmp_path):
    path = small_sweep(tmp_path, "exp,composed_tanh")
    kept = sweep.keep(path, "gpu", tmp_path / "profiles", inputs=SMALL)
    assert set(json.loads(kept.read_text())["functions"]) == {"exp"}
