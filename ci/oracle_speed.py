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

import mpmath
import numpy as np

from trivet.oracles._evaluate import evaluate, evaluate_float64
from trivet.oracles._exact import BITS

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


def _exact_softmax(row: list[Any]) -> list[Any]:
    largest = max(row)
    weights = [mpmath.exp(x - largest) for x in row]
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


def _exact_log_softmax(row: list[Any]) -> list[Any]:
    total = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in row))
    return [x - total for x in row]


def _exact_layer_norm(row: list[Any]) -> list[Any]:
    mean = mpmath.fsum(row) / len(row)
    variance = mpmath.fsum((x - mean) ** 2 for x in row) / len(row)
    rate = 1 / mpmath.sqrt(variance + mpmath.mpf(1e-5))
    return [(x - mean) * rate for x in row]


def _exact_gelu(row: list[Any]) -> list[Any]:
    scale = mpmath.sqrt(2 / mpmath.pi)
    return [x * (1 + mpmath.tanh(scale * (x + 0.044715 * x**3))) / 2 for x in row]


FORMULAS: dict[str, tuple[Callable[..., Any], Callable[[list[Any]], list[Any]]]] = {
    "softmax": (softmax, _exact_softmax),
    "log_softmax": (log_softmax, _exact_log_softmax),
    "layer_norm": (layer_norm, _exact_layer_norm),
    "gelu": (gelu, _exact_gelu),
}


def speeds() -> dict[str, dict[str, float]]:
    """Elements a second by formula and number system."""
    drawn = np.random.default_rng(0).standard_normal(_SHAPE).astype(np.float32)
    x = drawn.astype(np.float64)
    few = [[mpmath.mpf(v) for v in row] for row in x[: _FEW[0], : _FEW[1]].tolist()]
    found = {}
    for name, (oracle, exact) in FORMULAS.items():
        found[name] = {
            "bounded": _rate(partial(evaluate, oracle, {"x": x}), x.size),
            "float64": _rate(partial(evaluate_float64, oracle, {"x": x}), x.size),
            "mpmath": _rate(partial(_exactly, exact, few), len(few) * len(few[0])),
        }
    return found


def _exactly(exact: Callable[[list[Any]], list[Any]], rows: list[list[Any]]) -> None:
    with mpmath.workprec(BITS):
        for row in rows:
            exact(row)


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
