"""Matrix product by grouped tiles, and its split-K variant that adds atomically."""

import functools

import numpy as np
import torch
import triton
import triton.language as tl

from trivet import ANY, Contract, Precision, Scalar, Tensor, sizes

BLOCKS = {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}


@triton.jit
def tile_of_product(
    a_rows,
    b_cols,
    rows_inside,
    cols_inside,
    a_step,
    b_step,
    K,
    first_chunk,
    chunk_step,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Multiply rows by columns over every ``chunk_step``-th chunk of K; the sum is float32."""
    tile = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for chunk in range(first_chunk, tl.cdiv(K, BLOCK_K), chunk_step):
        depth = chunk * BLOCK_K + tl.arange(0, BLOCK_K)
        a_inside = rows_inside & (depth[None, :] < K)
        b_inside = (depth[:, None] < K) & cols_inside
        a = tl.load(a_rows + depth[None, :] * a_step, mask=a_inside, other=0.0)
        b = tl.load(b_cols + depth[:, None] * b_step, mask=b_inside, other=0.0)
        tile = tl.dot(a, b, tile, input_precision="ieee")
    return tile


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One program a tile; tiles go down a few rows before they go right, for the cache's sake."""
    program = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first = program // (GROUP * tiles_n) * GROUP
    height = min(tl.cdiv(M, BLOCK_M) - first, GROUP)
    place = program % (GROUP * tiles_n)
    rows = ((first + place % height) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (place // height * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    tile = tile_of_product(
        a_ptr + rows * a_row,
        b_ptr + cols * b_col,
        rows < M,
        cols < N,
        a_col,
        b_row,
        K,
        0,
        1,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
    )
    c_at = c_ptr + rows * c_row + cols * c_col
    tl.store(c_at, tile.to(c_ptr.dtype.element_ty), mask=(rows < M) & (cols < N))


def tiled_matmul(a, b):
    """Return ``a @ b`` for ``a`` (M, K) and ``b`` (K, N) of any strides, in their dtype."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(M, BLOCKS["BLOCK_M"]) * triton.cdiv(N, BLOCKS["BLOCK_N"])
    matmul_kernel[(tiles,)](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), 2, **BLOCKS)
    return c


@triton.jit
def split_k_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One program a tile and share of K: narrow matrices with a long K keep every core busy."""
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    share = tile_of_product(
        a_ptr + rows * a_row,
        b_ptr + cols * b_col,
        rows < M,
        cols < N,
        a_col,
        b_row,
        K,
        tl.program_id(2),
        tl.num_programs(2),
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
    )
    inside = (rows < M) & (cols < N)
    tl.atomic_add(c_ptr + rows * c_row + cols * c_col, share, mask=inside)


def add_product(c, a, b, splits):
    """Add ``a @ b`` to ``c`` (M, N), float32, with K shared out over ``splits`` programs a tile."""
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, BLOCKS["BLOCK_M"]), triton.cdiv(N, BLOCKS["BLOCK_N"]), splits)
    split_k_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), **BLOCKS)
    return c


def split_k_matmul(a, b, splits):
    """Return ``a @ b`` as float32 for ``a`` (M, K) and ``b`` (K, N) of any strides."""
    shape = (a.shape[0], b.shape[1])
    return add_product(torch.zeros(shape, dtype=torch.float32, device=a.device), a, b, splits)


def oracle(m, a, b):
    return m.matmul(a, b)


FLOATS = ("float32", "bfloat16")
SIZES = {"M": sizes(0, 100), "N": sizes(1, 100), "K": sizes(0, 100)}
FACTORS = {
    "a": Tensor("M K", dtypes=FLOATS, layouts=ANY),
    "b": Tensor("K N", dtypes=FLOATS, layouts=ANY),
}

matmul = Contract(kernel=tiled_matmul, oracles=[oracle], dims=SIZES, args=FACTORS)

split_k = Contract(
    kernel=split_k_matmul,
    oracles=[oracle],
    dims=SIZES,
    args=FACTORS | {"splits": Scalar(int, 1, 8)},
    outputs={"c": Tensor("M N", dtypes=("float32",))},
    # Which share is added first is nobody's promise.
    precision=Precision(order="any"),
)


@matmul.law
def negating_a_factor_negates_the_product(out, rerun, a):
    """Rounding knows no sign: (-A) B is -(A B), bit for bit."""
    assert (rerun(a=-a) == -out).all(), "(-A) B is not -(A B)"


@split_k.law
def number_of_splits_only_reorders(out, bound, rerun):
    """Sharing K out changes the order of the additions and nothing else."""
    alone = rerun(splits=1)
    assert (np.abs(out - alone) <= 2 * bound).all(), "splitting K changes the product"


@matmul.fault(expects=("writes_every_element",))
def last_group_not_clamped(edit):
    """Right whenever the rows of tiles fill their groups; otherwise columns stay unwritten."""
    return edit("min(tl.cdiv(M, BLOCK_M) - first, GROUP)", "GROUP")


@matmul.fault(expects=("stays_in_bounds",))
def second_factor_read_past_its_end(edit):
    """The zeros of the first factor hide what is read, unless it is not finite."""
    return edit("b_inside = (depth[:, None] < K) & cols_inside", "b_inside = cols_inside")


@matmul.fault(expects=("exact_on_integers",))
def products_in_tf32(edit):
    """Ten bits of each factor are kept; loose tolerances and interpreters pass."""
    return edit('input_precision="ieee"', 'input_precision="tf32"')


@split_k.fault(expects=("is_race_free",))
def shares_added_without_atomics(edit):
    """Two programs read the same sum and one of their additions is lost."""
    return edit(
        "tl.atomic_add(c_ptr + rows * c_row + cols * c_col, share, mask=inside)",
        "c = c_ptr + rows * c_row + cols * c_col\n"
        "    tl.store(c, tl.load(c, mask=inside) + share, mask=inside)",
    )


@split_k.fault(expects=("reads_initialised",))
def sum_not_started_at_zero(edit):
    """Fresh memory often is zero, so that small tests pass."""
    return edit("torch.zeros(shape", "torch.empty(shape")


kept_zeros = functools.cache(torch.zeros)


@split_k.fault(expects=("repeats",))
def buffer_zeroed_once(a, b, splits):
    """The buffer is kept for each shape: the second call adds to the first one's product."""
    shape = (a.shape[0], b.shape[1])
    return add_product(kept_zeros(shape, dtype=torch.float32), a, b, splits)
