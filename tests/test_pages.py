"""The HTML pages, in text and in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import pages
from tests.browser import MISSING, Page, chromium, opened_browser

from trivet.ci.html import html
from trivet.ci.page_parts import percent

WIDE, NARROW = 1200, 375


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"gate": pages.gates(), "audit": pages.audit(folder)}
    for name, document in made.items():
        (folder / f"{name}.html").write_text(html(document), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    with opened_browser(program) as found:
        yield found


@pytest.mark.parametrize("name", ["gate", "audit"])
def test_a_page_needs_nothing_but_itself(files: dict[str, Path], name: str) -> None:
    text = files[name].read_text()

    assert not re.search(r"""(src|href)=|url\(|@import|https?://""", text)
    assert "Content-Security-Policy" in text


def test_text_of_a_kernel_is_no_html(files: dict[str, Path]) -> None:
    assert "&lt;b&gt;outside&lt;/b&gt;" in files["gate"].read_text()


def test_survivors_come_before_everything_else_of_the_mutants(files: dict[str, Path]) -> None:
    text = files["audit"].read_text()
    titles = re.findall(r"<h2>(.*?)</h2>", text)

    assert titles == [
        "What other tests see",
        "Survivors",
        "Not judged",
        "Waived",
        "Only trivet saw these",
        "Past bugs",
        "Controls",
        "Which law kills where",
        "Laws",
        "Cost",
        "Source with its mutants",
    ]
    assert "v = tl.load(x + i, mask=i &lt; n)" in text
    assert "(this file was not there when the page was made)" in text
    assert (
        "Never alone, another law was red on the same inputs each time: matches_oracle, repeats."
        in (text)
    )


def test_nothing_short_of_all_is_a_hundred_percent() -> None:
    assert (percent(1), percent(0.9999), percent(0)) == ("100%", "99.9%", "0.0%")


@pytest.mark.parametrize("name", ["gate", "audit"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_page_fits_its_window_and_complains_of_nothing(
    files: dict[str, Path], page: Page, name: str, width: int
) -> None:
    page.open(files[name], width, 800)
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

    assert page.run("document.documentElement.scrollWidth") <= width
    small = "[...document.querySelectorAll('td, p, h3, li')].filter((e) => e.offsetWidth > 0 &&"
    assert page.run(f"{small} parseFloat(getComputedStyle(e).fontSize) < 11).length") == 0
    assert page.complaints == []
    assert {request for request in page.requests if not request.startswith("file:")} == set()


def shown(page: Page) -> set[str]:
    found = page.run(
        "[...document.querySelectorAll('[data-verdict]')]"
        ".filter((each) => !each.closest('[hidden]')).map((each) => each.dataset.verdict)"
    )
    return set(found)


def ask(page: Page, words: str = "", verdict: str = "") -> str:
    """Fill the filter as a person does and return what it says."""
    page.run(
        "(() => { const form = document.querySelector('.filters form');"
        " form.reset();"
        f" form.elements.namedItem('words').value = {words!r};"
        f" const box = form.querySelector('[value=\"{verdict}\"]'); if (box) box.click();"
        " form.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    return str(page.run("document.querySelector('.shown').textContent"))


def test_filters_narrow_an_audit(files: dict[str, Path], page: Page) -> None:
    page.open(files["audit"], WIDE, 800)

    assert ask(page) == "12 entries"
    assert ask(page, verdict="survived") == "1 of 12 shown"
    assert shown(page) == {"survived"}
    assert ask(page, words="stays_in_bounds 000000000001") == "1 of 12 shown"
    assert ask(page, words="nothing is called so") == "0 of 12 shown"
    assert shown(page) == set()
    assert ask(page) == "12 entries"
    assert len(shown(page)) > 5


def test_filters_narrow_a_gate_and_open_what_they_leave(files: dict[str, Path], page: Page) -> None:
    page.open(files["gate"], NARROW, 800)

    assert ask(page, words="quite_a_long") == "2 of 8 shown"
    assert page.run("document.querySelectorAll('details.contract:not([hidden])[open]').length") == 1
    assert ask(page, verdict="red") == "1 of 8 shown"
    assert shown(page) == {"red"}
