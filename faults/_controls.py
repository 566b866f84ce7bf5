"""Controls: right kernels written differently, on which no gate may turn red.

A red gate there is a false alarm: a bound too narrow, or a promise that nobody made.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from triton.compiler.errors import CompilationError

from trivet.faults._load import FaultError
from trivet.faults._mutants import Mutant, loaded, mutants_of
from trivet.faults._mutators._source import Edit, Source
from trivet.faults._rewrites import Rewrite, rewrites
from trivet.properties._cases import Case
from trivet.properties._collect import Found
from trivet.properties._engine import Session, judge
from trivet.properties._gate import Gate
from trivet.properties._laws import standard_laws
from trivet.properties._observe import Observation
from trivet.properties._profiles import profile_of

Laws = Mapping[str, Sequence[str]]

# Of each contract so many, and so many kinds at least of each family.
EACH = 3
KINDS = 8
_QUICK = profile_of("quick")


@dataclass(frozen=True, slots=True)
class ControlVerdict:
    """What the gates made of a control.

    ``green``: every law that the original keeps holds. ``red``: ``law`` is broken on the inputs
    that ``witness`` names. ``invalid``: written so, the kernel does not compile.
    """

    verdict: Literal["green", "red", "invalid", "not_judged"]
    law: str | None = None
    witness: str | None = None
    detail: str = ""


def controls_of(found: Sequence[Found]) -> list[list[Mutant]]:
    """Return the controls of each contract: of every family as many kinds as can be.

    A contract has one of a kind at most; which, is decided by the digests of the rewrites.
    """
    families = Counter(_family(item) for item in found)
    used: dict[str, Counter[str]] = {family: Counter() for family in families}
    chosen = []
    for item in found:
        family = _family(item)
        count = max(EACH, -(-KINDS // families[family]))
        kinds = _kinds(item)
        order = sorted(kinds, key=lambda kind: (used[family][kind], _turn(item, kind)))
        used[family].update(order[:count])
        chosen.append([kinds[kind] for kind in order[:count]])
    return chosen


def _family(found: Found) -> str:
    return found.name.partition(" ")[0].rpartition(".")[0] or str(found.path)


def _kinds(found: Found) -> dict[str, Mutant]:
    kinds: dict[str, Mutant] = {}
    for control in mutants_of(found.contract, _edits):
        kinds.setdefault(control.operator, control)
    return kinds


def _edits(source: Source) -> Iterator[tuple[Rewrite, Edit]]:
    for each in rewrites().values():
        for edit in each.apply(source):
            if source.file.text[edit.start : edit.end] != edit.text:
                yield each, edit


def _turn(found: Found, kind: str) -> str:
    return hashlib.sha256(f"{found.name}\0{kind}".encode()).hexdigest()


def kept_laws(found: Found, seed: int = 0) -> Laws | None:
    """Judge the original: per dtype the laws that are green; None where one is red."""
    kept = {}
    for dtype in found.contract.dtypes():
        verdicts = judge(found.contract, name=found.name, seed=seed, dtypes=(dtype,), shrink=False)
        if any(verdict.state == "red" for verdict in verdicts):
            return None
        kept[dtype] = tuple(v.law for v in verdicts if v.state == "green")
    return kept


def judge_control(found: Found, control: Mutant, laws: Laws, seed: int = 0) -> ControlVerdict:
    """Judge a control by the laws of each dtype that its original keeps."""
    try:
        kernel = loaded(found.contract, control)
    except FaultError as error:
        return ControlVerdict("not_judged", detail=str(error))
    except Exception as error:
        return ControlVerdict("invalid", detail=f"{type(error).__name__}: {error}")
    only_standard = rewrites()[control.operator].rounds
    contract = found.contract.with_kernel(kernel)
    for dtype, names in laws.items():
        asked = _standard(names) if only_standard else names
        gates = _Gates(contract, found.name, dtype, _QUICK, seed, "simulator", laws=asked)
        gates.run()
        verdict = gates.verdict()
        if verdict.verdict != "green":
            return verdict
    return ControlVerdict("green")


def _standard(names: Sequence[str]) -> list[str]:
    known = standard_laws()
    return [name for name in names if name in known]


@dataclass
class _Gates(Session):
    """The gates of a control at one dtype, until one is red or the kernel does not compile."""

    refused: str = ""

    @property
    def stopped(self) -> bool:
        """Whether the verdict is known."""
        broken = any(gate.broken for gate in self.gates.values())
        return broken or bool(self.refused) or super().stopped

    def observe(self, case: Case, example: int) -> Observation:
        """Run the kernel on a case and note whether it compiles."""
        observation = super().observe(case, example)
        if isinstance(observation.run.launch_error, CompilationError):
            self.refused = str(observation.run.launch_error).strip().partition("\n")[0]
        return observation

    def verdict(self) -> ControlVerdict:
        """Return what the gates add up to."""
        if self.refused:
            return ControlVerdict("invalid", detail=self.refused)
        for name, gate in self.gates.items():
            state, reason = gate.state()
            if state == "red":
                return ControlVerdict("red", name, f"{self.dtype}: {_shown(gate, reason)}")
        for name, gate in self.gates.items():
            state, reason = gate.state()
            if state == "not_judged":
                return ControlVerdict("not_judged", detail=f"{name}[{self.dtype}]: {reason}")
        return ControlVerdict("green")


def _shown(gate: Gate, reason: str | None) -> str:
    """Return the inputs on which a gate is red, and how, in one line."""
    red = next(iter(gate.reds.values()), None)
    if red is None:
        return reason or "no reason given"
    dims = red.case.dims if red.case is not None else {}
    sizes = ", ".join(f"{name} = {size}" for name, size in dims.items())
    return f"{sizes}: {red.violation.text.splitlines()[0]}"
