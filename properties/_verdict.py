"""What a gate says: verdicts, failures, and the exceptions by which a law speaks."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["green", "red", "not_judged", "elsewhere", "not_promised"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a gate is red, told to a stranger.

    ``index``, ``got``, ``wanted`` and ``bound`` name the worst element when the law compares
    values; ``line`` is the kernel's source line when the law judges memory. ``witness`` is the
    path of the saved inputs, ``replay`` the command that judges them again.
    """

    text: str
    index: str | None = None
    got: str | None = None
    wanted: str | None = None
    bound: str | None = None
    line: str | None = None
    witness: str | None = None
    replay: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one gate (one law of one contract, dtype and executor) found.

    ``examples`` were judged; ``elements`` are output elements compared (elements accessed, for
    memory laws); ``margin`` is the largest error divided by bound plus storage rounding.
    """

    contract: str
    law: str
    dtype: str
    executor: str
    state: State
    reason: str | None = None
    examples: int = 0
    elements: int = 0
    launches: int = 0
    size_classes: Mapping[str, int] = field(default_factory=dict)
    discarded: int = 0
    rejected: int = 0
    undecided: int = 0
    margin: float | None = None
    seconds: float = 0.0
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the gate's entry of the machine output, version 1."""
        entry = asdict(self)
        entry["verdict"] = entry.pop("state")
        del entry["contract"]
        entry["size_classes"] = dict(self.size_classes)
        return entry


class Violation(AssertionError):
    """A law does not hold on these inputs.

    ``key`` tells apart different bugs that break one law (a source line, an output's name), so
    that each is shrunk and reported by itself; ``further`` are other violations of one check.
    """

    def __init__(
        self,
        text: str,
        *,
        key: str = "",
        index: str | None = None,
        got: str | None = None,
        wanted: str | None = None,
        bound: str | None = None,
        line: str | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.key = key
        self.index = index
        self.got = got
        self.wanted = wanted
        self.bound = bound
        self.line = line
        self.further: tuple[Violation, ...] = ()


class NotPromisedError(Exception):
    """The contract promises nothing that this law could judge; the message says why."""


class NotJudgedError(Exception):
    """The law should have been judged and could not be; the message says why."""


class InapplicableError(Exception):
    """The law says nothing about this one example (a changed input would leave the domain)."""
