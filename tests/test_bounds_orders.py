"""Sums, products, recurrences and order statistics in every order: no right one is refused."""

import numpy as np
import pytest
from tests.forms.float32 import (
    KINDS,
    SUMS,
    all_orders,
    draw,
    each_kind,
    f32,
    fma,
    generator,
    judge,
    weighted,
)

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate
from trivet.oracles._precision import Precision


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_every_order_of_a_small_sum(kind, count):
    rng = generator(count)
    for _ in range(6):
        x = draw(rng, (count,), kind)
        orders = all_orders(lambda a, b: f32(a + b), list(x))
        judge(lambda m, x: m.sum(x), [("order", y) for y in orders], x=x)


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_of_a_small_dot(kind):
    rng = generator(6)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, 4])
def test_a_sum_written_out_demands_no_order(kind, count):
    def in_a_loop(x):
        total = np.zeros((2,))
        for number in x:
            total[1] = total[1] + number
        return total[1]

    rng = generator(count)
    for _ in range(4):
        x = draw(rng, (count,), kind)
        orders = [("order", y) for y in all_orders(lambda a, b: f32(a + b), list(x))]
        judge(lambda x: sum(x[i] for i in range(len(x))), orders, x=x)
        judge(in_a_loop, orders, x=x)


def test_a_sum_exact_in_the_order_written_is_not_exact_in_every_order():
    (value,) = evaluate(lambda a, b, c: a + b + c, {"a": 2.0**27, "b": -(2.0**27), "c": 1.5})
    assert value.value == 1.5
    assert accept(f32(0.0), value).ok
    (whole,) = evaluate(lambda a, b, c: a + b + c, {"a": 2.0**23, "b": -7.0, "c": 3.0})
    assert whole.error == 0


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


def test_matrix_products_in_every_form():
    for kind in KINDS:
        for count in (1, 5, 64):
            rng = generator(count, KINDS.index(kind))
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
        rng = generator(len(kind))
        for a in (rng.random(b.shape), rng.standard_normal(b.shape), rng.integers(-1, 2, b.shape)):
            a = np.asarray(a, f32)
            oracle = lambda m, a, b: m.linear_scan(a, b)  # noqa: E731
            judge(oracle, list(scan_forms(a, b)), a=a, b=b)


@np.errstate(all="ignore")
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


def test_running_sums_of_a_part_as_differences_of_the_whole():
    def reference(x):
        return x[..., 5:].cumsum(-1)

    loose, refused = Precision(approx=("cumsum",)), False
    for _, x in each_kind():
        whole = np.add.accumulate(x, axis=-1, dtype=f32)
        difference = whole[..., 5:] - whole[..., 4:5]
        exact = {"x": x.astype(np.float64)}
        (value,) = evaluate(reference, exact, precision=loose)
        assert accept(difference, value).ok.all()
        (strict,) = evaluate(reference, exact)
        refused |= not accept(difference, strict).ok.all()
    assert refused
