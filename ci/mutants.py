"""The mutant audit: every small bug planted in a kernel must turn some gate red."""

import hashlib
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.ci.cluster import devices, run_anywhere
from trivet.ci.document import Document
from trivet.ci.experience import killers_of, learned, order_of
from trivet.ci.gate import Settings
from trivet.ci.mutant_judge import Collect, Job, MutantJudge, Original, unjudged
from trivet.ci.pool import Event
from trivet.ci.progress import Progress
from trivet.ci.proving import proved
from trivet.ci.verdicts import Store, content_of
from trivet.ci.waivers import waive

if TYPE_CHECKING:
    from trivet.faults._mutants import Mutant
    from trivet.properties._collect import Found

__all__ = ["Audited", "Collect", "Part", "in_order", "judge_mutants", "without_duplicates"]

# One mutant in so many is judged twice: a verdict must not depend on chance.
_AGAIN_EVERY = 50
_UNTOLD = ("killer", "dtype", "phase")


@dataclass(frozen=True, slots=True)
class Part:
    """Which mutants are audited: the first ``sample`` of every contract, one shard of them.

    ``functions`` are the changed ones, (file, qualified name), None for all.
    """

    sample: int | None = None
    shard: tuple[int, int] = (1, 1)
    functions: frozenset[tuple[str, str]] | None = None

    @property
    def is_fair(self) -> bool:
        """Whether every mutant is audited, here or in another shard."""
        return self.sample is None and self.functions is None

    @property
    def is_whole(self) -> bool:
        """Whether every mutant is audited."""
        return self == Part()

    def of(self, mutants: "Sequence[Mutant]") -> "list[Mutant]":
        """Return this part; ids are digests, so each part is a fair sample."""
        number, count = self.shard
        chosen = list(mutants)
        if self.functions is not None:
            chosen = [m for m in chosen if (m.path, m.function) in self.functions]
        return [m for m in chosen[: self.sample] if int(m.id, 16) % count == number - 1]


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit of mutants found.

    ``entries`` are theirs, ``broken`` tells where an original is red and which verdicts are
    unstable, ``laws`` are those that any original keeps, without what a closer look proved: in an
    audit of all mutants, laws that were never the first killer are tried by themselves.
    """

    entries: list[Document]
    broken: list[str]
    laws: set[str]


def judge_mutants(
    found: "list[Found]",
    names: Sequence[str],
    settings: Settings,
    progress: Progress,
    *,
    part: Part,
    collect: Collect,
    red: Collection[str] = (),
) -> "Audited":
    """Judge the mutants of the contracts; ``red`` are laws that faults have turned red.

    A mutant that several contracts reach is judged by each until one kills it. Verdicts known
    from before are not judged again. After Ctrl-C, those that are missing are not_judged.
    """
    store = Store()
    with tempfile.TemporaryDirectory(prefix="trivet-audit-", ignore_cleanup_errors=True) as root:
        judge = MutantJudge(names, settings.seed, Path(root), collect, list(found))
        run = _Run(judge, store, settings, progress)
        try:
            return run.audit(part, set(red))
        finally:
            store.close()


@dataclass(frozen=True, slots=True)
class _Planted:
    """A mutant and the contracts that reach it, the one with the fewest mutants first."""

    mutant: "Mutant"
    contracts: tuple[int, ...]


def planted(found: "Sequence[Found]", part: Part) -> list[_Planted]:
    """Return every mutant of a part once, in the order of the contracts and the mutants' ids."""
    from trivet.faults._mutants import mutants_of

    every = [mutants_of(item.contract) for item in found]
    order = sorted(range(len(found)), key=lambda n: (len(every[n]), found[n].name))
    reached: dict[tuple[str, str], list[int]] = {}
    known: dict[tuple[str, str], Mutant] = {}
    for number in order:
        for mutant in part.of(every[number]):
            reached.setdefault((mutant.path, mutant.id), []).append(number)
            known.setdefault((mutant.path, mutant.id), mutant)
    listed = [_Planted(known[key], tuple(numbers)) for key, numbers in reached.items()]
    return sorted(listed, key=lambda each: (each.contracts, each.mutant.id))


