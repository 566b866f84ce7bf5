"""Documents of every kind of page, small and with everything a page can show."""

from pathlib import Path
from typing import Any

from trivet.ci.document import Document, audit_document, environment, gate_document

SOURCE = """import triton.language as tl


def kernel(x, y, n):
    i = tl.arange(0, 128)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * 2, mask=i < n)
"""
LONG = "out[1, 0] = nan, oracle 0: error nan > bound 1.406e-45 (exp at a_file_of_long_name.py:43)"


def gate(law: str, verdict: str, **rest: object) -> Document:
    """Return a gate's entry."""
    entry: Document = {
        **{"law": law, "dtype": "float32", "executor": "simulator", "verdict": verdict},
        **{"reason": None, "examples": 20, "elements": 120000, "launches": 20, "size_classes": {}},
        **{"discarded": 0, "rejected": 0, "undecided": 0, "margin": None, "seconds": 0.25},
        "failure": None,
    }
    return {**entry, **rest}


def gates() -> Document:
    """Return a gate's document with every verdict, a failure whose text is no HTML, and margins."""
    text = "softmax breaks stays_in_bounds\n" + "load at [300] <b>outside</b> of x " * 9
    first = [
        gate("matches_oracle", "green", margin=0.96),
        gate("stays_in_bounds", "red", failure={"text": text}),
        gate("repeats", "not_judged", reason="out of fuel"),
        gate("is_race_free", "elsewhere", reason="the gpu cannot judge it"),
        gate("gradients_match", "not_promised", reason="no backward " * 20),
    ]
    second = [gate("matches_oracle", "green", margin=0.1), gate("repeats", "green")]
    about = environment(executor="simulator", profile="quick", seed=0)
    return gate_document(about, [("softmax", first), ("a_contract_of_quite_a_long_name", second)])


def mutant(number: int, file: str, verdict: str, **rest: object) -> Document:
    """Return a mutant's entry."""
    diff = f"--- {file}\n+++ {file} (mask_dropped)\n@@ -6,1 +6,1 @@\n-    v = a < b\n+    v = a"
    entry: dict[str, Any] = {
        **{"id": f"{number:012x}", "contract": "softmax", "operator": "mask_dropped"},
        **{"file": file, "line": 5 + number % 3, "function": "kernel", "replacement": "x"},
        **{"diff": diff, "verdict": verdict, "killed_by": None, "witness": None, "detail": ""},
        **{"code": "", "conventional": None, "tests": None, "needs_device": False},
    }
    return {**entry, **rest}


def audit(folder: Path) -> Document:
    """Return an audit's document with every verdict; its file lies in ``folder``."""
    path = folder / "kernels.py"
    path.write_text(SOURCE)
    file = str(path)
    seconds = {"load": 0.02, "looks": 0.2}
    killed = {"killed_by": "stays_in_bounds", "witness": f"float32, N = 65: {LONG}"}
    killed |= {"seconds": seconds, "phase": "looks", "conventional": True}
    mutants = [
        mutant(0, file, "killed", tests=True, red=["stays_in_bounds"], **killed),
        mutant(1, file, "killed", tests=False, red=["stays_in_bounds", "repeats"], **killed),
        mutant(2, file, "survived", tests=False),
        mutant(3, "gone.py", "equivalent", detail="the same dataflow"),
        *(mutant(4 + n, file, verdict) for n, verdict in enumerate(("invalid", "duplicate"))),
        *(mutant(6 + n, file, verdict) for n, verdict in enumerate(("timeout", "crash"))),
        *(mutant(8 + n, file, verdict) for n, verdict in enumerate(("waived", "not_judged"))),
        mutant(10, file, "dead_lane"),
    ]
    fault: Document = {
        **{"name": "softmax.a_bug_that_was_made", "number": 7, "expected": ["repeats"]},
        **{"red": ["repeats", "matches_oracle"], "conventional": False, "verdict": "killed"},
        "detail": None,
    }
    control = {"id": "c1", "contract": "softmax", "rewrite": "warps_changed", "file": file}
    control |= {"line": 3, "diff": "-a\n+b", "law": None, "witness": None, "detail": ""}
    red = {"verdict": "red", "law": "repeats", "witness": "N = 3", "rewrite": "loop_reversed"}
    about = environment(executor="simulator", profile="quick", seed=0)
    document = audit_document(
        about, [fault], mutants, ["softmax: red"], [{**control, "verdict": "green"}, control | red]
    )
    document["tests"] = {"command": "pytest tests/test_x.py", "seconds": 1.0}
    return document
