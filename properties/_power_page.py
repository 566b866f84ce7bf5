"""The power certificate of a contract in words: the mistakes its inputs show, and those not."""

from collections.abc import Iterator

from trivet.properties._contract import Contract
from trivet.properties._power import certificate


def power_lines(contract: Contract) -> Iterator[str]:
    """Yield how many mutants of the plan the planned inputs separate, then each that they do not.

    At the first dtype; a gate says the same of every dtype and of its own inputs.
    """
    dtype = contract.dtypes()[0]
    found = certificate(contract, dtype)
    known, missed = found.applicable, found.unseparated
    if not known:
        yield "no mutant applies: the plan computes no number"
        return
    yield f"{len(known) - len(missed)} of {len(known)} mutants of the plan separated at {dtype}"
    for mutant in missed:
        yield f"not separated: {mutant.mutation} ({mutant.site})"
    for mutant in known:
        if mutant.separated and not mutant.certain:
            yield f"separated, yet rounding may hide it: {mutant.mutation} ({mutant.site})"
