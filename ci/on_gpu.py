"""Everything that a GPU is needed for, in one run of under five minutes: ``trivet.ci.on_gpu``.

``python -m trivet.ci.on_gpu [--only PART]... [--seconds N] [--json F]``; the parts, in this order:

    gates    every shipped kernel keeps its contract on the device
    aa       how far times of equal kernels lie apart: the limit of this runner
    planted  which planted regressions show in time, and which neutral edits do not
    kernels  every shipped kernel beside what people use today, and beside its floor

Figures are printed, and written to F, as they are found: an interrupted run has all it got. A part
has a share of the time; what did not fit is named. Needs torch, triton, numpy, hypothesis, mpmath,
ml-dtypes, typer and rich. Exits 0 where everything was judged and green, 1 where something is red,
2 without a GPU or where something was left out.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.ci.timing.device import Device

PARTS = ("gates", "aa", "planted", "kernels")
# Of the whole time; what a part does not use goes to the next.
_SHARES = {"gates": 0.25, "aa": 0.05, "planted": 0.4, "kernels": 0.3}
_SECONDS = 280
_ROUNDS = 60
_EQUAL_PAIRS = ("add_renamed", "softmax_sum_named", "matmul_triton_range")

Row = dict[str, Any]
Clock = Callable[[], float]


@dataclass
class Sink:
    """Where figures go at once: one line of JSON each to a file, one line of text to stdout."""

    path: Path | None = None
    rows: list[Row] = field(default_factory=list)

    def put(self, row: Row) -> None:
        """Add a figure."""
        self.rows.append(row)
        print(_text(row), flush=True)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def main(
    arguments: Sequence[str] | None = None,
    device: "Device | None" = None,
    clock: Clock = time.monotonic,
) -> int:
    """Run the parts and return the exit status; see the module.

    ``device`` and ``clock`` are those of this machine, unless a test brings its own.
    """
    wanted = _parser().parse_args(arguments)
    sink = Sink(wanted.json)
    if device is None:
        device = _device()
        if device is None:
            return 2
    sink.put({"part": "device", "name": device.name, **_versions()})
    parts = [part for part in PARTS if not wanted.only or part in wanted.only]
    whole = sum(_SHARES[part] for part in parts)
    run = _Run(device, sink, clock, wanted.rounds, clock() + wanted.seconds)
    for number, part in enumerate(parts):
        rest = sum(_SHARES[later] for later in parts[number:])
        left = run.end - clock()
        run.until = clock() + left * _SHARES[part] / rest if whole else run.end
        _PARTS[part](run)
    sink.put({"part": "end", "seconds": round(clock() - run.end + wanted.seconds, 1)})
    return status_of(sink.rows)


def _parser() -> argparse.ArgumentParser:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="trivet.ci.on_gpu", description=about)
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help=f"{_SECONDS} without")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="calls of each side of a pair")
    parser.add_argument("--json", type=Path, metavar="F", help="append figures here, one a line")
    return parser


def status_of(rows: Sequence[Row]) -> int:
    """1 where a figure is red, else 2 where one could not be had, else 0."""
    verdicts = {row.get("verdict") for row in rows}
    return 1 if "red" in verdicts else 2 if "not_judged" in verdicts else 0


def _device() -> "Device | None":
    from trivet.ci.timing.device import CudaDevice
    from trivet.simulator.gpu import NoGpuError

    try:
        return CudaDevice()
    except NoGpuError as error:
        print(f"on_gpu: {error}: run it on a machine with a GPU", file=sys.stderr)
        return None


def _versions() -> Row:
    import torch
    import triton

    return {"torch": torch.__version__, "triton": triton.__version__}


@dataclass
class _Run:
    """What the parts share: the device, the figures so far, the time that is left."""

    device: "Device"
    sink: Sink
    clock: Clock
    rounds: int
    end: float
    until: float = 0.0
    limit: float = 0.0

    def timely(self, part: str, names: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield number and name of what there is time for; say what was left out."""
        for number, name in enumerate(names):
            if self.clock() > self.until:
                rest = list(names[number:])
                self.put(part, verdict="not_judged", reason="no time was left", left_out=rest)
                return
            yield number, name

    def put(self, part: str, **figures: Any) -> None:
        """Hand a figure on."""
        self.sink.put({"part": part, **figures})


def _gates(run: _Run) -> None:
    from trivet.ci.timed import gate_of
    from trivet.properties._collect import shipped

    found = shipped()
    for number, name in run.timely("gates", [each.name for each in found]):
        start = run.clock()
        red = _tried(partial(gate_of, found[number], run.device.executor))
        verdict = "not_judged" if "not judged" in red else "red" if red else "green"
        seconds = round(run.clock() - start, 2)
        run.put("gates", kernel=name, verdict=verdict, reason=red, seconds=seconds)


