"""The README's table of an audit: `python -m trivet.ci.audit_table AUDIT.json` prints it.

With `--write` it also keeps the figures in docs/audit.json and puts the table into the README,
between the marks; a test holds the two together.
"""

import argparse
import json
from pathlib import Path

from trivet.ci.document import NOTICED, Document, write_text
from trivet.ci.page_parts import percent

FIGURES = Path("docs/audit.json")
README = Path("README.md")
START, END = "<!-- audit: begin -->\n", "<!-- audit: end -->\n"
_REAL = (*NOTICED, "survived", "waived")
_HEAD = (
    "| kernels | mutants | real ones | killed | conventional tests kill |\n"
    "| --- | --: | --: | --: | --: |\n"
)


def figures_of(document: Document) -> Document:
    """Return the figures of an audit: one row a family or example, versions, controls."""
    mutants = document["mutants"]
    names = dict.fromkeys(_family(mutant["contract"]) for mutant in mutants)
    rows = [_row(name, [m for m in mutants if _family(m["contract"]) == name]) for name in names]
    about = document["environment"]
    return {
        "versions": {name: about[name] for name in ("trivet", "torch", "triton")},
        "rows": rows,
        "controls": len(document["controls"]),
        "false_alarms": sum(control["verdict"] == "red" for control in document["controls"]),
    }


def _family(contract: str) -> str:
    name = contract.partition(" ")[0]
    return name.partition(".")[0]


def _row(name: str, mutants: list[Document]) -> Document:
    real = [mutant for mutant in mutants if mutant["verdict"] in _REAL]
    tried = [mutant["conventional"] for mutant in real if mutant["conventional"] is not None]
    return {
        "kernels": name,
        "mutants": len(mutants),
        "real": len(real),
        "killed": sum(mutant["verdict"] in NOTICED for mutant in real),
        "conventional_tried": len(tried),
        "conventional_killed": sum(tried),
    }


def table(figures: Document) -> str:
    """Return the figures as a Markdown table with a line on the controls."""
    rows = "".join(_line(row) for row in figures["rows"])
    versions = ", ".join(f"{name} {value}" for name, value in figures["versions"].items())
    alarms = figures["false_alarms"]
    told = (
        f"{figures['controls']} right rewrites of the same kernels were judged beside them: "
        f"{alarms or 'no'} false {'alarm' if alarms == 1 else 'alarms'}. ({versions})\n"
    )
    return f"{_HEAD}{rows}\n{told}"


def _line(row: Document) -> str:
    tried = row["conventional_tried"]
    other = _share(row["conventional_killed"], tried) if tried else "not tried"
    own = _share(row["killed"], row["real"]) if row["real"] else "none"
    return f"| {row['kernels']} | {row['mutants']} | {row['real']} | {own} | {other} |\n"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({percent(part / whole)})"


def with_table(readme: str, figures: Document) -> str:
    """Return the README's text with the table between its marks."""
    before, _, rest = readme.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{table(figures)}{END}{after}"


def main() -> None:
    """Print the table of an audit; with --write keep it."""
    parser = argparse.ArgumentParser(prog="python -m trivet.ci.audit_table", description=__doc__)
    parser.add_argument("audit", type=Path, help="what trivet audit --json wrote")
    parser.add_argument("--write", action="store_true", help="keep figures, change the README")
    asked = parser.parse_args()
    figures = figures_of(json.loads(asked.audit.read_text()))
    print(table(figures), end="")
    if asked.write:
        write_text(FIGURES, json.dumps(figures, indent=1) + "\n")
        write_text(README, with_table(README.read_text(), figures))


if __name__ == "__main__":
    main()
