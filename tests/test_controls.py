"""Controls: right kernels written differently; a law that forbids one is told as a false alarm."""

import io
from collections import defaultdict
from pathlib import Path

from rich.console import Console

from trivet.ci.document import Document, audit_document
from trivet.ci.report import print_controls
from trivet.faults._controls import KINDS, controls_of, judge_control, kept_laws
from trivet.properties._collect import find

CASE = '''
import torch, triton
import triton.language as tl
from trivet import Contract, Tensor, sizes

@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

def scale(x):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), 16)
    return y

case = Contract(
    kernel=scale, oracles=[lambda x: 2 * x], dims={"N": sizes(1, 40)}, args={"x": Tensor("N")}
)

@case.law
def has_few_warps(launches):
    """The kernel runs with the usual number of warps."""
    assert all(launch.options.get("num_warps", 4) == 4 for launch in launches), "8 warps"
'''


def test_a_law_that_a_right_rewrite_breaks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "test_case.py"
    path.write_text(CASE)
    [found] = find([str(path)])
    [controls] = controls_of([found])
    laws = kept_laws(found)
    assert laws is not None
    verdicts = {each.operator: judge_control(found, each, laws) for each in controls}

    assert len(verdicts) == KINDS
    red = {name: verdict.law for name, verdict in verdicts.items() if verdict.verdict == "red"}
    assert red == ({"warps_changed": "has_few_warps"} if "warps_changed" in verdicts else {})
    assert "warps_changed" in verdicts
    assert {v.verdict for name, v in verdicts.items() if name not in red} == {"green"}
    assert "8 warps" in (verdicts["warps_changed"].witness or "")
    assert path.read_text() == CASE


def test_every_shipped_family_and_example_is_written_in_six_other_ways() -> None:
    found = find()
    kinds = defaultdict(set)
    for item, controls in zip(found, controls_of(found), strict=True):
        assert controls, item.name
        kinds[item.name.rpartition(".")[0] or item.path.name] |= {c.operator for c in controls}

    assert {name: len(each) for name, each in kinds.items() if len(each) < 6} == {}


def test_a_red_control_fails_the_audit_and_shows_its_diff() -> None:
    killed: Document = {"verdict": "killed", "conventional": None}
    control = {"contract": "c", "rewrite": "warps_changed", "id": "a1", "law": "repeats"}
    control |= {"verdict": "red", "witness": "N = 3: 8 warps", "diff": "--- k.py", "detail": ""}

    assert audit_document({}, [], [killed], (), [control])["verdict"] == "red"
    assert audit_document({}, [], [killed], (), [{**control, "verdict": "waived"}])["verdict"] == (
        "green"
    )
    stream = io.StringIO()
    print_controls([control], Console(file=stream, width=200))
    assert "false alarm, or not the same kernel: c, warps_changed (a1)" in stream.getvalue()
    assert "repeats breaks on N = 3: 8 warps\n--- k.py" in stream.getvalue()
