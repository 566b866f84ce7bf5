"""What an audit learns for the next one: which inputs killed, and which phase kills per second.

Read when an audit begins and written when a whole one has ended: the order of work is one for all
of its mutants, however often it is interrupted, and no verdict but the name of the killer hangs
on it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trivet.ci.document import Document

if TYPE_CHECKING:
    from trivet.faults._search import Phase

# Killers that are remembered for each dtype.
MOST_KILLERS = 10


def killers_of(known: Any) -> dict[str, Sequence[str]]:
    """Return the inputs that killed most, by dtype, from what is known of a contract."""
    return dict((known or {}).get("killers", {}))


def order_of(known: Any) -> "dict[str, Sequence[Phase]]":
    """Return the phases by their kills per second, for each kind of function that is edited."""
    from trivet.faults._search import PHASES

    rates = (known or {}).get("rates", {})
    return {
        kind: sorted(PHASES, key=lambda phase: (-rate.get(phase, 0.0), PHASES.index(phase)))
        for kind, rate in rates.items()
    }


def learned(entries: Iterable[Document], kinds: Mapping[str, str]) -> dict[str, Document]:
    """Return by contract what these entries teach; ``kinds`` maps mutants to where they stand."""
    killers: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    kills: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    seconds: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for entry in entries:
        contract, kind = entry["contract"], kinds.get(entry["id"], "kernel")
        for phase, spent in (entry.get("seconds") or {}).items():
            seconds[contract][kind][phase] += spent
        if entry["verdict"] == "killed" and entry.get("phase"):
            kills[contract][kind][entry["phase"]] += 1
        if entry.get("killer"):
            killers[contract][entry["dtype"]][entry["killer"]] += 1
    return {
        contract: {
            "killers": {
                dtype: [case for case, _ in counts.most_common(MOST_KILLERS)]
                for dtype, counts in killers[contract].items()
            },
            "rates": {
                kind: {
                    phase: round((kills[contract][kind][phase] + 1) / (spent + 1), 3)
                    for phase, spent in by_phase.items()
                }
                for kind, by_phase in seconds[contract].items()
            },
        }
        for contract in seconds
    }
