"""Eight kernels of different kinds, with launches of any number of programs: the race's load."""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import triton
import triton.language as tl


@triton.jit
def add(x: tl.tensor, y: tl.tensor, out: tl.tensor, n: int, BLOCK: tl.constexpr) -> None:
    """Sum of two vectors."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    total = tl.load(x + places, mask=inside) + tl.load(y + places, mask=inside)
    tl.store(out + places, total, mask=inside)


@triton.jit
def softmax(
    x: tl.tensor, out: tl.tensor, stride: int, rows: int, columns: int, BLOCK: tl.constexpr
) -> None:
    """Softmax of the rows r, r + programs, r + 2 programs, ..."""
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * stride + column, mask=inside, other=float("-inf"))
        power = tl.exp(value - tl.max(value, axis=0))
        tl.store(out + row * stride + column, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def matmul(
    a: tl.tensor,
    b: tl.tensor,
    c: tl.tensor,
    m: int,
    n: int,
    k: int,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    INNER: tl.constexpr,
    GROUP: tl.constexpr,
) -> None:
    """Product of dense matrices, tiles visited in groups of rows."""
    program = tl.program_id(0)
    row_tiles, column_tiles = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    group = program // (GROUP * column_tiles)
    height = min(row_tiles - group * GROUP, GROUP)
    within = program % (GROUP * column_tiles)
    row = (group * GROUP + within % height) * ROWS + tl.arange(0, ROWS)
    column = within // height * COLUMNS + tl.arange(0, COLUMNS)
    inner = tl.arange(0, INNER)
    left = a + (row % m)[:, None] * k + inner[None, :]
    right = b + inner[:, None] * n + (column % n)[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, k, INNER):
        rest = k - start
        u = tl.load(left, mask=inner[None, :] < rest, other=0.0)
        v = tl.load(right, mask=inner[:, None] < rest, other=0.0)
        total = tl.dot(u, v, total, input_precision="ieee")
        left += INNER
        right += INNER * n
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * n + column[None, :], total, mask=inside)


@triton.jit
def layer_norm(
    x: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    mean_out: tl.tensor,
    n: int,
    eps: float,
    BLOCK: tl.constexpr,
) -> None:
    """Layer norm of one row, in chunks."""
    row = tl.program_id(0) * n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + column, mask=column < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + row + column, mask=column < n, other=0.0)
        centred = tl.where(column < n, value - mean, 0.0)
        squares += centred * centred
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean_out + tl.program_id(0), mean)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < n
        value = tl.load(x + row + column, mask=inside, other=0.0)
        w = tl.load(weight + column, mask=inside)
        b = tl.load(bias + column, mask=inside)
        tl.store(out + row + column, (value - mean) * scale * w + b, mask=inside)


@triton.jit
def gated_scan(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    gate: tl.tensor,
    out: tl.tensor,
    steps: int,
    WIDTH: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """Gated linear recurrence of one head, in chunks with a carried state."""
    head = tl.program_id(0)
    step, channel = tl.arange(0, CHUNK), tl.arange(0, WIDTH)
    state = tl.zeros((WIDTH, WIDTH), dtype=tl.float32)
    for start in range(0, steps, CHUNK):
        time = start + step
        inside = time < steps
        place = head * steps * WIDTH + time[:, None] * WIDTH + channel[None, :]
        qs = tl.load(q + place, mask=inside[:, None], other=0.0)
        ks = tl.load(k + place, mask=inside[:, None], other=0.0)
        vs = tl.load(v + place, mask=inside[:, None], other=0.0)
        gates = tl.load(gate + head * steps + time, mask=inside, other=0.0)
        decay, last = tl.cumsum(gates, 0), tl.sum(gates, 0)
        scores = tl.dot(qs, tl.trans(ks), input_precision="ieee")
        weights = scores * tl.exp(decay[:, None] - decay[None, :])
        causal = tl.where(step[:, None] >= step[None, :], weights, 0.0)
        result = tl.dot(causal, vs, input_precision="ieee")
        result += tl.dot(qs * tl.exp(decay)[:, None], state, input_precision="ieee")
        faded = tl.trans(ks * tl.exp(last - decay)[:, None])
        state = state * tl.exp(last) + tl.dot(faded, vs, input_precision="ieee")
        tl.store(out + place, result, mask=inside[:, None])


@triton.jit
def branch_gather(
    x: tl.tensor,
    h: tl.tensor,
    w_in: tl.tensor,
    w_rec: tl.tensor,
    bias: tl.tensor,
    tau: tl.tensor,
    members: tl.tensor,
    sizes: tl.tensor,
    out: tl.tensor,
    HIDDEN: tl.constexpr,
    INPUT: tl.constexpr,
    SLOTS: tl.constexpr,
) -> None:
    """Leaky cell whose channels are gathered by branch."""
    sample, branch = tl.program_id(0), tl.program_id(1)
    slot = tl.arange(0, SLOTS)
    inside = slot < tl.load(sizes + branch)
    channel = tl.load(members + branch * SLOTS + slot, mask=inside, other=0)
    column = tl.arange(0, INPUT)
    w = tl.load(w_in + channel[:, None] * INPUT + column[None, :], mask=inside[:, None], other=0.0)
    total = tl.sum(w * tl.load(x + sample * INPUT + column)[None, :], 1)
    other = tl.arange(0, HIDDEN)
    w = tl.load(w_rec + channel[:, None] * HIDDEN + other[None, :], mask=inside[:, None], other=0.0)
    total += tl.sum(w * tl.load(h + sample * HIDDEN + other)[None, :], 1)
    total += tl.load(bias + channel, mask=inside, other=0.0)
    keep = tl.exp(-1.0 / tl.load(tau + channel, mask=inside, other=1.0))
    old = tl.load(h + sample * HIDDEN + channel, mask=inside, other=0.0)
    new = 2 * tl.sigmoid(2 * total) - 1
    tl.store(out + sample * HIDDEN + channel, old * keep + (1 - keep) * new, mask=inside)


@triton.jit
def histogram(
    x: tl.tensor, out: tl.tensor, n: int, BINS: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    """Sums by bin and in all, by atomics."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    value = tl.load(x + places, mask=inside, other=0.0)
    tl.atomic_add(out + places % BINS, value, mask=inside)
    tl.atomic_add(out + BINS, tl.sum(value, 0))


