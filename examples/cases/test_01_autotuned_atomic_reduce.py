"""Atomic-add reduction under autotune without reset_to_zero.

The output is zeroed once by the host and accumulated with atomic adds; when a new shape triggers
tuning, each benchmarked config adds its full result before the real launch does. Only the first
call per shape is wrong.

Reported as triton-lang/triton#4217.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

from trivet import Choice, Contract, Precision, Tensor, sizes


def _bench(call, quantiles=None):
    call()
    return [1.0, 1.0, 1.0]


_CONFIGS = [triton.Config({"BM": b}) for b in (8, 16, 32)]


@triton.jit
def _partial(dy_ptr, db_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(
        dy_ptr + r[:, None] * n + c[None, :], mask=(r < m)[:, None] & (c < n)[None, :], other=0.0
    )
    tl.atomic_add(db_ptr + c, tl.sum(x, axis=0), mask=c < n)


@triton.autotune(configs=_CONFIGS, key=["m", "n"], reset_to_zero=["db_ptr"], do_bench=_bench)
@triton.jit
def bias_grad_good(dy_ptr, db_ptr, m, n, BN: tl.constexpr, BM: tl.constexpr):
    _partial(dy_ptr, db_ptr, m, n, BM, BN)


@triton.autotune(configs=_CONFIGS, key=["m", "n"], do_bench=_bench)
@triton.jit
def bias_grad_bad(dy_ptr, db_ptr, m, n, BN: tl.constexpr, BM: tl.constexpr):
    _partial(dy_ptr, db_ptr, m, n, BM, BN)


def _run(kernel, dy, warm):
    dy = dy.contiguous()
    m, n = dy.shape
    grid = lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, 16))
    kernel.cache.clear()  # fresh process; warm = an earlier call tuned this size
    for _ in range(2 if warm else 1):
        db = torch.zeros(n)
        kernel[grid](dy, db, m, n, BN=16)
    return db


def good(dy, warm):
    return _run(bias_grad_good, dy, warm)


def reference(dy, warm):
    return dy.double().sum(0)


bias_grad = Contract(
    kernel=good,
    oracles=[reference],
    dims={"m": sizes(1, 64), "n": sizes(1, 40)},
    args={"dy": Tensor("m n"), "warm": Choice(True, False)},
    precision=Precision(order="any"),  # atomic adds
)


@bias_grad.fault(expects=("repeats",))
def bad(dy, warm):
    """Each configuration that is tried adds its own sum to the result."""
    return _run(bias_grad_bad, dy, warm)
