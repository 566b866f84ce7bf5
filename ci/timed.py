"""`trivet bench --timed`: kernels on a GPU, beside their base, their rivals and their floors.

Times are compared within one process only, never with stored ones. A kernel whose gate is red on
the device is not timed: a wrong result is no faster.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.progress import Progress

if TYPE_CHECKING:
    from trivet.ci.timing.base import Files
    from trivet.ci.timing.device import Device
    from trivet.ci.timing.statistics import Comparison
    from trivet.ci.timing.subjects import Subject
    from trivet.properties._collect import Found

_WORDS = "each call takes longer on this device"
# Laws that say whether the result is right; the others ask how it came about.
GATES = ("matches_oracle", "exact_on_integers", "repeats")


@dataclass(frozen=True)
class Bench:
    """Times subjects on one device, with a limit measured in the same process."""

    device: "Device"
    rounds: int = 100
    seed: int = 0

    def spread(self, subject: "Subject") -> "Comparison":
        """Compare a kernel with itself."""
        from trivet.ci.timing.paired import interleaved
        from trivet.ci.timing.statistics import compared

        ours = subject.ours
        sides = interleaved(
            [ours, replace(ours, name="itself")],
            subject.inputs,
            self.device,
            rounds=self.rounds,
            seed=self.seed,
        )
        return compared(*sides, seed=self.seed)

    def against(
        self, subject: "Subject", others: "Sequence[tuple[str, Callable[..., Any]]]", limit: float
    ) -> "dict[str, Comparison]":
        """Compare a kernel with others, which stand for the base: a ratio below 1 is faster."""
        from trivet.ci.timing.paired import Version, interleaved
        from trivet.ci.timing.statistics import compared

        versions = [subject.ours, *(Version(name, launch, False) for name, launch in others)]
        ours, *theirs = interleaved(
            versions, subject.inputs, self.device, rounds=self.rounds, seed=self.seed
        )
        return {
            name: compared(times, ours, limit=limit, seed=self.seed)
            for (name, _), times in zip(others, theirs, strict=True)
        }


def run_timed(
    found: "Sequence[Found]", against: "Files | None", progress: Progress
) -> list[Document]:
    """Time every contract of ``found`` and return one entry each.

    ``against`` are another revision's files: its kernels are the base. Raises CannotJudgeError
    where torch sees no GPU.
    """
    from trivet.ci.timing.device import CudaDevice
    from trivet.simulator.gpu import NoGpuError

    try:
        device = CudaDevice()
    except NoGpuError as error:
        raise CannotJudgeError(f"--timed needs a GPU: {error}") from error
    bench = Bench(device)
    entries = []
    with progress.of(len(found)):
        for each in found:
            entry = entry_of(bench, each, against)
            progress.done(each.name, [{"verdict": entry["verdict"]}])
            entries.append(entry)
    return entries


def entry_of(
    bench: Bench, found: "Found", against: "Files | None" = None, red: str | None = None
) -> Document:
    """The entry of one contract: its times, what they are compared with, and a verdict.

    ``red`` says why it may not be timed, or is empty where its gates are green; None asks them.

    Green where it is not slower than its base, red where it is, not_judged where nothing can be
    said: no sizes, a failing call, a gate that is not green, times that are ambiguous.
    """
    from trivet.ci.timing.paired import WrongResultError
    from trivet.ci.timing.subjects import ELEMENTS, SMALL, subject
    from trivet.properties._sizes import DomainError
    from trivet.properties._verdict import NotJudgedError

    if red is None:
        red = gate_of(found, bench.device.executor, found.contract.dtypes()[:1])
    if red:
        return _entry(found, bench, "not_judged", f"{red}: a wrong result has no time")
    try:
        timed = subject(found, bench.device, elements=ELEMENTS if bench.device.large else SMALL)
        return _compared(bench, found, timed, against)
    except WrongResultError as error:
        return _entry(found, bench, "red", str(error))
    except (DomainError, NotJudgedError, RuntimeError, ValueError, TypeError) as error:
        return _entry(found, bench, "not_judged", f"{type(error).__name__}: {error}")


def _compared(bench: Bench, found: "Found", timed: "Subject", against: "Files | None") -> Document:
    from trivet.ci.timing.base import base_kernel
    from trivet.ci.timing.statistics import limit_of, spread_of

    itself = bench.spread(timed)
    limit = limit_of(spread_of([itself]))
    others = list(timed.rivals.items())
    if against is not None:
        others.insert(0, ("base", base_kernel(found.contract.kernel, against)))
    races = bench.against(timed, others, limit) if others else {}
    metrics: dict[str, object] = {
        "sizes": dict(timed.dims),
        "microseconds": round(itself.base * 1e6, 3),
        "spread": round(abs(itself.ratio - 1), 4),
        "limit": round(limit, 4),
    }
    peaks = bench.device.peaks
    if peaks is not None:
        floor = peaks.floor(timed.bytes)
        metrics |= {"floor_microseconds": round(floor * 1e6, 3)}
        metrics |= {"times_floor": round(itself.base / floor, 2) if floor else None}
    for name, race in races.items():
        metrics[f"ratio to {name}"] = round(race.ratio, 4)
        metrics[f"interval to {name}"] = [round(race.low, 4), round(race.high, 4)]
    base = races.get("base")
    verdict, reason = _verdict(base.state if base else "SAME")
    changes = [] if verdict == "green" or base is None else [_change(base)]
    return _entry(found, bench, verdict, reason, metrics, changes)


def _verdict(state: str) -> tuple[str, str]:
    if state == "AMBIGUOUS":
        return "not_judged", "the times neither exclude a slow-down nor show one: run it again"
    return ("red", "slower than the base") if state == "SLOW" else ("green", "")


def _change(race: "Comparison") -> Document:
    was, now = round(race.base * 1e6, 3), round(race.candidate * 1e6, 3)
    return {
        "metric": "microseconds",
        "was": was,
        "now": now,
        "class": "HARD",
        "line": "",
        "words": _WORDS,
    }


def _entry(
    found: "Found",
    bench: Bench,
    verdict: str,
    reason: str,
    metrics: Document | None = None,
    changes: Sequence[Document] = (),
) -> Document:
    return {
        "contract": found.name,
        "source": found.source,
        "sample": "timed",
        "kernel": getattr(found.contract.kernel, "__name__", found.name),
        "specialisation": "",
        "target": bench.device.name,
        "toolchain": "events",
        "metrics": metrics or {},
        "changes": list(changes),
        "verdict": verdict,
        "reason": reason or None,
    }


def gate_of(found: "Found", executor: str, dtypes: Sequence[str] | None = None) -> str:
    """Why a kernel may not be timed: the first of its gates that is not green, or nothing.

    All its dtypes are judged unless ``dtypes`` are given.
    """
    from trivet.properties._engine import judge

    verdicts = judge(
        found.contract,
        name=found.name,
        executor=executor,
        laws=GATES,
        dtypes=dtypes,
        source=found.source,
        shrink=False,
    )
    for verdict in verdicts:
        if verdict.state in ("red", "not_judged"):
            return f"{verdict.law} is {verdict.state.replace('_', ' ')} on the device"
    return ""
