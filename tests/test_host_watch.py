"""The host watch: fresh memory, written maps, reads by torch, and the float64 shadow."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from torch import empty

from trivet.simulator.executors import Run, Simulator


@triton.jit
def scale_rows(x, o, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n, other=0.0) * factor, mask=i < n)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


def launch(x: torch.Tensor, o: torch.Tensor, n: int, factor: float = 0.1) -> torch.Tensor:
    scale_rows[(triton.cdiv(n, 16),)](x, o, n, factor, B=16)
    return o


def ran(host: Callable[..., object], args: dict[str, object] | None = None, **options: Any) -> Run:
    run = Simulator(**options).run(host, args or {})
    assert run.error is None, run.error
    return run


X = torch.linspace(-3, 3, 24).view(4, 6)

EMPTIES: dict[str, Callable[[], torch.Tensor]] = {
    "empty": lambda: empty(4, 6),
    "torch.empty": lambda: torch.empty((4, 6), dtype=torch.float32),
    "empty_like": lambda: torch.empty_like(X),
    "new_empty": lambda: X.new_empty(4, 6),
    "empty_strided": lambda: torch.empty_strided((4, 6), (6, 1)),
    "new_empty_strided": lambda: X.new_empty_strided((4, 6), (1, 4)),
    "empty_permuted": lambda: torch.empty_permuted((4, 6), (1, 0)),
    "Tensor": lambda: torch.Tensor(4, 6),
    "empty_like of bfloat16": lambda: torch.empty_like(X, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("make", EMPTIES.values(), ids=EMPTIES.keys())
def test_fresh_memory_is_unwritten_and_poisoned(make: Callable[[], torch.Tensor]) -> None:
    run = ran(make)
    assert not run.initialised_of(run.outputs[0]).any()
    assert torch.isnan(run.outputs[0]).all()


FULL: dict[str, Callable[[], torch.Tensor]] = {
    "zeros": lambda: torch.zeros(4, 6),
    "fill": lambda: torch.empty(4, 6).fill_(2.0),
    "zero": lambda: torch.empty(4, 6).zero_(),
    "normal": lambda: torch.empty(4, 6).normal_(),
    "copy": lambda: torch.empty(4, 6).copy_(X),
    "out": lambda: torch.add(X, X, out=torch.empty(4, 6)),
    "full_like": lambda: torch.full_like(torch.empty(4, 6), 1.0),
    "numpy": lambda: numpy_filled(),
    "launch": lambda: launch(X, torch.empty(4, 6), 24),
    "views": lambda: halves_filled(),
    "where": lambda: torch.where(X > 0, X, torch.zeros(4, 6)),
}


def numpy_filled() -> torch.Tensor:
    made = torch.empty(4, 6)
    made.numpy()[...] = 1.0
    return made


def halves_filled() -> torch.Tensor:
    made = torch.empty(4, 6)
    made[:2] = 1.0
    made.t()[:, 2:] = X.t()[:, 2:]
    return made


@pytest.mark.parametrize("make", FULL.values(), ids=FULL.keys())
def test_written_memory_is_written(make: Callable[[], torch.Tensor]) -> None:
    run = ran(make)
    assert run.faults == []
    assert run.initialised_of(run.outputs[0]).all()


def partly() -> torch.Tensor:
    made = torch.empty(4, 6)
    made[1:3, ::2] = X[1:3, ::2]
    return made


WANTED = np.zeros((4, 6), bool)
WANTED[1:3, ::2] = True
CARRIES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], np.ndarray]] = {
    "itself": (lambda t: t, WANTED),
    "view": (lambda t: t.t()[1:], WANTED.T[1:]),
    "reshape": (lambda t: t.t().reshape(3, 8), WANTED.T.reshape(3, 8)),
    "clone": (lambda t: t.clone(), WANTED),
    "contiguous": (lambda t: t.t().contiguous(), WANTED.T),
    "to": (lambda t: t.to(torch.float64), WANTED),
    "half": (lambda t: t.half(), WANTED),
    "cat": (lambda t: torch.cat([t, X]), np.concatenate([WANTED, np.ones((4, 6), bool)])),
    "index": (lambda t: t[torch.tensor([1, 0])], WANTED[[1, 0]]),
    "flip": (lambda t: t.flip(0), WANTED[::-1]),
    "pad": (lambda t: torch.nn.functional.pad(t, (1, 0)), np.pad(WANTED, ((0, 0), (1, 0)),
                                                                 constant_values=True)),
    "copied into": (lambda t: torch.zeros(4, 6).copy_(t), WANTED),
    "turned in place": (lambda t: t.t_().unsqueeze_(0), WANTED.T[None]),
    "bits": (lambda t: t.view(torch.int32), WANTED),
}  # fmt: skip


@pytest.mark.parametrize(("move", "wanted"), CARRIES.values(), ids=CARRIES.keys())
def test_copies_carry_the_map(
    move: Callable[[torch.Tensor], torch.Tensor], wanted: np.ndarray
) -> None:
    run = ran(lambda: move(partly()))
    assert run.faults == []
    assert (run.initialised_of(run.outputs[0]) == wanted).all()


def test_index_assignments_write_what_they_index() -> None:
    def host() -> torch.Tensor:
        made = torch.empty(4, 6)
        made[torch.tensor([0, 2])] = 1.0
        made[X > 2] = 5.0
        made.index_fill_(1, torch.tensor([0]), 3.0)
        return made

    wanted = (X > 2).numpy()
    wanted[[0, 2]] = wanted[:, 0] = True
    run = ran(host)
    assert run.faults == []
    assert (run.initialised_of(run.outputs[0]) == wanted).all()


READS: dict[str, Callable[[torch.Tensor], object]] = {
    "sum": lambda t: t.sum(),
    "add": lambda t: t + 1,
    "add_": lambda t: t.add_(1),
    "_local_scalar_dense": lambda t: t[0, 0].item(),
    "mm": lambda t: t @ X.t(),
    "index": lambda t: X[t[:, 0].long().clamp_(0, 3)],
    "index_put_": lambda t: torch.zeros(4, 6).index_put_((torch.tensor([0]),), t, accumulate=True),
}


@pytest.mark.parametrize("name", READS)
def test_operations_that_read_unwritten_elements(name: str) -> None:
    run = Simulator().run(lambda: READS[name](partly()), {})
    assert run.faults, name
    fault = run.faults[0]
    assert (fault.kind, fault.fatal, fault.kernel) == ("uninitialised", False, "")
    assert fault.line.startswith("test_host_watch.py:")
    assert "nothing has written (memory from torch.empty at test_host_watch.py:" in fault.text


def test_a_fault_of_the_host_reads_well() -> None:
    def host() -> torch.Tensor:
        made = torch.empty_like(X)
        made[0] = 1.0
        return made.sum()

    (fault,) = ran(host).faults
    number = host.__code__.co_firstlineno
    assert fault.text == (
        "torch.sum reads 18 of 24 elements that nothing has written (memory from "
        f"torch.empty_like at test_host_watch.py:{number + 1}), the first at [1, 0], "
        f"at test_host_watch.py:{number + 3}"
    )
    assert fault.source == "return made.sum()"


def test_kernels_that_read_unwritten_elements() -> None:
    run = ran(lambda: launch(partly(), torch.empty(4, 6), 24))
    assert [fault.kind for fault in run.faults] == ["uninitialised"]
    assert run.faults[0].kernel == "scale_rows"


def test_what_a_launch_leaves_unwritten() -> None:
    run = ran(lambda: launch(X, torch.empty(4, 6), 20))
    written = run.initialised_of(run.outputs[0])
    assert (written.ravel() == (np.arange(24) < 20)).all()


def test_unwritten_and_read_only_arguments() -> None:
    def host(x: torch.Tensor, o: torch.Tensor) -> None:
        launch(x, o[1:], 12)

    o = torch.zeros(4, 6)
    run = Simulator().run(host, {"x": X.clone(), "o": o}, unwritten=["o"], read_only=["x"])
    assert run.faults == []
    assert (run.initialised_of(o) == np.repeat([0, 1, 1, 0], 6).reshape(4, 6)).all()
    run = Simulator().run(host, {"x": X.clone(), "o": o}, read_only=["x", "o"])
    assert {fault.kind for fault in run.faults} == {"read_only"}


def test_a_grown_storage_is_unwritten_beyond_its_old_end() -> None:
    def host() -> torch.Tensor:
        made = torch.empty(4)
        made[:2] = 1.0
        return made.resize_(8)

    run = ran(host)
    assert run.initialised_of(run.outputs[0]).tolist() == [True] * 2 + [False] * 6


def test_the_wrapper_sees_its_own_dtypes() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x * 0.3, -1)
        assert y.dtype is torch.float32
        assert torch.get_default_dtype() is torch.float32
        assert torch.zeros(2).dtype is torch.float32
        return launch(y, torch.empty_like(y), y.numel())

    run = ran(host, {"x": X}, shadow=True)
    assert isinstance(run.outputs[0], torch.Tensor)
    assert run.outputs[0].dtype is torch.float32


def normalise(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    centred = (x - mean) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
    out = launch(centred, torch.empty_like(x), x.numel(), factor=0.1)
    return torch.nn.functional.layer_norm(out, (6,)) + torch.full((6,), 0.7)


def in_place(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(4, 6)
    total[:, 1:4] += x[:, :3] * 0.1
    total.t()[2].mul_(x[:, 0]).sub_(0.3)
    total[torch.tensor([0, 3])] = x[1:3]
    total.masked_fill_(x > 2, 0.1)
    launch(total[1:], total[:3], 6)
    return total


def narrow(x: torch.Tensor) -> torch.Tensor:
    low = x.bfloat16() * 0.3
    values, order = low.float().max(-1)
    ratio = torch.arange(4) / 3
    return torch.stack([values, ratio, low.double().sum(-1).float(), order.float()])


def pieces(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    both = torch.cat([second.tanh(), first.exp()], -1) @ torch.tensor([[0.1] * 4] * 6)
    return torch.where(both > 0, both, torch.linspace(0, 0.3, 4)).cumsum(0).clone()


@pytest.mark.parametrize("host", [normalise, in_place, narrow, pieces])
def test_shadow_equals_a_float64_rerun(
    host: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(host, {"x": X.clone()}, shadow=True)
    assert run.shadow_failure is None
    shadow = run.shadow_of(run.outputs[0])
    assert shadow is not None
    wanted = in_float64(host, monkeypatch)
    assert np.abs(shadow - wanted).max() <= 1e-14 * max(1.0, np.abs(wanted).max())
    assert np.abs(shadow - run.outputs[0].double().numpy()).max() > 0


def in_float64(
    host: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> np.ndarray:
    """Run the host function again with every float a float64 and the kernel as torch."""

    def scaled(x: torch.Tensor, o: torch.Tensor, n: int, factor: float = 0.1) -> torch.Tensor:
        flat = x.contiguous().view(-1)
        o.view(-1)[:n] = flat[:n] * factor
        return o

    monkeypatch.setitem(globals(), "launch", scaled)
    for name in ("float", "bfloat16", "half"):
        monkeypatch.setattr(torch.Tensor, name, torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    try:
        return host(X.double()).numpy()
    finally:
        torch.set_default_dtype(torch.float32)


def test_shadows_of_integers_random_numbers_and_bits() -> None:
    def host() -> tuple[torch.Tensor, ...]:
        noise = torch.rand(8)
        bits = X.view(torch.int32).clone().view(torch.float32)
        return torch.arange(3), noise * 2, bits, noise.normal_()

    run = ran(host, shadow=True)
    integers, noise, bits, normal = (run.shadow_of(t) for t in run.outputs)
    assert integers is None
    for shadow, output in (
        (noise, run.outputs[1]),
        (bits, run.outputs[2]),
        (normal, run.outputs[3]),
    ):
        assert (shadow == output.double().numpy()).all()


def test_numbers_that_leave_the_tensors_are_named() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        assert x.sum().long().item() == 0
        return x * (x * 0.1).max().item()

    run = ran(host, {"x": X}, shadow=True)
    line = host.__code__.co_firstlineno + 2
    wanted = f"return x * (x * 0.1).max().item() at test_host_watch.py:{line}"
    assert run.shadow_rounded == wanted
    assert ran(lambda: X * 2, shadow=True).shadow_rounded == ""


def test_constants_and_arguments_made_tensors() -> None:
    def host(eps: float) -> tuple[torch.Tensor, ...]:
        return torch.tensor(0.1), torch.tensor([0.3, eps]), torch.full((1,), eps)

    eps = float(np.float32(0.2))
    run = ran(host, {"eps": eps}, shadow=True)
    shadows = [np.atleast_1d(run.shadow_of(output)).tolist() for output in run.outputs]
    assert shadows == [[0.1], [0.3, eps], [eps]]


def test_gradients_of_the_wrapper_have_shadows() -> None:
    def host(x: torch.Tensor) -> torch.Tensor:
        leaf = x.clone().requires_grad_()
        (leaf * 0.1).exp().sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    run = ran(host, {"x": X}, shadow=True)
    shadow = run.shadow_of(run.outputs[0])
    wanted = 0.1 * np.exp(0.1 * X.double().numpy())
    assert shadow is not None
    assert np.abs(shadow - wanted).max() < 1e-16


def test_tensors_that_kernels_cannot_see_pass_unwatched() -> None:
    def host(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        spectrum = torch.fft.fft(x)
        return x.to_sparse().to_dense() * 2, torch.view_as_real(spectrum), torch.empty(0) + 1

    run = ran(host, {"x": X}, shadow=True)
    assert run.faults == []
    assert torch.equal(run.outputs[0], X * 2)


def test_nothing_is_kept_after_a_run() -> None:
    import gc
    import weakref

    run: Run | None = ran(lambda: launch(X, torch.empty(4, 6), 24), shadow=True)
    assert run is not None
    watch = weakref.ref(run.watch)
    del run
    gc.collect()
    assert watch() is None
