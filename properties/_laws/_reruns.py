"""Laws that call the kernel again: other addresses, order, poison, layout or batch, same result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

from trivet.oracles._accept import accept
from trivet.oracles._evaluate import Value
from trivet.properties._arrays import differing
from trivet.properties._cases import assumption_failed
from trivet.properties._changes import dense, one_row
from trivet.properties._laws import Tally, standard
from trivet.properties._laws._values import outside, worst
from trivet.properties._observe import Observation, Output, observe
from trivet.properties._opaque import bounded_values
from trivet.properties._verdict import (
    InapplicableError,
    NotJudgedError,
    NotPromisedError,
    Violation,
)


def again(observation: Observation, **options: object) -> Observation:
    """Call the kernel once more on fresh copies of the same inputs, the executor so changed."""
    executor = observation.executor.variant(**options)
    second = observe(observation.contract, observation.inputs, executor, reference=observation)
    ran(second, "the rerun")
    return second


def ran(observation: Observation, what: str) -> None:
    """Raise NotJudgedError when a rerun did not come to its end."""
    run = observation.run
    if run.failed is not None:
        raise NotJudgedError(f"{what} failed: {run.failed.text}")
    if run.error is not None:
        raise Violation(f"{what} raised {type(run.error).__name__}: {run.error}")


def same_bits(first: Observation, second: Observation, what: str) -> Tally:
    """Demand equal bits of every output of two runs; ``what`` tells how the second differed."""
    elements = 0
    for one, two in zip(first.outputs, second.outputs, strict=True):
        if one is None or two is None:
            continue
        if one.actual.shape != two.actual.shape or one.actual.dtype != two.actual.dtype:
            raise Violation(f"{one.name} has another shape or dtype {what}", key=one.name)
        unlike = differing(one.actual, two.actual)
        if unlike.any():
            raise _changed(one, two, unlike, what)
        elements += unlike.size
    return Tally(elements, bitwise=True)


@contextmanager
def overwritten(tensors: Sequence[torch.Tensor]) -> Iterator[Callable[[], list[bool]]]:
    """Flip every bit of the tensors' storages inside; yield what tells which are left so."""
    flat = [torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage()) for t in tensors]
    storages = {each.data_ptr(): each for each in flat}
    before = {place: each.clone() for place, each in storages.items()}
    for each in storages.values():
        each.bitwise_not_()
    try:
        yield lambda: [torch.equal(each, ~before[each.data_ptr()]) for each in flat]
    finally:
        for place, each in storages.items():
            each.copy_(before[place])


def _changed(one: Output, two: Output, unlike: np.ndarray, what: str) -> Violation:
    index = worst(unlike, unlike.astype(np.float64))
    where = f"{one.name}[{', '.join(map(str, index))}]" if index else one.name
    got, wanted = two.actual[index], one.actual[index]
    count = int(unlike.sum())
    text = f"{where} = {got} {what}, {wanted} before; {count} of {unlike.size} elements changed"
    return Violation(text, key=one.name, index=where, got=str(got), wanted=str(wanted), bound="0")


def within_bound(first: Observation, second: Observation, what: str) -> Tally:
    """Demand that the second run, too, lies in the oracle's interval where the first one does."""
    if len(second.values) != len(second.outputs):
        raise InapplicableError("the oracle has other outputs; matches_oracle says so")
    elements = 0
    bitwise = True
    values = _values_for(first, second)
    for one, two, value in zip(first.outputs, second.outputs, values, strict=True):
        if one is None or two is None or value is None:
            continue
        if one.actual.shape != two.actual.shape:
            raise Violation(f"{one.name} has another shape {what}", key=one.name)
        if one.actual.shape != np.shape(value.value):
            raise InapplicableError("the oracle has another shape; matches_oracle says so")
        before, after = accept(one.actual, value), accept(two.actual, value)
        good = (before.ok | before.undecided) != (after.ok | after.undecided)
        if good.any():
            bad_output, judged = (two, after) if (~after.ok & good).any() else (one, before)
            raise outside(bad_output, value, judged, what=f"{what} the oracle gives")
        bitwise &= not differing(one.actual, two.actual).any()
        elements += one.actual.size
    return Tally(elements, bitwise=bitwise)


def _values_for(first: Observation, second: Observation) -> list[Value | None]:
    """The oracle's values, with the bounds of opaque ones where results differ at all."""
    pairs = [(a, b) for a, b in zip(first.outputs, second.outputs, strict=True) if a and b]
    alike = all(a.actual.shape == b.actual.shape for a, b in pairs)
    if alike and not any(differing(a.actual, b.actual).any() for a, b in pairs):
        return second.values
    return bounded_values(second)


def exact_or_bound(law: str, first: Observation, second: Observation, what: str) -> Tally:
    """Demand equal bits where the contract makes ``law`` bitwise, else the oracle's interval."""
    if first.contract.is_bitwise(law):
        return same_bits(first, second, what)
    return within_bound(first, second, what)


@standard("reruns", needs=("poison",))
def ignores_masked_lanes(observation: Observation, dtype: str) -> Tally:
    """What a masked load leaves undefined reaches no output."""
    what = "when lanes that a mask left undefined hold another value"
    return same_bits(observation, again(observation, poison="large"), what)


