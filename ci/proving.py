"""Laws that no mutant's first killer was: are there mutants that they turn red as well?

The search for a mutant's killer ends at the first law, so that what comes late never has its turn.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trivet.ci.document import Document
from trivet.ci.mutant_judge import Job

if TYPE_CHECKING:
    from trivet.faults._search import Laws

# So many mutants are tried for each law, one after the other until one turns it red.
TRIES = 24
Run = Callable[[Sequence[Job]], list[Document]]


def proved(laws: set[str], killed: Sequence[Job], run: Run) -> set[str]:
    """Return those of ``laws`` that turn red on one of the mutants ``killed``."""
    found: set[str] = set()
    candidates = {law: _for_law(law, killed) for law in sorted(laws)}
    for _ in range(TRIES):
        jobs = [
            job
            for law, waiting in candidates.items()
            if law not in found and (job := next(waiting, None)) is not None
        ]
        if not jobs:
            break
        entries = run(jobs)
        found |= {e["killed_by"] for e in entries if e["verdict"] == "killed"}
    return found & laws


def _for_law(law: str, killed: Sequence[Job]) -> Iterator[Job]:
    """Yield the mutants of contracts that promise a law, to be judged by it alone."""
    for job in killed:
        for number, original in zip(job.contracts, job.originals, strict=True):
            laws: Laws = {dtype: (law,) for dtype, names in original.laws.items() if law in names}
            if not laws:
                continue
            yield replace(
                job,
                contracts=(number,),
                originals=(replace(original, laws=laws, conventional=False),),
                key=f"{job.key}/law/{law}",
                label=f"{job.label} by {law}",
            )
            break
