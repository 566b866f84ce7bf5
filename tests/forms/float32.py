"""float32 executions: inputs of eight kinds, sums in several orders, and the judge of results."""

import math
from itertools import combinations

import numpy as np

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import evaluate

f32 = np.float32
LOG2E = f32(math.log2(math.e))
KINDS = ("normal", "wide", "constant", "cancelling", "integers", "subnormal", "offset", "positive")


SEED = [0]  # changed by the night's runs
JUDGED = {"elements": 0, "worst": 0.0}


def generator(*key):
    return np.random.default_rng([*SEED, *key])


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
        JUDGED["elements"] += verdict.ok.size
    JUDGED["worst"] = max(JUDGED["worst"], worst)
    return worst, value


def once(function, x):
    """A float32 function computed in float64 and rounded once."""
    return np.asarray(function(np.asarray(x, np.float64)), f32)


def fma(a, b, c):
    return np.asarray(np.float64(a) * np.float64(b) + np.float64(c), f32)


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


SIZES = (1, 2, 7, 33, 300)


def rows(rng, kind, count):
    return draw(rng, (6, count), kind)


def each_kind(seed=0):
    for kind in KINDS:
        for count in SIZES:
            yield kind, rows(generator(seed, count, KINDS.index(kind)), kind, count)


def weighted(p, v):
    acc = np.zeros((p.shape[0], v.shape[1]), f32)
    for j in range(v.shape[0]):
        acc = fma(p[:, j, None], v[j], acc)
    return acc