_TUNED = (
    "in a call that tunes first, on these buffers (what a kernel adds to or overwrites belongs in"
    " the autotuner's reset_to_zero or restore_value)"
)


@standard("reruns", share=0.5)
def repeats(observation: Observation, dtype: str) -> Tally:
    """A second call on equal inputs at other addresses gives the same bits and leaves the first.

    So does a call that tunes first: an autotuner then runs every configuration again and again on
    these buffers, and what they add to or overwrite has to be in reset_to_zero or restore_value.
    The first results are overwritten before the second call, as a caller may do with them: memory
    that a kernel hands out and keeps shows even where equal inputs give equal results.
    """
    tally = call_twice(observation)
    if observation.run.configurations > 1:
        tuned = again(observation, cold=True)
        same_bits(observation, tuned, _TUNED)
    return tally


def call_twice(observation: Observation) -> Tally:
    """Demand of a second call the bits of the first, whose results it must leave alone."""
    outputs = [output for output in observation.outputs if output is not None]
    with overwritten([output.tensor for output in outputs]) as held:
        second = again(observation)
        second.hold()
        changed = [out.name for out, as_left in zip(outputs, held(), strict=True) if not as_left]
    tally = same_bits(observation, second, "in a second call")
    for name in changed:
        raise Violation(f"the second call changed {name} of the first", key=name)
    return tally


@standard("reruns", share=0.5, needs=("order",))
def is_deterministic(observation: Observation, dtype: str) -> Tally:
    """Running the programs in reverse, or the second half first, gives the same bits."""
    if max(_programs(observation), default=0) < 2:
        raise InapplicableError("one program has no order")
    tally = Tally()
    for order in ("reverse", "halves"):
        second = again(observation, order=order, chunk=_chunk(observation))
        if observation.contract.precision.order == "any":
            tally = within_bound(observation, second, f"with programs in {order} order")
            continue
        hint = ' (a kernel that may depend on order declares Precision(order="any"))'
        tally = same_bits(observation, second, f"with programs in {order} order{hint}")
    return tally


def _chunk(observation: Observation) -> int:
    """At most a third of the programs at once, so that order between chunks shows."""
    return max(1, -(-max(_programs(observation)) // 3))


def _programs(observation: Observation) -> list[int]:
    return [int(np.prod(launch.grid)) for launch in observation.run.launches]


@standard("reruns")
def ignores_layout(observation: Observation, dtype: str) -> Tally:
    """Dense copies of the arguments give the same result as the layouts they came in."""
    plain = dense(observation.inputs)
    if plain is None:
        raise InapplicableError("every argument is dense already")
    second = observe(
        observation.contract, plain, observation.executor.variant(), reference=observation
    )
    ran(second, "the call on dense copies")
    return exact_or_bound("ignores_layout", second, observation, "in the layout drawn")


@standard("reruns", share=0.5)
def ignores_batch(observation: Observation, dtype: str) -> Tally:
    """A row of the leading dim alone gives the same as that row among the others."""
    row, dim, index = one_row(observation.contract, observation.inputs)
    refused = assumption_failed(observation.contract, row)
    if refused is not None:
        raise InapplicableError(f"a row alone does not meet the assumption {refused}")
    alone = observe(observation.contract, row, observation.executor.variant())
    ran(alone, "the call on one row")
    _oracle_keeps(observation, alone, dim, index)
    among = replace(alone)
    among.__dict__["outputs"] = _rows(observation, dim, index)
    what = f"as row {index} of {dim} = {observation.inputs.dims[dim]}"
    return exact_or_bound("ignores_batch", alone, among, what)


def _rows(observation: Observation, dim: str, index: int) -> list[Output | None]:
    return [
        output
        if output is None or not _batched(output, observation.inputs.dims[dim])
        else replace(output, actual=output.actual[index : index + 1])
        for output in observation.outputs
    ]


def _batched(output: Output, size: int) -> bool:
    return output.actual.ndim > 0 and output.actual.shape[0] == size


def _oracle_keeps(whole: Observation, alone: Observation, dim: str, index: int) -> None:
    """Raise NotPromisedError when the oracle itself gives another result for a row alone."""
    size = whole.inputs.dims[dim]
    for all_rows, one in zip(whole.values, alone.values, strict=True):
        if all_rows is None or one is None:
            continue
        shape = np.shape(all_rows.value)
        if not shape or shape[0] != size:
            raise NotPromisedError(f"an output has no leading dim {dim}")
        first, second = np.asarray(all_rows.value)[index : index + 1], np.asarray(one.value)
        if first.shape != second.shape or not _close(first, second, one.error):
            raise NotPromisedError(f"the oracle's row depends on the other rows of {dim}")


def _close(first: np.ndarray, second: np.ndarray, error: np.ndarray | None) -> bool:
    if error is None:
        return bool(np.array_equal(first, second))
    with np.errstate(all="ignore"):
        apart = np.abs(first.astype(np.float64) - second)
    return bool(
        np.all((apart <= error) | ~np.isfinite(error) | (first == second) | np.isnan(apart))
    )
