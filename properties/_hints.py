"""What a refused output may owe to: a formula that the contract could have given up avoiding."""

from collections.abc import Sequence
from dataclasses import replace

from trivet.oracles._accept import accept
from trivet.oracles._errors import OracleError
from trivet.oracles._precision import APPROXIMATIONS
from trivet.properties._observe import Observation, Output, known_arrays
from trivet.properties._torch_reference import evaluate_reference


def approximation_hint(observation: Observation, output: Output) -> str:
    """Return which `Precision(approx=..)` admits an output that was refused, or nothing."""
    place = next(i for i, other in enumerate(observation.outputs) if other is output)
    declared = observation.contract.precision.approx
    further = [name for name in APPROXIMATIONS if name not in declared]
    # Most refused outputs are wrong under any formula: all at once says so at once.
    if not further or not _admits(observation, place, output, (*declared, *further)):
        return ""
    names = [name for name in further if _admits(observation, place, output, (*declared, name))]
    if not names:
        return ""
    choices = " or ".join(f'"{name}"' for name in names)
    return f"; a contract that gives up avoiding {choices} (Precision(approx=..)) admits it"


def _admits(observation: Observation, place: int, output: Output, names: Sequence[str]) -> bool:
    contract = observation.contract
    try:
        values = evaluate_reference(
            contract.oracles[0],
            known_arrays(observation.inputs),
            precision=replace(contract.precision, approx=tuple(names)),
            profile=observation.executor.name,
        )
    except OracleError:
        return False
    value = values[place]
    if value is None:
        return False
    judged = accept(output.actual, value)
    return bool(judged.ok.all()) and not judged.undecided.any()
