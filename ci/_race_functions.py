"""Host functions of the shipped families, with inputs for any number of programs: more of the race.

The small block sizes are what gets many programs out of small inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_BUCKETS, _BLOCK = 5, 16
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One call of a host function: ``family.function``, NumPy arrays and scalars by name."""

    name: str
    arguments: Arguments

    def start(self, tensors: Arguments) -> object:
        """Call the function with ``tensors`` in place of the arrays."""
        from trivet.impl import cfc, routing

        family, _, function = self.name.partition(".")
        return getattr({"cfc": cfc, "routing": routing}[family], function)(**tensors)


def _cell(programs: int, draw: np.random.Generator) -> Arguments:
    """Five tiles of sixteen channels for every four rows."""
    B, D, H = 4 * programs // _BUCKETS, 70, 16 * _BUCKETS

    def normal(*shape: int) -> np.ndarray:
        return draw.standard_normal(shape).astype(np.float32) / np.float32(4)

    return {
        "x": normal(B, D),
        "h": normal(B, H),
        "dt": np.abs(normal(B)),
        "W_in": normal(H, D),
        "W_rec": normal(H, H),
        "b": normal(H),
        "tau": np.exp(normal(H)),
        "block_k": 128,
    }


def _table(draw: np.random.Generator, channels: int) -> np.ndarray:
    order = draw.permutation(channels).astype(np.int32)
    return np.ascontiguousarray(np.sort(order.reshape(_BUCKETS, -1), axis=1))


def _step(programs: int, draw: np.random.Generator) -> Arguments:
    return _cell(programs, draw)


def _step_per_branch(programs: int, draw: np.random.Generator) -> Arguments:
    cell = _cell(programs, draw)
    return {**cell, "table": _table(draw, cell["h"].shape[1]), "out": np.zeros_like(cell["h"])}


def _step_backward(programs: int, draw: np.random.Generator) -> Arguments:
    cell = _cell(programs, draw)
    return {"g": draw.standard_normal(cell["h"].shape).astype(np.float32), **cell}


def _step_per_branch_backward(programs: int, draw: np.random.Generator) -> Arguments:
    cell = _step_backward(programs, draw)
    return {**cell, "table": _table(draw, cell["h"].shape[1])}


def _seconds(count: int, draw: np.random.Generator) -> np.ndarray:
    return np.exp(3 * draw.standard_normal(count)).astype(np.float32)


def _owners(count: int, buckets: int, draw: np.random.Generator) -> np.ndarray:
    """Every bucket as often as the others, within one, in random order."""
    return draw.permutation(np.arange(count) % buckets).astype(np.int32)


def _tau_sort(programs: int, draw: np.random.Generator) -> Arguments:
    return {"tau": _seconds(2 * programs, draw), "block_channels": 2}


def _bucket_assign(programs: int, draw: np.random.Generator) -> Arguments:
    order = draw.permutation(_BLOCK * programs).astype(np.int32)
    return {"order": order, "N": _BUCKETS, "block_channels": _BLOCK}


def _channels_in_bucket(programs: int, draw: np.random.Generator) -> Arguments:
    return {"bucket_of": _owners(2 * programs, programs, draw), "N": programs, "M": 5}


def _bucket_iqr(programs: int, draw: np.random.Generator) -> Arguments:
    owners = _owners(_BLOCK * 10, programs, draw)
    seconds = _seconds(owners.size, draw)
    return {"tau": seconds, "bucket_of": owners, "N": programs, "block_channels": 32}


def _iqr_widen(programs: int, draw: np.random.Generator) -> Arguments:
    low = _seconds(_BLOCK * programs, draw)
    return {"q1": low, "q3": low * np.float32(2), "block": _BLOCK}


def _iqr_double_widen(programs: int, draw: np.random.Generator) -> Arguments:
    low = _seconds(_BLOCK * programs, draw)
    return {"lo": low, "hi": low * np.float32(2), "k": 3, "block": _BLOCK}


def _tau_clamp(programs: int, draw: np.random.Generator) -> Arguments:
    channels = _BLOCK * programs
    low = _seconds(_BUCKETS, draw)
    return {
        "tau": _seconds(channels, draw),
        "bucket_of": _owners(channels, _BUCKETS, draw),
        "lo": low,
        "hi": low * np.float32(2),
        "block_channels": _BLOCK,
    }


def _heads_compact(programs: int, draw: np.random.Generator) -> Arguments:
    channels = 4 * programs
    table = draw.permutation(channels).astype(np.int32).reshape(programs, 4)
    weights = draw.standard_normal((programs, channels)).astype(np.float32)
    return {"w_skip": weights, "table": table}


def _mask_init(programs: int, draw: np.random.Generator) -> Arguments:
    owners = _owners(_BLOCK * programs // _BUCKETS, _BUCKETS, draw)
    return {"bucket_of": owners, "N": _BUCKETS, "block_channels": _BLOCK}


def _zero_off_bucket(programs: int, draw: np.random.Generator) -> Arguments:
    owners = _owners(_BLOCK * programs // _BUCKETS, _BUCKETS, draw)
    buffer = draw.standard_normal((_BUCKETS, owners.size)).astype(np.float32)
    return {"buffer": buffer, "bucket_of": owners, "block_channels": _BLOCK}


def _grad_mask_apply(programs: int, draw: np.random.Generator) -> Arguments:
    grad = draw.standard_normal((_BUCKETS, _BLOCK * programs // _BUCKETS)).astype(np.float32)
    return {"grad": grad, "mask": (grad > 1).astype(np.float32), "block": _BLOCK}


_BUILDERS: dict[str, Callable[[int, np.random.Generator], Arguments]] = {
    "cfc.step": _step,
    "cfc.step_per_branch": _step_per_branch,
    "cfc.step_backward": _step_backward,
    "cfc.step_per_branch_backward": _step_per_branch_backward,
    "routing.tau_sort": _tau_sort,
    "routing.bucket_assign": _bucket_assign,
    "routing.channels_in_bucket": _channels_in_bucket,
    "routing.bucket_iqr": _bucket_iqr,
    "routing.iqr_widen": _iqr_widen,
    "routing.iqr_double_widen": _iqr_double_widen,
    "routing.tau_clamp": _tau_clamp,
    "routing.heads_compact": _heads_compact,
    "routing.mask_init": _mask_init,
    "routing.zero_off_bucket": _zero_off_bucket,
    "routing.grad_mask_apply": _grad_mask_apply,
}
NAMES = tuple(_BUILDERS)


def build(name: str, programs: int, seed: int) -> Call:
    """Call of the function ``name`` with fresh inputs; ``programs`` is a multiple of 20."""
    return Call(name, _BUILDERS[name](programs, np.random.default_rng(seed)))
