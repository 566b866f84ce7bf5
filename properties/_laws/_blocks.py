"""The law of block sizes: how the work is cut must not change the result."""

from collections.abc import Callable, Iterator
from functools import partial

from trivet.properties._cases import assumption_failed
from trivet.properties._changes import changed
from trivet.properties._laws import Tally, standard
from trivet.properties._laws._reruns import again, exact_or_bound, ran
from trivet.properties._observe import Observation, observe
from trivet.properties._sizes import Choice
from trivet.properties._verdict import InapplicableError

_MOST_OTHERS = 3
Rerun = Callable[[], tuple[str, Observation]]


@standard("reruns", share=0.5)
def ignores_block_size(observation: Observation, dtype: str) -> Tally:
    """Every configuration of the kernel, an autotuner's or a block argument's, agrees.

    Configurations are those of an autotuned launch, and the values of Choice arguments called
    ``block...``; each runs on copies of the arguments as they were before the call.
    """
    others = list(_others(observation))
    if not others:  # of this call: an empty size may launch nothing
        raise InapplicableError("the kernel has one configuration: no autotune, no block argument")
    start = int(observation.notes.get("example", 0))
    elements, bitwise = 0, True
    for step in range(min(_MOST_OTHERS, len(others))):
        name, second = others[(start + step) % len(others)]()
        ran(second, f"the call with {name}")
        what = f"with {name}"
        tally = exact_or_bound("ignores_block_size", observation, second, what)
        elements += tally.elements
        bitwise &= bool(tally.bitwise)
    return Tally(elements, bitwise=bitwise)


def _others(observation: Observation) -> Iterator[Rerun]:
    """Yield a deferred run for every configuration but the one observed."""
    count = observation.run.configurations
    mine = int(observation.notes.get("example", 0)) % count
    for number in range(count):
        if number != mine:
            yield partial(_configured, observation, number)
    for name, argument in observation.contract.args.items():
        if isinstance(argument, Choice) and name.lower().startswith("block"):
            for value in argument.values:
                if value != observation.inputs.tensors[name] and _legal(observation, name, value):
                    yield partial(_chosen, observation, name, value)


def _legal(observation: Observation, name: str, value: object) -> bool:
    inputs = changed(observation.contract, observation.inputs, {name: value})
    return assumption_failed(observation.contract, inputs) is None


def _configured(observation: Observation, number: int) -> tuple[str, Observation]:
    return f"configuration {number}", again(observation, configuration=number)


def _chosen(observation: Observation, name: str, value: object) -> tuple[str, Observation]:
    inputs = changed(observation.contract, observation.inputs, {name: value})
    executor = observation.executor.variant()
    second = observe(observation.contract, inputs, executor, reference=observation)
    return f"{name} = {value}", second
