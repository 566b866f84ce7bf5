"""Reductions in every stable float32 form, on eight kinds of input: no right form is refused."""

import math
from itertools import combinations

import numpy as np
import pytest

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate

f32 = np.float32
LOG2E = f32(math.log2(math.e))
KINDS = ("normal", "wide", "constant", "cancelling", "integers", "subnormal", "offset", "positive")


def draw(rng, shape, kind):
    """float32 numbers of one of eight kinds."""
    x = rng.standard_normal(shape)
    if kind == "wide":
        x = rng.choice([-1, 1], shape) * 10.0 ** rng.uniform(-12, 12, shape)
    elif kind == "constant":
        x = np.full(shape, 0.1) * rng.choice([1.0, 3.0, 0.7, -1.1], (*shape[:-1], 1))
    elif kind == "cancelling":
        half = shape[-1] // 2
        noise = 1 + 1e-6 * rng.standard_normal((*shape[:-1], half))
        x[..., half : 2 * half] = -x[..., :half] * noise
    elif kind == "integers":
        x = rng.integers(-8, 9, shape)
    elif kind == "subnormal":
        x = x * 10.0 ** rng.uniform(-44, -36, shape)
    elif kind == "offset":
        x = x + 1e4
    elif kind == "positive":
        x = rng.random(shape)
    return np.asarray(x, f32)


def judge(oracle, actuals, /, **arguments):
    """The largest ratio over named results; fails on a refused element."""
    exact = {name: np.asarray(x, np.float64) for name, x in arguments.items()}
    (value,) = evaluate(oracle, exact)
    worst = 0.0
    for form, actual in actuals:
        verdict = accept(np.asarray(actual, f32), value)
        wrong = np.argwhere(~verdict.ok)
        detail = [
            (actual[tuple(w)], value.value[tuple(w)], value.error[tuple(w)]) for w in wrong[:3]
        ]
        assert verdict.ok.all(), (form, detail)
        worst = max(worst, float(verdict.ratio.max(initial=0.0)))
    return worst, value


def once(function, x):
    """A float32 function computed in float64 and rounded once."""
    return np.asarray(function(np.asarray(x, np.float64)), f32)


def fma(a, b, c):
    return np.asarray(np.float64(a) * np.float64(b) + np.float64(c), f32)


# Sums -------------------------------------------------------------------------------------------


def fold(x):
    return np.add.accumulate(x, axis=-1, dtype=f32)[..., -1]


def tree(x):
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros_like(x[..., :1])], -1)
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def lanes(x, block=16):
    """A tile of running sums, then a tree: Triton's usual shape of a sum."""
    pad = -x.shape[-1] % block
    x = np.concatenate([x, np.zeros((*x.shape[:-1], pad), f32)], -1)
    return tree(fold(np.moveaxis(x.reshape(*x.shape[:-1], -1, block), -2, -1)))


SUMS = {"fold": fold, "back": lambda x: fold(x[..., ::-1]), "tree": tree, "lanes": lanes}


