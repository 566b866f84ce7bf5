"""`make power` in the small: its JSON, no false alarm, and a wrong kernel that it must flag."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from trivet.ci import power
from trivet.ci._power.adamw import AdamW
from trivet.ci._power.cell import Cell
from trivet.ci._power.dots import Dot
from trivet.ci._power.gates import contract_of, examples
from trivet.ci._power.gradients import CellGradients
from trivet.ci._power.layer_norm import LayerNorm
from trivet.ci._power.measure import ANY, DEPTH, GATE, Share, measure
from trivet.ci._power.narrow import Narrow
from trivet.ci._power.report import as_text, false_alarms, losses
from trivet.ci._power.scan import Scan
from trivet.ci._power.softmax import Softmax
from trivet.ci._power.suite import SUITE, workload_named
from trivet.ci._power.workload import Output
from trivet.ci._rivals import RULES, Results
from trivet.properties._cases import build
from trivet.properties._generate import Generator
from trivet.properties._profiles import profile_of

# One gate, and cases by the fourth part of what stands here.
FEW = 0.25
SMALL = {
    "dot": lambda: Dot(64, cases=48, batches=1),
    "softmax": lambda: Softmax(150, cases=12, batches=1),
    "layer norm": lambda: LayerNorm(96, cases=12, batches=1),
    "cell": lambda: Cell(3, cases=16, batches=1),
    "expm1": lambda: Cell(2, cases=24, batches=1, exact_fresh=True),
    "scan": lambda: Scan(cases=8, batches=1),
    "adamw": lambda: AdamW(cases=40, batches=1),
    "gradients": lambda: CellGradients(cases=8, batches=1),
    "bf16 softmax": lambda: Narrow(Softmax(150, cases=12, batches=1)),
    "bf16 dot": lambda: Narrow(Dot(64, cases=32, batches=1)),
}


@pytest.mark.parametrize("name", SMALL)
def test_right_kernels_are_never_refused_and_each_fault_is_tried(name):
    found = measure(SMALL[name](), seed=3, share=FEW)
    assert found.cases > 0
    assert found.places == {}
    assert false_alarms([found]) == 0
    assert found.undecided < 0.001 * found.elements
    assert {inputs for _, inputs in found.seen} == {"normal", "mix", GATE}
    for seen in found.seen.values():
        assert set(seen) == {"visible", *found.alarms}
        assert len({share.cases for share in seen.values()}) == 1, "the same cases for all"
        assert seen[ANY].refused <= seen[DEPTH].refused, "depth only narrows"


class Wrong(Dot):
    """A dot product that claims to be right and loses its last term in one kernel."""

    def others(self, arguments: dict[str, np.ndarray]) -> Iterator[Output]:
        yield Output("planted", (arguments["a"] * arguments["b"])[..., :-1].sum(-1))


def test_a_planted_wrong_kernel_is_flagged():
    found = measure(Wrong(64, cases=24, batches=1), share=FEW)
    assert {name for name, _, _ in found.places} == {"planted"}
    assert false_alarms([found]) > 0
    assert power.lost([found])
    assert "FALSE ALARM ('planted'" in as_text([found])


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("dot", "x(1+1e-5)"),
        ("bf16 dot", "x(1+1e-5)"),
        ("expm1", "1-exp(-x) for -expm1(-x)"),
    ],
)
def test_weak_spots_are_closed_by_what_gates_draw(name, fault):
    seen = measure(SMALL[name](), seed=7, share=FEW).seen[fault, GATE]
    assert seen[ANY].rate == seen[DEPTH].rate == 1.0


def test_the_examples_are_those_that_gates_draw():
    workload = SMALL["bf16 dot"]()
    found = list(examples(workload, seed=4))
    drawn = Generator(contract_of(workload), "bfloat16", 4, profile_of("quick"))
    own = list(drawn.own_cases("exact_on_integers"))
    assert len(found) == len(list(drawn.planned())) + len(own)
    assert {case.label for case in own} == {"integers", "ties"}
    last = build(contract_of(workload), own[-1], "bfloat16").arrays
    for name in "ab":
        assert (found[-1][name][0] == last[name]).all()


def test_a_cell_where_a_bearable_rival_sees_more_is_a_loss():
    found = measure(SMALL["dot"](), share=FEW)
    found.alarms["fla"] = Share(0, 1000)
    cell = found.seen["x(1+1e-5)", "normal"]
    cell["fla"], cell[DEPTH] = Share(9, 10), Share(8, 10)
    assert found.seen["x(1+1e-5)", GATE][DEPTH].rate == 1.0
    assert not losses([found])
    assert not power.lost([found])
    text = as_text([found])
    assert "Losses: none." in text
    assert "Closed by gates: dot n=64, x(1+1e-5), normal inputs: fla sees 90.00%, we see" in text
    found.seen["x(1+1e-5)", GATE][DEPTH] = Share(5, 6)
    assert [(loss.column, loss.gate) for loss in losses([found])] == [("fla", 5 / 6)]
    assert "LOSS dot n=64, x(1+1e-5), normal inputs: fla sees 90.00%, we see" in as_text([found])
    assert power.lost([found])
    found.alarms["fla"] = Share(1, 1000)
    assert not losses([found]), "whoever cries wolf is no rival"


def test_the_command_prints_json(capsys):
    arguments = ["--json", "--share", "0.02", "--jobs", "1", "--workload", "dot n=64"]
    status = power.main(arguments)
    printed = json.loads(capsys.readouterr().out)
    assert status == int(bool(printed["losses"]))
    assert printed["false_alarms"] == 0
    assert printed["cases"] == sum(row["cases"] for row in printed["alarms"]) > 0
    assert isinstance(printed["losses"], list)
    assert set(printed["rules"]) == set(RULES)
    (row,) = printed["alarms"]
    assert row["workload"] == "dot n=64"
    assert {"torch", "liger", "fla", "calc_diff", "flash 2x", ANY, DEPTH} == set(row["columns"])
    assert all(row["cases"] >= max(row["seen"].values()) for row in printed["detection"])


def test_the_suite_has_every_workload():
    names = [make().name for make in SUITE]
    assert len(names) == len(set(names))
    assert {"dot n=4096", "bf16 layernorm n=768", "cfc step gradients"} < set(names)
    assert workload_named("adamw step").name == "adamw step"
    with pytest.raises(ValueError, match="known: softmax n=1000"):
        workload_named("gemm")


@pytest.mark.parametrize("rule", RULES)
def test_rivals_refuse_what_is_far_and_keep_what_is_equal(rule):
    expected = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    wide = expected.astype(np.float64)
    actual = wide.copy()
    actual[1] += 0.5
    actual[2, 0] = np.nan
    refused = RULES[rule].refuses(Results(actual, wide, wide, "float32"))
    assert refused.tolist() == [False, True, True]
    assert RULES[rule].source.count("/") >= 2
