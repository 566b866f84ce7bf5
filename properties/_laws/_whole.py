"""The law that looks at a gate as a whole, and the one that tries bad inputs."""

from trivet.properties._laws import Tally, standard
from trivet.properties._observe import Observation


@standard("counts")
def does_work(observation: Observation, dtype: str) -> Tally:
    """The kernel launches, stores and gives elements to compare, at least once over the gate."""
    return Tally()


@standard("refuses")
def rejects_bad_input(observation: Observation, dtype: str) -> Tally:
    """Every bad input that the contract names raises the error it names, before any launch."""
    return Tally()