def _aa(run: _Run) -> None:
    from trivet.ci._pairs import named
    from trivet.ci.timing.statistics import limit_of, spread_of

    found = []
    for _, name in run.timely("aa", _EQUAL_PAIRS):
        base = named(name).pair.base
        comparison = _compared(run, base, base)
        found.append(comparison)
        run.put("aa", pair=name, **_figures(comparison))
    if found:
        spread = spread_of(found)
        run.limit = limit_of(spread)
        run.put("aa", spread=round(spread, 5), limit=round(run.limit, 5))


def _planted(run: _Run) -> None:
    from trivet.ci._pairs import all_pairs

    pairs = all_pairs()
    # Regressions first: should time run out, they are what the figures are for.
    pairs.sort(key=lambda each: each.pair.kind == "neutral")
    for number, name in run.timely("planted", [each.name for each in pairs]):
        pair = pairs[number].pair
        about = {"pair": name, "number": pair.number, "kind": pair.kind}
        try:
            figures = _figures(_compared(run, pair.base, pair.candidate))
        except Exception as error:
            run.put("planted", **about, error=f"{type(error).__name__}: {error}"[:300])
            continue
        run.put("planted", **about, **figures)


def _compared(run: _Run, base: Any, candidate: Any) -> Any:
    """Time both sides of a pair on inputs of their own: they may differ in layout."""
    from trivet.ci.timing.paired import Version, interleaved
    from trivet.ci.timing.statistics import LEAST_LIMIT, compared
    from trivet.fixtures.perf.pairs._pair import Draw

    def inputs(seed: int) -> dict[str, Any]:
        draw = Draw(large=run.device.large, device=run.device.place, seed=seed)
        sides = {"base": base.inputs(draw), "candidate": candidate.inputs(draw)}
        return {f"{s}_{name}": value for s, given in sides.items() for name, value in given.items()}

    def side(name: str, launch: Callable[..., Any]) -> Version:
        return Version(name, _Picked(name, launch), exact=False)

    sides = [side("base", base.launch), side("candidate", candidate.launch)]
    times = interleaved(sides, inputs, run.device, rounds=run.rounds)
    return compared(*times, limit=run.limit or LEAST_LIMIT)


@dataclass(frozen=True)
class _Picked:
    """A side's launch that takes its own of the inputs of both."""

    name: str
    launch: Callable[..., Any]

    def __call__(self, **given: Any) -> Any:
        prefix = f"{self.name}_"
        mine = {name: value for name, value in given.items() if name.startswith(prefix)}
        return self.launch(**{name.removeprefix(prefix): value for name, value in mine.items()})


def _kernels(run: _Run) -> None:
    from trivet.ci.timed import Bench, entry_of
    from trivet.properties._collect import shipped

    gates = [row for row in run.sink.rows if row["part"] == "gates" and "kernel" in row]
    gated = {row["kernel"]: row for row in gates}
    bench = Bench(run.device, rounds=run.rounds)
    found = shipped()
    # Those that there is something to race against come first.
    found.sort(key=lambda each: not _has_rivals(each.name, run.device))
    for number, name in run.timely("kernels", [each.name for each in found]):
        gate = gated.get(name)
        red = None if gate is None else gate["reason"]
        entry = entry_of(bench, found[number], red=red)
        about = {"kernel": name, "verdict": entry["verdict"], "reason": entry["reason"] or ""}
        run.put("kernels", **about, **entry["metrics"])


def _has_rivals(name: str, device: "Device") -> bool:
    from trivet.ci.timing.subjects import rivals_of

    return next(rivals_of(name, device), None) is not None


def _tried(action: Callable[[], str]) -> str:
    try:
        return action()
    except Exception as error:
        return f"not judged: {type(error).__name__}: {error}"[:300]


def _figures(comparison: Any) -> Row:
    return {
        "ratio": round(comparison.ratio, 4),
        "interval": [round(comparison.low, 4), round(comparison.high, 4)],
        "state": comparison.state,
        "base_us": round(comparison.base * 1e6, 2),
        "candidate_us": round(comparison.candidate * 1e6, 2),
    }


def _text(row: Row) -> str:
    """A figure as one line for people."""
    told = {key: value for key, value in row.items() if key != "part" and value not in ("", None)}
    rest = [f"{key}={value}" for key, value in told.items()]
    return f"{row['part']:8} " + " ".join(rest)


_PARTS: dict[str, Callable[[_Run], None]] = {
    "gates": _gates,
    "aa": _aa,
    "planted": _planted,
    "kernels": _kernels,
}

if __name__ == "__main__":
    raise SystemExit(main())
