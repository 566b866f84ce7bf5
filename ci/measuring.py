"""Measuring contracts: the samples of each, compiled and metered, one worker per core."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trivet.ci.pool import Note, run_jobs, start_method

if TYPE_CHECKING:
    from trivet.properties._collect import Found
    from trivet.properties._observe import Observation
    from trivet.properties._samples import Sample
    from trivet.simulator.compiled import Value
    from trivet.simulator.traffic import Traffic

TRAFFIC = "traffic"


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of a contract on one target: what was measured, or why nothing was.

    ``source`` is how ``find`` names exactly this contract; ``target`` is a GPU or ``traffic``;
    ``file`` is where the kernel stands; ``error`` says why a kernel does not compile, ``reason``
    why it could not be judged.
    """

    contract: str
    source: str
    sample: str
    kernel: str = ""
    specialisation: str = ""
    target: str = ""
    toolchain: str = ""
    metrics: "Mapping[str, Value]" = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    traffic: "Traffic | None" = None
    file: str = ""
    error: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker measures at a time: one contract at one dtype."""

    contract: int
    name: str
    source: str
    dtype: str

    @property
    def label(self) -> str:
        """Return the part as people read it: softmax[float32]."""
        return f"{self.name}[{self.dtype}]"

    def unmeasured(self, reason: str) -> "Row":
        """Return the one row of a part of which nothing could be measured."""
        return Row(self.name, self.source, self.dtype, reason=reason)


@dataclass
class Measurer:
    """Measures parts in a worker; a spawned worker collects the contracts again.

    ``keep`` is told what was measured.
    """

    found: "Sequence[Found]"
    collect: "Callable[[], Sequence[Found]]"
    keep: "Callable[[Part, Sequence[Row]], None] | None" = None

    def __getstate__(self) -> dict[str, Any]:
        return {"found": (), "collect": self.collect, "keep": self.keep}

    def __call__(self, part: Part, note: Note) -> list[Row]:
        """Return the rows of one contract at one dtype."""
        if not self.found:
            self.found = self.collect()
        note("measuring")
        rows = measure_contract(self.found[part.contract], part.dtype)
        if self.keep is not None:
            self.keep(part, rows)
        return rows


def parts_of(found: "Sequence[Found]") -> list[Part]:
    """Return one part per contract and dtype, in order."""
    return [
        Part(number, item.name, item.source, dtype)
        for number, item in enumerate(found)
        for dtype in item.contract.dtypes()
    ]


def by_work(parts: Sequence[Part], found: "Sequence[Found]") -> list[int]:
    """Return the parts' numbers, those that compile longest first.

    How long follows from the instructions that were locked; a part that nothing is locked of comes
    before all others.
    """
    from trivet.properties._locks import LockError, lock_of

    def work(number: int) -> float:
        part = parts[number]
        try:
            locks = lock_of(part.name, part.source).entries.values()
        except LockError:
            return math.inf
        counts = [
            float(locked.metrics.get("instructions", 0))
            for by_toolchain in locks
            for samples in by_toolchain.values()
            for name, locked in samples.items()
            if name.partition(" ")[0] == part.dtype
        ]
        return sum(counts) if counts else math.inf

    return sorted(range(len(parts)), key=work, reverse=True)


def measure_contracts(found: "Sequence[Found]", workers: int) -> list[Row]:
    """Measure contracts that are loaded in this process, without progress; in order."""
    import torch

    torch.set_num_threads(1)
    parts = parts_of(found)
    rows: dict[int, list[Row]] = {}
    measurer = Measurer(found, lambda: found)
    order = by_work(parts, found)
    for event in run_jobs(measurer, [parts[n] for n in order], workers, start_method()):
        if event.ends:
            number = order[event.job]
            failed = [parts[number].unmeasured(str(event.value))]
            rows[number] = event.value if event.kind == "done" else failed
    return [row for number in range(len(parts)) for row in rows.get(number, [])]


def measure_contract(found: "Found", dtype: str) -> list[Row]:
    """Measure every sample of a contract at one dtype: for the locked targets, and its traffic.

    For the targets that are compiled for only, the first call alone is.
    """
    from trivet.properties._samples import observe_samples, samples_of
    from trivet.properties._sizes import DomainError
    from trivet.properties._verdict import NotJudgedError
    from trivet.simulator.compiled import LOCKED, TARGETS
    from trivet.simulator.executors import executor_named

    executor = executor_named("compile", source=found.source)
    rows: list[Row] = []
    try:
        for observation in observe_samples(found.contract, dtype, executor):
            samples = samples_of(observation, dtype)
            others = [] if rows else [target for target in TARGETS if target not in LOCKED]
            for target in (*LOCKED, *others):
                rows += _compiled_rows(found, samples, target)
            rows += _traffic_rows(found, samples, _floor_ratio(observation))
    except (NotJudgedError, DomainError) as error:
        rows.append(Row(found.name, found.source, dtype, reason=str(error)))
    return rows


def _compiled_rows(found: "Found", samples: "Sequence[Sample]", target: str) -> Iterator[Row]:
    from trivet.simulator.compiled import LOCKED, CompilerError, measure, toolchain

    try:
        tools = toolchain(target)
        measurements = measure(
            [sample.launch for sample in samples], target, whole=target in LOCKED
        )
    except CompilerError as error:
        for sample in samples:
            kernel = sample.launch.kernel
            told = str(error)
            yield Row(found.name, found.source, sample.name, kernel, target=target, reason=told)
        return
    for sample, measured in zip(samples, measurements, strict=True):
        yield Row(
            found.name,
            found.source,
            sample.name,
            measured.kernel,
            measured.specialisation,
            target,
            tools,
            measured.metrics,
            measured.lines,
            None,
            _file(sample),
            measured.error,
        )


def _floor_ratio(observation: "Observation") -> "dict[str, Value]":
    """How much a whole call moves, as a multiple of what its contract cannot do without."""
    from trivet.properties._floor import floor_bytes

    run = observation.run
    floor = floor_bytes(observation.contract, observation.inputs.tensors, run.outputs)
    moved = sum(traffic.bytes for traffic in run.metered)
    return {"call_over_floor": round(moved / floor, 2)} if floor else {}


def _traffic_rows(
    found: "Found", samples: "Sequence[Sample]", call: "Mapping[str, Value]"
) -> Iterator[Row]:
    for sample in samples:
        if sample.traffic is not None:
            yield Row(
                found.name,
                found.source,
                sample.name,
                sample.launch.kernel,
                "",
                TRAFFIC,
                "simulator",
                {**sample.traffic.metrics(), **call},
                {},
                sample.traffic,
                _file(sample),
            )


def _file(sample: "Sample") -> str:
    return str(sample.launch.function.fn.__code__.co_filename)
