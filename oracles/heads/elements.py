"""The heads one output element at a time, in mpmath: another author's view of the formulas."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import mpmath

# Far beyond float64, so that a scalar oracle's own rounding never shows.
_BITS = 120
Row = Sequence[float]
Matrix = Sequence[Sequence[float]]
Cube = Sequence[Sequence[Sequence[float]]]
Table = Sequence[Sequence[int]]


def heads_scatter_scalar(index: tuple[int, ...], packed: Row, table: Table) -> Any:
    """One element of the scattered matrix."""
    k, c = index
    place = 0
    for bucket, row in enumerate(table):
        for channel in row:
            if int(channel) < 0:
                continue
            if bucket == k and int(channel) == c:
                return mpmath.mpf(float(packed[place]))
            place += 1
    return mpmath.mpf(0)


def heads_scalar(
    index: tuple[int, ...],
    output: str,
    s: Matrix,
    W1: Cube,
    b1: Matrix,
    W2: Cube,
    b2: Matrix,
    w_gate: Matrix,
    bg: Row,
    w_main: Matrix,
    bm: Row,
    w_skip: Matrix,
) -> Any:
    """One logit or probability."""
    b, k = index
    weights = (s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    with mpmath.workprec(_BITS):
        logit = _Head(b, k, weights, dict(enumerate(w_skip[k]))).logit
        return logit if output == "logits" else _sigmoid(logit)


def heads_block_diagonal_scalar(
    index: tuple[int, ...],
    output: str,
    s: Matrix,
    W1: Cube,
    b1: Matrix,
    W2: Cube,
    b2: Matrix,
    w_gate: Matrix,
    bg: Row,
    w_main: Matrix,
    bm: Row,
    w_compact: Row,
    table: Table,
) -> Any:
    """One logit or probability."""
    b, k = index
    weights = (s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    with mpmath.workprec(_BITS):
        logit = _Head(b, k, weights, _unpacked(w_compact, table)[k]).logit
        return logit if output == "logits" else _sigmoid(logit)


def heads_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g_logits: Matrix,
    g_p: Matrix,
    s: Matrix,
    W1: Cube,
    b1: Matrix,
    W2: Cube,
    b2: Matrix,
    w_gate: Matrix,
    bg: Row,
    w_main: Matrix,
    bm: Row,
    w_skip: Matrix,
) -> Any:
    """One element of the gradient that ``output`` names: ds, dW1 and so on."""
    weights = (s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    full = [dict(enumerate(row)) for row in w_skip]
    with mpmath.workprec(_BITS):
        return _Gradient(g_logits, g_p, weights, full).element(output, index)


def heads_block_diagonal_backward_scalar(
    index: tuple[int, ...],
    output: str,
    g_logits: Matrix,
    g_p: Matrix,
    s: Matrix,
    W1: Cube,
    b1: Matrix,
    W2: Cube,
    b2: Matrix,
    w_gate: Matrix,
    bg: Row,
    w_main: Matrix,
    bm: Row,
    w_compact: Row,
    table: Table,
) -> Any:
    """As ``heads_backward_scalar``; dw_compact has the gradient of one packed weight."""
    weights = (s, W1, b1, W2, b2, w_gate, bg, w_main, bm)
    order = [(k, int(c)) for k, row in enumerate(table) for c in row if int(c) >= 0]
    with mpmath.workprec(_BITS):
        gradient = _Gradient(g_logits, g_p, weights, _unpacked(w_compact, table))
        if output != "dw_compact":
            return gradient.element(output, index)
        (place,) = index
        return gradient.element("dw_skip", order[place]) if place < len(order) else mpmath.mpf(0)


def _unpacked(w_compact: Row, table: Table) -> list[dict[int, float]]:
    """Each bucket's weights by channel."""
    weights = iter(w_compact)
    return [{int(c): next(weights) for c in row if int(c) >= 0} for row in table]


def _skip(state: Row, weights: dict[int, float]) -> Any:
    """The skip term: channels without a weight are not looked at."""
    return mpmath.mpf(_exact(float(w) * float(state[c]) for c, w in weights.items()))


