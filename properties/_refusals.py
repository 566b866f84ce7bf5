"""Trying the bad inputs a contract names: each must raise its error before any launch."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from trivet.properties._arrays import copies_of
from trivet.properties._contract import Contract
from trivet.properties._failure import describe
from trivet.properties._laws import Tally
from trivet.properties._verdict import NotJudgedError, Violation
from trivet.simulator.executors import Executor, Run

Attempt = Callable[[], Tally]


def refusals(
    contract: Contract, arguments: Mapping[str, object], executor: Executor
) -> Iterator[Attempt]:
    """Yield one check for each entry of ``raises``; ``arguments`` are legal ones to spoil.

    The entry's case is a mapping of arguments to bad values, or a function that is given the
    arguments it names and returns such a mapping.
    """
    for number in range(len(contract.raises)):
        yield partial(_refused, contract, arguments, executor, number)


def _refused(
    contract: Contract, arguments: Mapping[str, object], executor: Executor, number: int
) -> Tally:
    error, text, case = contract.raises[number]
    spoiled = copies_of(arguments)
    changes = _changes(case, spoiled)
    run = executor.run(contract.kernel, {**spoiled, **changes})
    got = _answer(run)
    right = isinstance(run.error, error) and text in str(run.error)
    if right and not run.launches and run.launch_error is None:
        return Tally()
    wanted = f"{error.__name__} naming {text!r}"
    label = getattr(case, "__name__", "<lambda>")
    label = text if label == "<lambda>" else label
    shown = "".join(f"\nwith {name} = {describe(value)}" for name, value in changes.items())
    raise Violation(
        f"{label}: {got}; expected {wanted}{shown}", key=str(number), got=got, wanted=wanted
    )


def _answer(run: Run) -> str:
    if run.launches or run.launch_error is not None:
        return "launched before refusing"
    if run.error is None:
        return "accepted"
    return f"raised {type(run.error).__name__}: {run.error}"


def _changes(case: object, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(case, Mapping):
        return case
    if not callable(case):
        raise NotJudgedError(
            f"raises: case {case!r}: expected a mapping of arguments or a function returning one"
        )
    name = getattr(case, "__name__", "<lambda>")
    try:
        changes: object = case(
            **{each: arguments[each] for each in inspect.signature(case).parameters}
        )
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise NotJudgedError(
            f"raises: case {name} fails on {_listed(arguments)}: {text}"
        ) from error
    found = changes if isinstance(changes, Mapping) else {repr(changes): None}
    unknown = [each for each in found if each not in arguments]
    if unknown:
        wanted = f"new values of {_listed(arguments)}"
        raise NotJudgedError(f"raises: case {name} returned {unknown[0]}, expected {wanted}")
    return found


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(arguments)
