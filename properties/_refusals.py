"""Trying the bad inputs a contract names: each must raise its error before any launch."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trivet.properties._arrays import copies_of
from trivet.properties._contract import Contract
from trivet.properties._laws import Tally
from trivet.properties._verdict import NotJudgedError, Violation
from trivet.simulator.executors import Executor

Attempt = Callable[[], Tally]


def refusals(
    contract: Contract, arguments: Mapping[str, object], executor: Executor
) -> Iterator[Attempt]:
    """Yield one check for each entry of ``raises``; ``arguments`` are legal ones to spoil.

    The entry's case is a mapping of arguments to bad values, or a function that is given the
    arguments it names and returns such a mapping.
    """
    for error, text, case in contract.raises:
        yield lambda error=error, text=text, case=case: _refused(  # type: ignore[misc]
            contract, arguments, executor, error, text, case
        )


def _refused(
    contract: Contract,
    arguments: Mapping[str, object],
    executor: Executor,
    error: type[BaseException],
    text: str,
    case: object,
) -> Tally:
    spoiled = copies_of(arguments)
    spoiled.update(_changes(case, spoiled))
    run = executor.run(contract.kernel, spoiled)
    label = f"{getattr(case, '__name__', None) or text}"
    wanted = f"{error.__name__} naming {text!r}"
    if run.launches:
        raise Violation(f"{label}: launched before refusing; expected {wanted}", key=label)
    if run.error is None:
        raise Violation(f"{label}: accepted; expected {wanted}", key=label)
    got = f"{type(run.error).__name__}: {run.error}"
    if not isinstance(run.error, error) or text not in str(run.error):
        raise Violation(
            f"{label}: raised {got}; expected {wanted}", key=label, got=got, wanted=wanted
        )
    return Tally()


def _changes(case: object, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(case, Mapping):
        return case
    if not callable(case):
        raise NotJudgedError(
            f"raises: case {case!r}: expected a mapping of arguments or a function returning one"
        )
    wanted = inspect.signature(case).parameters
    changes = case(**{name: arguments[name] for name in wanted})
    assert isinstance(changes, Mapping)
    return changes
