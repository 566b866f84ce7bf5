import numpy as np
import pytest

from trivet import counts, integers, log_uniform, offsets, partition, permutation, reals
from trivet.properties._dtypes import DTYPES, range_in, stored
from trivet.properties._sizes import DomainError
from trivet.properties._stream import Stream
from trivet.properties._values import Request

FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]


def drawn(domain, shape, kind, dtype="float32", seed=0, **names):
    request = Request(shape, kind, Stream(seed, "x"), DTYPES[dtype], 1.0, names)
    assert domain.obstacle(shape, names, DTYPES[dtype]) is None
    return domain.draw(request)


def every(domain, shape, dtype="float32", seeds=3, **names):
    storage = DTYPES[dtype]
    for kind in (*domain.kinds(storage), *domain.simple(storage), "probe:3"):
        for seed in range(seeds):
            yield kind, drawn(domain, shape, kind, dtype, seed, **names)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bounds", [(-8, 8), (0, 1), (0.3, 0.7), (-5, -1), (-1e4, 400.1), (1, 1)])
def test_reals_stay_inside_and_are_exactly_stored(bounds, dtype):
    lo, hi = bounds
    domain = reals(lo, hi)
    for kind, values in every(domain, (5, 9), dtype):
        assert values.shape == (5, 9), kind
        assert values.dtype == np.float64
        assert (values >= lo).all(), kind
        assert (values <= hi).all(), kind
        assert (values.astype(DTYPES[dtype].numpy).astype(float) == values).all(), kind


def test_reals_reach_both_ends_and_the_simplest_value():
    assert set(drawn(reals(-3, 5), (40,), "ends")) == {-3, 5}
    assert set(drawn(reals(-3, 5), (4,), "simplest")) == {1}
    assert set(drawn(reals(-3, 0.5), (4,), "simplest")) == {0}
    assert set(drawn(reals(2, 5), (4,), "simplest")) == {2}
    assert set(drawn(reals(-5, -2), (4,), "simplest")) == {-2}


def test_nonfinite_values_only_where_declared():
    assert "nonfinite" not in reals().kinds(DTYPES["float32"])
    assert reals().nonfinite_values == ()
    domain = reals(nonfinite=True)
    values = drawn(domain, (20, 20), "nonfinite")
    assert np.isnan(values).any()
    assert np.isinf(values).any()
    assert np.isfinite(values).any()
    assert len(domain.nonfinite_values) == 3
    assert not np.isinf(drawn(domain, (20, 20), "nonfinite", "float8_e4m3fn")).any()


def test_bounds_are_rounded_inwards():
    lo, hi = range_in(DTYPES["bfloat16"], 0.3, 0.7)
    assert lo >= 0.3
    assert hi <= 0.7
    assert range_in(DTYPES["bfloat16"], 0.3001, 0.3002) == (1.0, 0.0)
    assert stored(np.array([0.5, 9.0, -9.0]), DTYPES["float16"], -2, 2).tolist() == [0.5, 2, -2]


def test_bounds_may_be_arithmetic():
    values = drawn(reals("-N", "N/1" if False else "N"), (50,), "ends", N=6)
    assert set(values) == {-6, 6}
    assert reals("-N", "N").obstacle((3,), {"N": -1}, DTYPES["float32"]) is not None
    assert set(drawn(integers(0, "NL-1"), (50,), "ends", "int32", NL=5)) == {0, 4}


@pytest.mark.parametrize("zero", [False, True])
def test_log_uniform_is_positive_or_zero(zero):
    domain = log_uniform(1e-6, 1e6, zero=zero)
    for kind, values in every(domain, (6, 50)):
        positive = values[values != 0]
        assert (positive >= np.float32(1e-6)).all(), kind
        assert (positive <= 1e6).all(), kind
        assert zero or (values > 0).all(), kind
    assert set(drawn(domain, (3,), "simplest")) == {1}
    assert set(drawn(log_uniform(4, 9), (3,), "simplest")) == {4}
    spread = np.log10(drawn(domain, (1000,), "spread"))
    assert abs(spread.mean()) < 0.5
    assert set(drawn(domain, (80,), "ends", "float64")) == {1e-6, 1e6}
    powers = np.log2(drawn(domain, (50,), "powers"))
    assert (powers == np.rint(powers)).all()


def test_whole_numbers_default_to_the_range_of_a_byte():
    for dtype, ends in (("int8", (-128, 127)), ("int32", (-128, 127)), ("uint8", (0, 127))):
        assert set(drawn(integers(), (200,), "ends", dtype)) == set(ends)
    for kind, values in every(integers(-3, 11), (4, 30), "int64"):
        assert values.min() >= -3, kind
        assert values.max() <= 11, kind
    simple = integers(-3, 11).simple(DTYPES["int32"])
    found = [drawn(integers(-3, 11), (5,), kind, "int32").tolist() for kind in simple[:3]]
    assert found == [[0] * 5, [1] * 5, [1, 2, 3, 4, 5]]
    assert drawn(integers(4, 6), (5,), "counting", "int32").tolist() == [4, 5, 6, 4, 5]


def test_masks_begin_with_rows_where_nothing_is_live():
    mask = drawn(integers(0, 1), (12, 9), "front_low", "bool")
    assert (mask[0] == 0).all()
    assert mask.any()


