"""The attention pool over the states of a window."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Choice, Contract, Tensor, reals, sizes
from trivet.impl import pool as kernels
from trivet.oracles import pool as oracles
from trivet.properties._expect import at_most, interval, near, same_bits

Array = NDArray[Any]
Rerun = Any

DIMS = {
    "B": sizes(0, 6, production=2**17 + 1),
    "K": sizes(1, 50, production=200),
    "H": sizes(1, 70, production=128),
}
ARGS = {
    # Scores reach where exponentials overflow without their maximum.
    "q": Tensor("H", domain=reals(-16, 16)),
    "X": Tensor("B K H", domain=reals(-16, 16)),
}
BLOCK = Choice(16, 4)


def no_event(X: torch.Tensor) -> dict[str, object]:
    """A window of no event."""
    return {"X": X[:, :0]}


def X_of_other_channels(X: torch.Tensor) -> dict[str, object]:
    """States of a channel more."""
    return {"X": torch.zeros(*X.shape[:2], X.shape[2] + 1)}


def q_in_float64(q: torch.Tensor) -> dict[str, object]:
    """A query of another dtype."""
    return {"q": q.double()}


def more_channels_than_a_tile() -> dict[str, object]:
    """A state too wide for one program."""
    return {"q": torch.zeros(1025), "X": torch.zeros(1, 1, 1025)}


BAD = (
    (ValueError, "X", no_event),
    (ValueError, "X", X_of_other_channels),
    (TypeError, "q", q_in_float64),
    (ValueError, "q", more_channels_than_a_tile),
)

pool_attention_pool = Contract(
    kernel=kernels.attention_pool,
    oracles=[oracles.attention_pool, oracles.attention_pool_scalar],
    dims=DIMS,
    args={**ARGS, "block_k": BLOCK},
    outputs={"out": Tensor("B H")},
    backward=kernels.attention_pool_backward,
    raises=BAD,
)
pool_attention_pool.bitwise("ignores_batch")

pool_attention_pool_backward = Contract(
    kernel=kernels.attention_pool_backward,
    oracles=[oracles.attention_pool_backward, oracles.attention_pool_backward_scalar],
    dims=DIMS | {"B": sizes(0, 13, production=2**17 + 1)},
    args={"g": Tensor("B H"), **ARGS, "block_k": BLOCK, "parts": Choice(64, 3, 1)},
    outputs={"dq": Tensor("H"), "dX": Tensor("B K H")},
    raises=BAD,
)


@pool_attention_pool.law
def one_event_is_returned_as_it_is(X: Array, rerun: Rerun) -> None:
    """K = 1 is the identity, bitwise."""
    same_bits(0.0 + rerun(X=X[:, :1]), 0.0 + X[:, 0], "the pool of one event")


@pool_attention_pool.law
def each_component_stays_in_its_range(out: Array, X: Array, bound: Array) -> None:
    """A weighted mean lies between the least and the largest over t, within the bound."""
    at_most(out, X.max(axis=1) + bound, "out")
    at_most(-out, bound - X.min(axis=1), "-out")


@pool_attention_pool.law
def the_order_of_events_does_not_matter(out: Array, X: Array, bound: Array, rerun: Rerun) -> None:
    """Events in another order have the same pool, within the bound."""
    order = np.random.default_rng(X.shape[1]).permutation(X.shape[1])
    near(rerun(X=X[:, order]), out, 2 * bound, "out of permuted events")


@pool_attention_pool.law
def adding_a_vector_to_every_state_adds_it(q: Array, X: Array, rerun: Rerun) -> None:
    """X_t + v for every t gives out + v, within both bounds."""
    # On this grid the sums are exact, so that both windows are what they are called.
    coarse = np.round(X * 64) / 64
    moved = coarse + np.round(8 * np.sin(np.arange(X.shape[2])))
    _, before = interval(oracles.attention_pool, q=q, X=coarse)
    _, after = interval(oracles.attention_pool, q=q, X=moved)
    shift = np.round(8 * np.sin(np.arange(X.shape[2])))
    near(rerun(X=moved) - shift, rerun(X=coarse), before + after, "out of moved states")


@pool_attention_pool_backward.law
def weights_share_the_gradient_out(out: Any, bound: Any, g: Array, q: Array, rerun: Rerun) -> None:
    """Moving every state by v moves out by v: dX sums to g over t, within the bound."""
    near(out[1].sum(axis=1), g, bound[1].sum(axis=1), "sum over time of dX")


@pool_attention_pool_backward.law
def one_event_passes_the_gradient_on(g: Array, X: Array, rerun: Rerun) -> None:
    """K = 1 is the identity backward too: dX = g and dq = 0, equal in value."""
    dq, dX = rerun(X=X[:, :1])
    same_bits(0.0 + dX[:, 0], 0.0 + g, "dX of one event")
    same_bits(np.abs(dq), np.zeros_like(dq), "dq of one event")