class _Head:
    """One horizon's head at one row: sums of products of float32 numbers, each rounded once."""

    def __init__(self, b: int, k: int, weights: Sequence[Any], skip: dict[int, float]) -> None:
        s, W1, b1, W2, b2, w_gate, bg, w_main, bm = weights
        self._s, self._W1, self._b1, self._W2, self._b2 = s[b], W1[k], b1[k], W2[k], b2[k]
        self._w_gate, self._bg, self._w_main, self._bm = w_gate[k], bg[k], w_main[k], bm[k]
        self._skip = skip
        self._units = range(len(b1[k]))

    @cached_property
    def z(self) -> list[Any]:
        """W1 s + b1."""
        return [
            mpmath.mpf(_exact(itertools.chain([self._b1[i]], _products(self._W1[i], self._s))))
            for i in self._units
        ]

    @cached_property
    def activity(self) -> list[Any]:
        """ELU of z."""
        return [x if x > 0 else mpmath.expm1(x) for x in self.z]

    @cached_property
    def e(self) -> list[Any]:
        """W2 ELU(z) + b2."""
        return [self._dot(self._W2[j], self.activity) + _real(self._b2[j]) for j in self._units]

    @staticmethod
    def _dot(weights: Row, values: Sequence[Any]) -> Any:
        return mpmath.fsum(_real(w) * x for w, x in zip(weights, values, strict=True))

    @cached_property
    def gate(self) -> Any:
        """What the gate's sigmoid takes."""
        return self._dot(self._w_gate, self.e) + _real(self._bg)

    @cached_property
    def main(self) -> Any:
        """What the gate lets through."""
        return self._dot(self._w_main, self.e) + _real(self._bm)

    @cached_property
    def logit(self) -> Any:
        """The skip term and the gated one."""
        return _skip(self._s, self._skip) + _sigmoid(self.gate) * self.main

    def passed(self, g_logit: float, g_p: float) -> Any:
        """The gradient to the logit, through the probability too."""
        return _real(g_logit) + _real(g_p) * _sigmoid(self.logit) * _sigmoid(-self.logit)

    def dmain(self, g: Any) -> Any:
        """The gradient to main."""
        return g * _sigmoid(self.gate)

    def dgate(self, g: Any) -> Any:
        """The gradient to gate."""
        return self.dmain(g) * self.main * _sigmoid(-self.gate)

    def de(self, g: Any, j: int) -> Any:
        """The gradient to e_j."""
        return self.dmain(g) * _real(self._w_main[j]) + self.dgate(g) * _real(self._w_gate[j])

    def dz(self, g: Any, i: int) -> Any:
        """The gradient to z_i."""
        total = mpmath.fsum(_real(self._W2[j][i]) * self.de(g, j) for j in self._units)
        return total if self.z[i] > 0 else total * mpmath.exp(self.z[i])


class _Gradient:
    """Sums over rows and horizons of what each head passes on."""

    def __init__(
        self,
        g_logits: Matrix,
        g_p: Matrix,
        weights: Sequence[Any],
        skip: Sequence[dict[int, float]],
    ) -> None:
        self._g_logits, self._g_p, self._weights, self._skip = g_logits, g_p, weights, skip
        self._heads: dict[tuple[int, int], _Head] = {}

    def _head(self, b: int, k: int) -> tuple[_Head, Any]:
        head = self._heads.setdefault((b, k), _Head(b, k, self._weights, self._skip[k]))
        return head, head.passed(self._g_logits[b][k], self._g_p[b][k])

    def element(self, output: str, index: tuple[int, ...]) -> Any:
        """One element of a gradient; dw_skip at (k, c) also where the weights are packed."""
        s, W1 = self._weights[0], self._weights[1]
        if output == "ds":
            b, c = index
            return mpmath.fsum(self._to_state(b, k, c, W1) for k in range(len(self._skip)))
        k, *place = index
        terms = []
        for b in range(len(s)):
            head, g = self._head(b, k)
            terms.append(self._to_weight(output, head, g, s[b], place))
        return mpmath.fsum(terms)

    def _to_state(self, b: int, k: int, c: int, W1: Cube) -> Any:
        head, g = self._head(b, k)
        through = mpmath.fsum(_real(W1[k][i][c]) * head.dz(g, i) for i in range(len(W1[k])))
        return through + g * _real(self._skip[k].get(c, 0.0))

    @staticmethod
    def _to_weight(output: str, head: _Head, g: Any, state: Row, place: list[int]) -> Any:
        match output, place:
            case "dW1", [i, c]:
                return head.dz(g, i) * _real(state[c])
            case "db1", [i]:
                return head.dz(g, i)
            case "dW2", [j, i]:
                return head.de(g, j) * head.activity[i]
            case "db2", [j]:
                return head.de(g, j)
            case "dw_gate", [j]:
                return head.dgate(g) * head.e[j]
            case "dbg", []:
                return head.dgate(g)
            case "dw_main", [j]:
                return head.dmain(g) * head.e[j]
            case "dbm", []:
                return head.dmain(g)
            case "dw_skip", [c]:
                return g * _real(state[c])
        raise ValueError(f"no output {output} with {len(place) + 1} axes")


def _real(value: float) -> Any:
    return mpmath.mpf(float(value))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _products(weights: Row, values: Row) -> Iterator[float]:
    return (float(w) * float(x) for w, x in zip(weights, values, strict=True))


def _exact(terms: Iterable[float]) -> float:
    """Products of float32 numbers are exact in float64, and fsum rounds once."""
    return math.fsum(float(each) for each in terms)