def test_sentinels_stand_nowhere_everywhere_scattered_and_in_runs():
    domain = integers(0, 9, sentinel=-1)
    live = {
        where: drawn(domain, (4, 200), f"even/{where}", "int32") >= 0
        for where in ("nowhere", "scattered", "leading", "trailing", "everywhere")
    }
    assert live["nowhere"].all()
    assert not live["everywhere"].any()
    assert 0.5 < live["scattered"].mean() < 0.8
    for row in (*live["leading"], *live["trailing"][:, ::-1]):
        run = int(np.argmax(row)) if row.any() else row.size
        assert run >= 1
        assert row[run:].all()
    longest = max(
        int((drawn(domain, (200,), "even/leading", "int32", seed) < 0).sum()) for seed in range(9)
    )
    assert longest > 128  # longer than any block


def test_unique_numbers_are_distinct_and_spare_the_sentinel():
    for kind, values in every(integers(5, 40, unique=True), (4, 9), "int32"):
        assert len(np.unique(values)) == 36, kind
        assert values.min() >= 5, kind
    marked = drawn(
        integers(0, 1 << 40, sentinel=-1, unique=True), (300,), "even/scattered", "int64"
    )
    live = marked[marked >= 0]
    assert 0 < len(live) < 300
    assert len(np.unique(live)) == len(live)
    assert integers(0, 3, unique=True).obstacle((5,), {}, DTYPES["int32"]) == (
        "5 distinct numbers do not fit between 0 and 3"
    )


@pytest.mark.parametrize("total", [0, 1, 7, 100])
def test_counts_sum_to_their_total(total):
    for kind, values in every(counts("T"), (3, 5), "int32", T=total):
        assert (values >= 0).all(), kind
        assert (values.sum(axis=-1) == total).all(), kind
    assert counts("T").obstacle((0,), {"T": 3}, DTYPES["int32"]) is not None


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("total", [6, 40])
def test_offsets_ascend_from_zero(full, empty, total):
    lasts = set()
    for kind, values in every(offsets("T", full=full, empty=empty), (6,), "int32", 6, T=total):
        assert values[0] == 0, kind
        assert (np.diff(values) >= (0 if empty else 1)).all(), kind
        assert values[-1] == total if full else values[-1] <= total, kind
        lasts.add(int(values[-1]))
    assert full or len(lasts) > 1


def test_offsets_know_segments_of_length_one_and_empty_ones():
    lengths = [np.diff(v) for _, v in every(offsets("T"), (7,), "int32", 9, T=50)]
    assert any((each == 0).any() for each in lengths)
    assert any((each == 1).sum() >= 5 for each in lengths)
    assert any((each == 50).any() for each in lengths)
    assert drawn(offsets("T"), (1,), "even", "int32", T=0).tolist() == [0]


def test_permutations_hold_every_index_once():
    found = set()
    for kind, values in every(permutation(), (3, 7), "int32"):
        assert (np.sort(values, axis=-1) == np.arange(7)).all(), kind
        found.add(tuple(values[0]))
    assert len(found) >= 5
    assert drawn(permutation(), (0,), "random", "int32").size == 0


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize(
    ("buckets", "room", "members"),
    [(5, 28, 100), (1, 9, 9), (9, 4, 0), (3, 5, 15), (0, 3, 0), (3, 0, 0)],
)
def test_partitions_hold_every_member_once(total, buckets, room, members):
    domain = partition("H", total=total)
    for kind, table in every(domain, (buckets, room), "int32", H=members):
        live = table[table >= 0]
        assert len(np.unique(live)) == len(live), kind
        assert len(live) == members if total else len(live) <= members, kind
        assert ((live >= 0) & (live < members)).all(), kind
        for row in table:
            size = (row >= 0).sum()
            assert (row[size:] == -1).all(), kind
            assert (np.diff(row[:size]) > 0).all(), kind


def test_partitions_are_skewed_full_empty_and_not_contiguous():
    tables = dict(every(partition("H"), (5, 28), "int32", H=60))
    size = {kind: (table >= 0).sum(axis=1) for kind, table in tables.items()}
    assert (size["some_empty"] == 0).any()
    assert size["one_giant"].max() == 28
    assert (size["full"] == 28).sum() == 2
    assert size["even"].max() - size["even"].min() <= 1
    assert size["skewed"].max() > 2 * size["skewed"].min()
    contiguous = tables["contiguous"]
    assert (contiguous[contiguous >= 0] == np.arange(60)).all()
    assert any((np.diff(row[row >= 0]) > 1).any() for row in tables["mixed"])


def test_map_is_a_function_of_the_drawn_array():
    domain = reals(0, 1).map(np.sort)
    for kind, values in every(domain, (3, 9), "bfloat16"):
        assert (np.diff(values, axis=-1) >= 0).all(), kind
    halves = reals(-1, 1).map(lambda a: np.concatenate([a[..., :4], a[..., :4]], -1))
    values = drawn(halves, (2, 8), "normal")
    assert (values[:, :4] == values[:, 4:]).all()
    assert integers(0, 9).map(np.sort).structured
    with pytest.raises(DomainError, match=r"turned shape \(4,\) into \(2,\): keep the shape"):
        drawn(reals().map(lambda a: a[:2]), (4,), "normal")
    with pytest.raises(DomainError, match=r"raised AxisError: .* on an array of shape \(4,\)"):
        drawn(reals().map(lambda a: np.sort(a, axis=3)), (4,), "normal")
    with pytest.raises(ValueError, match="expected a function of the drawn array"):
        reals().map(3)
