"""Judging a saved witness again: the same inputs, the same law, whatever was generated since."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trivet.properties._cases import Case, Inputs
from trivet.properties._collect import find
from trivet.properties._contract import Contract
from trivet.properties._failure import failure_of
from trivet.properties._judges import Judges, RejectedError
from trivet.properties._observe import DiscardedError, observe
from trivet.properties._place import place_of
from trivet.properties._sizes import Choice
from trivet.properties._verdict import (
    Failure,
    InapplicableError,
    NotJudgedError,
    NotPromisedError,
    Violation,
)
from trivet.properties._witness import Witness, arrays_of, load, packed, unpacked


@dataclass(frozen=True, slots=True)
class Replayed:
    """A witness and how its law is broken now; ``failure`` is None where it holds.

    ``not_judged`` says why the law could not be judged on these inputs; None where it was.
    """

    witness: Witness
    failure: Failure | None = None
    not_judged: str | None = None


def replay(path: str | Path) -> Replayed:
    """Judge the law of a witness on its inputs.

    Raises ValueError for a file that is no witness, for a law that is gone and for a contract
    whose arguments have changed, UnknownNameError where the contract is gone.
    """
    witness = load(path)
    found = find([_source_seen_from(path, witness.source)])[0]
    contract = found.contract
    judges = Judges(contract, "simulator", [witness.law], witness.source)
    try:
        inputs = _inputs(contract, witness)
    except ValueError as error:
        raise ValueError(f"witness {path}: {error}") from error
    observation = observe(contract, inputs, judges.executor_for(witness.configuration))
    observation.notes.update(example=witness.configuration, case=inputs.case, normal=True)
    try:
        judges.check(witness.law, observation, inputs.case, witness.dtype)
    except Violation as violation:
        return Replayed(witness, _failure(violation, witness, judges, inputs, path))
    except RejectedError:
        return Replayed(witness)
    except (InapplicableError, NotJudgedError, NotPromisedError, DiscardedError) as reason:
        return Replayed(witness, not_judged=str(reason))
    except Exception as error:
        told = f"{type(error).__name__}: {error}{place_of(error)}"
        return Replayed(witness, not_judged=f"the law crashed: {told}")
    return Replayed(witness)


def _source_seen_from(path: str | Path, source: str) -> str:
    """Return the contract's source; a file that is not here is looked for above the witness."""
    file, colon, variable = source.rpartition(":")
    if not colon or not file.endswith(".py") or Path(file).exists():
        return source
    above = (folder / file for folder in Path(path).resolve().parents)
    found = next((place for place in above if place.exists()), None)
    return source if found is None else f"{found}:{variable}"


def _failure(
    violation: Violation, witness: Witness, judges: Judges, inputs: Inputs, path: str | Path
) -> Failure:
    return failure_of(
        violation,
        contract=witness.contract,
        law=witness.law,
        claim=judges.laws[witness.law].claim,
        dtype=witness.dtype,
        dims=witness.dims,
        arguments=inputs.tensors,
        witness=str(path),
    )


def _inputs(contract: Contract, witness: Witness) -> Inputs:
    if witness.dtype not in contract.dtypes():
        raise ValueError(f"the contract is no longer judged at {witness.dtype}")
    changed = set(contract.args) - set(witness.args)
    changed |= {name for name in witness.args if name not in {*contract.args, *contract.dims}}
    if changed:
        raise ValueError(f"the contract's arguments have changed: {', '.join(sorted(changed))}")
    tensors: dict[str, Any] = unpacked(witness.args)
    tensors.update(_choices(contract, witness))
    arrays: dict[str, Any] = {**witness.dims, **arrays_of(tensors)}
    arrays.update(dict.fromkeys(contract.unwritten_arguments()))
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            continue
        if isinstance(value, torch.Tensor) and value.dtype is not torch.bool:
            arrays[name] = None if arrays[name] is None else arrays[name].astype("int64")
    case = Case(dims=witness.dims, recipes={})
    return Inputs(contract, case, witness.dtype, witness.dims, tensors, arrays)


def _choices(contract: Contract, witness: Witness) -> dict[str, Any]:
    """Return the values of Choice arguments, found among those the contract names."""
    found = {}
    for name, argument in contract.args.items():
        if isinstance(argument, Choice):
            saved = witness.args[name]
            held = [value for value in argument.values if packed({name: value})[name] == saved]
            if not held:
                shown = ", ".join(map(str, saved.values()))
                raise ValueError(f"argument {name}: {shown} is no longer a choice")
            found[name] = held[0]
    return found
