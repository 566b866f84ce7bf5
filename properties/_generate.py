"""The cases of one contract and dtype: pilot, covering plan, Hypothesis, and special inputs."""

import warnings
from collections.abc import Callable, Iterator

import hypothesis

from trivet.properties._cases import Case, build
from trivet.properties._contract import Contract
from trivet.properties._observe import observe
from trivet.properties._plan import pilot_cases, plan, size_classes
from trivet.properties._probes import (
    empty_cases,
    integer_cases,
    nonfinite_cases,
    unread_cases,
)
from trivet.properties._profiles import Profile
from trivet.properties._strategy import strategy
from trivet.properties._ties import tie_cases
from trivet.simulator.executors import Executor, Run

_LARGEST_BLOCK = 4096
_MOST_BLOCKS = 6
_NOTHING = {
    "exact_on_integers": "the oracle is exact nowhere on integers: no bound is zero",
    "handles_empty": "no dim admits 0",
    "propagates_nonfinite": "no domain admits NaN or infinities, no element is unread",
}


class Generator:
    """Where the cases of a session come from; block sizes are learned once, before the first."""

    def __init__(self, contract: Contract, dtype: str, seed: int, profile: Profile) -> None:
        self.contract = contract
        self.dtype = dtype
        self.seed = seed
        self.profile = profile
        self.blocks: tuple[int, ...] = ()

    def learn(self, executor: Executor) -> Run | None:
        """Launch three sizes and read the block sizes off the launches' constexprs.

        Sizes learned while generating would change what Hypothesis draws; so they are frozen.
        Returns a run that did not come to its end, if there is one.
        """
        found: set[int] = set()
        failed: Run | None = None
        for case in pilot_cases(self.contract, self.dtype):
            run = observe(self.contract, build(self.contract, case, self.dtype), executor).run
            if run.failed is not None:
                failed = run
                break
            values = [value for launch in run.launches for value in launch.constexprs.values()]
            found |= {v for v in values if type(v) is int and 2 <= v <= _LARGEST_BLOCK}
        blocks = sorted(found)
        half = _MOST_BLOCKS // 2
        self.blocks = tuple(
            blocks if len(blocks) <= _MOST_BLOCKS else blocks[:half] + blocks[-half:]
        )
        return failed

    def planned(self) -> Iterator[Case]:
        """Yield the cases of the covering design."""
        count = min(self.profile.planned, self.profile.examples)
        yield from plan(self.contract, self.dtype, seed=self.seed, blocks=self.blocks, count=count)

    def generated(self, count: int, judge: Callable[[Case], None]) -> None:
        """Let Hypothesis draw ``count`` cases and hand each to ``judge``, which never raises."""

        @hypothesis.seed(self.seed)
        @hypothesis.settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=[
                hypothesis.HealthCheck.too_slow,
                hypothesis.HealthCheck.data_too_large,
            ],
        )
        @hypothesis.given(strategy(self.contract, self.dtype, self.blocks))
        def drawn(case: Case) -> None:
            judge(case)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hypothesis.errors.NonInteractiveExampleWarning)
            drawn()

    def own_cases(self, law: str) -> Iterator[Case]:
        """Yield the special inputs of a law that needs its own kind."""
        if law == "exact_on_integers":
            count = max(4, self.profile.examples // 5)
            yield from integer_cases(
                self.contract, self.dtype, seed=self.seed, blocks=self.blocks, count=count
            )
            yield from tie_cases(self.contract, self.dtype, seed=self.seed, blocks=self.blocks)
        elif law == "handles_empty":
            yield from empty_cases(self.contract, self.dtype, seed=self.seed)
        elif law == "propagates_nonfinite":
            for cases in (nonfinite_cases, unread_cases):
                yield from cases(self.contract, self.dtype, seed=self.seed, blocks=self.blocks)

    @staticmethod
    def nothing_for(law: str) -> str:
        """Return why a law found no inputs of its kind."""
        return _NOTHING.get(law, "the contract has no inputs of its kind")

    def classes(self, case: Case) -> dict[str, str]:
        """Return the size class of every dim of ``case``."""
        return size_classes(self.contract, case.dims, self.blocks)

    def arguments(self) -> dict[str, object]:
        """Return legal arguments of ordinary size, for laws that spoil them."""
        case = pilot_cases(self.contract, self.dtype)[0]
        return dict(build(self.contract, case, self.dtype).tensors)
