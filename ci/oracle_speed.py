"""How many output elements a second oracles give, in each number system.

    python -m trivet.ci.oracle_speed [--json]

One oracle in bounded arithmetic, in float64 and in mpmath at 113 bits, on rows as gates have
them; the best of several runs, in processor time of one thread.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from trivet.oracles._evaluate import evaluate, evaluate_float64
from trivet.oracles._multiprecision import evaluate_mpmath

_SHAPE = (256, 1024)
_FEW = (2, 256)
_RUNS = 7


def softmax(m: Any, x: Any) -> Any:
    """exp(x - max) over its sum."""
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def log_softmax(m: Any, x: Any) -> Any:
    """x less the logarithm of the sum of exponentials."""
    return x - m.logsumexp(x, axis=-1, keepdims=True)


def layer_norm(m: Any, x: Any) -> Any:
    """Rows less their mean over the root of their variance."""
    difference = x - m.mean(x, axis=-1, keepdims=True)
    return difference * m.rsqrt(m.mean(difference * difference, axis=-1, keepdims=True) + 1e-5)


def gelu(m: Any, x: Any) -> Any:
    """x times the normal distribution function, in its tanh form."""
    return m.gelu(x, approximate="tanh")


FORMULAS = (softmax, log_softmax, layer_norm, gelu)


def speeds() -> dict[str, dict[str, float]]:
    """Elements a second by formula and number system."""
    drawn = np.random.default_rng(0).standard_normal(_SHAPE).astype(np.float32)
    x = drawn.astype(np.float64)
    few = x[: _FEW[0], : _FEW[1]]
    return {
        oracle.__name__: {
            "bounded": _rate(partial(evaluate, oracle, {"x": x}), x.size),
            "float64": _rate(partial(evaluate_float64, oracle, {"x": x}), x.size),
            "mpmath": _rate(partial(evaluate_mpmath, oracle, {"x": few}), few.size),
        }
        for oracle in FORMULAS
    }


def _rate(run: Callable[[], object], elements: int) -> float:
    best = float("inf")
    for _ in range(_RUNS):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return elements / max(best, 1e-9)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m trivet.ci.oracle_speed")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    found = speeds()
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    systems = list(next(iter(found.values())))
    print("| million elements a second | " + " | ".join(systems) + " |")
    print("|---" * (len(systems) + 1) + "|")
    for name, rates in found.items():
        print(f"| {name} | " + " | ".join(f"{rates[s] / 1e6:.3g}" for s in systems) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
