"""Whether a surviving mutant differs from its original at all.

A kernel that compiles to the same IR in every specialisation used is the same kernel. A host
function that makes the same launches and returns the same bits on every input of the domain that
was tried does the same work. An edit of what masked-off lanes hold is dead when nothing that they
hold, not even NaN, reaches an output.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trivet.faults._mutants import Mutant, loaded
from trivet.faults._mutators import Operator, source_of
from trivet.faults._mutators._source import Edit
from trivet.faults._mutators.masks import poisoned
from trivet.faults._reach import reached_from
from trivet.properties._arrays import differing
from trivet.properties._cases import Case, assumption_failed, build
from trivet.properties._collect import Found
from trivet.properties._contract import Contract
from trivet.properties._generate import Generator
from trivet.properties._observe import Observation, observe
from trivet.properties._plan import pilot_cases
from trivet.properties._profiles import profile_of
from trivet.simulator.alike import lowers_alike
from trivet.simulator.executors import executor_named
from trivet.simulator.frontend import specialisations
from trivet.simulator.rebuild import compiled, is_interpreted

Kernel = Callable[..., Any]
Kind = Literal["equivalent", "dead_lane"]
Reason = tuple[Kind, None, None, str]
Twin = tuple[Kind, str, list[Edit]]
_OWN = ("exact_on_integers", "handles_empty", "propagates_nonfinite")
# Values far apart: where each gives the same bits, what the constant holds is never seen.
_STRANGERS = ("1e30", "-1e30", "1e-30", "-1.0")
_WHOLE_STRANGERS = ("1000003", "-77", "3")


def equivalent(
    found: Found, mutant: Mutant, kernel: Kernel, operator: Operator, seed: int
) -> Reason | None:
    """Return how a surviving mutant is shown to be no other kernel; None where it is not."""
    original = found.contract.kernel
    if mutant.kind == "kernel" and _same_code(found, kernel, seed):
        return (
            "equivalent",
            None,
            None,
            "the same dataflow in every specialisation that was launched",
        )
    for verdict, detail, edits in _twins(mutant, operator):
        twins = [loaded(found.contract, mutant, edit) for edit in edits]
        if all(_same_results(found, original, twin, seed) for twin in twins):
            return verdict, None, None, detail
    on_host = mutant.kind == "host" and not operator.beyond
    if on_host and _same_results(found, original, kernel, seed, launches=True):
        return "equivalent", None, None, "the same launches and results on every input tried"
    return None


def _same_code(found: Found, kernel: Kernel, seed: int) -> bool:
    """Whether two kernels compute the same, given what always holds of their launches' numbers."""
    facts = _Facts()
    for dtype, case in _cases(found.contract, seed):
        run = _observed(found.contract, case, dtype, found.contract.kernel).run
        for launch in run.launches:
            facts.add(launch.kernel, launch.scalars)
    pairs = list(kernel_pairs(found.contract.kernel, kernel))
    used = [(first, second) for first, second in pairs if specialisations(first)]
    return bool(used) and all(
        lowers_alike(
            first, second, ones=facts.ones(first.__name__), same=facts.same(first.__name__)
        )
        for first, second in used
    )


@dataclass
class _Facts:
    """The numbers that every launch of a kernel was given, launch by launch."""

    seen: dict[str, dict[str, list[object]]] = field(default_factory=dict)

    def add(self, kernel: str, scalars: Mapping[str, object]) -> None:
        """Note one launch."""
        columns = self.seen.setdefault(kernel, {name: [] for name in scalars})
        for name, column in columns.items():
            column.append(scalars.get(name))

    def ones(self, kernel: str) -> list[str]:
        """Return the integers that were 1 in every launch."""
        columns = self.seen.get(kernel, {})
        return [
            n for n, values in columns.items() if all(type(v) is int and v == 1 for v in values)
        ]

    def same(self, kernel: str) -> dict[str, str]:
        """Map each integer to the first that was equal to it in every launch."""
        columns = self.seen.get(kernel, {})
        whole = {n: values for n, values in columns.items() if all(type(v) is int for v in values)}
        first: dict[tuple[object, ...], str] = {}
        return {name: first.setdefault(tuple(values), name) for name, values in whole.items()}


