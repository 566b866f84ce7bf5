"""Suites written for device="cuda", where torch knows only the CPU."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from trivet.ci.run import run_command
from trivet.simulator.cuda import cuda_on_cpu, plain_torch
from trivet.simulator.executors import Simulator

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="there is a device: nothing stands in for it"
)


@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_tensors_say_where_they_were_asked_for() -> None:
    with cuda_on_cpu():
        x = torch.randn(3, device="cuda")
        assert (x.device, x.is_cuda, x.get_device()) == (torch.device("cuda", 0), True, 0)
        assert x.device == torch.empty(2, device=torch.device("cuda:0")).device
        assert (x + 1).is_cuda
        assert x[1:].detach().view(1, 2).is_cuda
        host = torch.zeros(3)
        assert (host.device.type, host.is_cuda, host.is_cpu) == ("cpu", False, True)
        assert not (host * 2).is_cuda
        assert (host.to(x.device) + x).is_cuda
        assert torch.zeros_like(x).is_cuda
        assert torch.zeros_like(x, device="cpu").device.type == "cpu"
        assert torch.tensor([1.0], device=0).is_cuda
        assert torch.empty(2, device="meta").device.type == "meta"


def test_products_widen_as_only_a_device_does() -> None:
    a, b = torch.randn(4, 5).bfloat16(), torch.randn(5, 3).bfloat16()
    bias = torch.randn(4, 3).bfloat16()
    wide = a.float() @ b.float()
    with cuda_on_cpu():
        on_device, other = a.cuda(), b.cuda()
        assert torch.equal(torch.mm(on_device, other, out_dtype=torch.float32), wide)
        total = torch.empty(4, 3, device="cuda")
        torch.addmm(bias.cuda(), on_device, other, out_dtype=torch.float32, out=total)
        assert torch.equal(total, torch.addmm(bias.float(), a.float(), b.float()))
        assert total.is_cuda
        torch.addmm(total, on_device, other, out_dtype=torch.float32, out=total, beta=2)
    assert torch.equal(total, 2 * torch.addmm(bias.float(), a.float(), b.float()) + wide)
    with pytest.raises(RuntimeError, match=r"aten::mm\.dtype"):
        torch.mm(a, b, out_dtype=torch.float32)


def test_what_would_be_compiled_for_a_device_runs_as_it_is() -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with cuda_on_cpu():
        x = torch.ones(2, device="cuda")
        assert torch.compile(doubled)(x).tolist() == [2.0, 2.0]
        assert torch.compile(fullgraph=True)(doubled)(x).is_cuda
        layer = torch.nn.Linear(2, 2, device="cuda")
        layer.compile()
        assert layer(x).shape == (2,)


def test_moves_copy_as_they_do_between_devices() -> None:
    with cuda_on_cpu():
        host = torch.zeros(3)
        moved = host.cuda()
        assert moved.data_ptr() != host.data_ptr()
        moved += 1
        assert host.sum() == 0
        back = moved.cpu()
        assert (back.device.type, moved.is_cuda) == ("cpu", True)
        assert back.numpy().tolist() == [1, 1, 1]
        assert moved.cuda() is moved
        assert moved.to("cuda", torch.float64).dtype is torch.float64
        assert moved.to(host).device.type == "cpu"
        assert moved.to(torch.float16).is_cuda
        assert host.to(device="cuda", dtype=torch.int32).is_cuda
        assert torch.ones(2).pin_memory().cuda(non_blocking=True).is_cuda


def test_gradients_and_modules() -> None:
    with cuda_on_cpu():
        x = torch.ones(4, 3, device="cuda", requires_grad=True)
        layer = torch.nn.Linear(3, 2).to("cuda")
        layer(x).sum().backward()
        assert x.grad is not None
        assert x.grad.is_cuda
        assert layer.weight.is_cuda
        assert layer.weight.grad is not None
        assert layer.weight.grad.device == x.device
        assert torch.nn.Linear(2, 2, device="cuda").bias.is_cuda


def test_queries_streams_and_events() -> None:
    with cuda_on_cpu():
        assert torch.cuda.is_available()
        assert not torch.cuda.is_current_stream_capturing()
        assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132
        torch.cuda.manual_seed_all(3)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
            start.record()
            end.record()
        torch.cuda.synchronize()
        assert start.elapsed_time(end) >= 0
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        generator = torch.Generator(device="cuda").manual_seed(1)
        assert torch.rand(2, device="cuda", generator=generator).is_cuda
        assert torch.cuda.memory_allocated() == 0


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_autocast(dtype: Any) -> None:
    x = torch.ones(2, 2)
    with cuda_on_cpu():
        with torch.autocast("cuda", dtype=dtype):
            assert torch.is_autocast_enabled()
            assert (x @ x).dtype is (dtype or torch.float16)
        assert not torch.is_autocast_enabled("cuda")
        with torch.autocast(device_type="cuda", enabled=False):
            assert (x @ x).dtype is torch.float32


def test_default_device() -> None:
    with cuda_on_cpu():
        torch.set_default_device("cuda")
        assert torch.zeros(2).is_cuda
        assert torch.get_default_device().type == "cuda"
        torch.set_default_device("cpu")
        assert not torch.zeros(2).is_cuda
        torch.set_default_device(None)
        with torch.device("cuda"):
            assert torch.zeros(2).is_cuda


def test_everything_is_restored() -> None:
    names = [name for name in dir(torch.cuda) if not name.startswith("__")]
    before = {name: getattr(torch.cuda, name) for name in names}
    before |= {"Generator": torch.Generator, "default": torch.set_default_device}
    with cuda_on_cpu():
        x = torch.zeros(1, device="cuda")
        with plain_torch():
            assert x.device.type == "cpu"
    assert x.device.type == "cpu"
    assert not torch.cuda.is_available()
    after = {name: getattr(torch.cuda, name) for name in names}
    after |= {"Generator": torch.Generator, "default": torch.set_default_device}
    assert after == before
    with pytest.raises((RuntimeError, AssertionError)):
        torch.zeros(1, device="cuda")


def test_a_host_function_may_stand_in_for_a_device_itself() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        with cuda_on_cpu():
            moved = x.cuda()
            o = torch.empty_like(moved)
            double[(1,)](moved, o, 4, B=4)
            return o

    run = Simulator().run(host, {"x": torch.arange(4.0)})
    assert run.error is None
    assert run.outputs[0].tolist() == [0.0, 2.0, 4.0, 6.0]  # type: ignore[attr-defined]


SUITE = """
import pytest
import torch
import triton
import triton.language as tl