@triton.jit
def halving(x: tl.tensor, out: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Halve a row until nothing exceeds 1; add the parity of the number of rounds."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place)
    rounds = 0
    while tl.max(value, 0) > 1.0:
        value = value * 0.5
        rounds += 1
    if rounds % 2 == 0:  # noqa: SIM108  (both branches become a conditional with a yield)
        value = value + 1.0
    else:
        value = -value
    tl.store(out + place, value + rounds)


@dataclass(frozen=True)
class Case:
    """One launch: NumPy arrays and scalars by name, constexprs, the grid, what it writes."""

    name: str
    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    constexprs: dict[str, int]
    outputs: tuple[str, ...]

    def start(self, tensors: dict[str, Any]) -> None:
        """Launch the kernel on ``tensors`` in place of the arrays."""
        self.kernel[self.grid](**tensors, **self.constexprs)


@dataclass
class _Draw:
    """Source of fresh inputs."""

    seed: int
    generator: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def normal(self, *shape: int) -> np.ndarray:
        return self.generator.standard_normal(shape).astype(np.float32)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _add(programs: int, draw: _Draw) -> Case:
    n = 1024 * programs - 37
    arguments = {"x": draw.normal(n), "y": draw.normal(n), "out": _zeros(n), "n": n}
    return Case("add", add, (programs,), arguments, {"BLOCK": 1024}, ("out",))


def _softmax(programs: int, draw: _Draw) -> Case:
    rows, columns = 3 * programs - 1, 100
    x = draw.normal(rows, columns)
    arguments = {
        "x": x,
        "out": _zeros(rows, columns),
        "stride": columns,
        "rows": rows,
        "columns": columns,
    }
    return Case("softmax", softmax, (programs,), arguments, {"BLOCK": 128}, ("out",))


def _matmul(programs: int, draw: _Draw) -> Case:
    """The grid has exactly ``programs`` tiles, a multiple of 20."""
    m, n, k = 32 * (programs // 20) * 5 - 10, 32 * 4 - 3, 100 if programs < 100 else 200
    arguments = {
        "a": draw.normal(m, k),
        "b": draw.normal(k, n),
        "c": _zeros(m, n),
        "m": m,
        "n": n,
        "k": k,
    }
    sizes = {"ROWS": 32, "COLUMNS": 32, "INNER": 32, "GROUP": 4}
    return Case("matmul", matmul, (programs,), arguments, sizes, ("c",))


def _layer_norm(programs: int, draw: _Draw) -> Case:
    n = 500
    arguments = {
        "x": draw.normal(programs, n),
        "weight": draw.normal(n),
        "bias": draw.normal(n),
        "out": _zeros(programs, n),
        "mean_out": _zeros(programs),
        "n": n,
        "eps": 1e-5,
    }
    outputs = ("out", "mean_out")
    return Case("layer_norm", layer_norm, (programs,), arguments, {"BLOCK": 128}, outputs)


def _gated_scan(programs: int, draw: _Draw) -> Case:
    steps, width = 100, 32
    shape = (programs, steps, width)
    arguments = {
        "q": draw.normal(*shape),
        "k": draw.normal(*shape) / 6,
        "v": draw.normal(*shape),
        "gate": -np.abs(draw.normal(programs, steps)) * np.float32(0.1),
        "out": _zeros(*shape),
        "steps": steps,
    }
    sizes = {"WIDTH": width, "CHUNK": 16}
    return Case("gated_scan", gated_scan, (programs,), arguments, sizes, ("out",))


def _branch_gather(programs: int, draw: _Draw) -> Case:
    samples, hidden, slots = programs // 5, 128, 32
    sizes = np.array([26, 26, 26, 25, 25], np.int32)
    members = np.zeros((5, slots), np.int32)
    parts = np.split(draw.generator.permutation(hidden), np.cumsum(sizes)[:-1])
    for row, part in zip(members, parts, strict=True):
        row[: len(part)] = part
    arguments = {
        "x": draw.normal(samples, hidden),
        "h": draw.normal(samples, hidden),
        "w_in": draw.normal(hidden, hidden) / 11,
        "w_rec": draw.normal(hidden, hidden) / 11,
        "bias": draw.normal(hidden),
        "tau": np.abs(draw.normal(hidden)) * 10 + np.float32(0.1),
        "members": members,
        "sizes": sizes,
        "out": _zeros(samples, hidden),
    }
    constexprs = {"HIDDEN": hidden, "INPUT": hidden, "SLOTS": slots}
    return Case("branch_gather", branch_gather, (samples, 5), arguments, constexprs, ("out",))


def _histogram(programs: int, draw: _Draw) -> Case:
    n = 256 * programs - 11
    arguments = {"x": draw.normal(n), "out": _zeros(65), "n": n}
    sizes = {"BINS": 64, "BLOCK": 256}
    return Case("histogram", histogram, (programs,), arguments, sizes, ("out",))


def _halving(programs: int, draw: _Draw) -> Case:
    scales = draw.generator.choice([0.1, 1.0, 5.0, 30.0], (programs, 1)).astype(np.float32)
    arguments = {"x": np.abs(draw.normal(programs, 64)) * scales, "out": _zeros(programs, 64)}
    return Case("halving", halving, (programs,), arguments, {"BLOCK": 64}, ("out",))


_BUILDERS: dict[str, Callable[[int, _Draw], Case]] = {
    "add": _add,
    "softmax": _softmax,
    "matmul": _matmul,
    "layer_norm": _layer_norm,
    "gated_scan": _gated_scan,
    "branch_gather": _branch_gather,
    "histogram": _histogram,
    "halving": _halving,
}
NAMES = tuple(_BUILDERS)


def build(name: str, programs: int, seed: int) -> Case:
    """Launch of the kernel ``name`` with fresh inputs; ``programs`` is a multiple of 20."""
    return _BUILDERS[name](programs, _Draw(seed))
