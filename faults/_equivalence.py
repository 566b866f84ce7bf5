"""Whether a mutant differs from its original at all.

A kernel that compiles to the same IR in every specialisation used is the same kernel. A host
function that makes the same launches and returns the same bits on every input of the domain that
was tried does the same work. An edit of what masked-off lanes hold is dead when nothing that they
hold, not even NaN, reaches an output.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trivet.faults._mutants import Mutant, loaded
from trivet.faults._mutators import Operator, source_of
from trivet.faults._mutators._source import Edit
from trivet.faults._mutators.masks import poisoned
from trivet.faults._reach import reached_from
from trivet.faults._search import same_bits
from trivet.faults._warm import Kept, Warm
from trivet.properties._observe import observe
from trivet.properties._verdict import NotJudgedError
from trivet.simulator.alike import code_of, likeness, same_text
from trivet.simulator.binding import Launch
from trivet.simulator.executors import executor_named
from trivet.simulator.frontend import lower, specialisations
from trivet.simulator.rebuild import compiled, is_interpreted

Kernel = Callable[..., Any]
Kind = Literal["equivalent", "dead_lane"]
Twin = tuple[Kind, str, list[Edit]]
SAME_DATAFLOW = "the same dataflow in every specialisation that was launched"
SAME_WORK = "the same launches and results on every input tried"
# Values far apart: where each gives the same bits, what the constant holds is never seen.
_STRANGERS = ("1e30", "-1e30", "1e-30", "-1.0")
_WHOLE_STRANGERS = ("1000003", "-77", "3")


@dataclass(frozen=True, slots=True)
class Reading:
    """What the compiler's IR says of a kernel mutant without running it."""

    kind: Literal["alike", "unlike", "refused"]
    detail: str = ""


def read_code(warm: Warm, kernel: Kernel) -> Reading:
    """Compare a mutant's kernels with those that the original launched."""
    facts = _Facts.of(warm.launches())
    pairs = [
        (first, second)
        for first, second in kernel_pairs(warm.found.contract.kernel, kernel)
        if specialisations(first)
    ]
    changed = [(first, second) for first, second in pairs if not same_text(first, second)]
    for first, second in changed:
        name = first.__name__
        kind, detail = likeness(first, second, ones=facts.ones(name), same=facts.same(name))
        if kind != "alike":
            return Reading(kind, detail)
    return Reading("alike", SAME_DATAFLOW) if pairs else Reading("unlike")


def prime(warm: Warm, mutants: Sequence[Mutant]) -> None:
    """Compile what mutants leave as it is, once for all of them: each file, with nothing edited."""
    for mutant in {mutant.module: mutant for mutant in mutants}.values():
        kernel = loaded(warm.found.contract, mutant, Edit(0, 0, ""))
        warm.primed.append(kernel)
        for first, second in kernel_pairs(warm.found.contract.kernel, kernel):
            for asked in specialisations(first):
                _ = lower(second, *asked).module


def code_launched(warm: Warm, kernel: Kernel) -> str:
    """Return a digest of the IR of a mutant's own kernels as it launched them; empty for none."""
    pairs = kernel_pairs(warm.found.contract.kernel, kernel)
    return "".join(code_of(second) for first, second in pairs if not same_text(first, second))


@dataclass
class _Facts:
    """The numbers that every launch of a kernel was given, launch by launch."""

    seen: dict[str, dict[str, list[object]]] = field(default_factory=dict)

    @classmethod
    def of(cls, launches: Iterable[Launch]) -> "_Facts":
        facts = cls()
        for launch in launches:
            facts.add(launch.kernel, launch.scalars)
        return facts

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


def unseen(warm: Warm, mutant: Mutant, operator: Operator) -> tuple[Kind, str] | None:
    """Return how it is shown that what a mutant changes reaches no output; None where it does."""
    for verdict, detail, edits in _twins(mutant, operator):
        twins = [loaded(warm.found.contract, mutant, edit) for edit in edits]
        if all(_same_results(warm, twin) for twin in twins):
            return verdict, detail
    return None


def _twins(mutant: Mutant, operator: Operator) -> Iterator[Twin]:
    """Yield edits that together show whether what this mutant changes is ever seen."""
    text = Path(mutant.path).read_text()
    twin = poisoned(source_of(text, mutant.function, mutant.kind), mutant.edit)
    if mutant.kind == "kernel" and twin is not None:
        yield "dead_lane", "nothing that masked-off lanes hold reaches an output", [twin]
    if operator.name in ("constant_changed", "load_other_changed"):
        whole = text[mutant.start : mutant.end].lstrip("-").isdigit()
        values = _WHOLE_STRANGERS if whole else _STRANGERS
        edits = [Edit(mutant.start, mutant.end, value) for value in values]
        yield "equivalent", "no finite value in this place reaches an output", edits


def _same_results(warm: Warm, twin: Kernel) -> bool:
    """Whether a kernel returns the original's bits on every case, whatever undefined lanes hold."""
    return all(
        _as_original(warm, kept, twin, poison)
        for dtype in warm.found.contract.dtypes()
        for kept in warm.every(dtype)
        if kept.inputs is not None
        for poison in ("nan", "large")
    )


def _as_original(warm: Warm, kept: Kept, twin: Kernel, poison: str) -> bool:
    assert kept.inputs is not None
    executor = executor_named("simulator", poison=poison, configuration=kept.example)
    other = observe(warm.found.contract, kept.inputs, executor, kernel=twin)
    if type(other.run.error) is not (kept.error or type(None)) or other.run.failed is not None:
        return False
    try:
        return kept.error is not None or same_bits(kept, other)
    except NotJudgedError:
        return False  # it returned something that is no tensor
