"""The closed-form continuous-time cell over a sequence of steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet import Tensor, sizes
from trivet.ci._power.inputs import Random, draw, spread_exponents, usual
from trivet.ci._power.numbers import (
    Arguments,
    Array,
    bfloat16,
    f32,
    once,
    same,
    tf32,
    tree_depth,
    tree_sum,
)
from trivet.ci._power.workload import Output, Promise, Workload
from trivet.oracles import cfc
from trivet.properties.cfc.inputs import ARGS

_FEATURES, _HIDDEN = 32, 64


def _rows(weights: Array, state: Array) -> Array:
    return tree_sum(state[:, None, :] * weights[None])


def _rows_tf32(weights: Array, state: Array) -> Array:
    return _rows(tf32(weights), tf32(state))


def _rows_fp16(weights: Array, state: Array) -> Array:
    return tree_sum(state[:, None, :] * weights[None], np.float16)


def _rows_blas(weights: Array, state: Array) -> Array:
    product: Array = state @ weights.T
    return product


def _rows_short(weights: Array, state: Array) -> Array:
    return (
        _rows(weights, state) if state.shape[1] < _HIDDEN else _rows(weights[:, :-1], state[:, :-1])
    )


def _tanh(x: Array) -> Array:
    return once(np.tanh, x)


@dataclass(frozen=True)
class _Variant:
    """One way to compute the cell."""

    product: Callable[[Array, Array], Array] = _rows
    tanh: Callable[[Array], Array] = _tanh
    store: Callable[[Array], Array] = same
    fresh_by_expm1: bool = False
    stale: bool = False

    def __call__(self, arguments: Arguments) -> Array:
        h = before = arguments["h"]
        states = []
        for step in range(arguments["x"].shape[1]):
            drive = self.product(arguments["W"], arguments["x"][:, step])
            drive = drive + self.product(arguments["U"], h) + arguments["b"]
            age = -(arguments["dt"][:, step, None] / arguments["tau"])
            decay = once(np.exp, age)
            fresh = -once(np.expm1, age) if self.fresh_by_expm1 else f32(1) - decay
            held = before if self.stale else h
            before, h = h, self.store(held * decay + fresh * self.tanh(drive))
            states.append(h)
        return np.stack(states, 1)


class Cell(Workload):
    """x (cases, T, 32), W (64, 32), U (64, 64), b and tau (64,), dt (cases, T), h (cases, 64).

    The output has every state, (cases, T, 64). `exact_fresh`: the contract wants 1 - exp(-dt/tau)
    by expm1.
    """

    unbatched = ("W", "U", "b", "tau")

    uses_functions = True

    def __init__(self, steps: int, cases: int, batches: int, *, exact_fresh: bool = False) -> None:
        self.name = "cfc expm1 plan" if exact_fresh else f"cfc H={_HIDDEN} T={steps}"
        self.steps, self.cases, self.batches = steps, cases, batches
        self.exact_fresh = exact_fresh
        features, hidden = sizes(_FEATURES, _FEATURES), sizes(_HIDDEN, _HIDDEN)
        self.dims = {"T": sizes(1, steps), "D": features, "H": hidden}
        approx = () if exact_fresh else ("expm1",)
        # Two sums and two additions: of the products over x, those over h, and the bias.
        self.promise = Promise(tree_depth(_HIDDEN) + 2, approx)

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """A sequence of a kind; weights are normal, dt from 1e-2 to 10, where wide from 1e-6."""
        x = draw(rng, (cases, self.steps, _FEATURES), usual(kind, "wide", "subnormal"))
        x = x / f32(1e3) if kind == "offset" else x
        low = -6 if kind in ("wide", "subnormal") else -2
        return {
            "x": x,
            "W": draw(rng, (_HIDDEN, _FEATURES), "normal") / f32(_FEATURES**0.5),
            "U": draw(rng, (_HIDDEN, _HIDDEN), "normal") / f32(_HIDDEN**0.5),
            "b": draw(rng, (_HIDDEN,), "normal"),
            "dt": spread_exponents(rng, (cases, self.steps), low, 1),
            "tau": once(np.exp, draw(rng, (_HIDDEN,), "normal")),
            "h": draw(rng, (cases, _HIDDEN), "normal"),
        }

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Those of the shipped contract of one step."""
        shapes = {
            "x": ("T D", "x"),
            "W": ("H D", "W_in"),
            "U": ("H H", "W_rec"),
            "b": ("H", "b"),
            "dt": ("T", "dt"),
            "tau": ("H", "tau"),
            "h": ("H", "h"),
        }
        return {
            name: Tensor(shape, dtypes=(dtype,), domain=ARGS[shipped].domain)
            for name, (shape, shipped) in shapes.items()
        }

    def oracle(self) -> Callable[..., Any]:
        """The shipped oracle of one step, from state to state."""

        def states(m: Any, x: Any, W: Any, U: Any, b: Any, dt: Any, tau: Any, h: Any) -> Any:
            found = []
            for step in range(x.shape[1]):
                h = cfc.step(m, x[:, step], h, dt[:, step], W, U, b, tau)
                found.append(h)
            return m.stack(found, axis=1)

        return states

    def right(self, arguments: Arguments) -> Array:
        """Tree sums; 1 - exp or expm1, as the contract asks."""
        return _Variant(fresh_by_expm1=self.exact_fresh)(arguments)

    def native(self, arguments: Arguments) -> Array:
        """torch, step by step."""
        import torch

        given = {name: torch.from_numpy(value) for name, value in arguments.items()}
        h, states = given["h"], []
        for step in range(arguments["x"].shape[1]):
            drive = given["x"][:, step] @ given["W"].T + h @ given["U"].T + given["b"]
            age = -given["dt"][:, step, None] / given["tau"]
            decay = age.exp()
            fresh = -torch.expm1(age) if self.exact_fresh else 1 - decay
            h = h * decay + fresh * drive.tanh()
            states.append(h)
        result: Array = torch.stack(states, 1).numpy()
        return result

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """Matrix products of NumPy; expm1 where it is not asked for."""
        blas = _Variant(_rows_blas, fresh_by_expm1=self.exact_fresh)
        yield Output("blas", blas(arguments))
        yield Output("expm1", _Variant(fresh_by_expm1=True)(arguments), declared=True)

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow formats, lost terms, stale states, a factor, a rough tanh; 1 - exp for expm1."""
        if self.exact_fresh:
            yield "1-exp(-x) for -expm1(-x)", _Variant()(arguments)
            return
        noise = np.random.default_rng(5)

        def rough(x: Array) -> Array:
            factor = 1 + noise.uniform(-1, 1, x.shape) * 2.0**-11
            return (np.tanh(x.astype(np.float64)) * factor).astype(f32)

        variants = {
            "fp16 accumulator": _Variant(_rows_fp16),
            "bf16 tanh": _Variant(tanh=lambda x: bfloat16(_tanh(x))),
            "bf16 state": _Variant(store=bfloat16),
            "tf32 inputs": _Variant(_rows_tf32),
            "tanh.approx (2^-11)": _Variant(tanh=rough),
            "dropped last term": _Variant(_rows_short),
            "stale state": _Variant(stale=True),
        }
        yield from ((name, variant(arguments)) for name, variant in variants.items())
        yield "x(1+1e-5)", self.right(arguments) * f32(1 + 1e-5)
