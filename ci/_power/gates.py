"""Inputs as a gate of the quick profile draws them, by the code that the gates use."""

from collections.abc import Iterator

import numpy as np

from trivet.ci._power.numbers import Arguments
from trivet.ci._power.workload import Workload
from trivet.properties._cases import build
from trivet.properties._contract import Contract
from trivet.properties._generate import Generator
from trivet.properties._profiles import profile_of


def contract_of(workload: Workload) -> Contract:
    """What a kernel of this formula would promise, at the workload's dtype."""
    return Contract(
        kernel=_any_kernel,
        oracles=[workload.oracle()],
        dims=workload.dims,
        args=workload.domains(np.dtype(workload.dtype).name),
    )


def _any_kernel(**arguments: object) -> object:
    return arguments


def examples(workload: Workload, seed: int) -> Iterator[Arguments]:
    """The arguments of every example whose values a gate compares: shared ones, exact integers.

    float32, one case each; block sizes are those of no kernel, so that a gate's are these and more.
    """
    contract, dtype = contract_of(workload), np.dtype(workload.dtype).name
    generator = Generator(contract, dtype, seed, profile_of("quick"))
    for cases in (generator.planned(), generator.own_cases("exact_on_integers")):
        for case in cases:
            arrays = build(contract, case, dtype).arrays
            yield {
                name: (arrays[name] if name in workload.unbatched else arrays[name][None]).astype(
                    np.float32
                )
                for name in contract.args
            }
