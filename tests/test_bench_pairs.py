"""The planted pairs: as many as promised, and both sides of each compute the same."""

import importlib
import pkgutil
import random
from collections import Counter

import numpy as np
import pytest
import torch

from trivet.fixtures.perf import pairs
from trivet.fixtures.perf.pairs._pair import Draw
from trivet.properties._expect import interval
from trivet.simulator.executors import Simulator

NAMES = [m.name for m in pkgutil.iter_modules(pairs.__path__) if not m.name.startswith("_")]
MODULES = {n: importlib.import_module(f"{pairs.__name__}.{n}") for n in NAMES}
PAIRS = {name: module.PAIR for name, module in MODULES.items()}
GLUON = {name for name in NAMES if name.startswith("gluon")}
# Another order of the sum, or another width of the exponential: rounded otherwise.
ROUNDED = {"softmax_double_exponential", "softmax_extra_reduction", "softmax_three_passes"}


def softmax(m, x):
    power = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return power / m.sum(power, axis=-1, keepdims=True)


def results(side):
    run = Simulator(sanitize=False).run(side.launch, side.inputs(Draw()))
    assert run.error is None
    return run.outputs[0].reshape(-1)


def test_all_planted_regressions_and_enough_neutral_edits_are_there():
    kinds = Counter(pair.kind for pair in PAIRS.values())
    numbers = [pair.number for pair in PAIRS.values() if pair.kind == "regression"]
    assert kinds == {"regression": 36, "neutral": 37, "held_out": 10}
    assert len(set(numbers)) == 36


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_says_in_one_sentence_what_the_edit_does(name):
    sentence, _, rest = MODULES[name].__doc__.partition("\n")
    assert sentence.endswith(".")
    assert rest == ""


def sampled(names, size=16):
    """A few in CI, drawn by a seed, the rest at night."""
    chosen = set(random.Random(8).sample(names, size))
    return [n if n in chosen else pytest.param(n, marks=pytest.mark.night) for n in names]


@pytest.mark.parametrize("name", sampled(sorted(set(NAMES) - GLUON)))
def test_both_sides_of_a_pair_compute_the_same(name):
    pair = PAIRS[name]
    base, candidate = results(pair.base), results(pair.candidate)
    if name in ROUNDED:
        value, error = interval(softmax, x=pair.base.inputs(Draw())["x"].numpy())
        for side in (base, candidate):
            assert (np.abs(side.numpy() - value.reshape(-1)) <= error.reshape(-1)).all()
        return
    shared = min(len(base), len(candidate))
    assert shared > 0
    assert torch.equal(base[:shared], candidate[:shared])


def test_large_draws_take_no_time_and_small_ones_are_repeatable():
    draw = Draw()
    assert torch.equal(draw.floats(8, 8), draw.floats(8, 8))
    assert draw.integers(3, 100).max() == 2
    assert Draw(large=True, filled=False).floats(1 << 20, 1 << 10).numel() == 1 << 30
