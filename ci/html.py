"""A document as one self-contained HTML page: no script, style, font or picture from elsewhere."""

from importlib import resources
from typing import Any

from trivet.ci.bench_page import bench_section, bench_template
from trivet.ci.document import Document
from trivet.ci.errors import CannotJudgeError
from trivet.ci.page_audit import audit_view
from trivet.ci.page_gate import gate_view
from trivet.ci.page_parts import FILTERS


def require_jinja() -> None:
    """Raise CannotJudgeError where jinja2 is missing: before the work, not after it."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise CannotJudgeError(
            "--html needs jinja2, which is not installed: pip install 'trivet[report]'"
        ) from None


def html(document: Document) -> str:
    """Return the page of a gate, an audit or a bench: what is wrong first, then everything."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template),
    )
    environment.filters.update(FILTERS)
    parts: Any = environment.get_template("parts.html").module
    environment.globals.update(
        {name: getattr(parts, name) for name in ("word", "card", "stack", "bar", "diff", "mutant")}
    )
    return environment.get_template("page.html").render(
        document=document,
        style=Markup(_text("style.css")),
        script=Markup(_text("page.js")),
        **_views(document),
    )


def _views(document: Document) -> dict[str, Any]:
    if "contracts" in document:
        return {"view": gate_view(document)}
    if "entries" in document:
        section = bench_section(document)
        summary = ", ".join(f"{n} {verdict}" for verdict, n in section["counts"].items())
        return {"view": {"kind": "bench", "summary": summary, "verdicts": {}}, "bench": section}
    return {"view": audit_view(document)}


def _template(name: str) -> str:
    return bench_template() if name == "bench.html" else _text(name)


def _text(name: str) -> str:
    return resources.files("trivet.ci.pages").joinpath(name).read_text(encoding="utf-8")
