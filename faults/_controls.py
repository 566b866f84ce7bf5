"""Controls: right kernels written differently, on which no gate may turn red.

A red gate there is a false alarm: a bound too narrow, or a promise that nobody made.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trivet.faults._judge_mutant import Laws, judged_by
from trivet.faults._load import FaultError
from trivet.faults._mutants import Mutant, loaded, mutants_of
from trivet.faults._mutators._source import Edit, Source
from trivet.faults._rewrites import Rewrite, rewrites
from trivet.properties._collect import Found
from trivet.properties._laws import standard_laws

# Of each contract so many, and so many kinds at least of each family.
EACH = 3
KINDS = 8


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
    return found.name.rpartition(".")[0] or str(found.path)


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


def judge_control(found: Found, control: Mutant, laws: Laws, seed: int = 0) -> ControlVerdict:
    """Judge a control by the laws that its original keeps."""
    try:
        kernel = loaded(found.contract, control)
    except FaultError as error:
        return ControlVerdict("not_judged", detail=str(error))
    except Exception as error:
        return ControlVerdict("invalid", detail=f"{type(error).__name__}: {error}")
    asked = _standard(laws) if rewrites()[control.operator].rounds else laws
    verdict = judged_by(found, found.contract.with_kernel(kernel), asked, seed)
    if verdict.verdict == "survived":
        return ControlVerdict("green")
    if verdict.verdict in ("killed", "crash"):
        return ControlVerdict("red", verdict.killed_by, verdict.witness or verdict.detail)
    kind: Literal["invalid", "not_judged"] = (
        "invalid" if verdict.verdict == "invalid" else "not_judged"
    )
    return ControlVerdict(kind, detail=verdict.detail)


def _standard(laws: Laws) -> Laws:
    known = standard_laws()
    return {dtype: tuple(law for law in names if law in known) for dtype, names in laws.items()}