def all_orders(combine, leaves):
    """Every value a binary tree over all leaves, in any order, can have."""
    results = {frozenset([i]): {leaf} for i, leaf in enumerate(leaves)}
    whole = range(len(leaves))
    for size in range(2, len(leaves) + 1):
        for chosen in combinations(whole, size):
            parts = frozenset(chosen)
            found = set()
            for left_size in range(1, size):
                for left in combinations(chosen, left_size):
                    right = parts - frozenset(left)
                    found |= {
                        combine(a, b) for a in results[frozenset(left)] for b in results[right]
                    }
            results[parts] = found
    return results[frozenset(whole)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_every_order_of_a_small_sum(kind, count):
    rng = np.random.default_rng(count)
    for _ in range(6):
        x = draw(rng, (count,), kind)
        orders = all_orders(lambda a, b: f32(a + b), list(x))
        judge(lambda m, x: m.sum(x), [("order", y) for y in orders], x=x)


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_of_a_small_mean_and_variance(kind):
    """Leaves are (count, mean, sum of squares): every tree of Chan's and Welford's merges."""
    rng = np.random.default_rng(5)

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


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_of_a_small_dot(kind):
    rng = np.random.default_rng(6)
    for _ in range(6):
        a, b = draw(rng, (4,), kind), draw(rng, (4,), kind)
        orders = all_orders(lambda p, q: f32(p + q), list(a * b))
        fused = f32(0)
        for i in range(4):
            fused = f32(np.float64(a[i]) * np.float64(b[i]) + np.float64(fused))
        actuals = [("order", y) for y in (*orders, fused)]
        judge(lambda m, a, b: m.dot(a, b), actuals, a=a, b=b)
        judge(lambda a, b: (a * b).sum(), actuals, a=a, b=b)
        judge(lambda a, b: np.einsum("i,i->", a, b), actuals, a=a, b=b)


SIZES = (1, 2, 7, 33, 300)


def rows(rng, kind, count):
    return draw(rng, (6, count), kind)


def each_kind(seed=0):
    for kind in KINDS:
        for count in SIZES:
            yield kind, rows(np.random.default_rng([seed, count, KINDS.index(kind)]), kind, count)


def test_sums_and_running_sums():
    for _, x in each_kind():
        judge(lambda m, x: m.sum(x, axis=-1), [(n, f(x)) for n, f in SUMS.items()], x=x)
        scans = [("fold", np.add.accumulate(x, axis=-1, dtype=f32)), ("tree", doubling(x))]
        judge(lambda x: np.cumsum(x, axis=-1), [*scans, ("blocks", blocked(x))], x=x)


def doubling(x):
    x, step = x.copy(), 1
    while step < x.shape[-1]:
        moved = x.copy()
        moved[..., step:] = x[..., :-step] + x[..., step:]
        x, step = moved, 2 * step
    return x


def blocked(x, block=8):
    carry, parts = np.zeros(x.shape[:-1], f32), []
    for start in range(0, x.shape[-1], block):
        part = doubling(x[..., start : start + block]) + carry[..., None]
        carry = part[..., -1]
        parts.append(part)
    return np.concatenate(parts, -1)


# Softmax and log-sum-exp ------------------------------------------------------------------------


def softmax_forms(x):
    exp, exp2 = (lambda t: once(np.exp, t)), (lambda t: once(np.exp2, t))
    peak = x.max(-1, keepdims=True)
    for name, total in SUMS.items():
        weights = exp(x - peak)
        yield f"whole {name}", weights / total(weights)[..., None]
        yield f"reciprocal {name}", weights * (f32(1) / total(weights)[..., None])
        weights = exp2((x - peak) * LOG2E)
        yield f"exp2 {name}", weights / total(weights)[..., None]
        scaled = x * LOG2E
        weights = exp2(scaled - scaled.max(-1, keepdims=True))
        yield f"exp2 scaled {name}", weights / total(weights)[..., None]
        weights = exp2(fma(x, LOG2E, -scaled.max(-1, keepdims=True)))
        yield f"exp2 fused {name}", weights / total(weights)[..., None]
    for block in (1, 5, 16):
        for base, factor in ((exp, f32(1)), (exp2, LOG2E)):
            peak, total = online(x * factor, base, block)
            yield f"online {block}", base(x * factor - peak[..., None]) / total[..., None]
    peak = x.max(-1, keepdims=True)
    sums = peak + once(np.log, lanes(exp(x - peak)))[..., None]
    yield "by log-sum-exp", exp(x - sums)


def online(x, base, block):
    """Running maximum and sum over blocks."""
    peak, total = np.full(x.shape[:-1], -np.inf, f32), np.zeros(x.shape[:-1], f32)
    for start in range(0, x.shape[-1], block):
        part = x[..., start : start + block]
        newer = np.maximum(peak, part.max(-1))
        total = total * base(peak - newer) + tree(base(part - newer[..., None]))
        peak = newer
    return peak, total


def softmax_oracle(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def softmax_numpy(x):
    e = np.exp(x - x.max(-1)[:, None])
    return e / e.sum(-1)[:, None]


@np.errstate(all="ignore")
def test_softmax_in_every_form():
    for kind, x in each_kind(1):
        if kind == "wide":
            x = np.asarray(np.clip(x, -1e4, 1e4), f32)
        forms = list(softmax_forms(x))
        for oracle in (softmax_oracle, softmax_numpy, lambda m, x: m.softmax(x, axis=-1)):
            judge(oracle, forms, x=x)


def lse_forms(x):
    exp, log = (lambda t: once(np.exp, t)), (lambda t: once(np.log, t))
    peak = x.max(-1)
    for name, total in SUMS.items():
        yield f"whole {name}", peak + log(total(exp(x - peak[..., None])))
    for block in (1, 5, 16):
        running, total = online(x, exp, block)
        yield f"online {block}", running + log(total)
        parts = []
        for start in range(0, x.shape[-1], block * 8):
            running, total = online(x[..., start : start + block * 8], exp, block)
            parts.append(running + log(total))
        part = np.stack(parts, -1)
        yield f"merged {block}", part.max(-1) + log(fold(exp(part - part.max(-1)[..., None])))
    scaled = x * LOG2E
    running, total = online(scaled, lambda t: once(np.exp2, t), 16)
    yield "base 2", (running + once(np.log2, total)) * f32(math.log(2))


@np.errstate(all="ignore")
def test_log_sum_exp_in_every_form():
    def written(m, x):
        peak = m.max(x, axis=-1, keepdims=True)
        return (peak + m.log(m.sum(m.exp(x - peak), axis=-1, keepdims=True)))[:, 0]

    for kind, x in each_kind(2):
        if kind == "wide":
            x = np.asarray(np.clip(x, -1e4, 1e4), f32)
        forms = list(lse_forms(x))
        judge(lambda m, x: m.logsumexp(x, axis=-1), forms, x=x)
        judge(written, forms, x=x)
        direct = [(n, x - y[..., None]) for n, y in forms]
        judge(lambda m, x: m.log_softmax(x, axis=-1), direct, x=x)


def attention_forms(q, k, v):
    exp = lambda t: once(np.exp, t)  # noqa: E731
    scale = f32(q.shape[-1] ** -0.5)
    score = np.stack([fold(q * row) for row in k], -1) * scale
    yield "whole", weighted(softmax_rows(score), v)
    for block in (1, 4, 16):
        peak, total, acc = flash(score, v, block, exp)
        yield f"flash {block}", acc / total[:, None]
        base2 = score / scale * f32(scale * LOG2E)
        _, total2, acc2 = flash(base2, v, block, lambda t: once(np.exp2, t))
        yield f"flash base 2 {block}", acc2 / total2[:, None]
    half = (k.shape[0] + 1) // 2
    outs, sums = [], []
    for part in (slice(0, half), slice(half, None)):
        if score[:, part].shape[1]:
            peak, total, acc = flash(score[:, part], v[part], 4, exp)
            outs.append(acc / total[:, None])
            sums.append(peak + once(np.log, total))
    sums = np.stack(sums, -1)
    weights = exp(sums - sums.max(-1, keepdims=True))
    merged = sum(w[:, None] * o for w, o in zip(weights.T, outs, strict=True))
    yield "split and merged", merged / fold(weights)[:, None]


def softmax_rows(score):
    weights = once(np.exp, score - score.max(-1, keepdims=True))
    return weights / tree(weights)[..., None]


def weighted(p, v):
    acc = np.zeros((p.shape[0], v.shape[1]), f32)
    for j in range(v.shape[0]):
        acc = fma(p[:, j, None], v[j], acc)
    return acc


def flash(score, v, block, base):
    peak, total = np.full(score.shape[0], -np.inf, f32), np.zeros(score.shape[0], f32)
    acc = np.zeros((score.shape[0], v.shape[1]), f32)
    for start in range(0, score.shape[1], block):
        part = score[:, start : start + block]
        newer = np.maximum(peak, part.max(-1))
        weights, old = base(part - newer[:, None]), base(peak - newer)
        total = total * old + tree(weights)
        acc = acc * old[:, None] + weighted(weights, v[start : start + block])
        peak = newer
    return peak, total, acc


@np.errstate(all="ignore")
def test_attention_in_every_form():
    def oracle(m, q, k, v):
        return m.softmax(q @ k.T * q.shape[-1] ** -0.5, axis=-1) @ v

    for count in (1, 2, 9, 40):
        for scale in (1.0, 10.0, 300.0):
            rng = np.random.default_rng([count, int(scale)])
            q = draw(rng, (5, 8), "normal") * f32(scale)
            k, v = draw(rng, (count, 8), "normal"), draw(rng, (count, 3), "normal")
            judge(oracle, list(attention_forms(q, k, v)), q=q, k=k, v=v)


# Mean, variance, layer norm ---------------------------------------------------------------------


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


# Products and recurrences -----------------------------------------------------------------------


def test_matrix_products_in_every_form():
    for kind in KINDS:
        for count in (1, 5, 64):
            rng = np.random.default_rng([count, KINDS.index(kind)])
            a, b = draw(rng, (4, count), kind), draw(rng, (count, 3), "normal")
            products = a[:, None, :] * b.T[None]
            forms = [(n, f(products)) for n, f in SUMS.items()]
            forms.append(("fused", weighted(a, b)))
            half = count // 2
            split = weighted(a[:, :half], b[:half]) + weighted(a[:, half:], b[half:])
            judge(lambda a, b: a @ b, [*forms, ("split", split)], a=a, b=b)
            judge(lambda a, b: np.einsum("ik,kj->ij", a, b), forms, a=a, b=b)


def scan_forms(a, b):
    state, fold_states, fused_states, fused = 0, [], [], np.zeros_like(a[..., 0])
    for t in range(a.shape[-1]):
        state = a[..., t] * state + b[..., t]
        fused = fma(a[..., t], fused, b[..., t])
        fold_states.append(state)
        fused_states.append(fused)
    yield "fold", np.stack(fold_states, -1)
    yield "fused", np.stack(fused_states, -1)
    yield "tree", associative(a, b)[1]
    for block in (3, 16):
        parts, carry = [], np.zeros_like(a[..., :1])
        for start in range(0, a.shape[-1], block):
            decay, part = associative(a[..., start : start + block], b[..., start : start + block])
            part = decay * carry + part
            carry = part[..., -1:]
            parts.append(part)
        yield f"chunks {block}", np.concatenate(parts, -1)


def associative(a, b):
    a, b, step = a.copy(), b.copy(), 1
    while step < a.shape[-1]:
        older_a, older_b = a.copy(), b.copy()
        b[..., step:] = older_a[..., step:] * older_b[..., :-step] + older_b[..., step:]
        a[..., step:] = older_a[..., step:] * older_a[..., :-step]
        step *= 2
    return a, b


@np.errstate(all="ignore")
def test_linear_recurrences_in_every_form():
    for kind, b in each_kind(4):
        rng = np.random.default_rng(len(kind))
        for a in (rng.random(b.shape), rng.standard_normal(b.shape), rng.integers(-1, 2, b.shape)):
            a = np.asarray(a, f32)
            oracle = lambda m, a, b: m.linear_scan(a, b)  # noqa: E731
            judge(oracle, list(scan_forms(a, b)), a=a, b=b)


def test_products_of_prefixes():
    for kind, x in each_kind(6):
        if kind in ("wide", "offset", "subnormal"):
            continue
        forms = [("fold", np.multiply.accumulate(x, axis=-1, dtype=f32))]
        doubled, step = x.copy(), 1
        while step < x.shape[-1]:
            older = doubled.copy()
            doubled[..., step:] = older[..., :-step] * older[..., step:]
            step *= 2
        judge(lambda m, x: m.cumprod(x, axis=-1), [*forms, ("tree", doubled)], x=x)


# Order ------------------------------------------------------------------------------------------


def test_order_statistics_of_computed_numbers():
    for kind, x in each_kind(7):
        if kind == "wide":
            continue
        y = x * f32(0.3) + f32(1)
        fused = fma(x, f32(0.3), f32(1))
        for name, function in {
            "max": lambda t: t.max(-1),
            "min": lambda t: t.min(-1),
            "sort": lambda t: np.sort(t, -1),
            "topk": lambda t: -np.sort(-t, -1)[..., : min(3, t.shape[-1])],
        }.items():
            oracle = {
                "max": lambda m, x: m.max(x * 0.3 + 1, axis=-1),
                "min": lambda m, x: m.min(x * 0.3 + 1, axis=-1),
                "sort": lambda m, x: m.sort(x * 0.3 + 1, axis=-1),
                "topk": lambda m, x: m.topk(x * 0.3 + 1, min(3, x.shape[-1]))[0],
            }[name]
            judge(oracle, [("plain", function(y)), ("fused", function(fused))], x=x)


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort"])
def test_indices_are_right_or_in_doubt(name):
    for kind, x in each_kind(8):
        (value,) = evaluate(
            lambda m, x: getattr(m, name)(x * 0.3 + 1, axis=-1), {"x": x.astype(np.float64)}
        )
        for y in (x * f32(0.3) + f32(1), fma(x, f32(0.3), f32(1))):
            options = {"kind": "stable"} if name == "argsort" else {}
            actual = getattr(np, name)(y, axis=-1, **options)
            assert accept(actual, value).ok.all(), kind
        (exact,) = evaluate(lambda m, x: getattr(m, name)(x, axis=-1), {"x": x.astype(np.float64)})
        assert exact.error is None, "exact numbers leave no doubt: ties go to the first index"
