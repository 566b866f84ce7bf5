"""Whole runs against the plain simulator, bit by bit, and what a run's face promises."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.backtests import Pairs, differences, pairs

from trivet.impl import _replay, diagnosis, policy
from trivet.impl.sampling import Sampler
from trivet.simulator.executors import Simulator

PAIRS = 40
CASES = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 45), st.integers(1, 6), st.integers(1, 4)
)
SHARED = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


def _whole_run_is_equal(case: tuple[int, int, int, int], cuts: list[int]) -> None:
    seed, events, horizons, slots = case
    drawn = pairs(seed, PAIRS, events, horizons, slots)
    state = drawn.kernel_state([cut % (events + 1) for cut in cuts])
    assert not differences(state, drawn.plain_state())


@settings(max_examples=5, **SHARED)
@given(CASES, st.lists(st.integers(0, 99), max_size=3))
def test_200_whole_runs_equal_the_plain_simulator(
    case: tuple[int, int, int, int], cuts: list[int]
) -> None:
    _whole_run_is_equal(case, cuts)


@pytest.mark.night
@settings(max_examples=50, **SHARED)
@given(CASES, st.lists(st.integers(0, 99), max_size=4))
def test_2000_whole_runs_equal_the_plain_simulator(
    case: tuple[int, int, int, int], cuts: list[int]
) -> None:
    _whole_run_is_equal(case, cuts)


@pytest.fixture(scope="module")
def drawn() -> Pairs:
    return pairs(3, 30, 40, 5, 3)


@pytest.fixture(scope="module")
def state(drawn: Pairs) -> dict[str, np.ndarray]:
    return drawn.kernel_state([17])


def test_generated_runs_reach_every_kind_of_end(state: dict[str, np.ndarray]) -> None:
    by_cause = dict(zip(_replay.COUNTS, state["counts"].sum(axis=1), strict=True))
    for name in ("missing", "trades", "wins", "by_orders", "by_composite", "by_stop", "by_hold"):
        assert by_cause[name] > 0, f"no generated pair has {name}"
    assert (state["book"][6] > 0).any(), "no generated pair has a refusal"


def test_a_changed_number_is_a_difference(state: dict[str, np.ndarray]) -> None:
    other = {name: value.copy() for name, value in state.items()}
    assert not differences(other, state)
    other["aside"][3, 2] += 1
    assert differences(other, state)[0].startswith("aside[3, 2]")


def test_default_policy_gives_the_orders_of_the_built_in(drawn: Pairs) -> None:
    none = {**drawn.settings, "program": np.full(30, -1, np.int32)}
    first = {**drawn.settings, "program": np.zeros(30, np.int32)}
    built_in, program = (
        Pairs(drawn.events, chosen, drawn.slots, drawn.programs).kernel_state([])
        for chosen in (none, first)
    )
    assert not differences(program, built_in)


def _events(count: int) -> _replay.Events:
    random = np.random.default_rng(0)
    sizes = torch.full((1, count), 5, dtype=torch.int32)
    return _replay.Events(
        torch.arange(count)[None] * 10,
        torch.full((1, count), 9999, dtype=torch.int32),
        torch.full((1, count), 10001, dtype=torch.int32),
        sizes,
        sizes,
        torch.from_numpy(random.uniform(0, 1, (1, count, 5)).astype(np.float32)),
    )


def _run(settings: _replay.Settings, events: _replay.Events, **more: object) -> _replay.State:
    state = _replay.State.fresh(settings.cost.shape[0], 5, 2)
    run = Simulator().run(lambda: _replay.run(events, settings, state, **more), {})  # type: ignore[arg-type]
    if run.error is not None:
        raise run.error
    assert not run.faults
    return state


def test_uniform_and_a_sweep_of_one_give_the_same_bytes() -> None:
    values = {"cost": 0.25, "max_lots": 9, "delta_floor": 0.0, "latency_ns": 15}
    uniform = _run(_replay.Settings.of(1, **values), _events(12))
    listed = {name: [value] for name, value in values.items()}
    sweep = _run(_replay.Settings.of(1, **listed), _events(12))
    for one, other in zip(uniform.tensors(), sweep.tensors(), strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_a_given_zero_is_no_default() -> None:
    settings = _replay.Settings.of(3, delta_floor=0, threshold=[0, 0.5, 0], program=0)
    assert settings.delta_floor.tolist() == [0, 0, 0]
    assert settings.threshold.tolist() == [0, 0.5, 0]
    assert settings.program.tolist() == [0, 0, 0]
    assert _replay.Settings.of(2).delta_floor.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"costs": 1.0}, TypeError, "no setting 'costs'; known are tape"),
        ({"cost": [1.0, 2.0]}, ValueError, "cost must be one value or 3, got (2,)"),
        ({"cost": "much"}, TypeError, "cost must be a number, or numbers, got 'much'"),
        ({"cost": 1e-4}, ValueError, "cost must be from 0.001 to 1e+09, got cost[0] = "),
        ({"tape": 1}, ValueError, "tape must be from 0 to 0, got tape[0] = 1"),
        ({"program": 0}, ValueError, "program must be from -1 to -1, got program[0] = 0"),
        ({"max_hold_ns": 0}, ValueError, "max_hold must be positive, got max_hold[0] = 0"),
        ({"latency_ns": -1}, ValueError, "latency_ns must be not negative"),
        ({"max_lots": 1 << 21}, ValueError, "max_lots must be from 1 to 1048576"),
    ],
)
def test_bad_settings_are_named(given: dict[str, object], error: type, text: str) -> None:
    with pytest.raises(error) as caught:
        _run(_replay.Settings.of(3, **given), _events(2))
    assert text in str(caught.value)


def test_malformed_events_are_named_before_anything_runs() -> None:
    good = _events(4)
    late = good.ts.clone()
    late[0, 2] = 5
    state = _replay.State.fresh(1, 5, 2)
    events = _replay.Events(late, good.bid, good.ask, good.bid_size, good.ask_size, good.p)
    text = "ts must not run backwards, got 5 at event 2 of tape 0 after 10"
    with pytest.raises(ValueError, match=text):
        _replay.run(events, _replay.Settings.of(1), state)
    assert not any(tensor.any() for tensor in state.tensors())


def test_lines_tell_the_counters(drawn: Pairs, state: dict[str, np.ndarray]) -> None:
    tensors = [
        torch.from_numpy(state[name]) for name in ("runs", "run_bins", "bins", "outcome_profit")
    ]
    text = list(diagnosis.lines(*tensors, ["h30", "h100"], simulation=4))
    raw, smoothed = diagnosis.read_out(tensors[0], tensors[1])
    flips, mean = raw.flips[0, 4], raw.mean_length[0, 4]
    assert text[0] == f"crt_diag h30: flips={flips} mean_run_len={mean:.2f} events"
    assert text[1].startswith("crt_diag h30 run_length_hist: 1-9:")
    assert text[2].endswith(f"events (vs raw {flips} / {mean:.2f})")
    assert text[6].startswith("crt_diag conv_ema_hist: [0.0-0.1]:")
    assert text[7].startswith("crt_diag hold_time_hist: <1s:")
    assert len(text) == 2 * 3 + 2 + 10
    assert (raw.histogram.sum(axis=0) == raw.runs).all()
    assert (smoothed.flips + (smoothed.runs > 0) == smoothed.runs).all()


def test_sampling_keeps_one_buffer_and_prints_a_line_a_horizon() -> None:
    sampler, events = Sampler(4), _events(10)
    _run(_replay.Settings.of(1), events, sampler=sampler)
    assert sampler.counts is not None
    assert sampler.counts.tolist() == [[3] * 5]
    assert sampler.buffer is not None
    assert torch.equal(sampler.buffer.view(1, 3, 5), events.p[:, ::4])
    lines = sampler.lines(["h30", "h100", "h300", "h1000", "h6000"])
    assert lines[0].startswith("per_horizon_logit_diag h30: count=3 mean=")
    assert not Sampler(1).lines(["h30"])


def test_programs_survive_encoding() -> None:
    text = "PUSH_P 2\nCONST -0.25\nSUB\nWRITE_ORDER\nHALT"
    program = policy.parse(text)
    assert policy.decode(policy.encode([program], 3)[0].numpy()) == program
    with pytest.raises(ValueError, match=r"line 2: unknown op 'PUSH_Q'"):
        policy.parse("HALT\nPUSH_Q 1")
    with pytest.raises(ValueError, match=r"line 1: PUSH_P takes a horizon, got 'x'"):
        policy.parse("PUSH_P x")
    with pytest.raises(ValueError, match=r"program 0: instruction 0 \(PUSH_P 2\): horizon 2"):
        policy.encode([program], 2)
