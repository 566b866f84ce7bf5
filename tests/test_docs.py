"""The documents: what they show is what the repository holds."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_readmes_case_is_the_example() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    example = (ROOT / "examples/test_softmax.py").read_text().splitlines()
    shown = [line for line in block.splitlines() if not line.startswith("from mykernels")]

    assert [line for line in shown if line not in example] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)\)", prose)
    missing = [t for t in targets if ":" not in t and not (document.parent / t).exists()]

    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"`make ([a-z]+)`", document.read_text()))
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert targets <= known


def test_architecture_fits_on_a_screen_or_two() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 60
