"""One gate while it is being judged: what was counted, what was found."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from trivet.properties._cases import Case
from trivet.properties._laws import Kind, Tally
from trivet.properties._verdict import Failure, State, Verdict, Violation

# Shares beyond which a gate says it could not judge (the reference's own domain, the bound).
_DISCARDED_SHARE = 0.2
_UNDECIDED_NORMAL = 0.01
_UNDECIDED_OTHER = 0.5
# Why a gate is red when all that happened is an exception of the kernel's host function.
CRASH = "the kernel raised"
# Laws that prove themselves by refusals, builds or the whole gate, not by compared elements.
_WITHOUT_ELEMENTS: tuple[Kind, ...] = ("refuses", "counts", "builds")


@dataclass(frozen=True, slots=True)
class Red:
    """A violation, the case that showed it first, and that example's number."""

    case: Case | None
    violation: Violation
    example: int = 0


@dataclass
class Gate:
    """Counts of one law of one contract and dtype."""

    law: str
    claim: str
    kind: Kind
    examples: int = 0
    elements: int = 0
    launches: int = 0
    written: int = 0
    tried: int = 0
    rejected: int = 0
    margin: float | None = None
    seconds: float = 0.0
    bitwise: bool | None = None
    undecided: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    judged: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    reds: dict[str, Red] = field(default_factory=dict)
    not_judged: str | None = None
    not_promised: str | None = None
    elsewhere: str | None = None
    inapplicable: str | None = None
    vacuous: str | None = None
    note: str | None = None
    discards: Counter[str] = field(default_factory=Counter)
    classes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @property
    def closed(self) -> bool:
        """Whether further examples cannot change the verdict."""
        return bool(self.not_judged or self.not_promised or self.elsewhere)

    @property
    def broken(self) -> bool:
        """Whether the law is broken for a better reason than an exception of the kernel."""
        return any(not red.violation.key.startswith(CRASH) for red in self.reds.values())

    def discard(self, reason: str) -> None:
        """Count inputs outside the contract's domain, or the reference's."""
        self.tried += 1
        self.discards[reason] += 1

    def add(self, tally: Tally, *, launches: int, normal: bool) -> None:
        """Count one judged example."""
        self.examples += 1
        self.launches += launches
        self.elements += tally.elements
        self.judged[normal] += tally.elements
        self.undecided[normal] += tally.undecided
        if tally.margin is not None:
            self.margin = max(self.margin or 0.0, tally.margin)
        self.note = tally.note or self.note
        if tally.bitwise is not None:
            self.bitwise = tally.bitwise and self.bitwise is not False

    def break_with(self, violation: Violation, case: Case | None, example: int = 0) -> None:
        """Record a violation; the first case of each key is kept."""
        self.examples += 1
        for each in (violation, *violation.further):
            self.reds.setdefault(each.key, Red(case, each, example))

    def state(self) -> tuple[State, str | None]:
        """Return the verdict's state and, where it is not plainly green, why."""
        if self.reds:
            return "red", None if self.broken else CRASH
        for state, reason in (
            ("elsewhere", self.elsewhere),
            ("not_judged", self.not_judged),
            ("not_promised", self.not_promised),
        ):
            if reason:
                return state, reason  # type: ignore[return-value]
        if self.law == "handles_empty":
            return self._by_sizes()
        if self.discards.total() > _DISCARDED_SHARE * self.tried:
            return "not_judged", self._discarded()
        return self._by_work()

    def _by_sizes(self) -> tuple[State, str | None]:
        """Each empty size is judged by itself: by the oracle, by its refusal, or not promised."""
        if self.examples:
            return self._too_undecided() or ("green", self._discarded() if self.discards else None)
        if self.rejected:
            return "green", "the kernel refuses every empty size"
        return "not_promised", self._discarded() if self.discards else self.inapplicable

    def _discarded(self) -> str:
        [(reason, _)] = self.discards.most_common(1)
        return f"{self.discards.total()} of {self.tried} inputs were discarded: {reason}"

    def _by_work(self) -> tuple[State, str | None]:
        if not self.examples and self.inapplicable and not self.rejected:
            return "not_promised", self.inapplicable
        if not self.examples:
            text = f"vacuous: no example was judged ({self.rejected} rejected by the kernel)"
            return "red", text
        if self.kind not in _WITHOUT_ELEMENTS:
            if not self.launches:
                return "red", "vacuous: the kernel launched nothing"
            if not self.elements:
                return "red", "vacuous: no element was judged"
        undecided = self._too_undecided()
        if undecided is not None:
            return undecided
        if self.vacuous:
            return "red", f"vacuous: {self.vacuous}"
        notes = [self.note if self.bitwise is None else _bitwise_note(self.bitwise)]
        notes += [self._discarded()] if self.discards else []
        return "green", "; ".join(note for note in notes if note) or None

    def _too_undecided(self) -> tuple[State, str] | None:
        """Return not_judged where too many elements are undecidable."""
        for normal, cap in ((True, _UNDECIDED_NORMAL), (False, _UNDECIDED_OTHER)):
            if self.undecided[normal] > cap * self.judged[normal]:
                kind = "normal" if normal else "special"
                share = self.undecided[normal] / self.judged[normal]
                return "not_judged", f"{share:.1%} of the elements of {kind} inputs are undecidable"
        return None

    def verdict(
        self,
        *,
        contract: str,
        dtype: str,
        executor: str,
        failure: Failure | None,
    ) -> Verdict:
        """Return the gate's verdict."""
        state, reason = self.state()
        if state == "red" and failure is None:
            failure = Failure(
                f"{contract} breaks {self.law} at {dtype}\n  {self.claim}\n  {reason}"
            )
        return Verdict(
            contract=contract,
            law=self.law,
            dtype=dtype,
            executor=executor,
            state=state,
            reason=reason,
            examples=self.examples,
            elements=self.elements,
            launches=self.launches,
            size_classes={dim: len(seen) for dim, seen in self.classes.items()},
            discarded=self.discards.total(),
            rejected=self.rejected,
            undecided=sum(self.undecided.values()),
            margin=self.margin,
            seconds=round(self.seconds, 4),
            failure=failure,
        )


def _bitwise_note(bitwise: bool) -> str:
    return "bitwise" if bitwise else "within the bound, not bitwise"
