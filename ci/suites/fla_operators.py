"""Operators of flash-linear-attention as contracts: forward, and backward through autograd.

The oracles are the recurrences that define the operators: a state of keys by values decays and
gains in every step, and a query reads it. Shapes are (B, T, H, K) for queries and keys and
(B, T, H, V) for values; sequences reach over several of the chunks that kernels cut them into.
Dots are those of float32 (`TRITON_F32_DEFAULT=ieee`), so that bounds stay narrow. Importing this
module needs the project's packages on the path (`operators`).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import triton
from fla.modules.l2norm import l2norm as fla_l2norm
from fla.ops.attn import parallel_attn
from fla.ops.delta_rule import fused_recurrent_delta_rule
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.hgrn import chunk_hgrn, fused_recurrent_hgrn
from fla.ops.linear_attn import chunk_linear_attn, fused_recurrent_linear_attn
from fla.ops.retention import chunk_retention, fused_recurrent_retention
from fla.ops.rwkv6 import fused_recurrent_rwkv6
from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla

from trivet import Contract, Precision, Tensor, reals, sizes

triton.knobs.language.fp32_default = "ieee"

_PER_OCTAVE = float(torch.tensor(1 / math.log(2)))

_DIMS = {"B": sizes(1, 2), "T": sizes(1, 70), "H": sizes(1, 2), "K": sizes(16, 16), "V": "K"}
_QUERY = Tensor("B T H K", domain=reals(-2, 2))
_VALUE = Tensor("B T H V", domain=reals(-2, 2))
# Logarithms of decays.
_GATE = reals(-2, 0)
_ATTENTION = {"q": _QUERY, "k": _QUERY, "v": _VALUE}
_ANY_ORDER = Precision(order="any")


def _read(m: Any, q: Any, k: Any, v: Any, decay: Any, bonus: Any = None) -> Any:
    """Return what the queries read of the states; ``decay`` broadcasts to (B, T, H, K, 1)."""
    gained = k[..., :, None] * v[..., None, :]
    states = m.linear_scan(decay + m.zeros(gained.shape), gained, None, axis=1)
    if bonus is not None:
        # The step itself counts by its bonus, the past without it.
        states = states - gained + bonus * gained
    return m.sum(q[..., :, None] * states, axis=-2)


def _scale(q: Any) -> float:
    return float(q.shape[-1] ** -0.5)


def _without_gate(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return function(q, k, v, normalize=False)[0]

    return kernel


def _linear_defined(m: Any, q: Any, k: Any, v: Any) -> Any:
    states = m.cumsum(k[..., :, None] * v[..., None, :], axis=1)
    return m.sum((_scale(q) * q)[..., :, None] * states, axis=-2)


def _gated(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor) -> Any:
        # The gates' gradient is a running sum of differences, which no bound over paths covers.
        return function(q, k, v, g.detach())[0]

    return kernel


def _by_head_defined(m: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
    return _read(m, _scale(q) * q, k, v, m.exp(g)[..., None, None])


def _by_key_defined(m: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
    return _read(m, _scale(q) * q, k, v, m.exp(g)[..., None])


def _in_octaves(m: Any, g: Any) -> Any:
    """Decays between any two steps (B, T, T, ...), by differences of running sums as in chunks.

    Powers of two, by 1 / ln 2 as float32 holds it; nothing comes from later steps.
    """
    sums = m.cumsum(_PER_OCTAVE * g, axis=1)
    steps = m.arange(g.shape[1])
    past = (steps[:, None] >= steps).reshape((1, len(steps), len(steps)) + (1,) * (g.ndim - 2))
    return m.where(past, m.exp2(sums[:, :, None] - sums[:, None]), 0.0)


def _weighed(m: Any, weights: Any, v: Any) -> Any:
    """Sum over the steps s of ``weights`` (B, T, S, H) times ``v`` (B, S, H, V)."""
    return m.einsum("btsh,bshv->bthv", weights, v)


def _by_head_in_octaves(m: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
    scores = m.einsum("bthk,bshk->btsh", _scale(q) * q, k)
    return _weighed(m, scores * _in_octaves(m, g), v)


def _by_key_in_octaves(m: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
    pairs = (_scale(q) * q)[:, :, None] * k[:, None]
    return _weighed(m, m.sum(pairs * _in_octaves(m, g), axis=-1), v)


def _retention(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return function(q, k, v)[0]

    return kernel


def _retention_defined(m: Any, q: Any, k: Any, v: Any) -> Any:
    heads = q.shape[2]
    decay = 1 - m.exp2(-5.0 - m.arange(heads))
    return _read(m, _scale(q) * q, k, v, decay[:, None, None])


def _hgrn(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(x: torch.Tensor, g: torch.Tensor) -> Any:
        return function(x, g)[0]

    return kernel


def _hgrn_defined(m: Any, x: Any, g: Any) -> Any:
    return m.linear_scan(m.exp(g), x, None, axis=1)


def _rwkv6(
    r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor
) -> Any:
    return fused_recurrent_rwkv6(r, k, v, w.detach(), u, scale=1.0)[0]


def _rwkv6_defined(m: Any, r: Any, k: Any, v: Any, w: Any, u: Any) -> Any:
    outputs = []
    state = m.zeros((*k.shape[:1], *k.shape[2:], v.shape[-1]))
    for t in range(k.shape[1]):
        gained = k[:, t, :, :, None] * v[:, t, :, None, :]
        seen = state + u[..., None] * gained
        outputs.append(m.sum(r[:, t, :, :, None] * seen, axis=-2))
        state = m.exp(w[:, t])[..., None] * state + gained
    return m.stack(outputs, axis=1)


def _delta_rule(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor) -> Any:
    return fused_recurrent_delta_rule(q, k, v, beta)[0]


def _delta_rule_defined(m: Any, q: Any, k: Any, v: Any, beta: Any) -> Any:
    outputs = []
    state = m.zeros((*k.shape[:1], *k.shape[2:], v.shape[-1]))
    for t in range(k.shape[1]):
        key = k[:, t, :, :, None]
        new = beta[:, t, :, None] * (v[:, t] - m.sum(key * state, axis=-2))
        state = state + key * new[..., None, :]
        outputs.append(m.sum(_scale(q) * q[:, t, :, :, None] * state, axis=-2))
    return m.stack(outputs, axis=1)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return parallel_attn(q, k, v)


def _attention_defined(m: Any, q: Any, k: Any, v: Any) -> Any:
    scores = _scale(q) * m.sum(q[:, :, None] * k[:, None], axis=-1)
    T = q.shape[1]
    past = (m.arange(T)[:, None] >= m.arange(T))[None, :, :, None]
    scores = m.where(past, scores, -float("inf"))
    e = m.exp(scores - m.max(scores, axis=2, keepdims=True))
    weights = e / m.sum(e, axis=2, keepdims=True)
    return m.sum(weights[..., None] * v[:, None], axis=2)


def _l2norm(x: torch.Tensor) -> Any:
    return fla_l2norm(x, eps=1e-6)


def _l2norm_defined(m: Any, x: Any) -> Any:
    return x / m.sqrt(m.sum(x * x, axis=-1, keepdims=True) + float(torch.tensor(1e-6)))


def _contract(kernel: Any, oracle: Any, args: Any, precision: Precision, dims: Any = None) -> Any:
    return Contract(
        kernel,
        [oracle],
        dims=dims or _DIMS,
        args=args,
        backward="autograd",
        precision=precision,
    )


_BY_HEAD = {**_ATTENTION, "g": Tensor("B T H", domain=_GATE)}
_BY_KEY = {**_ATTENTION, "g": Tensor("B T H K", domain=_GATE)}
_CHANNELS = {"B": sizes(1, 3), "T": sizes(1, 150), "D": sizes(1, 80)}
_CHANNEL = {"x": Tensor("B T D"), "g": Tensor("B T D", domain=_GATE)}
_SHORT = {**_DIMS, "T": sizes(1, 20)}

linear_attn_chunk = _contract(
    _without_gate(chunk_linear_attn), _linear_defined, _ATTENTION, _ANY_ORDER
)
linear_attn_recurrent = _contract(
    _without_gate(fused_recurrent_linear_attn), _linear_defined, _ATTENTION, _ANY_ORDER
)
simple_gla_chunk = _contract(_gated(chunk_simple_gla), _by_head_in_octaves, _BY_HEAD, _ANY_ORDER)
simple_gla_recurrent = _contract(
    _gated(fused_recurrent_simple_gla), _by_head_defined, _BY_HEAD, _ANY_ORDER
)
gla_recurrent = _contract(_gated(fused_recurrent_gla), _by_key_defined, _BY_KEY, _ANY_ORDER)
retention_chunk = _contract(_retention(chunk_retention), _retention_defined, _ATTENTION, _ANY_ORDER)
gla_chunk = _contract(_gated(chunk_gla), _by_key_in_octaves, _BY_KEY, _ANY_ORDER)
retention_recurrent = _contract(
    _retention(fused_recurrent_retention), _retention_defined, _ATTENTION, _ANY_ORDER
)
hgrn_chunk = _contract(_hgrn(chunk_hgrn), _hgrn_defined, _CHANNEL, _ANY_ORDER, _CHANNELS)
hgrn_recurrent = _contract(
    _hgrn(fused_recurrent_hgrn), _hgrn_defined, _CHANNEL, _ANY_ORDER, _CHANNELS
)
rwkv6_recurrent = _contract(
    _rwkv6,
    _rwkv6_defined,
    {
        "r": _QUERY,
        "k": _QUERY,
        "v": _VALUE,
        "w": Tensor("B T H K", domain=_GATE),
        "u": Tensor("H K", domain=reals(-2, 2)),
    },
    _ANY_ORDER,
    _SHORT,
)
delta_rule_recurrent = _contract(
    _delta_rule,
    _delta_rule_defined,
    {
        "q": _QUERY,
        # Keys of at most unit length, as the layer normalises them.
        "k": Tensor("B T H K", domain=reals(-0.25, 0.25)),
        "v": _VALUE,
        "beta": Tensor("B T H", domain=reals(0, 1)),
    },
    _ANY_ORDER,
    _SHORT,
)
attention_parallel = _contract(_attention, _attention_defined, _ATTENTION, _ANY_ORDER)
l2norm = _contract(
    _l2norm,
    _l2norm_defined,
    {"x": Tensor("M N")},
    _ANY_ORDER,
    {"M": sizes(1, 20), "N": sizes(1, 200)},
)