DEVICE = "cuda"

@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert x.is_cuda and x.device.type == "cuda"
        o = torch.empty_like(x)
        with torch.cuda.device(x.device):
            double[(triton.cdiv(x.numel(), 16),)](x, o, x.numel(), B=16)
        return o

    @staticmethod
    def backward(ctx, g):
        assert g.is_cuda
        return g * 2

@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("n", [1, 40])
def test_double(n):
    torch.cuda.manual_seed(0)
    x = torch.randn(n, device=DEVICE, requires_grad=True)
    y = Double.apply(x)
    y.backward(torch.ones(n, device=DEVICE))
    torch.cuda.synchronize()
    torch.testing.assert_close(y, x * 2)
    torch.testing.assert_close(x.grad.cpu(), torch.full((n,), 2.0))
    gradient, = torch.autograd.grad(Double.apply(x).sum(), x)
    assert gradient.device == x.device

def test_out_of_bounds():
    x = torch.zeros(3).to(DEVICE)
    o = torch.zeros(16, device=DEVICE)
    double[(1,)](x, o, 16, B=16)
"""


def test_a_suite_for_a_gpu_runs_unmodified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_double.py").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert run_command([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]) == 1
    out, err = capfd.readouterr()
    assert "3 passed" in out
    assert err.splitlines()[-1] == "trivet: 5 launches on the simulator, 1 fault"
    assert "out_of_bounds: program (0, 0, 0) of double accesses element 3 of x (3,)" in err
