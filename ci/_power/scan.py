"""A state-space scan: h_t = a_t h_(t-1) + b_t x_t, y_t = <c_t, h_t>."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trivet import Tensor, reals, sizes
from trivet.ci._power.inputs import Random, draw, usual
from trivet.ci._power.numbers import (
    Arguments,
    Array,
    bfloat16,
    f32,
    float16,
    once,
    same,
    tf32,
    tree_sum,
)
from trivet.ci._power.workload import Output, Promise, Workload

_STEPS, _STATES, _CHUNK = 256, 8, 64
_CHUNKS = _STEPS // _CHUNK


class Scan(Workload):
    """x (cases, 256, 1), a, b and c (cases, 256, 8), out (cases, 256)."""

    name = f"ssm scan T={_STEPS}"
    # Six levels within a chunk, and one addition where a chunk takes what came before.
    promise = Promise(depth=int(np.log2(_CHUNK)) + _CHUNKS)

    def __init__(self, cases: int, batches: int) -> None:
        self.cases, self.batches = cases, batches
        self.dims = {"T": sizes(_STEPS, _STEPS), "S": sizes(_STATES, _STATES)}

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """Inputs of a kind, normal b and c, decays from 1e-4 to 10 in the exponent."""
        shape = (cases, _STEPS, _STATES)
        x = draw(rng, (cases, _STEPS, 1), usual(kind, "wide", "subnormal", "offset"))
        a = once(np.exp, -(10.0 ** rng.uniform(-4, 1, shape)))
        if kind == "wide":
            a = np.where(rng.random(shape) < 0.5, -a, a)
        return {"x": x, "a": a, "b": draw(rng, shape, "normal"), "c": draw(rng, shape, "normal")}

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """Decays from 0 to 1, the rest of ordinary size."""
        states = {name: Tensor("T S", dtypes=(dtype,)) for name in "bc"}
        decays = Tensor("T S", dtypes=(dtype,), domain=reals(0, 1))
        return {"x": Tensor("T 1", dtypes=(dtype,)), "a": decays, **states}

    def oracle(self) -> Callable[..., Any]:
        """The recurrence in any association, then the sum over states."""

        def scan(m: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
            return m.sum(m.linear_scan(a, b * x, axis=1) * c, axis=-1)

        return scan

    def right(self, arguments: Arguments) -> Array:
        """Associative within chunks of 64, one chunk after the other."""
        return _chunked(arguments)

    def native(self, arguments: Arguments) -> Array:
        """torch.addcmul, step by step."""
        import torch

        x, a, b, c = (torch.from_numpy(arguments[name]) for name in "xabc")
        h, found = torch.zeros(a[:, 0].shape), []
        for step in range(_STEPS):
            h = torch.addcmul(b[:, step] * x[:, step], a[:, step], h)
            found.append((h * c[:, step]).sum(-1))
        result: Array = torch.stack(found, 1).numpy()
        return result

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """One step after the other, from float32 and from fused steps."""
        for name, rounded in (("sequential", True), ("fma", False)):
            yield Output(name, _sequential(arguments, rounded=rounded))

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Narrow formats, lost inputs, a stale carry, a factor."""
        yield "fp16 state", _chunked(arguments, store=float16)
        yield "bf16 decay", _chunked({**arguments, "a": bfloat16(arguments["a"])})
        narrow = {name: tf32(arguments[name]) for name in "bx"}
        yield "tf32 inputs", _chunked({**arguments, **narrow})
        lost = arguments["b"].copy()
        lost[:, _CHUNK - 1 :: _CHUNK] = 0
        yield "dropped input", _chunked({**arguments, "b": lost})
        yield "stale chunk", _chunked(arguments, stale=True)
        yield "x(1+1e-5)", self.right(arguments) * f32(1 + 1e-5)


def _chunked(
    arguments: Arguments, *, store: Callable[[Array], Array] = same, stale: bool = False
) -> Array:
    a, product = arguments["a"], arguments["b"] * arguments["x"]
    shape = (a.shape[0], _CHUNKS, _CHUNK, _STATES)
    decay, state = _associative(a.reshape(shape), product.reshape(shape), store)
    carries = [np.zeros((a.shape[0], _STATES), f32)]
    chunks = []
    for index in range(_CHUNKS):
        late = stale and index == _CHUNKS - 1
        carry = carries[-2 if late else -1][:, None]
        chunks.append(store(decay[:, index] * carry + state[:, index]))
        carries.append(chunks[-1][:, -1])
    return tree_sum(np.concatenate(chunks, 1) * arguments["c"])


def _associative(
    decay: Array, state: Array, store: Callable[[Array], Array]
) -> tuple[Array, Array]:
    reach = 1
    while reach < _CHUNK:
        later, earlier = np.s_[:, :, reach:], np.s_[:, :, :-reach]
        wider, longer = state.copy(), decay.copy()
        wider[later] = store(decay[later] * state[earlier] + state[later])
        longer[later] = decay[later] * decay[earlier]
        decay, state = longer, wider
        reach *= 2
    return decay, state


def _sequential(arguments: Arguments, *, rounded: bool) -> Array:
    wide: Any = f32 if rounded else np.float64
    x, a, b, c = (arguments[name].astype(wide) for name in "xabc")
    h: Array = np.zeros(a[:, 0].shape, f32)
    found = []
    for step in range(_STEPS):
        h = (a[:, step] * h + (b[:, step] * x[:, step]).astype(f32)).astype(f32)
        found.append(h * c[:, step])
    return tree_sum(np.stack(found, 1).astype(f32))
