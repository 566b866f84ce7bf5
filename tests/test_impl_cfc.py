"""The CfC cell against small NumPy computations, on Triton's interpreter in a child."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from trivet.impl import cfc
from trivet.impl.routing import RoutingRecord

# (B, D, H, N, M): several ragged chunks of each, one of each, no inputs, buckets over a block.
SHAPES = [(6, 70, 67, 5, 20), (1, 1, 1, 1, 1), (2, 0, 17, 3, 6), (5, 3, 36, 1, 36)]
ARGUMENTS = ("x", "h", "dt", "W_in", "W_rec", "b", "tau")
GRADIENTS = ("x", "h", "W_in", "W_rec", "b", "tau")
UNIT = 2.0**-24


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    file = tmp_path_factory.mktemp("cfc") / "results.npz"
    environment = dict(os.environ, TRITON_INTERPRET="1")
    child = subprocess.run(
        [sys.executable, __file__, str(file)], capture_output=True, text=True, env=environment
    )
    assert child.returncode == 0, child.stderr
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.fixture(params=range(len(SHAPES)), ids=map(str, SHAPES))
def case(request, results):
    prefix = f"{request.param}."
    return {
        name.removeprefix(prefix): array
        for name, array in results.items()
        if name.startswith(prefix)
    }


def _bits(array):
    return np.ascontiguousarray(array).view(np.int32)


def _cell(case, routed=True):
    """Return h', its rounding scale, and every gradient with its own, in float64.

    A scale is the sum of the magnitudes that a result is the sum of.
    """
    x, h, dt, w_in, w_rec, b, tau, g = (case[name].astype(np.float64) for name in (*ARGUMENTS, "g"))
    g = g * routed
    pre = x @ w_in.T + h @ w_rec.T + b
    reach = np.abs(x) @ np.abs(w_in).T + np.abs(h) @ np.abs(w_rec).T + np.abs(b)
    periods = dt[:, None] / tau
    decay, gain = np.exp(-periods), -np.expm1(-periods)
    out = h * decay + gain * np.tanh(pre)
    out_scale = np.abs(h) * decay * (1 + periods) + gain * (1 + reach)
    dpre = g * gain / np.cosh(pre) ** 2
    rate = g * (h - np.tanh(pre)) * decay * periods / tau
    dpre_scale = np.abs(g) * gain * (1 + reach)
    rate_scale = np.abs(g) * (np.abs(h) + 1 + reach) * decay * periods * (1 + periods) / tau
    gradients = {
        "x": (dpre @ w_in, dpre_scale @ np.abs(w_in)),
        "h": (dpre @ w_rec + g * decay, dpre_scale @ np.abs(w_rec) + np.abs(g) * (1 + periods)),
        "W_in": (dpre.T @ x, dpre_scale.T @ np.abs(x)),
        "W_rec": (dpre.T @ h, dpre_scale.T @ np.abs(h)),
        "b": (dpre.sum(0), dpre_scale.sum(0)),
        "tau": (rate.sum(0), rate_scale.sum(0)),
    }
    return out, out_scale, gradients


def _assert_close(got, wanted, scale):
    """Allow 16 roundings of the scale: chunked sums of up to 138 terms, and the functions."""
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= 16 * UNIT * scale).all()


def test_the_dense_cell_follows_its_formula(case):
    out, scale, _ = _cell(case)
    _assert_close(case["dense"], out, scale)


def test_the_union_of_all_branches_is_the_dense_cell_bitwise(case):
    assert np.array_equal(_bits(case["union"]), _bits(case["dense"]))


def test_channels_in_no_bucket_keep_their_bits(case):
    wanted = np.where(case["routed"], _bits(case["dense"]), _bits(case["before"]))
    assert np.array_equal(_bits(case["partial"]), wanted)


def test_a_row_alone_equals_the_row_in_the_batch_bitwise(case):
    assert np.array_equal(_bits(case["last_row"]), _bits(case["dense"][-1:]))


def test_no_time_returns_the_old_state(case):
    assert np.array_equal(case["no_time"], case["h"])


def test_the_state_stays_within_its_old_size_or_one(case):
    limit = np.maximum(np.abs(case["h"]), 1)
    assert (np.abs(case["dense"]) <= limit * (1 + 8 * UNIT)).all()


def test_block_sizes_move_results_within_rounding(case):
    out, scale, gradients = _cell(case)
    _assert_close(case["other_blocks"], out, scale)
    for name in GRADIENTS:
        _assert_close(case[f"other_blocks_{name}"], *gradients[name])


def test_gradients_follow_their_formulas(case):
    _, _, gradients = _cell(case)
    for name in GRADIENTS:
        _assert_close(case[f"dense_{name}"], *gradients[name])


def test_gradients_repeat_and_branches_give_the_same_bits(case):
    for name in GRADIENTS:
        dense = _bits(case[f"dense_{name}"])
        assert np.array_equal(_bits(case[f"again_{name}"]), dense)
        assert np.array_equal(_bits(case[f"union_{name}"]), dense)


def test_channels_in_no_bucket_pass_no_gradient(case):
    _, _, gradients = _cell(case, case["routed"])
    for name in GRADIENTS:
        _assert_close(case[f"partial_{name}"], *gradients[name])


def test_autograd_runs_the_same_kernels(case):
    for name in GRADIENTS:
        assert np.array_equal(_bits(case[f"autograd_{name}"]), _bits(case[f"dense_{name}"]))
        routed = case[f"routed_autograd_{name}"]
        assert np.array_equal(_bits(routed), _bits(case[f"partial_{name}"]))
    assert np.array_equal(case["routed_autograd_out"], np.where(case["routed"], 0, case["g"]))


def test_short_steps_are_accurate_relative_to_themselves(results):
    periods = results["short_dt"][:, None].astype(np.float64) / results["short_tau"]
    wanted = -np.expm1(-periods) * np.tanh(results["short_b"].astype(np.float64))
    assert (np.abs(results["short_out"] / wanted - 1) <= 8 * UNIT * (1 + periods)).all()


def test_long_steps_forget_and_leave_finite_gradients(results):
    wanted = np.tanh(results["short_b"].astype(np.float64))
    assert (np.abs(results["long_out"] / wanted - 1) <= 4 * UNIT).all()
    for name in GRADIENTS:
        assert np.isfinite(results[f"long_{name}"]).all()
    assert (results["long_tau"] == 0).all()


def test_no_rows_give_empty_states_and_zero_weight_gradients(results):
    assert results["empty_out"].shape == (0, 3)
    shapes = {name: results[f"empty_{name}"].shape for name in GRADIENTS}
    assert shapes["x"] == (0, 2)
    assert shapes["W_in"] == (3, 2)
    assert all((results[f"empty_{name}"] == 0).all() for name in GRADIENTS)


def _arguments(**changes):
    cell = {
        "x": torch.ones(2, 3),
        "h": torch.ones(2, 4),
        "dt": torch.ones(2),
        "W_in": torch.ones(4, 3),
        "W_rec": torch.ones(4, 4),
        "b": torch.ones(4),
        "tau": torch.ones(4),
    }
    return cell | changes


TABLE = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32)
BAD_ARGUMENTS = {
    "dt": ({"dt": torch.tensor([1.0, -1.0])}, r"dt must be finite and not negative.* dt\[1\] = -1"),
    "infinite dt": ({"dt": torch.tensor([torch.inf, 1.0])}, r"dt\[0\] = inf"),
    "tau": ({"tau": torch.tensor([1.0, 1.0, torch.nan, 1.0])}, r"tau\[2\] = nan"),
    "rank": ({"dt": torch.ones(2, 1)}, r"dt must have shape \(B\), got \(2, 1\)"),
    "shape": ({"W_rec": torch.ones(4, 3)}, r"W_rec must have shape \(H, H\) with H = 4"),
    "device": ({"b": torch.ones(4, device="meta")}, "b must be on cpu, got meta"),
    "strides": ({"W_in": torch.ones(3, 4).T}, "W_in must be contiguous"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments_are_errors_that_name_them(name):
    changes, message = BAD_ARGUMENTS[name]
    cell = _arguments(**changes)
    g = torch.ones(2, 4)
    with pytest.raises(ValueError, match=message):
        cfc.step(**cell)
    with pytest.raises(ValueError, match=message):
        cfc.step_backward(g, **cell)
    with pytest.raises(ValueError, match=message):
        cfc.step_per_branch(**cell, table=TABLE, out=g)
    with pytest.raises(ValueError, match=message):
        cfc.step_per_branch_backward(g, **cell, table=TABLE)


def test_bad_tables_buffers_and_blocks_are_errors_that_name_them():
    cell, out = _arguments(), torch.ones(2, 4)
    twice = torch.tensor([[0, 1], [1, -1]], dtype=torch.int32)
    with pytest.raises(ValueError, match="table must name no channel twice, got channel 1"):
        cfc.step_per_branch(**cell, table=twice, out=out)
    with pytest.raises(ValueError, match="table must be from -1 to 3"):
        cfc.step_per_branch_backward(out, **cell, table=TABLE + 1)
    with pytest.raises(ValueError, match="out must not overlap h"):
        cfc.step_per_branch(**cell, table=TABLE, out=cell["h"])
    with pytest.raises(ValueError, match=r"out must have shape \(B, H\) with B = 2"):
        cfc.step_per_branch(**cell, table=TABLE, out=torch.ones(3, 4))
    with pytest.raises(ValueError, match="block_k must be a power of two up to 128, got 256"):
        cfc.step(**cell, block_k=256)
    with pytest.raises(TypeError, match=r"x must be torch\.float32, got torch\.float16"):
        cfc.step(**_arguments(x=torch.ones(2, 3, dtype=torch.float16)))


def test_a_record_that_was_never_filled_is_the_first_error():
    zero = torch.zeros(2, dtype=torch.int32)
    limits = torch.ones(2)
    record = RoutingRecord(torch.zeros(4, dtype=torch.int32), zero, zero, TABLE, limits, limits)
    cell = _arguments(dt=torch.tensor([-1.0, torch.nan]))
    with pytest.raises(ValueError, match="size must not be all zero"):
        cfc.step_per_branch(**cell, table=record, out=torch.ones(2, 4))
    with pytest.raises(ValueError, match="size must not be all zero"):
        cfc.step_per_branch_backward(torch.ones(2, 4), **cell, table=record)


def _draw(random, B, D, H):
    def normal(*shape, scale=1.0):
        return torch.from_numpy(random.normal(scale=scale, size=shape).astype(np.float32))

    fan_in = max(D + H, 1) ** -0.5
    return {
        "x": normal(B, D),
        "h": normal(B, H, scale=2.0),
        "dt": torch.from_numpy(random.exponential(size=B).astype(np.float32)),
        "W_in": normal(H, D, scale=fan_in),
        "W_rec": normal(H, H, scale=fan_in),
        "b": normal(H),
        "tau": torch.from_numpy(np.exp(random.uniform(-4, 6, H)).astype(np.float32)),
    }


def _tables(random, H, N, M):
    """Return a full table of shuffled channels and one with some missing, -1 anywhere."""
    slots = np.concatenate([random.permutation(H), np.full(N * M - H, -1)])
    full = random.permutation(slots).reshape(N, M)
    partial = np.where(random.random((N, M)) < 0.3, -1, full)
    return [torch.from_numpy(table.astype(np.int32)) for table in (full, partial)]


def _run(B, D, H, N, M, seed):
    random = np.random.default_rng(seed)
    cell = _draw(random, B, D, H)
    full, partial_table = _tables(random, H, N, M)
    g = torch.from_numpy(random.normal(size=(B, H)).astype(np.float32))
    before = torch.from_numpy(random.normal(size=(B, H)).astype(np.float32))
    union, partial = before.clone(), before.clone()
    cfc.step_per_branch(**cell, table=full, out=union)
    cfc.step_per_branch(**cell, table=partial_table, out=partial)
    routed = torch.zeros(H, dtype=torch.bool)
    routed[partial_table[partial_table >= 0].long()] = True
    last = {name: cell[name][-1:] for name in ("x", "h", "dt")}
    blocks = {"block_rows": 2, "block_channels": 32, "block_k": 32}
    found = {
        "g": g,
        "before": before,
        "routed": routed,
        "dense": cfc.step(**cell),
        "union": union,
        "partial": partial,
        "last_row": cfc.step(**(cell | last)),
        "no_time": cfc.step(**(cell | {"dt": torch.zeros(B)})),
        "other_blocks": cfc.step(**cell, **blocks),
    }
    gradients = {
        "dense": cfc.step_backward(g, **cell),
        "again": cfc.step_backward(g, **cell),
        "union": cfc.step_per_branch_backward(g, **cell, table=full),
        "partial": cfc.step_per_branch_backward(g, **cell, table=partial_table),
        "other_blocks": cfc.step_backward(g, **cell, **blocks, parts=1),
        "autograd": _autograd(cell, g),
        "routed_autograd": _routed_autograd(cell, g, before, partial_table),
    }
    for prefix, own in gradients.items():
        found |= {f"{prefix}_{name}": value for name, value in own.items()}
    return cell | found


def _leaves(cell):
    return {name: value.clone().requires_grad_(name != "dt") for name, value in cell.items()}


def _autograd(cell, g):
    leaves = _leaves(cell)
    cfc.CfcStep.apply(*leaves.values()).backward(g)
    return {name: leaves[name].grad for name in GRADIENTS}


def _routed_autograd(cell, g, before, table):
    leaves = _leaves(cell)
    old = before.clone().requires_grad_()
    out = cfc.CfcStepPerBranch.apply(*leaves.values(), table, old * 1)
    out.backward(g)
    return {name: leaves[name].grad for name in GRADIENTS} | {"out": old.grad}


def _run_extremes():
    """Return steps from rest, over dt/tau from 1e-8 to 10, and of a dt that overflows dt/tau."""
    H = 5
    cell = _draw(np.random.default_rng(9), 4, 3, H)
    cell |= {"x": torch.zeros(4, 3), "h": torch.zeros(4, H)}
    cell |= {"dt": torch.tensor([1e-8, 1e-5, 0.01, 10.0]), "tau": torch.linspace(0.5, 1.5, H)}
    long = cell | {"dt": torch.full((4,), 3e38), "tau": torch.full((H,), 0.01)}
    empty = _draw(np.random.default_rng(9), 0, 2, 3)
    found = {
        "short_dt": cell["dt"],
        "short_tau": cell["tau"],
        "short_b": cell["b"],
        "short_out": cfc.step(**cell),
        "long_out": cfc.step(**long),
        "empty_out": cfc.step(**empty),
    }
    for prefix, own in (("long", long), ("empty", empty)):
        gradients = cfc.step_backward(torch.ones_like(own["h"]), **own)
        found |= {f"{prefix}_{name}": value for name, value in gradients.items()}
    return found


def _main(file):
    tensors = _run_extremes()
    for place, sizes in enumerate(SHAPES):
        own = _run(*sizes, seed=place)
        tensors |= {f"{place}.{name}": value for name, value in own.items()}
    np.savez(file, **{name: value.detach().numpy() for name, value in tensors.items()})


if __name__ == "__main__":
    _main(sys.argv[1])
