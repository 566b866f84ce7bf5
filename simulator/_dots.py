"""Matrix products in a fixed order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trivet.simulator._rounding import round_tf32, same, truncate_tf32

_BLOCK_BYTES = 1 << 18


TF32 = {"round": round_tf32, "truncate": truncate_tf32}


def input_rounding(
    sources: tuple[str, str], precision: str, tf32: str = "round"
) -> Callable[[np.ndarray], np.ndarray]:
    """Rounding of the operands: TF32 for float32 inputs where the operation allows it.

    ``tf32x3`` and ``bf16x3`` recover nearly full precision and are taken as IEEE.
    """
    return TF32[tf32] if precision == "tf32" and sources == ("f32", "f32") else same


def ascending(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    fma: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """``c + a[:, 0] * b[0, :] + a[:, 1] * b[1, :] + ...`` in the type of ``c``, in this order.

    Shapes (..., m, k), (..., k, n), (..., m, n). Each product and each sum is rounded, unless
    ``fma`` does both; no BLAS, whose order depends on the machine. Programs are taken in groups
    that fit the cache.
    """
    count = max(a.shape[0], b.shape[0], c.shape[0])
    a, b, c = (np.broadcast_to(x, (count, *x.shape[1:])) for x in (a, b, c))
    product_type = np.result_type(a, b, np.float32) if c.dtype.kind == "f" else c.dtype
    result = np.array(c)
    group = max(1, _BLOCK_BYTES // max(1, result[0].nbytes))
    for start in range(0, count, group):
        part = slice(start, start + group)
        factors = a[part].astype(product_type), b[part].astype(product_type)
        if fma is None:
            _accumulate(*factors, result[part])
        else:
            _accumulate_fused(*factors, result[part], fma)
    return result


def _accumulate_fused(
    a: np.ndarray,
    b: np.ndarray,
    total: np.ndarray,
    fma: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
) -> None:
    for k in range(a.shape[-1]):
        total[...] = fma(a[..., :, k, None], b[..., None, k, :], total)


def _accumulate(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> None:
    product = np.empty(total.shape, a.dtype)
    for k in range(a.shape[-1]):
        np.multiply(a[..., :, k, None], b[..., None, k, :], out=product)
        np.add(total, product, out=total, casting="same_kind")
