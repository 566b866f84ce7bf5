"""Machine output version 1 and the reports made from it."""

import json
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from trivet.ci.document import (
    EXIT_STATUS,
    Document,
    audit_document,
    environment,
    gate_document,
    to_json,
    write_text,
)
from trivet.ci.html import html
from trivet.ci.junit import junit
from trivet.ci.report import print_faults, print_gates

TEXT = "softmax breaks stays_in_bounds at float32\n  load at [300] <outside> of x"


def gate(law: str, verdict: str, **rest: object) -> Document:
    entry: Document = {
        "law": law,
        "dtype": "float32",
        "executor": "simulator",
        "verdict": verdict,
        "reason": None,
        "examples": 20,
        "elements": 1200,
        "launches": 20,
        "size_classes": {"N": 6},
        "discarded": 0,
        "rejected": 0,
        "undecided": 0,
        "margin": None,
        "seconds": 0.25,
        "failure": None,
    }
    return {**entry, **rest}


def fault(name: str, verdict: str, **rest: object) -> Document:
    entry: Document = {
        "name": name,
        "number": 7,
        "expected": ["stays_in_bounds"],
        "red": ["stays_in_bounds"],
        "conventional": False,
        "verdict": verdict,
        "detail": None,
    }
    return {**entry, **rest}


def document(*gates: Document) -> Document:
    about = environment(executor="simulator", profile="quick", seed=0)
    return gate_document(about, [("softmax", list(gates))])


MIXED = document(
    gate("matches_oracle", "green", margin=0.96),
    gate("stays_in_bounds", "red", failure={"text": TEXT}, margin=None),
    gate("offsets_fit", "not_promised", reason="no production size"),
    gate("is_race_free", "elsewhere", reason="the gpu cannot judge it"),
    gate("repeats", "not_judged", reason="out of fuel"),
)


def printed(what: Document) -> str:
    stream = StringIO()
    print_gates(what, Console(file=stream, width=160))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("verdicts", "overall", "status"),
    [
        (("green", "elsewhere", "not_promised"), "green", 0),
        (("green", "not_judged"), "not_judged", 2),
        (("green", "not_judged", "red"), "red", 1),
        (("elsewhere", "not_promised"), "not_judged", 2),
        ((), "not_judged", 2),
    ],
)
def test_the_exit_status_follows_the_verdicts(
    verdicts: tuple[str, ...], overall: str, status: int
) -> None:
    found = document(*(gate("matches_oracle", verdict) for verdict in verdicts))["verdict"]

    assert found == overall
    assert EXIT_STATUS[found] == status


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (("killed", "killed"), "green"),
        (("killed", "survived"), "red"),
        (("killed", "wrong_law"), "red"),
        (("killed", "not_judged"), "not_judged"),
        ((), "not_judged"),
    ],
)
def test_an_audit_is_green_when_every_fault_is_killed(
    verdicts: tuple[str, ...], overall: str
) -> None:
    assert audit_document({}, [fault("f", verdict) for verdict in verdicts])["verdict"] == overall


def test_machine_output_has_exactly_the_keys_of_version_1() -> None:
    found = json.loads(to_json(MIXED))

    assert list(found) == ["version", "verdict", "environment", "contracts"]
    assert found["version"] == 1
    assert list(found["environment"]) == [
        *("trivet", "python", "torch", "triton", "executor", "arithmetic"),
        *("profile", "seed", "fp_fusion"),
    ]
    assert list(found["contracts"][0]) == ["name", "gates"]


def test_machine_output_is_strict_json_whatever_the_numbers() -> None:
    text = to_json(document(gate("matches_oracle", "red", margin=float("nan"))))

    assert json.loads(text)["contracts"][0]["gates"][0]["margin"] == "nan"


def test_the_table_shows_margins_reasons_and_failures_in_full() -> None:
    text = printed(MIXED)

    row = next(line for line in text.splitlines() if line.startswith("softmax"))
    assert row.split() == [
        *("softmax", "float32", "1", "1", "1", "1", "1"),
        *("20", "0.96", "1.2", "matches_oracle"),
    ]
    assert "  offsets_fit: no production size (softmax[float32])\n" in text
    assert "  repeats: out of fuel (softmax[float32])\n" in text
    assert f"\n{TEXT}\n" in text
    assert text.endswith(
        "red: 5 gates: 1 green, 1 red, 1 not_judged, 1 elsewhere, 1 not_promised\n"
    )


