"""The routing kernels against small NumPy computations, on Triton's interpreter in a child."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from trivet.impl import routing
from trivet.impl.routing import RoutingRecord

# (H, N, M): chunks with a ragged tail, one channel, more buckets than channels, one bucket.
SHAPES = [(131, 5, 40), (1, 1, 1), (3, 7, 2), (300, 1, 300)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    file = tmp_path_factory.mktemp("routing") / "results.npz"
    environment = dict(os.environ, TRITON_INTERPRET="1")
    child = subprocess.run(
        [sys.executable, __file__, str(file)], capture_output=True, text=True, env=environment
    )
    assert child.returncode == 0, child.stderr
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.fixture(params=range(len(SHAPES)), ids=map(str, SHAPES))
def case(request, results):
    H, N, M = SHAPES[request.param]
    prefix = f"{request.param}."
    own = {
        name.removeprefix(prefix): array
        for name, array in results.items()
        if name.startswith(prefix)
    }
    return own | {"H": H, "N": N, "M": M}


def _members(case, bucket):
    return np.flatnonzero(case["bucket_of"] == bucket)


def _bits(array):
    return np.ascontiguousarray(array).view(np.int32)


def test_order_is_the_stable_argsort(case):
    assert np.array_equal(case["order"], np.argsort(case["tau"], kind="stable"))


def test_buckets_are_quantiles_of_the_order(case):
    wanted = np.array_split(np.argsort(case["tau"], kind="stable"), case["N"])
    for bucket, channels in enumerate(wanted):
        assert set(_members(case, bucket)) == set(channels)
    sizes = [len(channels) for channels in wanted]
    assert case["size"].tolist() == sizes
    assert case["offset"].tolist() == (np.cumsum(sizes) - sizes).tolist()


def test_table_lists_each_bucket_in_ascending_order(case):
    for bucket, row in enumerate(case["table"]):
        channels = _members(case, bucket)
        assert row[: len(channels)].tolist() == channels.tolist()
        assert (row[len(channels) :] == -1).all()


def test_quartiles_are_linear_between_order_statistics(case):
    for bucket in range(case["N"]):
        times = case["tau"][_members(case, bucket)].astype(np.float64)
        got = np.array([case["q1"][bucket], case["q3"][bucket]])
        if not len(times):
            assert got.tolist() == [0.0, np.inf]
            continue
        wanted = np.quantile(times, [0.25, 0.75])
        # A difference, its part and a sum are rounded; neither part nor sum exceeds the quartile,
        # so none of the three moves it by more than the spacing of numbers there.
        assert (np.abs(got - wanted) <= 3 * np.spacing(wanted.astype(np.float32))).all()


def test_ranges_widen_by_the_root_of_the_quartile_ratio(case):
    full = case["size"] > 0
    q1, q3 = case["q1"][full], case["q3"][full]
    # Quotient and root are correctly rounded, in the kernel as in NumPy.
    slack = np.sqrt(q3 / q1)
    assert np.array_equal(_bits(case["lo"][full]), _bits(q1 / slack))
    assert np.array_equal(_bits(case["hi"][full]), _bits(q3 * slack))
    assert (case["lo"][~full] == 0).all()
    assert np.isposinf(case["hi"][~full]).all()
    assert (case["lo"] <= case["q1"]).all()
    assert (case["q1"] <= case["q3"]).all()
    assert (case["q3"] <= case["hi"]).all()


def test_double_widening_touches_one_bucket(case):
    chosen = case["N"] - 1
    others = np.arange(case["N"]) != chosen
    assert case["wider_lo"][chosen] == case["lo"][chosen] / 2
    assert case["wider_hi"][chosen] == case["hi"][chosen] * 2
    assert np.array_equal(_bits(case["wider_lo"])[others], _bits(case["lo"])[others])
    assert np.array_equal(_bits(case["wider_hi"])[others], _bits(case["hi"])[others])


def test_clamp_moves_each_channel_into_its_own_bucket_and_keeps_nan(case):
    bucket_of = case["bucket_of"]
    wanted = np.clip(case["strayed"], case["lo"][bucket_of], case["hi"][bucket_of])
    assert np.array_equal(_bits(case["clamped"]), _bits(wanted))
    assert np.isnan(case["clamped"][0])
    assert np.array_equal(_bits(case["clamped_twice"]), _bits(case["clamped"]))


def test_powers_of_two_scale_the_ranges_bitwise(case):
    for name in ("q1", "q3", "lo", "hi"):
        assert np.array_equal(_bits(case[f"scaled_{name}"]), _bits(case[name] * np.float32(8)))
    assert np.array_equal(case["scaled_order"], case["order"])


def test_compact_weights_follow_the_table_at_its_offsets(case):
    table = case["table"]
    rows = [case["w_skip"][k, row[row >= 0]] for k, row in enumerate(table)]
    assert np.array_equal(case["w_compact"], np.concatenate(rows))
    assert np.array_equal(case["compact_offset"], case["offset"])


def test_scattered_slots_are_packed_and_the_rest_is_zero(results):
    assert results["scattered"].tolist() == [4.0, 1.0, 6.0, 0.0, 0.0]
    assert results["scattered_offset"].tolist() == [0, 2]


def test_masks_select_the_own_channels_only(case):
    own = case["bucket_of"][None, :] == np.arange(case["N"])[:, None]
    assert np.array_equal(case["mask"], own.astype(np.float32))
    hostile = case["hostile"]
    assert np.array_equal(_bits(case["zeroed"]), np.where(own, _bits(hostile), 0))
    assert np.array_equal(_bits(case["masked"]), np.where(own, _bits(hostile), 0))


def test_no_channels_give_empty_results(results):
    assert results["empty_order"].shape == (0,)
    assert results["empty_size"].tolist() == [0, 0]
    assert results["empty_table"].tolist() == [[-1], [-1]]
    assert results["empty_q1"].tolist() == [0.0, 0.0]
    assert results["empty_q3"].tolist() == [np.inf, np.inf]


ZERO = torch.tensor([0, 0, 0], dtype=torch.int32)
BAD_CALLS = {
    "tau_nan": (lambda: routing.tau_sort(torch.tensor([1.0, torch.nan])), r"tau\[1\] = nan"),
    "tau_zero": (lambda: routing.tau_sort(torch.tensor([0.0])), r"tau\[0\] = 0"),
    "tau_rank": (lambda: routing.tau_sort(torch.ones(2, 2)), r"tau must have shape \(H\)"),
    "tau_strided": (lambda: routing.tau_sort(torch.ones(4)[::2]), "tau must be contiguous"),
    "order": (lambda: routing.bucket_assign(ZERO, 2), "order must name no channel twice"),
    "N": (lambda: routing.bucket_assign(ZERO[:1], 0), "N must be at least 1"),
    "capacity": (lambda: routing.channels_in_bucket(ZERO, 2, 2), "3 channels in bucket 0"),
    "bucket_of": (lambda: routing.mask_init(ZERO + 5, 2), "bucket_of must be from -1 to 1"),
    "q3": (lambda: routing.iqr_widen(torch.ones(1), torch.zeros(1)), "q3 must be"),
    "k": (lambda: routing.iqr_double_widen(torch.ones(2), torch.ones(2), 2), "k must be"),
    "lo": (
        lambda: routing.tau_clamp(torch.ones(3), ZERO, torch.ones(1) * 2, torch.ones(1)),
        "lo must be at most hi",
    ),
    "table": (
        lambda: routing.heads_compact(torch.ones(1, 3), ZERO[None]),
        "table must name no channel twice, got channel 0 3 times",
    ),
    "buffer": (lambda: routing.zero_off_bucket(torch.ones(2, 4), ZERO), "bucket_of must have"),
    "mask": (lambda: routing.grad_mask_apply(torch.ones(2, 3), torch.ones(3, 2)), "mask must"),
    "block": (lambda: routing.tau_sort(torch.ones(2), block_channels=3), "block_channels must"),
    "device": (
        lambda: routing.bucket_iqr(torch.ones(3), ZERO.to("meta"), 1),
        "bucket_of must be on cpu, got meta",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input_is_an_error_naming_the_argument(name):
    call, message = BAD_CALLS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_other_dtypes_are_type_errors():
    with pytest.raises(TypeError, match=r"tau must be torch\.float32, got torch\.float64"):
        routing.tau_sort(torch.ones(2, dtype=torch.float64))
    with pytest.raises(TypeError, match="tau must be a tensor, got list"):
        routing.tau_sort([1.0])


def _record(**changes):
    entries = {
        "bucket_of": torch.tensor([1, 0, 1], dtype=torch.int32),
        "size": torch.tensor([1, 2], dtype=torch.int32),
        "offset": torch.tensor([0, 1], dtype=torch.int32),
        "table": torch.tensor([[1, -1], [0, 2]], dtype=torch.int32),
        "lo": torch.ones(2),
        "hi": torch.full((2,), 2.0),
    }
    return RoutingRecord(**(entries | changes))


BAD_ENTRIES = {
    "never filled": ({"size": [0, 0]}, "size must not be all zero"),
    "not a partition": ({"table": [[1, -1], [0, 0]]}, "table must be a partition"),
    "row of another": ({"table": [[0, -1], [1, 2]]}, "table must list the channels of bucket 0"),
    "descending": ({"table": [[1, -1], [2, 0]]}, "table must list the channels of bucket 1"),
    "channel 7": ({"table": [[1, -1], [0, 7]]}, "table must hold -1 or channels under H = 3"),
    "capacity": ({"size": [3, 2]}, "got 3 channels in bucket 0"),
    "counts": ({"size": [2, 1], "offset": [0, 2]}, "size must count bucket_of"),
    "offset": ({"offset": [0, 2]}, "offset must be the exclusive prefix sum"),
    "rank": ({"size": [[1, 2]]}, r"size must have shape \(N\)"),
    "other N": ({"offset": [0, 1, 3]}, r"offset must have shape \(N\) with N = 2"),
}


@pytest.mark.parametrize("name", BAD_ENTRIES)
def test_a_record_that_is_not_whole_names_the_entry(name):
    changes, message = BAD_ENTRIES[name]
    tensors = {key: torch.tensor(value, dtype=torch.int32) for key, value in changes.items()}
    with pytest.raises(ValueError, match=message):
        _record(**tensors).validate()


def test_a_record_must_fit_its_consumer():
    record = _record()
    record.validate(channels=3, device=torch.device("cpu"))
    with pytest.raises(ValueError, match="bucket_of must have H = 4 channels, got 3"):
        record.validate(channels=4)
    with pytest.raises(ValueError, match="bucket_of must be on meta, got cpu"):
        record.validate(device=torch.device("meta"))
    with pytest.raises(ValueError, match="lo must be from 0 to hi"):
        _record(lo=torch.full((2,), 3.0)).validate()
    with pytest.raises(TypeError, match=r"size must be torch\.int32"):
        _record(size=torch.ones(2)).validate()
    with pytest.raises(ValueError, match="bucket_of must have H = 5"):
        routing.heads_compact(torch.ones(2, 5), record)


def test_records_are_versions_that_share_nothing():
    draft = _record()
    first = RoutingRecord.publish(**draft.tensors())
    draft.lo[0] = 9.0
    second = first.replace(lo=torch.full((2,), 0.5))
    assert (first.version, second.version) == (1, 2)
    assert first.lo.tolist() == [1.0, 1.0]
    assert second.lo.tolist() == [0.5, 0.5]
    assert second.table.data_ptr() != first.table.data_ptr()
    with pytest.raises(ValueError, match="size must not be all zero"):
        first.replace(size=torch.zeros(2, dtype=torch.int32))
    with pytest.raises(TypeError, match="no entry sizes"):
        first.replace(sizes=torch.zeros(2))


def test_a_record_written_behind_its_back_is_checked_again():
    record = _record()
    record.validate()
    record.table.fill_(-1)
    with pytest.raises(ValueError, match="table must be a partition"):
        record.validate()


def _run(H, N, M, seed):
    random = np.random.default_rng(seed)
    tau = torch.from_numpy(np.exp(random.uniform(np.log(0.01), np.log(1e3), H)).astype("float32"))
    tau[H // 2 :: 3] = tau[0].item()
    order = routing.tau_sort(tau)
    bucket_of, size, offset = routing.bucket_assign(order, N)
    table = routing.channels_in_bucket(bucket_of, N, M)
    q1, q3 = routing.bucket_iqr(tau, bucket_of, N)
    lo, hi = routing.iqr_widen(q1, q3)
    wider_lo, wider_hi = routing.iqr_double_widen(lo, hi, N - 1)
    strayed = tau * torch.from_numpy(random.choice([0.1, 1.0, 10.0], H).astype("float32"))
    strayed[0] = torch.nan
    clamped = routing.tau_clamp(strayed, bucket_of, lo, hi)
    w_skip = torch.from_numpy(random.normal(size=(N, H)).astype("float32"))
    record = RoutingRecord.publish(bucket_of, size, offset, table, lo, hi)
    w_compact, compact_offset = routing.heads_compact(w_skip, record)
    hostile = w_skip * torch.from_numpy(random.choice([-1, np.inf, np.nan, -0.0], (N, H)))
    hostile = hostile.to(torch.float32)
    zeroed = hostile.clone()
    routing.zero_off_bucket(zeroed, bucket_of)
    mask = routing.mask_init(bucket_of, N)
    masked = routing.grad_mask_apply(hostile, mask)
    clamped_twice = routing.tau_clamp(clamped, bucket_of, lo, hi)
    scaled_order = routing.tau_sort(tau * 8)
    scaled_q1, scaled_q3 = routing.bucket_iqr(tau * 8, bucket_of, N)
    scaled_lo, scaled_hi = routing.iqr_widen(scaled_q1, scaled_q3)
    return {name: value for name, value in locals().items() if isinstance(value, torch.Tensor)}


def _main(file):
    arrays = {}
    for place, (H, N, M) in enumerate(SHAPES):
        tensors = _run(H, N, M, seed=place)
        arrays |= {f"{place}.{name}": tensor.numpy() for name, tensor in tensors.items()}
    table = torch.tensor([[-1, 4, 1], [-1, -1, 1 - 1]], dtype=torch.int32)
    weights = torch.tensor([[0.0, 1, 2, 3, 4], [6, 7, 8, 9, 10]])
    scattered = routing.heads_compact(weights, table)
    arrays |= {"scattered": scattered[0].numpy(), "scattered_offset": scattered[1].numpy()}
    order = routing.tau_sort(torch.empty(0))
    bucket_of, size, _ = routing.bucket_assign(order, 2)
    q1, q3 = routing.bucket_iqr(torch.empty(0), bucket_of, 2)
    table = routing.channels_in_bucket(bucket_of, 2, 1)
    empty = {"order": order, "size": size, "q1": q1, "q3": q3, "table": table}
    arrays |= {f"empty_{name}": tensor.numpy() for name, tensor in empty.items()}
    np.savez(Path(file), **arrays)


if __name__ == "__main__":
    _main(sys.argv[1])
