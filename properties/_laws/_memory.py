"""Laws about memory: judged by the simulator's sanitizers on the shared run, exactly."""

from collections.abc import Iterable

import numpy as np
import torch

from trivet.properties._arrays import storage_bits
from trivet.properties._laws import Tally, standard
from trivet.properties._observe import Observation
from trivet.properties._verdict import InapplicableError, Violation
from trivet.simulator.faults import Fault

OUTSIDE = ("int_wrap", "out_of_bounds")
RACES = ("race_write_write", "race_read_write", "same_value_write")


def _none_of(observation: Observation, kinds: Iterable[str]) -> Tally:
    found = [of_fault(fault) for fault in observation.run.faults if fault.kind in kinds]
    if not found:
        return Tally(observation.run.elements)
    by_line: dict[str, Violation] = {}
    for violation in found:
        by_line.setdefault(violation.key, violation)
    first, *others = by_line.values()
    first.further = tuple(others)
    raise first


def of_fault(fault: Fault) -> Violation:
    """Return the violation that tells ``fault``: the sentence, the element and the source line."""
    source = f"\n  {fault.line}: {fault.source}" if fault.source else f"\n  {fault.line}"
    return Violation(
        fault.text + source, key=fault.line, index=fault.index or None, line=fault.line
    )


@standard("observes", needs=("memory",))
def stays_in_bounds(observation: Observation, dtype: str) -> Tally:
    """No program loads or stores outside the view of an argument it was given.

    Nor anywhere inside it where 32 bits did not hold the place that was meant.
    """
    return _none_of(observation, OUTSIDE)


@standard("observes", needs=("memory",))
def reads_initialised(observation: Observation, dtype: str) -> Tally:
    """No program reads an element that neither the host nor a launch has written."""
    return _none_of(observation, ["uninitialised"])


@standard("observes", needs=("memory",))
def is_race_free(observation: Observation, dtype: str) -> Tally:
    """No two programs of a launch access one element unordered, one of them writing."""
    return _none_of(observation, RACES)


@standard("observes", needs=("memory",))
def writes_every_element(observation: Observation, dtype: str) -> Tally:
    """Every element of every output is written by a launch or by the host."""
    elements, judged = 0, 0
    tensors = observation.contract.tensors()
    for output in observation.outputs:
        if output is None or (output.argument and tensors[output.argument].role == "inout"):
            continue
        written = observation.initialised(output)
        judged += 1
        elements += written.size
        if not written.all():
            index = tuple(int(i) for i in np.argwhere(~written)[0])
            where = f"{output.name}[{', '.join(map(str, index))}]" if index else output.name
            missing = int((~written).sum())
            raise Violation(
                f"{where} was never written; {missing} of {written.size} elements were not",
                key=output.name,
                index=where,
                got="unwritten",
                wanted="written",
            )
    if not judged:
        raise InapplicableError("every output is an inout argument: its old contents may stay")
    return Tally(elements)


@standard("observes")
def leaves_inputs_unchanged(observation: Observation, dtype: str) -> Tally:
    """No argument of role ``in`` is changed, in any bit of its storage."""
    for fault in observation.run.faults:
        if fault.kind == "read_only":
            raise of_fault(fault)
    elements, judged = 0, 0
    tensors = observation.contract.tensors()
    for name, before in observation.before.items():
        if not isinstance(before, torch.Tensor) or tensors[name].role != "in":
            continue
        after = observation.arguments[name]
        assert isinstance(after, torch.Tensor)
        if _shares_written_storage(observation, name):
            continue
        judged += 1
        elements += before.numel()
        if storage_bits(after) != storage_bits(before):
            raise Violation(f"the kernel changed its input {name}", key=name, index=name)
    if not judged:
        raise InapplicableError("no tensor argument has role in, in storage of its own")
    return Tally(elements)


def _shares_written_storage(observation: Observation, name: str) -> bool:
    mine = observation.before[name]
    assert isinstance(mine, torch.Tensor)
    for other, argument in observation.contract.args.items():
        tensor = observation.before.get(other)
        if not isinstance(tensor, torch.Tensor) or getattr(argument, "role", "in") == "in":
            continue
        if tensor.untyped_storage().data_ptr() == mine.untyped_storage().data_ptr():
            return True
    return False
