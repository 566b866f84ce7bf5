"""Filters of the pages' templates: words, shares, thousands, lines of a diff."""

from collections.abc import Iterator


def words(name: object) -> str:
    """Return a name with spaces.

    >>> words("not_judged")
    'not judged'
    """
    return str(name).replace("_", " ")


def percent(share: float) -> str:
    """Return a share: whole numbers are whole, nothing short of all is 100%.

    >>> percent(1.0), percent(0.9996), percent(0.5)
    ('100%', '99.9%', '50.0%')
    """
    return "100%" if share == 1 else f"{int(share * 1000) / 10:.1f}%"


def thousands(count: int) -> str:
    """Return a count that people can read.

    >>> thousands(1234567)
    '1,234,567'
    """
    return f"{count:,}"


def diff_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a unified diff with what each is: place, plus, minus or same."""
    for line in text.splitlines():
        if line.startswith(("---", "+++", "@@")):
            yield "place", line
        else:
            yield {"+": "plus", "-": "minus"}.get(line[:1], "same"), line


FILTERS = {"words": words, "percent": percent, "thousands": thousands, "diff_lines": diff_lines}
