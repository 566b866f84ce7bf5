"""The same kernels with bfloat16 operands and results, float32 inside."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from trivet import Tensor
from trivet.ci._power.inputs import Random
from trivet.ci._power.numbers import Arguments, Array, bfloat16, f32
from trivet.ci._power.workload import Output, Workload

# tf32 holds every bfloat16 operand: no fault here.
_HARMLESS = ("tf32 inputs",)


class Narrow(Workload):
    """`whole` with inputs rounded to bfloat16 and outputs stored as such."""

    dtype = ml_dtypes.bfloat16

    def __init__(self, whole: Workload) -> None:
        self.whole = whole
        self.name = f"bf16 {whole.name}"
        self.cases, self.batches, self.promise = whole.cases, whole.batches, whole.promise
        self.dims, self.unbatched = whole.dims, whole.unbatched
        self.uses_functions = whole.uses_functions

    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """The inputs of a kind, in bfloat16 (held as float32)."""
        given = self.whole.inputs(rng, cases, kind)
        return {name: bfloat16(value) for name, value in given.items()}

    def domains(self, dtype: str) -> dict[str, Tensor]:
        """The same domains."""
        return self.whole.domains(dtype)

    def oracle(self) -> Callable[..., Any]:
        """The same formula."""
        return self.whole.oracle()

    def right(self, arguments: Arguments) -> Array:
        """The same kernel, its result rounded."""
        return _stored(self.whole.right(arguments))

    def native(self, arguments: Arguments) -> Array:
        """torch computing in float32, its result rounded."""
        return _stored(self.whole.native(arguments))

    def others(self, arguments: Arguments) -> Iterator[Output]:
        """The same right kernels, their results rounded."""
        for output in self.whole.others(arguments):
            values = _stored(output.values)
            yield Output(output.name, values, output.declared, output.profile)

    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """The same wrong kernels, larger factors, and a store that truncates."""
        for name, values in self.whole.faults(arguments):
            if name not in _HARMLESS:
                yield name, _stored(values)
        right = self.whole.right(arguments)
        for name, factor in (("x(1+1e-4)", 1 + 1e-4), ("x(1+1e-3)", 1 + 1e-3)):
            yield name, _stored(right * f32(factor))
        bits = right.view(np.uint32) & np.uint32(0xFFFF0000)
        yield "truncating store", _stored(bits.view(f32))


def _stored(values: Array) -> Array:
    stored: Array = values.astype(ml_dtypes.bfloat16)
    return stored