@dataclass
class _Run:
    judge: MutantJudge
    store: Store
    settings: Settings
    progress: Progress
    stopped: bool = False

    def audit(self, part: Part, seen: set[str]) -> "Audited":
        found = self.judge.found
        contents = [content_of(item, self.settings.seed) for item in found]
        known = [self.store.experience(item.name) for item in found]
        chosen = planted(found, part)
        asked = sorted({number for each in chosen for number in each.contracts})
        jobs = [
            Job((n,), f"{found[n].name} original", contents[n], killers=killers_of(known[n]))
            for n in asked
        ]
        kept = dict(zip(asked, self._run(jobs), strict=True))
        originals = {n: _green(entry, known[n]) for n, entry in kept.items() if _is_green(entry)}
        planned = [self._job(each, contents, originals) for each in chosen]
        entries = self._on_devices(planned, self._run(planned))
        if part.is_whole and not self.stopped:
            kinds = {each.mutant.id: each.mutant.kind for each in chosen}
            for contract, lesson in learned(entries, kinds).items():
                self.store.learn(contract, lesson)
        laws = {law for each in originals.values() for names in each.laws.values() for law in names}
        if part.is_fair and not self.judge.names:
            killed = [j for j, e in zip(planned, entries, strict=True) if e["verdict"] == "killed"]
            laws -= proved(laws - seen - red_laws(entries), killed, self._run)
        broken = [*self._broken(kept), *self._unstable(planned, entries)]
        told = [{k: v for k, v in entry.items() if k not in _UNTOLD} for entry in entries]
        return Audited(waive(without_duplicates(in_order(told))), broken, laws)

    def _on_devices(self, planned: Sequence[Job], entries: list[Document]) -> list[Document]:
        """Judge on GPUs what only a GPU can tell; without one, that stays as it is."""
        asked = [n for n, e in enumerate(entries) if e["needs_device"] and planned[n].originals]
        if not asked or not devices(self.settings):
            return entries
        jobs = []
        for number in asked:
            job, contract = planned[number], entries[number]["contract"]
            place = next(
                p for p, n in enumerate(job.contracts) if self.judge.found[n].name == contract
            )
            jobs.append(
                replace(
                    job,
                    contracts=(job.contracts[place],),
                    originals=(job.originals[place],),
                    key=f"{job.key}/on a device",
                    label=f"{job.label} on a GPU",
                    on_device=True,
                )
            )
        told = dict(zip(asked, self._run(jobs), strict=True))
        return [told.get(number, entry) for number, entry in enumerate(entries)]

    def _unstable(self, planned: Sequence[Job], entries: Sequence[Document]) -> list[str]:
        """Judge some mutants once more; return whose verdict is another one now."""
        pairs = [
            (replace(job, key=f"{job.key}/again", label=f"{job.label} again"), entry)
            for job, entry in zip(planned, entries, strict=True)
            if int(entry["id"], 16) % _AGAIN_EVERY == 0 and entry["verdict"] != "not_judged"
        ]
        again = self._run([job for job, _ in pairs])
        return [
            f"unstable: mutant {first['id']} is {_told(first)}, and once more {_told(second)}"
            for (_, first), second in zip(pairs, again, strict=True)
            if second["verdict"] != "not_judged" and _told(first) != _told(second)
        ]

    def _job(self, each: _Planted, contents: Sequence[str], originals: dict[int, Original]) -> Job:
        mutant, found = each.mutant, self.judge.found
        green = tuple(n for n in each.contracts if n in originals)
        first = found[each.contracts[0]].name
        content = hashlib.sha256("\0".join(sorted(contents[n] for n in each.contracts)).encode())
        return Job(
            green or each.contracts,
            f"{first} {mutant.operator} {mutant.line}",
            f"{content.hexdigest()}/{mutant.id}",
            mutant,
            tuple(originals[n] for n in green),
        )

    def _broken(self, kept: dict[int, Document]) -> list[str]:
        red: list[str] = []
        for number, entry in kept.items():
            if "laws" not in entry:
                red.append(f"{self.judge.found[number].name}: {entry['detail']}")
            red += entry.get("broken", [])
        return red

    def _run(self, jobs: Sequence[Job]) -> list[Document]:
        """Return the jobs' entries, in order: from the store, or judged and stored now."""
        entries: dict[int, Document] = {}
        for number, job in enumerate(jobs):
            known = self.store.get(job.key)
            if known is not None:
                entries[number] = known
            elif job.mutant is not None and not job.originals:
                entries[number] = self._missing(job, "its original is not green")
        open_ = [number for number in range(len(jobs)) if number not in entries]
        if open_ and not self.stopped:
            try:
                with self.progress.of(len(open_)):
                    for number, entry in self._judged([jobs[n] for n in open_]):
                        entries[open_[number]] = entry
            except KeyboardInterrupt:
                self.stopped = True
                self.progress.interrupted()
        return [
            entries.get(number) or self._missing(job, "interrupted before its verdict")
            for number, job in enumerate(jobs)
        ]

    def _judged(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Document]]:
        on_device = any(job.on_device for job in jobs)
        for event in run_anywhere(self.judge, jobs, self.settings, on_device=on_device):
            job = jobs[event.job]
            if event.kind == "note":
                self.progress.note(job.label, event.value)
                continue
            entry = event.value if event.kind == "done" else self._ended(job, event)
            if event.kind == "done" and _is_kept(entry):
                self.store.put(job.key, entry)
            yield event.job, entry
            shown = entry if job.mutant is not None else {"verdict": _of_original(entry)}
            self.progress.done(job.label, [shown])

    def _ended(self, job: Job, event: Event) -> Document:
        return self._missing(job, event.value)

    def _missing(self, job: Job, reason: str) -> Document:
        if job.mutant is None:
            return {"detail": reason}
        return unjudged(self.judge.found[job.contracts[0]].name, job.mutant, reason)


