"""Softmax, log-sum-exp and attention in every stable form: no right one is refused."""

import math

import numpy as np
from tests.forms.float32 import (
    LOG2E,
    SUMS,
    draw,
    each_kind,
    f32,
    fma,
    fold,
    generator,
    judge,
    lanes,
    once,
    tree,
    weighted,
)


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
            rng = generator(count, int(scale))
            q = draw(rng, (5, 8), "normal") * f32(scale)
            k, v = draw(rng, (count, 8), "normal"), draw(rng, (count, 3), "normal")
            judge(oracle, list(attention_forms(q, k, v)), q=q, k=k, v=v)
