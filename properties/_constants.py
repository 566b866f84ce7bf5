"""How far the digits that constants lost in float32 can move a kernel's shadow."""

import numpy as np
from numpy.typing import NDArray

from trivet.properties._observe import Observation, observe

# Runs of the shadow in which every constant of many digits moves up or down by half an ulp. For
# up to four such constants, four times the largest change seen is more than they can add up to.
NUDGES = (1, 2, 3, 4)


def constants_reach(
    observation: Observation, name: str, shadow: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far the digits that constants lost can move the shadow of the output ``name``."""
    reach = np.zeros(shadow.shape)
    for nudge in NUDGES:
        executor = observation.executor.variant(shadow=True, nudge=nudge)
        second = observe(observation.contract, observation.inputs, executor, reference=observation)
        for other in second.outputs:
            moved = None if other is None else second.run.shadow_of(other.tensor)
            if other is not None and other.name == name and moved is not None:
                with np.errstate(all="ignore"):
                    reach = np.fmax(reach, np.abs(moved - shadow))
    return len(NUDGES) * reach