def _is_green(entry: Document) -> bool:
    return "laws" in entry and not entry["broken"]


def _green(entry: Document, known: Any) -> Original:
    return Original(
        entry["laws"],
        entry.get("seconds", 0.0),
        entry["conventional"],
        killers_of(known),
        order_of(known),
    )


def _told(entry: Document) -> str:
    law = entry["killed_by"]
    return f"{entry['verdict']} by {law}" if law else str(entry["verdict"])


def _is_kept(entry: Document) -> bool:
    """Whether an entry is worth keeping: a verdict, or laws that an original was judged by."""
    return "verdict" in entry or "laws" in entry


def _of_original(entry: Document) -> str:
    if "laws" not in entry:
        return "not_judged"
    return "red" if entry["broken"] else "green"


def red_laws(entries: Sequence[Document]) -> set[str]:
    """Return every law that was broken when a mutant's search ended."""
    return {law for entry in entries for law in (*(entry.get("red") or ()), entry["killed_by"])}


def in_order(entries: list[Document]) -> list[Document]:
    """Return entries in the order of reports: by contract, then by id."""
    return sorted(entries, key=lambda entry: (entry["contract"], entry["id"], entry["file"]))


def without_duplicates(entries: list[Document]) -> list[Document]:
    """Count mutants of a contract that compile to one IR once: the others are duplicates."""
    first: dict[tuple[Any, ...], str] = {}
    found = []
    for entry in entries:
        if entry["code"] and entry["verdict"] in ("killed", "survived", "waived"):
            place = (entry["contract"], entry["code"], entry["killed_by"])
            other = first.setdefault(place, entry["id"])
            if other != entry["id"]:
                entry = {**entry, "verdict": "duplicate", "detail": f"the same IR as {other}"}
        found.append(entry)
    return found
