"""Mean, variance and layer norm in every stable form: no right one is refused."""

import numpy as np
import pytest
from tests.forms.float32 import (
    KINDS,
    SUMS,
    all_orders,
    draw,
    each_kind,
    f32,
    generator,
    judge,
    tree,
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_of_a_small_mean_and_variance(kind):
    """Leaves are (count, mean, sum of squares): every tree of Chan's and Welford's merges."""
    rng = generator(5)

    def merge(a, b):
        (na, ma, qa), (nb, mb, qb) = a, b
        n, d = na + nb, f32(mb - ma)
        weight = f32(f32(nb) / f32(n))
        mean = f32(ma + f32(d * weight))
        squares = f32(f32(qa + qb) + f32(f32(d * d) * f32(f32(na) * weight)))
        return n, mean, squares

    for _ in range(4):
        x = draw(rng, (4,), kind)
        merged = all_orders(merge, [(1, leaf, f32(0)) for leaf in x])
        judge(lambda m, x: m.mean(x), [("mean", y[1]) for y in merged], x=x)
        variances = [("var", f32(y[2] / f32(4))) for y in merged]
        judge(lambda m, x: m.var(x), variances, x=x)
        judge(lambda x: ((x - x.mean()) ** 2).mean(), variances, x=x)


def welford(x):
    mean, squares = np.zeros(x.shape[:-1], f32), np.zeros(x.shape[:-1], f32)
    for k in range(x.shape[-1]):
        delta = x[..., k] - mean
        mean = mean + delta / f32(k + 1)
        squares = squares + delta * (x[..., k] - mean)
    return mean, squares


def chan(x, block, inner):
    """Chunks by `inner`, merged one after the other."""
    count, mean, squares = 0, np.zeros(x.shape[:-1], f32), np.zeros(x.shape[:-1], f32)
    for start in range(0, x.shape[-1], block):
        part = x[..., start : start + block]
        size = part.shape[-1]
        part_mean, part_squares = inner(part)
        delta = part_mean - mean
        weight = f32(f32(size) / f32(count + size))
        mean = mean + delta * weight
        squares = squares + part_squares + delta * delta * f32(f32(count) * weight)
        count += size
    return mean, squares


def two_pass(x, total=tree):
    mean = total(x) / f32(x.shape[-1])
    difference = x - mean[..., None]
    return mean, total(difference * difference)


def halves(x):
    """Welford's merge as a tree."""
    if x.shape[-1] == 1:
        return x[..., 0], np.zeros(x.shape[:-1], f32)
    return chan_pair(halves(x[..., ::2]), halves(x[..., 1::2]), x.shape[-1])


def chan_pair(a, b, count):
    (mean_a, squares_a), (mean_b, squares_b) = a, b
    size_b = count // 2
    delta, weight = mean_b - mean_a, f32(f32(size_b) / f32(count))
    mean = mean_a + delta * weight
    squares = squares_a + squares_b + delta * delta * f32(f32(count - size_b) * weight)
    return mean, squares


def moment_forms(x):
    for name, total in SUMS.items():
        yield f"two passes {name}", *two_pass(x, total)
    yield "welford", *welford(x)
    for block in (3, 16, 64):
        yield f"chunks {block}", *chan(x, block, two_pass)
        yield f"welford chunks {block}", *chan(x, block, welford)
    yield "tree", *halves(x)


def test_running_means_of_subnormal_numbers():
    steps = np.random.default_rng(2).integers(-400, 400, (20, 48))
    x = np.asarray(steps * 2.0**-149, f32)
    forms = [(name, mean) for name, mean, _ in moment_forms(x)]
    judge(lambda x: x.mean(-1), forms, x=x)


@np.errstate(all="ignore")
def test_mean_variance_and_layer_norm_in_every_form():
    eps = f32(1e-5)

    def layer_norm(x):
        difference = x - x.mean(-1, keepdims=True)
        return difference / np.sqrt((difference**2).mean(-1, keepdims=True) + 1e-5)

    for kind, x in each_kind(3):
        if kind == "wide":
            x = np.asarray(np.clip(x, -1e4, 1e4), f32)
        count = f32(x.shape[-1])
        forms = list(moment_forms(x))
        judge(lambda x: x.mean(-1), [(n, mean) for n, mean, _ in forms], x=x)
        judge(lambda x: x.sum(-1) / x.shape[-1], [(n, mean) for n, mean, _ in forms], x=x)
        variances = [(n, squares / count) for n, _, squares in forms]
        judge(lambda m, x: m.var(x, axis=-1), variances, x=x)
        judge(
            lambda x: ((x - x.sum(-1)[:, None] / x.shape[1]) ** 2).sum(-1) / x.shape[1],
            variances,
            x=x,
        )
        outputs = []
        for name, mean, squares in forms:
            root = f32(1) / np.sqrt(squares / count + eps)
            outputs.append((name, (x - mean[..., None]) * root[..., None]))
            outputs.append(
                (name, (x - mean[..., None]) / np.sqrt(squares / count + eps)[..., None])
            )
        _, value = judge(layer_norm, outputs, x=x)
        assert np.isfinite(value.error).all(), kind
