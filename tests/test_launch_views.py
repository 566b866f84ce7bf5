"""Launches on views, aliases, broadcast and empty tensors, and on grids without programs."""

from collections.abc import Callable
from threading import Thread

import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator.executors import Run, Simulator


@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def strided(x, o, step, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i * step))


@triton.jit
def one(o):
    tl.store(o, 1.0)


X = torch.arange(16.0)


def run(host: Callable[[], object]) -> Run:
    found = Simulator().run(host, {})
    assert found.error is None, found.error
    return found


def kinds(found: Run) -> list[str]:
    return [fault.kind for fault in found.faults]


def test_a_view_ends_where_it_ends_though_the_storage_goes_on() -> None:
    def host() -> None:
        double[(1,)](torch.zeros(20)[3:10], torch.empty(10), 8, B=16)

    (fault,) = run(host).faults
    assert fault.kind == "out_of_bounds"
    assert "element 7 of x (7,)" in fault.text


@pytest.mark.parametrize(("step", "wanted"), [(0, []), (1, ["out_of_bounds"])])
def test_of_a_broadcast_tensor_one_element_is_there(step: int, wanted: list[str]) -> None:
    def host() -> torch.Tensor:
        o = torch.empty(16)
        strided[(1,)](torch.ones(1).expand(16), o, step, 16)
        return o

    assert kinds(run(host)) == wanted


@pytest.mark.parametrize(("start", "wanted"), [(0, []), (15, ["out_of_bounds"])])
def test_a_negative_step_reads_what_lies_before(start: int, wanted: list[str]) -> None:
    def host() -> torch.Tensor:
        o = torch.empty(16)
        whole = X.clone()
        # The pointer of a view may not leave it, that of the whole may go back to its start.
        strided[(1,)](whole[start:] if start else whole.flip(0), o, -1 if start else 1, 16)
        return o

    assert kinds(run(host)) == wanted


def test_in_place_is_no_conflict_and_a_shifted_alias_is_one() -> None:
    def in_place() -> torch.Tensor:
        y = X.clone()
        double[(2,)](y, y, 16, B=8)
        return y

    def shifted() -> None:
        y = torch.arange(17.0)
        double[(2,)](y[:16], y[1:], 16, B=8)

    found = run(in_place)
    assert kinds(found) == []
    assert torch.equal(found.outputs[0], X * 2)  # type: ignore[arg-type]
    assert kinds(run(shifted)) == ["race_read_write"]


@pytest.mark.parametrize("grid", [(0,), (3, 0), (1, 0, 1)])
def test_a_grid_without_programs_runs_none(grid: tuple[int, ...]) -> None:
    def host() -> torch.Tensor:
        o = torch.zeros(1)
        one[grid](o)
        return o

    assert run(host).outputs[0].tolist() == [0.0]  # type: ignore[attr-defined]


def test_of_an_empty_tensor_nothing_can_be_written() -> None:
    def masked() -> None:
        double[(1,)](torch.empty(0), torch.empty(0), 0, B=16)

    assert kinds(run(masked)) == []
    (fault,) = run(lambda: one[(1,)](torch.empty(0))).faults
    assert "element 0 of o (0,)" in fault.text


def test_the_largest_grid_of_an_axis_runs_and_the_next_is_refused() -> None:
    o = torch.zeros(1)
    assert run(lambda: one[(1, 1, 65535)](o)).launches[0].grid == (1, 1, 65535)
    for grid in ((1, 65536), (1, 1, 65536), (2**31,)):
        refused = Simulator().run(lambda grid=grid: one[grid](o), {})
        assert "exceeds (2147483647, 65535, 65535)" in str(refused.error)


def test_launches_of_many_threads_are_all_watched() -> None:
    def host() -> list[torch.Tensor]:
        outputs = [torch.empty(16) for _ in range(4)]
        threads = [Thread(target=double[(1,)], args=(X, o, 16, 16)) for o in outputs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outputs

    found = run(host)
    assert len(found.launches) == 4
    assert all(torch.equal(o, X * 2) for o in found.outputs)  # type: ignore[arg-type]


def test_a_broadcast_gradient_is_no_dense_one() -> None:
    @torch.library.triton_op("trivet_views::doubled", mutates_args={})
    def doubled(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        torch.library.wrap_triton(double)[(1,)](x, o, x.numel(), B=16)
        return o

    doubled.register_autograd(lambda ctx, g: doubled(g))

    def host(backward: Callable[[torch.Tensor], None]) -> torch.Tensor | None:
        x = X.clone().requires_grad_()
        backward(doubled(x))
        return x.grad

    right = run(lambda: host(lambda y: y.backward(torch.ones(16))))
    assert kinds(right) == []
    assert right.outputs[0].tolist() == [2.0] * 16  # type: ignore[attr-defined]
    assert kinds(run(lambda: host(lambda y: y.sum().backward()))) == ["out_of_bounds"]
