"""Executors: what a run records, and that an executor's failure is never a rejection."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator import session
from trivet.simulator.executors import KernelFailure, Run, Simulator, executor_named
from trivet.simulator.gpu import NoGpuError
from trivet.simulator.host import HostWatch
from trivet.simulator.interpreter import Interpreter
from trivet.simulator.sources import Source, SourceError, parse_source, source_of


@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def endless(x):
    while tl.load(x) >= 0:
        tl.store(x, tl.load(x) + 1)


@triton.jit
def unknown(x, n):
    tl.store(x, undefined_name)  # noqa: F821


@triton.autotune(configs=[triton.Config({"B": b}) for b in (8, 16, 32)], key=["n"])
@triton.jit
def tuned(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


X = torch.arange(40, dtype=torch.float32)


def doubled(x: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 16),)](x, o, x.numel(), B=16)
    return o


def tuned_twice(x: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, o, x.numel())
    return o


def in_place(x: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    double[(3,)](x, o, x.numel(), B=16)
    return o[2:]


def refusing(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("x must have two dims")


def crashing(x: torch.Tensor) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def broken_in_interpreter(x: torch.Tensor) -> None:
    unknown[(1,)](x, 4)


def printing(x: torch.Tensor) -> torch.Tensor:
    print("to standard output")
    return doubled(x)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


def test_what_a_run_records() -> None:
    run = Simulator().run(doubled, {"x": X})
    assert run.error is None
    assert isinstance(run.outputs[0], torch.Tensor)
    assert torch.equal(run.outputs[0], X * 2)
    assert run.traffic["programs"] == 3
    assert run.traffic["elements"] == run.elements >= 80
    assert (run.rejected, run.configurations) == (False, 1)


@pytest.mark.parametrize(
    ("value", "outputs"),
    [(None, ()), (3, (3,)), ((1, None), (1, None)), ([1], (1,)), ({"a": 1, "b": 2}, (1, 2))],
)
def test_outputs_are_a_tuple(value: object, outputs: tuple[object, ...]) -> None:
    assert Simulator().run(lambda: value, {}).outputs == outputs


def test_a_refusal_is_a_rejection() -> None:
    run = Simulator().run(refusing, {"x": X})
    assert run.rejected
    assert str(run.error) == "x must have two dims"


def test_an_exit_is_recorded_and_an_interrupt_is_not() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert Simulator().run(lambda: sys.exit(3), {}).rejected
    with pytest.raises(KeyboardInterrupt):
        Simulator().run(interrupted, {})


def plain_endless(x: torch.Tensor) -> torch.Tensor:
    endless[(1,)](x)
    return x


def swallowing(x: torch.Tensor) -> torch.Tensor:
    try:
        endless[(1,)](x)
    except Exception:
        return x.clone()
    return x


def translating(x: torch.Tensor) -> torch.Tensor:
    try:
        endless[(1,)](x)
    except Exception as error:
        raise ValueError("unsupported shape") from error
    return x


@pytest.mark.parametrize("host", [plain_endless, swallowing, translating])
def test_a_fatal_fault_is_never_a_rejection(host: Callable[..., object]) -> None:
    run = Simulator(fuel=2000).run(host, {"x": torch.ones(1)})
    assert run.failed is not None
    assert (run.failed.kind, run.failed.fatal) == ("fuel", True)
    assert isinstance(run.error, KernelFailure)
    assert run.error.fault is run.failed
    assert run.failed in run.faults
    assert not run.rejected


@pytest.mark.parametrize("host", [doubled, swallowing])
def test_a_bug_of_the_machine_is_never_a_rejection(
    host: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def launch(self, *arguments: object) -> None:
            raise IndexError("index 40 is out of bounds")

    monkeypatch.setattr(session, "_machine", lambda *_: Broken())
    run = Simulator().run(host, {"x": X})
    assert run.failed is not None
    assert run.failed.kind == "unsupported"
    assert "IndexError: index 40 is out of bounds" in run.failed.text
    assert isinstance(run.error, KernelFailure)
    assert not run.rejected


def test_a_bug_of_the_watch_is_never_a_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("no such storage")

    monkeypatch.setattr(HostWatch, "_check", broken)
    run = Simulator().run(lambda: torch.empty(3) + 1, {})
    assert not run.rejected
    assert run.failed is not None
    assert "KeyError" in run.failed.text


def test_an_error_of_torch_is_a_rejection() -> None:
    assert Simulator(shadow=True).run(lambda: torch.empty(3) @ torch.zeros(4, 4), {}).rejected


def test_a_kernel_that_does_not_compile_is_no_rejection() -> None:
    def swallowed(x: torch.Tensor) -> torch.Tensor:
        try:
            unknown[(1,)](x, 4)
        except Exception:
            return x
        return x

    run = Simulator().run(broken_in_interpreter, {"x": X})
    assert type(run.error).__name__ == "CompilationError"
    assert not run.rejected
    run = Simulator().run(swallowed, {"x": X})
    assert run.error is None
    assert type(run.launch_error).__name__ == "CompilationError"


def test_faults_that_are_not_fatal_let_the_run_go_on() -> None:
    def beyond(x: torch.Tensor) -> torch.Tensor:
        o = torch.zeros(40)
        double[(3,)](x, o, 48, B=16)
        return o

    run = Simulator().run(beyond, {"x": X})
    assert run.error is None
    assert {fault.kind for fault in run.faults} == {"out_of_bounds"}
    assert torch.equal(run.outputs[0], X * 2)


def test_the_whole_storage_may_be_legal() -> None:
    base = torch.arange(48, dtype=torch.float32)

    def beyond(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty(48)
        double[(3,)](x, o, 48, B=16)
        return o

    assert Simulator().run(beyond, {"x": base[:40]}).faults
    assert not Simulator().run(beyond, {"x": base[:40]}, whole_storage=["x"]).faults


def test_variants_and_names() -> None:
    first = Simulator(shadow=True, configuration=2)
    assert first.variant(order="reverse") == Simulator(configuration=2, order="reverse")
    assert executor_named("simulator", poison="zero") == Simulator(poison="zero")
    with pytest.raises(ValueError, match="expected simulator, interpreter, compile or gpu"):
        executor_named("tpu")
    with pytest.raises(ValueError, match="arithmetic 'exact'"):
        Simulator(arithmetic="exact")


@triton.jit
def mark_rows(o, stride, B: tl.constexpr):
    i = tl.program_id(0) * stride + tl.arange(0, B)
    tl.store(o + i, 1)


def test_chosen_programs_at_production_size() -> None:
    """Rows beyond element 2^31: the offset of the last program does not fit 32 bits."""
    rows, width = 2**15 + 1, 2**16

    def host(limit: int) -> torch.Tensor:
        o = torch.empty(rows, width, dtype=torch.int8)
        mark_rows[(limit,)](o, width, B=16)
        return o[: limit : limit - 1, :2].clone()

    lean = Simulator(programs=4)
    run = lean.run(host, {"limit": rows - 1})
    assert run.error is None, run.error
    assert run.faults == []
    assert run.traffic["programs"] <= 6
    assert run.outputs[0].tolist() == [[1, 1], [1, 1]]
    run = lean.run(host, {"limit": rows})
    assert {fault.kind for fault in run.faults} == {"int_wrap", "out_of_bounds"}


def test_orders_chunks_and_configurations_agree() -> None:
    runs = [
        Simulator(order=order, chunk=chunk, configuration=configuration)
        for order in ("forward", "reverse", "shuffled", "halves")
        for chunk, configuration in ((None, 0), (1, 1), (2, 2))
    ]
    for simulator in runs:
        run = simulator.run(tuned_twice, {"x": X})
        assert run.error is None
        assert run.configurations == 3
        assert torch.equal(run.outputs[0], X * 2)


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return Interpreter(timeout=60)


def test_interpreter_agrees(interpreter: Interpreter) -> None:
    for host in (doubled, tuned_twice, printing):
        run = interpreter.run(host, {"x": X})
        assert run.error is None, run.error
        assert torch.equal(run.outputs[0], X * 2)
        assert len(run.launches) == 1
    assert "TRITON_INTERPRET" not in os.environ


def test_interpreter_writes_arguments_in_place(interpreter: Interpreter) -> None:
    base = torch.zeros(8, 10).t()
    o = base[:, 1:6].t().reshape(-1)
    o = torch.zeros(60)[10:50]
    run = interpreter.run(in_place, {"x": X, "o": o})
    assert run.error is None, run.error
    assert torch.equal(o, X * 2)
    out = run.outputs[0]
    assert isinstance(out, torch.Tensor)
    assert out.untyped_storage().data_ptr() == o.untyped_storage().data_ptr()
    assert run.initialised_of(out).all()


def test_interpreter_keeps_dtypes_and_refusals(interpreter: Interpreter) -> None:
    run = interpreter.run(doubled, {"x": X.to(torch.float16)})
    assert isinstance(run.outputs[0], torch.Tensor)
    assert run.outputs[0].dtype is torch.float16
    run = interpreter.run(refusing, {"x": X})
    assert run.rejected
    assert isinstance(run.error, ValueError)
    run = interpreter.run(broken_in_interpreter, {"x": X})
    assert run.error is not None
    assert not run.rejected


def test_interpreter_that_crashes_says_so_and_starts_again(interpreter: Interpreter) -> None:
    run = interpreter.run(crashing, {"x": X})
    assert "ended by signal 11 while it ran crashing" in str(run.error)
    assert not run.rejected
    assert interpreter.run(doubled, {"x": X}).error is None


def test_kernels_without_a_name_need_a_source(interpreter: Interpreter) -> None:
    run = interpreter.run(lambda x: doubled(x), {"x": X})
    assert "must be a function at the top of a module" in str(run.error)
    assert not run.rejected
    named = interpreter.variant(source=f"{__file__}:doubled")
    run = named.run(lambda x: doubled(x), {"x": X})
    assert run.error is None, run.error
    assert torch.equal(run.outputs[0], X * 2)


def test_sources(tmp_path: Path) -> None:
    assert source_of(doubled).variable == "doubled"
    (tmp_path / "case.py").write_text("class C:\n    kernel = staticmethod(len)\nc = C()\n")
    assert parse_source(f"{tmp_path / 'case.py'}:c").load() is len
    assert parse_source("os.path:join") == Source("os.path", "", "join")
    with pytest.raises(SourceError, match=r"has no absent"):
        parse_source(f"{tmp_path / 'case.py'}:absent").load()
    with pytest.raises(SourceError, match=r"expected path\.py:variable"):
        parse_source("case.py")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_error_says_so() -> None:
    with pytest.raises(NoGpuError, match="no GPU: torch"):
        executor_named("gpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_agrees() -> None:
    o = torch.zeros(60)[10:50]
    run = executor_named("gpu").run(in_place, {"x": X, "o": o})
    assert run.error is None, run.error
    assert torch.equal(o, X * 2)
    assert torch.equal(run.outputs[0], o[2:])


def test_shadows_of_narrow_floats_are_not_rounded() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.linspace(-4, 4, 40).to(dtype)
        run: Run = Simulator(shadow=True).run(doubled, {"x": x})
        assert run.error is None, run.error
        out = run.outputs[0]
        assert isinstance(out, torch.Tensor)
        assert np.array_equal(out.float().numpy(), (x.float() * 2).to(dtype).float().numpy())
        shadow = run.shadow_of(out)
        assert shadow is not None
        assert np.array_equal(shadow, x.double().numpy() * 2)
