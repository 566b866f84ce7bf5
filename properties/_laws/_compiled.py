"""The laws about what the compiler makes of a kernel: judged on the artifact, not on values."""

from collections.abc import Iterator, Sequence

import torch

from trivet.oracles._profile import PROFILES, profile_named
from trivet.properties._compiled import changes_since_lock, measured
from trivet.properties._laws import Tally, standard
from trivet.properties._observe import Observation
from trivet.properties._samples import samples_of
from trivet.properties._verdict import NotPromisedError, Violation
from trivet.simulator import ptx
from trivet.simulator.compiled import LOCKED, TARGETS, Change, Measurement

# The targets whose artifact says by what type it rounds.
_AUDITED = ("sm_80", "sm_90", "sm_100", "gfx942")


@standard("builds", needs=("artifact",))
def compiles(observation: Observation, dtype: str) -> Tally:
    """Every launch compiles for sm_80, sm_90, sm_100, gfx942 and gfx1100."""
    launches = [sample.launch for sample in samples_of(observation, dtype)]
    found = [m for target in TARGETS for m in measured(launches, target)]
    broken = [
        Violation(
            f"{m.kernel} does not compile for {m.target}: {m.error}\n"
            f"specialised {m.specialisation}",
            key=f"{m.kernel} {m.target}",
            line=m.lines.get("kernel"),
        )
        for m in found
        if m.error
    ]
    _raise(broken)
    return Tally(len(found))


@standard("builds", needs=("artifact",))
def precision_audit(observation: Observation, dtype: str) -> Tally:
    """No instruction rounds more than the contract's precision and the backend's profile allow."""
    launches = [sample.launch for sample in samples_of(observation, dtype)]
    found = [m for target in _AUDITED for m in measured(launches, target) if m.rounding]
    dtypes = frozenset(_stored(observation, dtype))
    broken = []
    for m in found:
        profile = profile_named(m.target if m.target in PROFILES else "gpu")
        plan = ptx.Plan(observation.contract.precision, dtypes, profile)
        broken += [
            Violation(
                f"{m.kernel} compiled for {m.target} has {finding}\nspecialised {m.specialisation}",
                key=f"{m.kernel} {finding.instruction}",
                line=m.lines.get("kernel"),
            )
            for finding in ptx.audit(ptx.from_json(m.rounding), plan)
        ]
    _raise(broken)
    return Tally(len(found))


@standard("builds", needs=("artifact",))
def perf_lock(observation: Observation, dtype: str) -> Tally:
    """No HARD metric of the compiled artifact is worse than its lock."""
    samples = samples_of(observation, dtype)
    name, source = str(observation.notes["contract"]), str(observation.notes["source"])
    judged = 0
    broken: list[Violation] = []
    for target in LOCKED:
        for measurement, changes in changes_since_lock(name, source, samples, target):
            judged += 1
            broken += [_worse(measurement, c) for c in changes if c.kind == "HARD"]
    _raise(broken)
    if not judged:
        raise NotPromisedError("no perf lock of this toolchain: run trivet bench --update")
    return Tally(judged)


def _worse(measurement: Measurement, change: Change) -> Violation:
    return Violation(
        f"{measurement.kernel} on {measurement.target}: {change.metric} was {change.was} and is "
        f"{change.now}: {change.words}\nat {change.line}",
        key=f"{change.metric} {change.line.partition(': ')[0]}",
        got=str(change.now),
        wanted=str(change.was),
        line=change.line.partition(": ")[0],
    )


def _raise(broken: Sequence[Violation]) -> None:
    if broken:
        first = broken[0]
        first.further = tuple(broken[1:])
        raise first


def _stored(observation: Observation, dtype: str) -> Iterator[str]:
    """Yield the dtypes that the kernel may keep values in: its arguments' and its outputs'."""
    contract = observation.contract
    yield from (contract.dtype_of(name, dtype) for name in contract.tensors())
    for name in contract.outputs or {}:
        declared = contract.output_dtype(name, dtype)
        if declared is not None:
            yield declared
    for output in observation.run.outputs:
        if isinstance(output, torch.Tensor):
            yield str(output.dtype).removeprefix("torch.")
