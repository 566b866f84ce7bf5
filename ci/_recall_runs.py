"""Runs of edited kernels, with and without sanitizers, for the table of recall."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch

from trivet.ci.pool import Note
from trivet.faults._mutators import edits_of
from trivet.faults._mutators._source import Edit, Source, Text
from trivet.properties._cases import build, dtypes_of
from trivet.properties._contract import Contract
from trivet.properties._generate import Generator
from trivet.properties._profiles import profile_of
from trivet.simulator.executors import Run, Simulator
from trivet.simulator.limits import Limits

_CASES = 6
_GUARD = 4096
_LIMITS = Limits(seconds=10.0, memory=8 * 2**30)
_FUEL = 1_000_000
Arguments = dict[str, Any]
Kernel = Callable[..., object]


@dataclass(frozen=True)
class Outcome:
    """What one edit did: the kinds of faults reported, and the classes it is a fault of in truth.

    An empty ``mutator`` is the original.
    """

    label: str
    mutator: str
    kinds: tuple[str, ...]
    truths: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """One contract, and the modules whose functions are edited."""

    name: str
    contract: Contract
    modules: tuple[str, ...]


@cache
def subjects(project: str) -> list[Subject]:
    """The contracts of another project where ``project`` names one, else the shipped ones."""
    if project != "shipped":
        from trivet.ci.suites.operators import operators

        return [Subject(each.name, each.contract, (each.module,)) for each in operators(project)]
    from trivet.properties._collect import find

    found = find(["cfc.*", "routing.*"])
    return [Subject(f.name, f.contract, (f.contract.kernel.__module__,)) for f in found]


def count(project: str) -> int:
    """How many contracts a project has."""
    return len(subjects(project))


@dataclass(frozen=True)
class Planted:
    """One edit of a function of a module."""

    mutator: str
    module: str
    function: str
    line: int
    edit: Edit


@dataclass(frozen=True)
class Judge:
    """Judges the edits of one contract: ``work`` of a pool."""

    mutators: tuple[str, ...]
    most: int

    def __call__(self, job: tuple[str, int], note: Note) -> list[Outcome]:
        """Return the outcomes of the original and of at most ``most`` edits of each mutator."""
        subject = subjects(job[0])[job[1]]
        bench, kernel = _Bench(subject.contract), subject.contract.kernel
        own = bench.truths(kernel)
        outcomes = [Outcome(subject.name, "", bench.reported(kernel), own)]
        for planted in self._chosen(subject, bench.launched):
            label = f"{subject.name} {planted.mutator} {planted.function}:{planted.line}"
            try:
                with swapped(planted):
                    edited = _current(kernel)
                    kinds, truths = bench.reported(edited), bench.truths(edited)
            except Exception as error:
                note(f"{label}: {type(error).__name__}: {error}"[:200])
                continue
            truths = tuple(each for each in truths if each not in own)
            outcomes.append(Outcome(label, planted.mutator, kinds, truths))
            note(f"{label}: reported {list(kinds)}, in truth {list(truths)}")
        return outcomes

    def _chosen(self, subject: Subject, launched: set[str]) -> Iterator[Planted]:
        taken: dict[str, int] = {}
        for planted in self._all(subject.modules, launched):
            taken[planted.mutator] = taken.get(planted.mutator, 0) + 1
            if taken[planted.mutator] <= self.most:
                yield planted

    def _all(self, modules: Sequence[str], launched: set[str]) -> Iterator[Planted]:
        for name in modules:
            module = importlib.import_module(name)
            text = Text(Path(str(module.__file__)).read_text())
            for function, node in text.functions().items():
                kernel = hasattr(vars(module).get(function), "fn")
                if kernel and function not in launched:
                    continue
                for each, edit in edits_of(Source(text, node, "kernel" if kernel else "host")):
                    if each.name in self.mutators:
                        line = text.line_of(edit.start)
                        yield Planted(each.name, name, function, line, edit)


@contextmanager
def swapped(planted: Planted) -> Iterator[None]:
    """Let a module have the functions of its edited text, and all who imported them by their names.

    Classes and values stay.
    """
    module = importlib.import_module(planted.module)
    text = Path(str(module.__file__)).read_text()
    text = text[: planted.edit.start] + planted.edit.text + text[planted.edit.end :]
    path = f"<planted>/{Path(str(module.__file__)).name}"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    fresh = {"__name__": planted.module, "__file__": module.__file__, "__spec__": module.__spec__}
    fresh["__package__"] = module.__package__
    exec(compile(text, path, "exec", dont_inherit=True), fresh)
    before = dict(vars(module))
    functions = {
        name: value
        for name, value in fresh.items()
        if name in before and (isinstance(value, FunctionType) or hasattr(value, "fn"))
    }
    places = [
        (vars(other), name)
        for other in list(sys.modules.values())
        for name in functions
        if vars(other).get(name) is before[name]
    ]
    for names, name in places:
        names[name] = functions[name]
    try:
        yield
    finally:
        for names, name in places:
            names[name] = before[name]


def _current(kernel: Kernel) -> Kernel:
    """What the kernel's module calls by its name now."""
    module = sys.modules[kernel.__module__]
    found: Kernel = getattr(module, kernel.__qualname__, kernel)
    return found


