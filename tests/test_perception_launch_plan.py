"""Kept sequences of launches: what is run again equals what would have been run."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from trivet.impl import _checks
from trivet.impl._perception.launch_plan import LaunchPlan
from trivet.impl.optimiser import adamw
from trivet.simulator.executors import Simulator


@triton.jit
def scale_kernel(x: tl.tensor, y: tl.tensor, n: int, factor: float, BLOCK: tl.constexpr) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place, mask=place < n) * factor, mask=place < n)


def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 4),)](x, y, x.numel(), factor, 4)
    return y


def simulated(work: Callable[[], Any]) -> Any:
    found = []
    run = Simulator(sanitize=False).run(lambda: found.append(work()), {})
    assert run.error is None, run.error
    return found[0]


def test_what_is_kept_reads_the_memory_anew() -> None:
    x, plan = torch.arange(6.0), LaunchPlan()

    def work() -> list[list[float]]:
        found = []
        for _ in range(3):
            found.append(plan.run((2.0,), lambda: scaled(x, 2.0)).tolist())
            x.add_(1)
        return found

    assert simulated(work) == [[2.0 * (n + turn) for n in range(6)] for turn in range(3)]
    assert plan.recordings == 1


@pytest.mark.parametrize(
    "values", [(2.0, 3.0, 2.0), (1, 1.0, True), (0.0, -0.0, 0.0), (None, "a", "b")]
)
def test_another_host_value_is_recorded_anew(values: tuple[Any, ...]) -> None:
    plan, calls = LaunchPlan(), []
    for value in values:
        for _ in range(2):
            plan.run((value, "same"), lambda value=value: calls.append(value))
    assert calls == list(values)
    assert plan.recordings == 3


def test_a_host_decision_is_not_frozen() -> None:
    """The step number of AdamW is a host value: from the second step on replays would be wrong."""
    gradients = [torch.full((5,), value) for value in (1.0, -2.0, 0.5)]

    def steps(plan: LaunchPlan | None) -> torch.Tensor:
        p, m, v, g = (torch.zeros(5) for _ in range(4))

        def step(t: int) -> None:
            adamw(p, g, m, v, 0.1, 0.9, 0.999, 1e-8, 0.0, t)

        for t, gradient in enumerate(gradients, 1):
            g.copy_(gradient)
            if plan is None:
                step(t)
            else:
                plan.run((t,), lambda t=t: step(t))
        return p

    eager, planned = simulated(lambda: steps(None)), simulated(lambda: steps(LaunchPlan()))
    assert torch.equal(eager, planned)


def test_torch_operations_between_the_launches_are_kept_too() -> None:
    x, plan = torch.arange(6.0), LaunchPlan()

    def sequence() -> tuple[torch.Tensor, torch.Tensor]:
        sums = torch.zeros(3)
        sums += scaled(x, 2.0).view(3, 2).sum(dim=1)
        ordered, _ = scaled(sums, 0.5).sort(descending=True)
        return sums, ordered

    def work() -> list[list[list[float]]]:
        found = []
        for _ in range(3):
            found.append([each.tolist() for each in plan.run((), sequence)])
            found.append([each.tolist() for each in sequence()])
            x.mul_(-3)
        return found

    found = simulated(work)
    assert plan.recordings == 1
    assert found[::2] == found[1::2]
    assert found[0] != found[2]


def test_backward_passes_are_kept() -> None:
    w, plan = torch.ones(4, requires_grad=True), LaunchPlan()
    x = torch.arange(4.0)

    def sequence() -> torch.Tensor:
        (gradient,) = torch.autograd.grad((w * x).square().sum(), w)
        return gradient

    for turn in range(1, 4):
        assert torch.equal(plan.run((), sequence), 2.0 * x * x)
        x.add_(turn)
    assert plan.recordings == 1


def test_launches_of_other_threads_are_not_kept() -> None:
    x, plan = torch.ones(4), LaunchPlan()
    other = torch.zeros(4)

    def bump() -> None:
        scale_kernel[(1,)](x, other, 4, 7.0, 4)

    def sequence() -> torch.Tensor:
        thread = threading.Thread(target=bump)
        thread.start()
        thread.join()
        return scaled(x, 2.0)

    def work() -> list[float]:
        plan.run((), sequence)
        other.zero_()
        plan.run((), sequence)
        return other.tolist()

    assert simulated(work) == [0.0] * 4


def test_a_sequence_that_fails_is_not_kept() -> None:
    plan = LaunchPlan()

    def failing() -> None:
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        plan.run((1,), failing)
    assert plan.run((1,), lambda: "done") == "done"
    assert plan.recordings == 1


def test_moved_tensors_can_be_told() -> None:
    plan = LaunchPlan()
    plan.run((1,), lambda: "first")
    plan.forget()
    assert plan.run((1,), lambda: "second") == "second"


def test_tensors_are_no_host_values() -> None:
    with pytest.raises(TypeError, match="numbers, text or None, got Tensor"):
        LaunchPlan().run((torch.ones(1),), lambda: None)


def test_no_value_is_read_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.tensor([[0, 0]], dtype=torch.int32)
    with pytest.raises(ValueError, match="table must name no channel twice"):
        _checks.disjoint("table", table, 2)
    monkeypatch.setattr(_checks, "captured", lambda _: True)
    _checks.disjoint("table", table, 2)
    _checks.finite_positive("tau", torch.tensor([-1.0]))
