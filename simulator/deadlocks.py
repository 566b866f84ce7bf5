"""A deadlock in words: who waits where, for which element, and who wrote it last."""

from __future__ import annotations

from collections.abc import Callable

from trivet.simulator.faults import Fault, Site
from trivet.simulator.scheduler import Awaited, Deadlock

Coordinates = Callable[[int], tuple[int, int, int]]
SiteOf = Callable[[int], Site]


def deadlock_fault(
    deadlock: Deadlock, kernel: str, site_of: SiteOf, coordinates: Coordinates
) -> Fault:
    """The fatal fault for a launch in which no program can go on.

    The other program and line are those of the last write to the awaited element, or of the
    place where its writer waits itself; else of another program that waits.
    """
    first = _told_first(deadlock)
    awaited = deadlock.waiting[first]
    place = site_of(awaited.site) if awaited else Site("unknown line", "", None)
    text = f"program {coordinates(first)} of {kernel} waits for ever{_where(awaited, site_of)}"
    other, other_site, reason = _counterpart(deadlock, first, site_of, coordinates)
    return Fault(
        kind="deadlock",
        kernel=kernel,
        argument=awaited.view.argument.name if awaited else "",
        index=awaited.view.describe(awaited.offset) if awaited else "",
        program=coordinates(first),
        other_program=None if other is None else coordinates(other),
        line=place.line,
        other_line=other_site.line if other_site else None,
        source=place.source,
        text=text + reason,
        lanes=len(deadlock.waiting),
    )


def _told_first(deadlock: Deadlock) -> int:
    """The first program that waits for one that waits, too; else the first that waits."""
    held = [
        program
        for program in deadlock.waiting
        if deadlock.writers.get(program, (program, 0))[0] in deadlock.waiting
        and program in deadlock.writers
    ]
    return min(held or deadlock.waiting)


def _counterpart(
    deadlock: Deadlock, first: int, site_of: SiteOf, coordinates: Coordinates
) -> tuple[int | None, Site | None, str]:
    writer = deadlock.writers.get(first)
    if writer is not None:
        number, site = writer
        place = site_of(site)
        who = "it" if number == first else f"program {coordinates(number)}"
        reason = f", which {who} wrote last at {place.phrase}"
        if number == first or number not in deadlock.waiting:
            return number, place, f"{reason}; nobody is left to write it"
        awaited = deadlock.waiting[number]
        own = site_of(awaited.site) if awaited else place
        return number, own, f"{reason} and which waits itself{_where(awaited, site_of)}"
    others = [program for program in deadlock.waiting if program != first]
    if not others:
        return None, None, ", which no program has written or will write"
    awaited = deadlock.waiting[others[0]]
    theirs = site_of(awaited.site) if awaited else None
    name = f"program {coordinates(others[0])}"
    return others[0], theirs, f", which nobody has written; {name} waits{_where(awaited, site_of)}"


def _where(awaited: Awaited | None, site_of: SiteOf) -> str:
    if awaited is None:
        return " in a loop that changes nothing"
    return f" at {site_of(awaited.site).phrase} for {awaited.view.describe(awaited.offset)}"
