"""Judging a mutant: cheap laws first, the first one that is red for the right reason ends it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from triton.compiler.errors import CompilationError

from trivet.faults._equivalence import equivalent, kernel_pairs
from trivet.faults._judge import seen_by_convention
from trivet.faults._load import FaultError
from trivet.faults._mutants import Mutant, loaded
from trivet.faults._mutators import operators
from trivet.properties._cases import Case
from trivet.properties._collect import Found
from trivet.properties._contract import Contract
from trivet.properties._engine import Session
from trivet.properties._gate import CRASH, Gate
from trivet.properties._laws import standard_laws
from trivet.properties._observe import Observation
from trivet.properties._profiles import profile_of
from trivet.simulator.alike import code_of
from trivet.simulator.frontend import specialisations

Verdict = Literal[
    "killed",
    "survived",
    "invalid",
    "equivalent",
    "dead_lane",
    "duplicate",
    "timeout",
    "crash",
    "waived",
    "not_judged",
]
Laws = dict[str, tuple[str, ...]]
_CHEAP = ("observes", "counts")


@dataclass(frozen=True, slots=True)
class MutantVerdict:
    """What the gates made of a mutant.

    ``killed_by`` is the law that turned red, ``witness`` the inputs on which it did, in words;
    ``detail`` says why there is no kill; ``code`` is a digest of the IR that was launched, empty
    for a mutant of the host function; ``conventional`` says whether the conventional suite sees
    it, None where that was not tried; ``needs_device``: only a device can judge it.
    """

    verdict: Verdict
    killed_by: str | None = None
    witness: str | None = None
    detail: str = ""
    code: str = ""
    conventional: bool | None = None
    needs_device: bool = False


def green_laws(found: Found, seed: int = 0) -> tuple[Laws, list[str]]:
    """Judge the original: per dtype the laws that are green, and what is red, in words."""
    laws: Laws = {}
    broken: list[str] = []
    for dtype in found.contract.dtypes():
        search = _search(found, found.contract, dtype, seed, None)
        search.run()
        verdicts = search.verdicts(shrink=False)
        laws[dtype] = tuple(v.law for v in verdicts if v.state == "green")
        broken += [v.failure.text if v.failure else v.law for v in verdicts if v.state == "red"]
    return laws, broken


def judge_mutant(
    found: Found, mutant: Mutant, laws: Laws, seed: int = 0, *, conventional: bool = False
) -> MutantVerdict:
    """Judge one mutant of the contract ``found`` by the laws that its original keeps.

    ``conventional`` also tries the conventional suite, which the original is known to pass.
    """
    try:
        kernel = loaded(found.contract, mutant)
    except FaultError as error:
        return MutantVerdict("not_judged", detail=str(error))
    except Exception as error:
        return MutantVerdict("invalid", detail=f"{type(error).__name__}: {error}")
    verdict = _searched(found, found.contract.with_kernel(kernel), laws, seed)
    if verdict.verdict == "survived":
        verdict = _survived(found, mutant, kernel, seed)
    seen = None
    if conventional and verdict.verdict in ("killed", "survived", "crash"):
        seen = seen_by_convention(found, kernel, trusted=True)
    return replace(verdict, code=_code(found, mutant, kernel), conventional=seen)


def _survived(found: Found, mutant: Mutant, kernel: Callable[..., Any], seed: int) -> MutantVerdict:
    operator = operators()[mutant.operator]
    if operator.elsewhere:
        return MutantVerdict("not_judged", detail=operator.elsewhere, needs_device=True)
    reason = equivalent(found, mutant, kernel, operator, seed)
    return MutantVerdict("survived") if reason is None else MutantVerdict(*reason)


def _code(found: Found, mutant: Mutant, kernel: Callable[..., Any]) -> str:
    if mutant.kind == "host":
        return ""
    pairs = kernel_pairs(found.contract.kernel, kernel)
    return "".join(code_of(second) for _, second in pairs if specialisations(second))


def judged_by(found: Found, contract: Contract, laws: Laws, seed: int) -> MutantVerdict:
    """Judge an edited kernel by ``laws`` of each dtype, all on the same runs, to the first red."""
    verdicts = []
    for dtype, names in laws.items():
        search = _search(found, contract, dtype, seed, names)
        search.run()
        verdicts.append(search.outcome())
        if verdicts[-1].verdict == "killed":
            break
    unclear = [verdict for verdict in verdicts if verdict.verdict != "survived"]
    return unclear[-1] if unclear else MutantVerdict("survived")


def _searched(found: Found, contract: Contract, laws: Laws, seed: int) -> MutantVerdict:
    unclear: list[MutantVerdict] = []
    for dtype, chosen in _phases(found.contract, laws):
        search = _search(found, contract, dtype, seed, chosen)
        search.run()
        verdict = search.outcome()
        if verdict.verdict in ("killed", "invalid", "timeout"):
            return verdict
        unclear += [verdict] if verdict.verdict != "survived" else []
    return unclear[0] if unclear else MutantVerdict("survived")


def _phases(contract: Contract, laws: Laws) -> Iterator[tuple[str, list[str]]]:
    """Yield dtypes and laws: those that only look at a run first, at every dtype."""
    standard = standard_laws()
    for cheap in (True, False):
        for dtype, names in laws.items():
            chosen = [n for n in names if _is_cheap(n, standard) == cheap]
            if chosen:
                yield dtype, chosen


def _is_cheap(name: str, standard: Any) -> bool:
    law = standard.get(name)
    return law is not None and law.kind in _CHEAP and "shadow" not in law.needs


def _search(
    found: Found, contract: Contract, dtype: str, seed: int, laws: Sequence[str] | None
) -> "Search":
    profile = profile_of("quick")
    return Search(
        contract, found.name, dtype, profile, seed, "simulator", laws=laws, source=found.source
    )


@dataclass
class Search(Session):
    """The gates of one kernel until one is red, the kernel does not compile, or its fuel is spent.

    An exception of the kernel does not end the search: a law may still tell more.
    """

    launched: bool = False
    refused: str = ""
    spent: str = ""
    unsupported: str = ""

    @property
    def stopped(self) -> bool:
        """Whether the verdict is known."""
        known = bool(self.spent or self.unsupported or (self.refused and not self.launched))
        return known or any(g.broken for g in self.gates.values()) or super().stopped

    def observe(self, case: Case, example: int) -> Observation:
        """Run the kernel on a case and note how its launches ended."""
        observation = super().observe(case, example)
        run = observation.run
        if isinstance(run.launch_error, CompilationError):
            self.refused = self.refused or _first_line(run.launch_error)
        elif run.launches:
            self.launched = True
        if run.failed is not None and run.failed.kind == "fuel":
            self.spent = run.failed.text
        elif run.failed is not None and run.failed.kind == "unsupported":
            self.unsupported = run.failed.text
        return observation

    def outcome(self) -> MutantVerdict:
        """Return the verdict that the gates add up to."""
        for name, gate in self.gates.items():
            if gate.broken:
                return MutantVerdict("killed", name, self._witness(gate))
        if self.spent:
            return MutantVerdict("timeout", detail=self.spent)
        if self.refused and not self.launched:
            return MutantVerdict("invalid", detail=self.refused)
        if self.unsupported:
            return MutantVerdict("not_judged", detail=self.unsupported)
        states = {name: gate.state() for name, gate in self.gates.items()}
        for name, (state, reason) in states.items():
            if state == "red" and reason != CRASH:
                return MutantVerdict("killed", name, f"{self.dtype}: {reason}")
        crashes = [name for name, (state, _) in states.items() if state == "red"]
        if crashes:
            return MutantVerdict("crash", detail=self._witness(self.gates[crashes[0]]))
        for name, (state, reason) in states.items():
            if state == "not_judged":
                return MutantVerdict("not_judged", detail=f"{name}[{self.dtype}]: {reason}")
        return MutantVerdict("survived")

    def _witness(self, gate: Gate) -> str:
        reds = [r for r in gate.reds.values() if not r.violation.key.startswith(CRASH)]
        red = (reds or list(gate.reds.values()))[0]
        dims = red.case.dims if red.case is not None else {}
        sizes = ", ".join(f"{name} = {size}" for name, size in dims.items())
        where = f"{self.dtype}, {sizes}" if sizes else self.dtype
        return f"{where}: {red.violation.text.splitlines()[0]}"


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
