"""The pairs of the bench's self-test: found by their files, recorded, metered and compared."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from trivet.fixtures.perf import pairs as folder
from trivet.fixtures.perf.pairs._pair import Draw, Pair, Side
from trivet.simulator.binding import Launch
from trivet.simulator.compiled import Change, compare, measure
from trivet.simulator.executors import Simulator
from trivet.simulator.recorder import launches_of
from trivet.simulator.session import KernelFailure
from trivet.simulator.traffic import Traffic
from trivet.simulator.traffic_rules import compare_traffic


@dataclass(frozen=True)
class Named:
    """A pair with the name of its file and what that says."""

    name: str
    story: str
    pair: Pair


@dataclass(frozen=True)
class Judged:
    """What the metrics say about one pair on one target.

    ``reason`` says why they say nothing; there are no changes then.
    """

    named: Named
    target: str
    changes: tuple[Change, ...] = ()
    reason: str = ""

    @property
    def flagged(self) -> bool:
        """Whether any metric got worse."""
        return bool(self.changes)

    @property
    def grade(self) -> str:
        """HARD or SOFT where flagged, else what stands in a table: "-" or "?"."""
        if not self.changes:
            return "?" if self.reason else "-"
        return "HARD" if any(change.kind == "HARD" for change in self.changes) else "SOFT"


def all_pairs() -> list[Named]:
    """Every pair, in order of its file's name."""
    names = [m.name for m in pkgutil.iter_modules(folder.__path__) if m.name[0] != "_"]
    return [named(name) for name in names]


def named(name: str) -> Named:
    """The pair of one file. Raises ValueError, with the names there are, for an unknown one."""
    try:
        module = importlib.import_module(f"{folder.__name__}.{name}")
    except ModuleNotFoundError as error:
        known = ", ".join(m.name for m in pkgutil.iter_modules(folder.__path__) if m.name[0] != "_")
        raise ValueError(f"no pair is called {name!r}; there are: {known}") from error
    story = (module.__doc__ or "").strip()
    return Named(name, story, module.PAIR)


def judge(wanted: Named, target: str) -> Judged:
    """Compare both sides: what the compiler makes of large launches, what small ones move.

    Raises CompilerMissingError where there is no compiler for ``target``.
    """
    pair = wanted.pair
    was, now = (measure(_recorded(side), target) for side in (pair.base, pair.candidate))
    if was[0].error:
        return Judged(wanted, target, reason=f"the base does not compile: {was[0].error}")
    if len(was) != len(now):
        raise ValueError(f"{wanted.name}: {len(was)} launches became {len(now)}")
    found = [change for a, b in zip(was, now, strict=True) for change in compare(a.metrics, b)]
    return Judged(wanted, target, tuple(found + list(_traffic_changes(pair))))


def _recorded(side: Side) -> list[Launch]:
    return launches_of(side.launch, side.inputs(Draw(large=True, filled=False)))


@lru_cache(maxsize=256)
def _metered(side: Side) -> tuple[Traffic, ...]:
    run = Simulator(meter=True, sanitize=False).run(side.launch, side.inputs(Draw()))
    if run.error is not None and not isinstance(run.error, KernelFailure):
        raise run.error
    return tuple(run.metered)


def _traffic_changes(pair: Pair) -> Iterator[Change]:
    for was, now in zip(_metered(pair.base), _metered(pair.candidate), strict=True):
        yield from compare_traffic(was.metrics(), now)
