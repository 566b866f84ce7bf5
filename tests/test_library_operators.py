"""Launches inside operators registered with torch, in each way there is."""

from typing import Any

import torch
import triton
import triton.language as tl

from trivet.simulator.executors import Simulator

X = torch.arange(20, dtype=torch.float32)


@triton.jit
def copy(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)


def registered() -> tuple[Any, Any, Any]:
    """Return an operator of each way to register one, and the library that keeps the last."""

    @torch.library.custom_op("trivet_test::copy", mutates_args=())
    def custom(x: torch.Tensor) -> torch.Tensor:
        o = x.new_empty(x.shape)
        copy[(2,)](x, o, x.numel(), B=16)
        return o

    @torch.library.triton_op("trivet_test::wrapped", mutates_args={"o"})
    def wrapped(x: torch.Tensor, o: torch.Tensor) -> None:
        torch.library.wrap_triton(copy)[(2,)](x, o, x.numel(), B=16)

    library = torch.library.Library("trivet_test_old", "DEF")
    library.define("copy(Tensor x) -> Tensor")

    def implementation(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        copy[(1,)](x, o, 10, B=16)
        return o

    library.impl("copy", implementation, "CPU")
    return custom, wrapped, library


def test_library_operators() -> None:
    custom, wrapped, library = registered()

    def host() -> tuple[torch.Tensor, ...]:
        o = torch.empty_like(X)
        wrapped(X, o)
        return custom(X), o, torch.ops.trivet_test_old.copy(X)

    run = Simulator(shadow=True).run(host, {})
    assert run.error is None, run.error
    assert run.faults == []
    assert len(run.launches) == 3
    for output in run.outputs[:2]:
        assert torch.equal(output, X)
        assert run.initialised_of(output).all()
        assert (run.shadow_of(output) == X.numpy()).all()
    assert run.initialised_of(run.outputs[2]).sum() == 10
    del library
