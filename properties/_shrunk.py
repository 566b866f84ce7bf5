"""From the first failing inputs to the smallest: each bug shrunk by itself, saved and told."""

import sys
from typing import TYPE_CHECKING

from trivet.properties._cases import Case, build
from trivet.properties._failure import failure_of, joined
from trivet.properties._gate import Gate, Red
from trivet.properties._observe import DiscardedError
from trivet.properties._shrink import shrink as shrunk
from trivet.properties._verdict import Failure, Violation
from trivet.properties._witness import Witness, packed, save

if TYPE_CHECKING:
    from trivet.properties._engine import Session

_BUDGET = 400
_MOST_BUGS = 3


def smallest_failures(session: "Session", gate: Gate, *, shrink: bool) -> Failure | None:
    """Return the failure of a red gate: its bugs, at most three, on their smallest inputs."""
    failures = [
        _told(session, gate, red, number, shrink=shrink)
        for number, red in enumerate(list(gate.reds.values())[:_MOST_BUGS])
    ]
    return joined(failures)


def _told(session: "Session", gate: Gate, red: Red, number: int, *, shrink: bool) -> Failure:
    case, violation = red.case, red.violation
    if case is None:
        return _text(session, gate, violation, None, None)
    if shrink:
        case, violation = _smallest(session, gate, red)
    witness = None
    if session.source and shrink:
        witness = _saved(_witness(session, gate, case, red, violation), number)
    return _text(session, gate, violation, case, witness)


def _saved(witness: Witness, number: int) -> str | None:
    """Save a witness; where the cache cannot be written the failure is told without a replay."""
    try:
        return str(save(witness, number))
    except OSError as error:
        print(f"trivet: the witness is not kept: {error}", file=sys.stderr)
        return None


def _smallest(session: "Session", gate: Gate, red: Red) -> tuple[Case, Violation]:
    latest = red.violation

    def still_fails(case: Case) -> bool:
        nonlocal latest
        found = _violation(session, gate.law, case, red)
        latest = found or latest
        return found is not None

    assert red.case is not None
    case = shrunk(red.case, still_fails, session.contract, session.dtype, _BUDGET)
    return case, _violation(session, gate.law, case, red) or latest


def _violation(session: "Session", law: str, case: Case, red: Red) -> Violation | None:
    """Return the violation of the same bug on another case, None where it does not show."""
    try:
        observation = session.observe(case, red.example)
    except DiscardedError:
        return None
    found = session.judges.violation(law, observation, case, session.dtype)
    every = () if found is None else (found, *found.further)
    return next((each for each in every if each.key == red.violation.key), None)


def _witness(session: "Session", gate: Gate, case: Case, red: Red, violation: Violation) -> Witness:
    inputs = build(session.contract, case, session.dtype)
    return Witness(
        contract=session.name,
        source=session.source,
        law=gate.law,
        dtype=session.dtype,
        seed=session.seed,
        configuration=red.example,
        dims=dict(inputs.dims),
        args=packed(inputs.tensors),
        text=violation.text,
    )


def _text(
    session: "Session",
    gate: Gate,
    violation: Violation,
    case: Case | None,
    witness: str | None,
) -> Failure:
    inputs = None if case is None else build(session.contract, case, session.dtype)
    return failure_of(
        violation,
        contract=session.name,
        law=gate.law,
        claim=gate.claim,
        dtype=session.dtype,
        dims={} if inputs is None else inputs.dims,
        arguments={} if inputs is None else inputs.tensors,
        witness=witness,
    )
