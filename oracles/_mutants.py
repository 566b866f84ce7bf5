"""Evaluates an oracle with one step of its plan mutated, and finds the steps there are."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from trivet.oracles._context import Site, intercepted, site_of
from trivet.oracles._mutations import MUTATIONS, Call, Mutation, operations


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutation at one step of an oracle."""

    mutation: str
    site: Site


@dataclass
class Survey:
    """Watches an evaluation: which mutants its plan has, and whether it computes anything."""

    mutants: dict[Mutant, None] = field(default_factory=dict)
    operations: int = 0
    _quiet: bool = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the evaluations that begin inside."""
        with intercepted(self._see):
            yield

    def _see(
        self,
        name: str,
        rule: Callable[..., Any],
        operands: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> Any:
        self.operations += 1
        if not self._quiet:
            for known in _table().get(name, ()):
                self._try(known, Call(name, rule, operands, options))
        return rule(*operands, **options)

    def _try(self, known: Mutation, call: Call) -> None:
        mutant = Mutant(known.name, site_of(call.name))
        if mutant in self.mutants:
            return
        self._quiet = True
        try:
            if known.change(call) is not None:
                self.mutants[mutant] = None
        finally:
            self._quiet = False


@cache
def _table() -> dict[str, list[Mutation]]:
    return operations()


@contextmanager
def mutated(mutant: Mutant) -> Iterator[None]:
    """Evaluate oracles that begin inside with `mutant`'s step changed, each time it is computed."""
    change = MUTATIONS[mutant.mutation].change
    changing = False

    def compute(
        name: str, rule: Callable[..., Any], operands: tuple[Any, ...], options: Mapping[str, Any]
    ) -> Any:
        nonlocal changing
        if changing or name != mutant.site.operation or site_of(name) != mutant.site:
            return rule(*operands, **options)
        changing = True
        try:
            result = change(Call(name, rule, operands, options))
        finally:
            changing = False
        return rule(*operands, **options) if result is None else result

    with intercepted(compute):
        yield
