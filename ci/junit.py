"""A document as JUnit XML, which CI servers read."""

from typing import Any
from xml.etree import ElementTree

from trivet.ci.document import Document


def junit(document: Document) -> str:
    """Return JUnit XML: one suite per contract, or one each for faults, mutants and controls.

    Red is a failure, not_judged an error, elsewhere and not_promised are skipped with the reason.
    """
    root = ElementTree.Element("testsuites", name="trivet")
    if "contracts" in document:
        for contract in document["contracts"]:
            cases = [_gate_case(contract["name"], gate) for gate in contract["gates"]]
            _add_suite(root, contract["name"], cases)
    else:
        _add_suite(root, "faults", [_fault_case(fault) for fault in document["faults"]])
        if document["mutants"]:
            _add_suite(root, "mutants", [_mutant_case(mutant) for mutant in document["mutants"]])
        if document["controls"]:
            _add_suite(root, "controls", [_control_case(each) for each in document["controls"]])
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_suite(root: ElementTree.Element, name: str, cases: list[ElementTree.Element]) -> None:
    def count(tag: str) -> str:
        return str(sum(case.find(tag) is not None for case in cases))

    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=count("failure"),
        errors=count("error"),
        skipped=count("skipped"),
    )
    suite.extend(cases)


def _gate_case(contract: str, gate: dict[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=contract,
        name=f"{gate['law']}[{gate['dtype']}]",
        time=f"{gate['seconds']:.3f}",
    )
    reason = gate["reason"] or ""
    if gate["verdict"] == "red":
        text = gate["failure"]["text"] if gate["failure"] else reason
        ElementTree.SubElement(case, "failure", message=_first_line(text)).text = _legal(text)
    elif gate["verdict"] == "not_judged":
        ElementTree.SubElement(case, "error", message=_legal(f"not judged: {reason}"))
    elif gate["verdict"] in ("elsewhere", "not_promised"):
        ElementTree.SubElement(case, "skipped", message=_legal(f"{gate['verdict']}: {reason}"))
    return case


def _fault_case(fault: dict[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="faults", name=fault["name"])
    if fault["verdict"] in ("survived", "wrong_law"):
        message = f"{fault['verdict']}: expected {fault['expected']}, red {fault['red']}"
        ElementTree.SubElement(case, "failure", message=_legal(message))
    elif fault["verdict"] != "killed":
        ElementTree.SubElement(case, "error", message=_legal(fault.get("detail") or "not judged"))
    return case


def _mutant_case(mutant: dict[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=mutant["contract"],
        name=f"{mutant['operator']} {mutant['file']}:{mutant['line']} {mutant['id']}",
    )
    reason = _legal(f"{mutant['verdict']}: {mutant['detail']}")
    if mutant["verdict"] == "survived":
        ElementTree.SubElement(case, "failure", message="survived").text = _legal(mutant["diff"])
    elif mutant["verdict"] == "not_judged":
        ElementTree.SubElement(case, "error", message=reason)
    elif mutant["verdict"] not in ("killed", "timeout", "crash"):
        ElementTree.SubElement(case, "skipped", message=reason)
    return case


def _control_case(control: dict[str, Any]) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=control["contract"],
        name=f"{control['rewrite']} {control['file']}:{control['line']} {control['id']}",
    )
    if control["verdict"] == "red":
        message = _legal(f"{control['law']} breaks on {control['witness']}")
        ElementTree.SubElement(case, "failure", message=message).text = _legal(control["diff"])
    elif control["verdict"] == "not_judged":
        ElementTree.SubElement(case, "error", message=_legal(control["detail"]))
    elif control["verdict"] != "green":
        reason = f"{control['verdict']}: {control['detail']}"
        ElementTree.SubElement(case, "skipped", message=_legal(reason))
    return case


def _first_line(text: str) -> str:
    return _legal(text.strip().splitlines()[0]) if text.strip() else ""


def _legal(text: str) -> str:
    """Drop the control characters that XML 1.0 cannot hold."""
    return "".join(c for c in text if c in "\t\n\r" or ord(c) >= 32)
