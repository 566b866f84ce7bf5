"""Judging a saved witness again: the same inputs, the same law, whatever was generated since."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trivet.properties._cases import Case, Inputs
from trivet.properties._collect import find
from trivet.properties._contract import Contract
from trivet.properties._failure import failure_of
from trivet.properties._judges import Judges
from trivet.properties._observe import observe
from trivet.properties._verdict import Failure
from trivet.properties._witness import Witness, arrays_of, load, unpacked


@dataclass(frozen=True, slots=True)
class Replayed:
    """A witness and how its law is broken now; ``failure`` is None where it holds."""

    witness: Witness
    failure: Failure | None


def replay(path: str | Path) -> Replayed:
    """Judge the law of a witness on its inputs.

    Raises ValueError for a file that is no witness or a law that is gone, UnknownNameError where
    its contract is gone.
    """
    witness = load(path)
    found = find([witness.source])[0]
    contract = found.contract
    judges = Judges(contract, "simulator", [witness.law], witness.source)
    inputs = _inputs(contract, witness)
    observation = observe(contract, inputs, judges.executor_for(witness.configuration))
    observation.notes.update(example=witness.configuration, case=inputs.case, normal=True)
    violation = judges.violation(witness.law, observation, inputs.case, witness.dtype)
    if violation is None:
        return Replayed(witness, None)
    failure = failure_of(
        violation,
        contract=witness.contract,
        law=witness.law,
        claim=judges.laws[witness.law].claim,
        dtype=witness.dtype,
        dims=witness.dims,
        arguments=inputs.tensors,
        witness=str(path),
    )
    return Replayed(witness, failure)


def _inputs(contract: Contract, witness: Witness) -> Inputs:
    tensors: dict[str, Any] = unpacked(witness.args)
    arrays: dict[str, Any] = {**witness.dims, **arrays_of(tensors)}
    arrays.update(dict.fromkeys(contract.unwritten_arguments()))
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            continue
        if isinstance(value, torch.Tensor) and value.dtype is not torch.bool:
            arrays[name] = None if arrays[name] is None else arrays[name].astype("int64")
    case = Case(dims=witness.dims, recipes={})
    return Inputs(contract, case, witness.dtype, witness.dims, tensors, arrays)