class _Bench:
    """A few inputs of one contract, and what the original makes of them."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        dtype = dtypes_of(contract)[0]
        generator = Generator(contract, dtype, 0, profile_of("quick"))
        generator.learn(_simulator())
        cases = [case for case in generator.planned() if 0 not in case.dims.values()][:_CASES]
        self.inputs = [build(contract, case, dtype).tensors for case in cases]
        self._read_only = contract.read_only_arguments()
        if any(self._changes_its_inputs(contract.kernel, given) for given in self.inputs):
            # A gradient in place of an input is meant; a refused write would hide other faults.
            self._read_only = ()
        self.wanted = [_values(self._run(contract.kernel, given)) for given in self.inputs]
        runs = [self._run(contract.kernel, given) for given in self.inputs[:2]]
        self.launched = {launch.kernel for run in runs for launch in run.launches}

    def _run(self, kernel: Kernel, given: Mapping[str, Any], **options: Any) -> Run:
        arguments = _copies(given)
        whole = options.pop("whole", ())
        return _simulator(**options).run(
            _with_gradients(kernel, self.contract),
            arguments,
            read_only=self._read_only if options.get("sanitize", True) else (),
            unwritten=self.contract.unwritten_arguments(),
            whole_storage=whole or self.contract.whole_storage_arguments(),
        )

    def reported(self, kernel: Kernel) -> tuple[str, ...]:
        """Kinds of faults that the sanitizers report, masked lanes among them."""
        kinds: set[str] = set()
        for given in self.inputs:
            run = self._run(kernel, given)
            kinds.update(fault.kind for fault in run.faults)
            tensors = [each for each in run.outputs if isinstance(each, torch.Tensor)]
            if not all(run.initialised_of(each).all() for each in tensors):
                kinds.add("unwritten")
            other = _values(self._run(kernel, given, poison="large"))
            if run.error is None and not _same(_values(run), other):
                kinds.add("masked_lanes")
        return tuple(sorted(kinds))

    def truths(self, kernel: Kernel) -> tuple[str, ...]:
        """Classes of faults that show in results, guard zones or inputs, sanitizers off."""
        found: set[str] = set()
        for given, wanted in zip(self.inputs, self.wanted, strict=True):
            if self._leaves_its_tensors(kernel, given):
                found.add("out of bounds")
            plain = _values(self._run(kernel, given, sanitize=False, poison="zero"))
            large = _values(self._run(kernel, given, sanitize=False, poison="large"))
            if not _same(plain, large):
                found.add("masked lanes")
            if not _same(plain, wanted) and any(map(_is_poisoned, plain)):
                found.add("uninitialised")
            orders = [
                _values(self._run(kernel, given, sanitize=False, order=order, chunk=1))
                for order in ("forward", "reverse")
            ]
            if not _same(*orders) and self.contract.precision.order != "any":
                found.add("races")
            if self._changes_its_inputs(kernel, given):
                found.add("read-only")
        return tuple(sorted(found))

    def _leaves_its_tensors(self, kernel: Kernel, given: Mapping[str, Any]) -> bool:
        """Whether guard zones are written, or what they hold shows in the results."""
        seen = []
        for fill in (3.0, -77.0):
            pools: list[tuple[torch.Tensor, torch.Tensor]] = []
            guarded = {name: _guarded(value, fill, pools) for name, value in given.items()}
            before = [_zones(*pool) for pool in pools]
            run = _simulator(sanitize=False).run(
                _with_gradients(kernel, self.contract),
                guarded,
                whole_storage=[n for n, v in guarded.items() if isinstance(v, torch.Tensor)],
            )
            after = [_zones(*pool) for pool in pools]
            if not all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
                return True
            seen.append(_values(run))
        return not _same(*seen)

    def _changes_its_inputs(self, kernel: Kernel, given: Mapping[str, Any]) -> bool:
        arguments = _copies(given)
        _simulator(sanitize=False).run(_with_gradients(kernel, self.contract), arguments)
        kept = [given[name] for name in self.contract.read_only_arguments()]
        now = [arguments[name] for name in self.contract.read_only_arguments()]
        pairs = zip(kept, now, strict=True)
        return any(isinstance(a, torch.Tensor) and not _equal(a, b) for a, b in pairs)


def _simulator(**options: Any) -> Simulator:
    return Simulator(fuel=_FUEL, limits=_LIMITS, **options)


def _with_gradients(kernel: Kernel, contract: Contract) -> Kernel:
    """The host function, and its gradients where it has them by autograd."""
    if contract.backward != "autograd":
        return kernel

    def both(**given: Any) -> object:
        floats = [v for v in given.values() if isinstance(v, torch.Tensor) and v.requires_grad]
        out = kernel(**given)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if _has_gradient(o)]
        if not outs or not floats:
            return out
        sums = [torch.ones_like(each) for each in outs]
        gradients = torch.autograd.grad(outs, floats, sums, allow_unused=True)
        return (*outs, *(each for each in gradients if each is not None))

    return both


def _has_gradient(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _copies(given: Mapping[str, Any]) -> Arguments:
    return {name: _copy(value) for name, value in given.items()}


def _copy(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copied = value.detach().clone()
    return copied.requires_grad_(value.dtype.is_floating_point)


def _guarded(value: Any, fill: float, pools: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """A dense copy between two guard zones."""
    if not isinstance(value, torch.Tensor):
        return value
    size = value.numel()
    number = fill if value.dtype.is_floating_point else abs(int(fill)) % 2
    pool = torch.full((size + 2 * _GUARD,), number, dtype=value.dtype)
    inner = pool[_GUARD : _GUARD + size].view(value.shape)
    inner.copy_(value.detach())
    pools.append((pool, inner))
    return inner.detach().requires_grad_(value.dtype.is_floating_point)


def _zones(pool: torch.Tensor, inner: torch.Tensor) -> torch.Tensor:
    return torch.cat([pool[:_GUARD], pool[_GUARD + inner.numel() :]]).clone()


def _values(run: Run) -> list[torch.Tensor]:
    return [each.detach().clone() for each in run.outputs if isinstance(each, torch.Tensor)]


def _same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    first, second = (each.detach().to(torch.float64).numpy() for each in (one, other))
    return bool(np.array_equal(first, second, equal_nan=True))


def _is_poisoned(value: torch.Tensor) -> bool:
    """Whether memory that nobody wrote shows: its pattern is a NaN or a large odd number."""
    if value.dtype.is_floating_point:
        return bool(torch.isnan(value).any())
    return bool((value.to(torch.int64).abs() > 2**29).any())