def kernel_pairs(original: Kernel, mutant: Kernel) -> Iterator[tuple[Any, Any]]:
    """Yield the device functions of the original, each with the mutant's of the same name."""
    others = {item.qualified: item for item in reached_from(mutant) if item.kind == "kernel"}
    for item in reached_from(original):
        other = others.get(item.qualified)
        if other is not None and item.kind == "kernel":
            yield _jitted(item.value), _jitted(other.value)


def _jitted(value: Any) -> Any:
    """Return the JITFunction inside an autotuner or heuristics, rebuilt where it is interpreted."""
    while not hasattr(value, "cache_key") and hasattr(value, "fn") and not is_interpreted(value):
        value = value.fn
    return compiled(value)


def _twins(mutant: Mutant, operator: Operator) -> Iterator[Twin]:
    """Yield edits that together show whether what this mutant changes is ever seen."""
    text = Path(mutant.path).read_text()
    if operator.lanes:
        twin = poisoned(source_of(text, mutant.function, mutant.kind), mutant.edit)
        if twin is not None:
            yield "dead_lane", "nothing that masked-off lanes hold reaches an output", [twin]
    if operator.name in ("constant_changed", "load_other_changed"):
        whole = text[mutant.start : mutant.end].lstrip("-").isdigit()
        values = _WHOLE_STRANGERS if whole else _STRANGERS
        edits = [Edit(mutant.start, mutant.end, value) for value in values]
        yield "equivalent", "no finite value in this place reaches an output", edits


def _same_results(
    found: Found, first: Kernel, second: Kernel, seed: int, *, launches: bool = False
) -> bool:
    """Whether two kernels return the same bits on every case, whatever undefined lanes hold."""
    for dtype, case in _cases(found.contract, seed):
        one = _observed(found.contract, case, dtype, first)
        for poison in ("nan",) if launches else ("nan", "large"):
            two = _observed(found.contract, case, dtype, second, poison)
            if launches and _trace(one) != _trace(two):
                return False
            if not _same_bits(one, two):
                return False
    return True


def _cases(contract: Contract, seed: int) -> Iterator[tuple[str, Case]]:
    """Yield the inputs tried: small, middle and largest sizes, the plan, the laws' own cases."""
    for dtype in contract.dtypes():
        generator = Generator(contract, dtype, seed, profile_of("quick"))
        generator.learn(executor_named("simulator"))
        own = (case for law in _OWN for case in generator.own_cases(law))
        for case in (*pilot_cases(contract, dtype), *generator.planned(), *own):
            inputs = build(contract, case, dtype)
            if assumption_failed(contract, inputs) is None:
                yield dtype, case


def _observed(
    contract: Contract, case: Case, dtype: str, kernel: Kernel, poison: str = "nan"
) -> Observation:
    executor = executor_named("simulator", poison=poison)
    return observe(contract, build(contract, case, dtype), executor, kernel=kernel)


def _trace(observation: Observation) -> list[tuple[object, ...]]:
    """Return what the host function launched: nothing that only an address decides."""
    return [
        (
            launch.kernel,
            launch.grid,
            launch.constexprs,
            launch.dtypes,
            launch.scalars,
            launch.shapes,
            launch.strides,
            launch.options,
        )
        for launch in observation.run.launches
    ]


def _same_bits(one: Observation, two: Observation) -> bool:
    if type(one.run.error) is not type(two.run.error) or two.run.failed is not None:
        return False
    if one.run.error is not None:
        return True
    return len(one.outputs) == len(two.outputs) and all(
        (first is None) == (second is None)
        and (
            first is None
            or second is None
            or (
                first.actual.shape == second.actual.shape
                and first.actual.dtype == second.actual.dtype
                and not differing(first.actual, second.actual).any()
            )
        )
        for first, second in zip(one.outputs, two.outputs, strict=True)
    )
