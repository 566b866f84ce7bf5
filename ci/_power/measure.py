"""Judges right and wrong kernels of one workload by our bounds and by the rivals' rules."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trivet.ci._power.gates import examples
from trivet.ci._power.inputs import KINDS
from trivet.ci._power.numbers import Arguments, Array
from trivet.ci._power.workload import Output, Workload
from trivet.ci._rivals import RULES, Results
from trivet.oracles._accept import accept
from trivet.oracles._evaluate import Value
from trivet.oracles._precision import Precision

ANY, DEPTH = "ours any order", "ours declared depth"
OURS = (ANY, DEPTH)
# Inputs as a gate draws them; a fault is seen where one of a gate's examples shows it.
GATE = "gate"
# Batches of normal inputs that the faults are tried on, and gates.
_NORMAL, _GATES = 8, 6


@dataclass
class Share:
    """How many cases were refused, of how many."""

    refused: int = 0
    cases: int = 0

    def add(self, refused: Array) -> None:
        """Count one batch: a boolean a case."""
        self.refused += int(refused.sum())
        self.cases += len(refused)

    @property
    def rate(self) -> float:
        """The share refused; 0 of none."""
        return self.refused / max(self.cases, 1)


@dataclass
class Found:
    """One workload's figures.

    alarms: by column, right kernels refused, rivals' on the eight kinds of input and ours on
    gates' as well; places: (implementation, kind, column) of ours. seen: by fault, inputs
    ("normal", "mix" or "gate") and column, wrong ones refused, of gates the whole gate, where a
    column that refuses the right kernel on the same input has shown nothing; column "visible"
    counts those with other bits than the right kernel. ratio: the largest distance over bound of
    a right kernel.
    """

    workload: str
    dtype: str
    cases: int = 0
    elements: int = 0
    undecided: int = 0
    ratio: dict[str, float] = field(default_factory=lambda: dict.fromkeys(OURS, 0.0))
    alarms: dict[str, Share] = field(default_factory=dict)
    places: dict[tuple[str, str, str], int] = field(default_factory=dict)
    seen: dict[tuple[str, str], dict[str, Share]] = field(default_factory=dict)


class _Batch:
    """One batch of inputs; the oracle is evaluated once a promise and profile."""

    def __init__(self, workload: Workload, arguments: Arguments) -> None:
        self.workload = workload
        self.arguments = arguments
        self._exact = {name: x.astype(np.float64) for name, x in self.arguments.items()}
        self._values: dict[tuple[str, str], Value] = {}
        self.right = workload.right(self.arguments)
        self.native = workload.native(self.arguments)
        self.expected = self.value(ANY).value.astype(workload.dtype).astype(np.float64)

    def value(self, column: str, profile: str = "simulator") -> Value:
        """The oracle's value and bound for one of our columns."""
        if (column, profile) not in self._values:
            promise = self.workload.promise
            depth = promise.depth if column == DEPTH else None
            precision = Precision(depth=depth, approx=promise.approx)
            value = self.workload.value(self._exact, precision, profile)
            self._values[column, profile] = value
        return self._values[column, profile]

    def rivals(self, actual: Array) -> Iterator[tuple[str, Any]]:
        """Each rival's name and the cases it refuses."""
        wide = actual.astype(np.float64), self.expected, self.native.astype(np.float64)
        results = Results(*wide, np.dtype(self.workload.dtype).name)
        for name, rule in RULES.items():
            if not rule.gradients or self.workload.gradients:
                yield name, rule.refuses(results)


def _by_case(wrong: Array) -> Array:
    return np.asarray(wrong.reshape(len(wrong), -1).any(1))


def measure(workload: Workload, *, seed: int = 0, share: float = 1.0) -> Found:
    """False alarms and detection of one workload; the same seeds for every column.

    `share` scales the number of cases of each batch and of gates.
    """
    rng = np.random.default_rng([seed, zlib.crc32(workload.name.encode())])
    found = Found(workload.name, np.dtype(workload.dtype).name)
    cases = max(int(workload.cases * share), 2)
    with np.errstate(all="ignore"):
        for kind in KINDS:
            for _ in range(workload.batches):
                batch = _Batch(workload, workload.inputs(rng, cases, kind))
                _false_alarms(found, batch, kind)
                for output in _right_kernels(batch):
                    for column, refused in batch.rivals(output.values):
                        found.alarms.setdefault(column, Share()).add(refused)
        for name, kind in [("normal", "normal")] * _NORMAL + [("mix", kind) for kind in KINDS]:
            batch = _Batch(workload, workload.inputs(rng, max(cases // 2, 1), kind))
            for fault, column, refused in _refusals(batch):
                _shares(found, fault, name).setdefault(column, Share()).add(refused)
        for gate in range(max(round(_GATES * share), 1)):
            _judge_gate(found, workload, seed + gate)
    return found


def _judge_gate(found: Found, workload: Workload, seed: int) -> None:
    seen: dict[tuple[str, str], bool] = {}
    for arguments in examples(workload, seed):
        batch = _Batch(workload, arguments)
        _false_alarms(found, batch, GATE)
        blind = {name for name, refused in batch.rivals(batch.right) if refused.any()}
        for fault, column, refused in _refusals(batch):
            shown = column not in blind and bool(refused.any())
            seen[fault, column] = seen.get((fault, column), False) or shown
    for (fault, column), shown in seen.items():
        _shares(found, fault, GATE).setdefault(column, Share()).add(np.array([shown]))


def _shares(found: Found, fault: str, inputs: str) -> dict[str, Share]:
    return found.seen.setdefault((fault, inputs), {})


def _right_kernels(batch: _Batch) -> Iterator[Output]:
    yield Output("tree", batch.right, declared=True)
    functions = "interpreter" if batch.workload.uses_functions else "simulator"
    yield Output("torch", batch.native, batch.workload.promise.depth is None, functions)
    yield from batch.workload.others(batch.arguments)


def _false_alarms(found: Found, batch: _Batch, kind: str) -> None:
    for output in _right_kernels(batch):
        found.cases += len(output.values)
        found.elements += output.values.size
        for column in OURS if output.declared else (ANY,):
            verdict = accept(output.values, batch.value(column, output.profile))
            refused = _by_case(~verdict.ok)
            found.alarms.setdefault(column, Share()).add(refused)
            most = float(verdict.ratio.max(initial=0.0))
            found.ratio[column] = max(found.ratio[column], most)
            if column == ANY:
                found.undecided += int(verdict.undecided.sum())
            if refused.any():
                place = (output.name, kind, column)
                found.places[place] = found.places.get(place, 0) + int(refused.sum())


def _refusals(batch: _Batch) -> Iterator[tuple[str, str, Array]]:
    """Each fault, each column and the cases it refuses; "visible" are those with other bits."""
    right = batch.right
    for fault, actual in batch.workload.faults(batch.arguments):
        changed = np.asarray((actual != right) & ~(np.isnan(actual) & np.isnan(right)), np.bool_)
        yield fault, "visible", _by_case(changed)
        for column, refused in batch.rivals(actual):
            yield fault, column, refused
        for column in OURS:
            yield fault, column, _by_case(~accept(actual, batch.value(column)).ok)
