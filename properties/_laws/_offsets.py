"""The law about sizes too large for memory: judged on few programs and on virtual tensors."""

from trivet.properties._laws import Tally, standard
from trivet.properties._laws._memory import OUTSIDE, of_fault
from trivet.properties._observe import Observation
from trivet.properties._verdict import NotJudgedError, Violation
from trivet.simulator.executors import Run
from trivet.simulator.faults import Fault


@standard("at_production", needs=("memory",))
def offsets_fit(observation: Observation, dtype: str) -> Tally:
    """At production sizes no chosen program reaches outside an argument it was given.

    The programs just past 2^31 elements are among those chosen: an offset that wraps in 32 bits
    shows at the line where it wraps, be its place inside or outside.
    """
    run = observation.run
    found = [fault for fault in run.faults if fault.kind in OUTSIDE]
    if not found:
        return Tally(run.elements)
    unsure = {fault.kernel for fault in run.faults if _reads_places(run, fault)}
    sure = [fault for fault in found if fault.kernel not in unsure]
    if not sure:
        raise NotJudgedError(
            f"{found[0].kernel} takes its places from elements that programs not chosen would write"
        )
    lines = dict.fromkeys(fault.line for fault in sure)
    first, *others = [next(fault for fault in sure if fault.line == line) for line in lines]
    violation = _told(observation, first)
    violation.further = tuple(_told(observation, fault) for fault in others)
    raise violation


def _reads_places(run: Run, fault: Fault) -> bool:
    """Whether a launch read whole numbers that were left unwritten: they may be places."""
    if fault.kind != "uninitialised":
        return False
    types = [launch.dtypes.get(fault.argument) for launch in run.launches]
    return any(kind and kind.lstrip("*k")[0] in "iu" for kind in types)


def _told(observation: Observation, fault: Fault) -> Violation:
    violation = of_fault(fault)
    sizes = ", ".join(f"{name} = {size}" for name, size in observation.inputs.dims.items())
    return Violation(
        f"{violation.text}\nat the production sizes {sizes}",
        key=violation.key,
        index=violation.index,
        line=violation.line,
    )
