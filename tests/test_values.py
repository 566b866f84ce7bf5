import numpy as np
import pytest

from trivet import reals
from trivet.properties._dtypes import DTYPES
from trivet.properties._stream import BELL_REACH, Stream
from trivet.properties._values import KINDS, SIMPLE, Request

WIDE = reals(-1e4, 1e4)


def drawn(kind, shape=(6, 40), dtype="float32", seed=1, scale=0.0, domain=WIDE):
    return domain.draw(Request(shape, kind, Stream(seed, "x"), DTYPES[dtype], scale))


def test_streams_do_not_depend_on_sizes():
    stream = Stream(3, "x")
    for draw in (stream.bits, stream.uniform, stream.bell):
        whole = draw((7, 9, 5))
        assert (draw((4, 9, 2)) == whole[:4, :, :2]).all()
    assert (stream.bits((9,)) != Stream(3, "y").bits((9,))).all()
    assert (stream.bits((9,)) != Stream(4, "x").bits((9,))).all()
    assert (stream.bits((9,)) != stream.bits((9,), 1)).all()


def test_streams_look_random():
    stream = Stream(0, "x")
    words = stream.bits((200, 300))
    assert len(np.unique(words)) == words.size
    uniform = stream.uniform((200, 300))
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(uniform[:-1].ravel(), uniform[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(uniform[:, :-1].ravel(), uniform[:, 1:].ravel())[0, 1]) < 0.02
    bell = stream.bell((200, 300))
    assert abs(bell.mean()) < 0.02
    assert abs(bell.std() - 1) < 0.02
    assert abs(bell).max() <= BELL_REACH


STABLE = sorted({*KINDS, *SIMPLE} - {"one_hot", "spike"})


@pytest.mark.parametrize("kind", STABLE)
def test_smaller_sizes_keep_the_values(kind):
    domain = reals(-1e4, 1e4, nonfinite=True)
    whole = drawn(kind, (6, 40), domain=domain)
    part = drawn(kind, (4, 17), domain=domain)
    assert np.array_equal(whole[:4, :17], part, equal_nan=True)


def test_one_hot_and_spike_keep_a_value_for_each_row():
    for kind in ("one_hot", "spike"):
        assert drawn(kind, (6, 40), scale=1.0).max(axis=1).min() > 5000


def test_kinds_are_what_they_are_called():
    assert len(np.unique(drawn("constant"))) == 1
    assert len(np.unique(drawn("two_valued"))) == 2
    assert len(np.unique(drawn("ties"))) == 3
    assert set(np.unique(drawn("ends"))) == {-1e4, 1e4}
    signs = [np.sign(drawn("one_sign", seed=seed)).mean(axis=1) for seed in range(12)]
    assert all(set(np.abs(rows)) == {1} for rows in signs)
    assert {rows.min() + rows.max() for rows in signs} == {-2, 0, 2}
    assert (drawn("integers") == np.rint(drawn("integers"))).all()
    assert (np.count_nonzero(drawn("one_hot"), axis=1) == 1).all()
    rows = drawn("zero_rows", (60, 9))
    assert 0.1 < (rows == 0).all(axis=1).mean() < 0.9
    tiny = np.abs(drawn("subnormal"))
    assert (tiny > 0).all()
    assert (tiny < DTYPES["float32"].tiny).all()
    assert (np.abs(drawn("subnormal", dtype="bfloat16")) > 0).all()


def test_mixed_rows_are_of_many_kinds():
    rows = drawn("mixed_rows", (60, 40))
    assert (rows == 0).all(axis=1).any()
    assert (rows > 0).all(axis=1).any()
    assert (rows < 0).all(axis=1).any()
    assert (np.diff(rows, axis=1) > 0).all(axis=1).any()
    assert (rows[:, -1] > 100 * np.abs(rows[:, :-1]).max(axis=1)).any()
    offset = np.abs(rows.mean(axis=1)) > 50 * rows.std(axis=1)
    assert offset.any()


def test_magnitudes_spread_over_many_powers_of_two():
    wide = np.log2(np.abs(drawn("wide", (40, 40))))
    assert wide.max() - wide.min() > 25
    assert wide.max() > 10


@pytest.mark.parametrize("shape", [(0, 3, 5), (3, 0), (0,)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_empty_shapes(kind, shape):
    assert drawn(kind, shape).shape == shape


def test_neighbours_cancel():
    pairs = drawn("cancelling")
    assert np.abs(pairs.sum(axis=1)).max() < 0.02 * np.abs(pairs).sum(axis=1).min()


def test_a_common_offset_dwarfs_the_spread():
    values = drawn("offset", (50, 40), dtype="float64")
    ratios = values.std(axis=1) / np.abs(values.mean(axis=1))
    assert ratios.max() < 0.2
    assert ratios.min() < 1e-4


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_rows_at_an_offset_differ_in_narrow_formats_too(dtype):
    values = drawn("offset", (60, 80), dtype=dtype)
    assert (values.std(axis=1) > 0).mean() > 0.9


def test_a_spike_stands_last_and_ramps_rise_and_fall():
    spike = drawn("spike")
    assert (spike[:, -1] == spike.max(axis=1)).all()
    assert (spike[:, -1] > spike[:, :-1].max(axis=1) + 4).all()
    slopes = {bool((np.diff(drawn("ramp", seed=seed)) > 0).all()) for seed in range(8)}
    assert slopes == {True, False}


def test_the_scale_reaches_from_one_to_the_whole_domain():
    deviation = [drawn("normal", (50, 50), scale=scale).std() for scale in (0.0, 0.5, 1.0)]
    assert 0.9 < deviation[0] < 1.1
    assert 80 < deviation[1] < 120
    assert deviation[2] > 2000


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("bits", [1, 4, 7])
def test_probes_are_odd_whole_numbers_and_zeros(bits, dtype):
    values = drawn(f"probe:{bits}", dtype=dtype)
    assert np.abs(values).max() <= 2**bits
    assert (values == np.rint(values)).all()
    assert ((values == 0) | (np.abs(values) % 2 == 1)).all()
    assert (values == 0).any()
    assert (values < 0).any()


def test_probes_of_a_narrow_domain_are_multiples_of_one_power_of_two():
    values = drawn("probe:4", domain=reals(-0.4, 0.4))
    assert (values * 64 == np.rint(values * 64)).all()
    assert len(np.unique(values)) > 9
    inside = drawn("probe:4", domain=reals(0.1, 0.9))
    assert (inside >= 0.1).all()
    assert (inside * 4 == np.rint(inside * 4)).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4, 5)])
@pytest.mark.parametrize("kind", sorted({*KINDS, *SIMPLE}))
def test_every_kind_has_every_shape(kind, shape):
    values = drawn(kind, shape, domain=reals(nonfinite=True))
    assert values.shape == shape
    assert values.dtype == np.float64
