"""A document as one self-contained HTML page."""

from importlib import resources
from typing import Any

from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError


def require_jinja() -> None:
    """Raise CannotJudgeError where jinja2 is missing: before the work, not after it."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise CannotJudgeError(
            "--html needs jinja2, which is not installed: pip install 'trivet[report]'"
        ) from None


def html(document: Document) -> str:
    """Return the page: verdict, environment, every gate with its margin, failures in full."""
    import jinja2

    source = resources.files("trivet.ci").joinpath("report.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        source
    )
    return template.render(document=document, counts=_counts(document))


def _counts(document: Document) -> dict[str, int]:
    entries: list[dict[str, Any]] = [
        gate for contract in document.get("contracts", []) for gate in contract["gates"]
    ] or document.get("faults", [])
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry["verdict"]] = counts.get(entry["verdict"], 0) + 1
    return counts