def test_a_reason_that_laws_share_is_printed_once() -> None:
    laws = ("matches_oracle", "repeats", "does_work", "ignores_layout", "handles_empty")
    text = printed(document(*(gate(law, "not_judged", reason="no GPU") for law in laws)))

    assert "  matches_oracle, repeats, does_work and 2 more: no GPU (softmax[float32])\n" in text


def test_vacuous_gates_are_told_once() -> None:
    reason = "vacuous: the kernel launched nothing"
    failure = {"text": f"softmax breaks it\n  {reason}"}
    laws = ("matches_oracle", "repeats")
    text = printed(document(*(gate(law, "red", reason=reason, failure=failure) for law in laws)))

    assert f"\nred\n  matches_oracle, repeats: {reason} (softmax[float32])\n" in text
    assert "softmax breaks it" not in text


def test_the_fault_table_names_what_was_not_killed_and_what_is_unproved() -> None:
    faults = [
        fault("softmax.mask", "killed", red=["repeats", "stays_in_bounds", "matches_oracle"]),
        fault("softmax.stale", "survived", red=[], conventional=None, detail="all gates green"),
    ]
    stream = StringIO()
    print_faults(audit_document({}, faults), {"repeats"}, Console(file=stream, width=160))

    text = stream.getvalue()
    assert text.splitlines()[1].split() == [
        *("softmax.mask", "7", "killed", "stays_in_bounds"),
        *("as", "expected,", "2", "more", "pass"),
    ]
    assert "softmax.stale: all gates green" in text
    assert "unproved here (no fault turned them red): repeats" in text
    assert text.endswith("red: 1 of 2 faults killed\n")


def test_junit_tells_red_from_not_judged_from_not_promised() -> None:
    suite = ElementTree.fromstring(junit(MIXED))[0]

    counts = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}
    failure = suite.find("testcase[@name='stays_in_bounds[float32]']/failure")
    assert failure is not None
    assert failure.text == TEXT


def test_junit_drops_what_xml_cannot_hold() -> None:
    failure = {"text": "got \x00\x1b[31m NaN"}
    text = junit(document(gate("matches_oracle", "red", failure=failure)))

    assert ElementTree.fromstring(text).findtext(".//failure") == "got [31m NaN"


def test_junit_holds_faults() -> None:
    text = junit(audit_document({}, [fault("a", "killed"), fault("b", "wrong_law")]))

    suite = ElementTree.fromstring(text)[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_the_page_is_self_contained_and_escapes_what_it_shows() -> None:
    page = html(MIXED)

    assert "load at [300] &lt;outside&gt; of x" in page
    assert "http:" not in page
    assert "https:" not in page
    assert "0.96" in page
    assert "no production size" in page


def test_the_page_of_an_audit_shows_the_conventional_column() -> None:
    page = html(audit_document({}, [fault("softmax.mask", "killed")]))

    assert 'data-label="conventional tests">pass</td>' in page
    assert "softmax.mask" in page


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "reports" / "gate.json"
    write_text(target, "one")
    with pytest.raises(UnicodeEncodeError):
        write_text(target, "\ud800")

    assert target.read_text() == "one"
    assert [path.name for path in target.parent.iterdir()] == ["gate.json"]


def test_junit_holds_controls() -> None:
    control = {"contract": "c", "rewrite": "loop_reversed", "file": "k.py", "line": 3, "id": "a1"}
    control |= {"law": "repeats", "witness": "N = 3", "diff": "-a\n+b", "detail": ""}
    judged = [{**control, "verdict": verdict} for verdict in ("red", "green", "invalid")]
    text = junit(audit_document({}, [], [], (), judged))

    suite = ElementTree.fromstring(text)[-1]
    assert (suite.get("name"), suite.get("failures"), suite.get("skipped")) == (
        "controls",
        "1",
        "1",
    )
    assert suite[0].find("failure").get("message") == "repeats breaks on N = 3"
