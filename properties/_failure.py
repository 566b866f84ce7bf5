"""The text of a failure: what was promised, where, by how much, the smallest inputs, the replay."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from trivet.properties._arrays import exact, numpy_of
from trivet.properties._verdict import Failure, Violation

_SHOWN_WHOLE = 16
_SHOWN_ODD = 4


def describe(value: object) -> str:
    """Return an argument as one readable line: small tensors whole, large ones by exceptions."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    name = str(value.dtype).removeprefix("torch.")
    head = f"{name} {tuple(value.shape)}{_layout(value)}"
    if value.is_meta or not value.numel():
        return f"{head} on {value.device}" if value.is_meta else head
    array = exact(numpy_of(value))
    if array.size <= _SHOWN_WHOLE:
        return f"{head}: {np.array2string(array, separator=', ', threshold=100)}".replace("\n", "")
    return f"{head}: {_by_exceptions(array)}"


def _layout(tensor: torch.Tensor) -> str:
    parts = []
    if not tensor.is_contiguous():
        parts.append(f"strides {tensor.stride()}")
    if tensor.storage_offset():
        parts.append(f"storage offset {tensor.storage_offset()}")
    return f" with {' and '.join(parts)}" if parts else ""


def _by_exceptions(array: NDArray[np.generic]) -> str:
    values, counts = np.unique(array, return_counts=True)
    common = values[counts.argmax()]
    odd = np.argwhere(~((array == common) | ((array != array) & (common != common))))
    if not len(odd):
        return f"all {common}"
    if len(odd) > _SHOWN_ODD:
        low, high = np.nanmin(array), np.nanmax(array)
        nan = ", nan among them" if (array != array).any() else ""
        return f"{len(values)} distinct values from {low} to {high}{nan}"
    rest = ", ".join(f"[{', '.join(map(str, i))}] = {array[tuple(i)]}" for i in odd)
    return f"all {common} except {rest}"


def failure_of(
    violation: Violation,
    *,
    contract: str,
    law: str,
    claim: str,
    dtype: str,
    dims: Mapping[str, int],
    arguments: Mapping[str, object],
    witness: str | None,
) -> Failure:
    """Return the failure that tells ``violation`` on its smallest inputs."""
    lines = [f"{contract} breaks {law} at {dtype}", f"  {claim}"]
    lines += [f"  {line.strip()}" for line in violation.text.splitlines()]
    if dims or arguments:
        sizes = ", ".join(f"{name} = {size}" for name, size in dims.items())
        lines.append(f"  smallest inputs found: {sizes}".rstrip())
        lines += [f"    {n} = {describe(v)}" for n, v in arguments.items() if n not in dims]
    replay = f"trivet replay {witness}" if witness else None
    if replay:
        lines.append(f"  replay: {replay}")
    return Failure(
        text="\n".join(lines),
        index=violation.index,
        got=violation.got,
        wanted=violation.wanted,
        bound=violation.bound,
        line=violation.line,
        witness=witness,
        replay=replay,
    )


def joined(failures: list[Failure]) -> Failure | None:
    """Return one failure for a law: the first, its text followed by the further bugs' texts."""
    if not failures:
        return None
    if len(failures) == 1:
        return failures[0]
    first = failures[0]
    text = "\n".join(failure.text for failure in failures)
    return Failure(
        text=text,
        index=first.index,
        got=first.got,
        wanted=first.wanted,
        bound=first.bound,
        line=first.line,
        witness=first.witness,
        replay=first.replay,
    )
