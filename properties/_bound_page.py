"""The bound of a contract's formula in words: at one ordinary size, how wide, and why."""

from collections.abc import Iterator

import numpy as np

from trivet.oracles._evaluate import Value
from trivet.properties._cases import build
from trivet.properties._contract import Contract
from trivet.properties._observe import DiscardedError, reference_values
from trivet.properties._plan import pilot_cases
from trivet.properties._verdict import NotJudgedError


def bound_lines(contract: Contract) -> Iterator[str]:
    """Yield a line for each output: its bound at half of the dims, and the step that gives most."""
    dtype = contract.dtypes()[0]
    inputs = build(contract, pilot_cases(contract, dtype)[1], dtype)
    try:
        values = reference_values(contract, contract.oracles[0], inputs)
    except (DiscardedError, NotJudgedError) as error:
        yield f"not derived: {error}"
        return
    yield "at " + ", ".join(f"{name} = {size}" for name, size in inputs.dims.items())
    names = [*(contract.outputs or ()), *contract.written_arguments()]
    for number, value in enumerate(values):
        name = names[number] if number < len(names) else f"out{number}" if number else "out"
        yield f"{name}: {_line(value)}"


def _line(value: Value | None) -> str:
    if value is None:
        return "none"
    if value.error is None or not value.error.size or not value.error.any():
        return "exact: no step rounds"
    finite = np.where(np.isfinite(value.error), value.error, -1.0)
    index = tuple(int(i) for i in np.unravel_index(int(finite.argmax()), finite.shape))
    middle = float(np.median(value.error))
    where = f"[{', '.join(map(str, index))}]" if index else ""
    return (
        f"{middle:.3g} in the median, {float(value.error[index]):.3g} at most, "
        f"at {where} of value {float(value.value[index]):.3g}; {value.blame(index)}"
    )
