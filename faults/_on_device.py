"""Mutants that only a GPU can judge: a lost barrier or memory order shows in values, sometimes."""

from collections.abc import Mapping, Sequence

from trivet.faults._judge_mutant import MutantVerdict
from trivet.faults._load import FaultError
from trivet.faults._mutants import Mutant, loaded
from trivet.properties._collect import Found
from trivet.properties._contract import Contract
from trivet.properties._engine import judge
from trivet.properties._verdict import Verdict
from trivet.simulator.gpu import NoGpuError

# Runs of every example: what shows in one run of three is missed by all of these once in 2,000.
TIMES = 20


def judge_on_device(
    found: Found,
    mutant: Mutant,
    laws: Mapping[str, Sequence[str]],
    seed: int = 0,
    times: int = TIMES,
) -> MutantVerdict:
    """Judge a mutant on this machine's GPU by the laws that its original keeps there.

    Every example is run ``times`` times, until a law is red; a mutant that stays green survives.
    """
    try:
        kernel = loaded(found.contract, mutant)
        original = _verdicts(found, found.contract, laws, seed)
        red = next((each for each in original if each.state == "red"), None)
        if red is not None:
            return _unjudged(f"its original breaks {red.law}[{red.dtype}] on the GPU")
        contract = found.contract.with_kernel(kernel)
        for _ in range(times):
            for each in _verdicts(found, contract, laws, seed):
                if each.state == "red":
                    return _killed(each)
    except (FaultError, NoGpuError) as error:
        return _unjudged(str(error))
    return MutantVerdict("survived", detail=f"green in {times} runs of every example on a GPU")


def _verdicts(
    found: Found, contract: Contract, laws: Mapping[str, Sequence[str]], seed: int
) -> list[Verdict]:
    return [
        verdict
        for dtype, names in laws.items()
        for verdict in judge(
            contract,
            name=found.name,
            seed=seed,
            executor="gpu",
            laws=names,
            dtypes=(dtype,),
            shrink=False,
            source=found.source,
        )
    ]


def _killed(verdict: Verdict) -> MutantVerdict:
    told = verdict.failure.text.splitlines()[0] if verdict.failure else verdict.law
    return MutantVerdict(
        "killed",
        killed_by=verdict.law,
        witness=f"{verdict.dtype}: {told}",
        dtype=verdict.dtype,
        red=(verdict.law,),
    )


def _unjudged(reason: str) -> MutantVerdict:
    return MutantVerdict("not_judged", detail=reason, needs_device=True)
