"""A contract's samples, measured: against their lock, and with a clear word where that fails."""

from collections.abc import Iterator, Mapping, Sequence

from trivet.properties._contract import Contract
from trivet.properties._locks import Lock, Locked, LockError, lock_of
from trivet.properties._samples import Sample, observe_samples, samples_of
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.binding import Launch
from trivet.simulator.compiled import (
    LOCKED,
    Change,
    CompilerError,
    Measurement,
    compare,
    measure,
    toolchain,
)
from trivet.simulator.executors import executor_named


def measured(launches: Sequence[Launch], target: str) -> list[Measurement]:
    """Measure launches for one target, those that are not locked without metrics.

    Raises NotJudgedError where its compiler is missing.
    """
    try:
        return measure(launches, target, whole=target in LOCKED)
    except CompilerError as error:
        raise NotJudgedError(str(error)) from error


def changes_since_lock(
    name: str, source: str, samples: Sequence[Sample], target: str
) -> Iterator[tuple[Measurement, list[Change]]]:
    """Yield each sample that is locked for ``target``, measured, and what got worse.

    Raises NotJudgedError where the compiler is missing or the lock cannot be read.
    """
    try:
        locked = lock_of(name, source).of(target, toolchain(target)) or {}
    except (CompilerError, LockError) as error:
        raise NotJudgedError(str(error)) from error
    known = [sample for sample in samples if sample.name in locked]
    found = measured([sample.launch for sample in known], target)
    for sample, measurement in zip(known, found, strict=True):
        yield measurement, compare(locked[sample.name].metrics, measurement)


def locked_samples(found: Mapping[str, Measurement]) -> dict[str, Locked]:
    """Return what a lock keeps of measured samples; one that does not compile has none."""
    return {
        name: Locked(measurement.specialisation, measurement.metrics)
        for name, measurement in found.items()
        if not measurement.error
    }


def record(contract: Contract, name: str, source: str) -> Lock:
    """Measure every sample of a contract for the locked targets and write its lock.

    Raises NotJudgedError where a compiler is missing or a call does not come to its end.
    """
    executor = executor_named("compile", source=source)
    samples = [
        sample
        for dtype in contract.dtypes()
        for observation in observe_samples(contract, dtype, executor)
        for sample in samples_of(observation, dtype)
    ]
    lock = Lock(name, lock_of(name, source).path)
    for target in LOCKED:
        found = measured([sample.launch for sample in samples], target)
        named = {sample.name: m for sample, m in zip(samples, found, strict=True)}
        lock.replace(target, toolchain(target), locked_samples(named))
    lock.write()
    return lock
