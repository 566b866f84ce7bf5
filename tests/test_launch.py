"""Routing: unmodified launches on CPU tensors, whatever form the user writes them in."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from trivet.simulator.binding import Call
from trivet.simulator.executors import Simulator
from trivet.simulator.launch import route
from trivet.simulator.recorder import Recorder


@triton.jit
def add_one(x):
    return x + 1


@triton.jit
def combine(x, o, n, scale, offset, flag, extra, B: tl.constexpr = 16, ACT: tl.constexpr = None):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0) * scale + offset
    if flag:
        v = v * 2
    if extra is not None:
        v += tl.load(extra + i, mask=i < n, other=0.0)
    if ACT is not None:
        v = ACT(v)
    tl.store(o + i, v, mask=i < n)


@triton.jit
def copy(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


X = torch.arange(20, dtype=torch.float32)


def ran(host: Any, **options: Any) -> Any:
    """Run a host function without arguments; nothing may go wrong."""
    run = Simulator(**options).run(host, {})
    assert run.error is None, run.error
    assert run.faults == []
    return run


@pytest.mark.parametrize(
    "grid",
    [
        (2,),
        [2],
        2,
        (2, 1),
        torch.Size([2]),
        lambda meta: (triton.cdiv(meta["n"], meta["B"]),),
        lambda meta: [triton.cdiv(20, meta["B"])],
    ],
    ids=["tuple", "list", "int", "two", "size", "function", "function_list"],
)
def test_grids(grid: Any) -> None:
    def host() -> torch.Tensor:
        o = torch.empty(20)
        copy[grid](X, o, 20, B=16)
        return o

    run = ran(host)
    assert torch.equal(run.outputs[0], X)
    assert run.launches[0].grid == (2, 1, 1)


def test_positional_keyword_default_and_none_arguments() -> None:
    def host() -> tuple[torch.Tensor, ...]:
        one, two, three = torch.empty(20), torch.empty(20), torch.empty(20)
        combine[(2,)](X, one, 20, 2.0, 3, False, None)
        combine[(1,)](x=X, o=two, n=20, scale=0.5, offset=0, flag=True, extra=X, B=32)
        combine.run(X, three, 20, 1.0, 2**40, 1, None, 32, grid=(1,), warmup=False)
        return one, two, three

    run = ran(host)
    assert torch.equal(run.outputs[0], X * 2 + 3)
    assert torch.equal(run.outputs[1], X * 0.5 * 2 + X)
    assert torch.equal(run.outputs[2], (X + 2**40) * 2)
    kinds = [launch.dtypes for launch in run.launches]
    assert kinds[0]["flag"] == "u1"
    assert kinds[2]["offset"] == "i64"
    assert run.launches[0].constexprs == {"extra": None, "B": 16, "ACT": None}


def test_a_jit_function_as_constexpr() -> None:
    def host() -> torch.Tensor:
        o = torch.empty(20)
        combine[(2,)](X, o, 20, 1.0, 0, False, None, ACT=add_one)
        return o

    assert torch.equal(ran(host).outputs[0], X + 1)


DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
    *(torch.uint16, torch.uint32, torch.uint64),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_in_place_of_its_storage(dtype: torch.dtype) -> None:
    x = (torch.arange(20) % 7).to(dtype)

    def host() -> torch.Tensor:
        o = torch.empty(30, dtype=dtype)[5:25]
        copy[(2,)](x, o, 20, B=16)
        return o

    run = Simulator().run(host, {})
    assert run.error is None, run.error
    assert torch.equal(run.outputs[0].double(), x.double())
    assert run.initialised_of(run.outputs[0]).all()


def test_parameters_subclasses_and_reinterpreted_tensors() -> None:
    class Named(torch.Tensor):
        pass

    def host() -> tuple[torch.Tensor, ...]:
        one, two = torch.empty(20), torch.empty(20, dtype=torch.uint8)
        copy[(2,)](torch.nn.Parameter(X.clone()), one.as_subclass(Named), 20, B=16)
        packed = triton.reinterpret(two, tl.float8e5)
        copy[(2,)](X, packed, 20, B=16)
        return one, two

    run = ran(host)
    assert torch.equal(run.outputs[0].as_subclass(torch.Tensor), X)
    assert torch.equal(run.outputs[1], X.to(torch.float8_e5m2).view(torch.uint8))


@triton.jit
def copy_tile(source, target, B: tl.constexpr):
    tile = source.load([tl.program_id(0) * B, 0])
    target.store([tl.program_id(0) * B, 0], tile + 1)


def test_tensor_descriptors_and_tuples() -> None:
    x = torch.arange(128, dtype=torch.float32).view(8, 16)

    def host() -> torch.Tensor:
        o = torch.empty(8, 16)
        tiles = [TensorDescriptor.from_tensor(t, [4, 16]) for t in (x, o)]
        copy_tile[(2,)](*tiles, B=4)
        return o

    assert torch.equal(ran(host).outputs[0], x + 1)


@triton.jit
def add_pair(pair, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(pair[0] + i) + pair[1][0])


def test_tuple_arguments() -> None:
    def host() -> torch.Tensor:
        o = torch.empty(16)
        add_pair[(1,)]((X, (4, None)), o, B=16)
        return o

    assert torch.equal(ran(host).outputs[0], X[:16] + 4)


def test_the_record_of_a_launch() -> None:
    base = torch.zeros(33)

    def host() -> None:
        copy[(3, 2)](base[1:], base, 16, B=16, num_warps=8, num_stages=2)
        copy[(1,)](base, base, 1, B=16)

    first, second = Simulator(sanitize=False).run(host, {}).launches
    assert (first.kernel, first.grid, first.programs) == ("copy", (3, 2, 1), 6)
    assert (first.num_warps, first.num_stages) == (8, 2)
    assert first.constexprs == {"B": 16}
    assert first.dtypes == {"x": "*fp32", "o": "*fp32", "n": "i32"}
    assert (first.divisible_16, first.int_divisible_16, first.equal_1) == (("o",), ("n",), ())
    assert second.equal_1 == ("n",)
    assert first.shapes == {"x": (32,), "o": (33,)}
    assert isinstance(first.function, JITFunction)


def test_ones_are_general_unless_asked_for() -> None:
    def host() -> torch.Tensor:
        o = torch.zeros(20)
        copy[(1,)](X + 1, o, 1, B=16)
        return o

    for ones in (False, True):
        run = ran(host, ones=ones)
        assert run.outputs[0].tolist() == [1.0] + [0.0] * 19
        assert run.launches[0].equal_1 == ("n",)
        assert run.launches[0].scalars == {"n": 1}


def test_gluon_kernels_are_unsupported() -> None:
    from triton.experimental import gluon

    @gluon.jit
    def nothing(x):
        pass

    run = Simulator().run(lambda: nothing[(1,)](X), {})
    assert run.failed is not None
    assert "nothing is a Gluon kernel" in run.failed.text


def test_arguments_that_do_not_bind_are_not_a_rejection() -> None:
    for arguments, options, error in (
        ((X,), {}, TypeError),
        ((X, X, 4, 16, 5), {}, TypeError),
        ((X, X, 4, 16), {"no_such_option": 1}, KeyError),
        ((X, "text", 4, 16), {}, TypeError),
        ((X, X.to("meta"), 4, 16), {}, ValueError),
    ):

        def host(arguments: Any = arguments, options: Any = options) -> None:
            copy[(1,)](*arguments, **options)

        run = Simulator().run(host, {})
        assert isinstance(run.error, error), run.error
        assert run.launch_error is run.error
        assert not run.rejected


@triton.jit
def last_place(o, n: int):
    tl.store(o, n - 1)


def test_a_number_beyond_its_annotated_type_is_refused() -> None:
    def host() -> torch.Tensor:
        o = torch.zeros(1, dtype=torch.int64)
        last_place[(1,)](o, 2**31)
        return o

    run = Simulator().run(host, {})
    assert isinstance(run.error, OverflowError)
    assert str(run.error) == "n = 2147483648 does not fit in i32, its annotation's type"


def test_grids_that_no_device_takes() -> None:
    def host(grid: Any) -> None:
        copy[grid](X, X.clone(), 4, B=16)

    assert isinstance(Simulator().run(host, {"grid": (1, 2, 3, 4)}).error, ValueError)
    assert isinstance(Simulator().run(host, {"grid": (1, 70000)}).error, ValueError)
    empty = Simulator().run(host, {"grid": (0,)})
    assert empty.error is None
    assert (len(empty.launches), empty.traffic["programs"]) == (1, 0)


def test_compile_errors_come_out_as_themselves() -> None:
    @triton.jit
    def bad(x):
        tl.store(x, tl.sum(1, 2, 3, 4, 5, 6, 7))

    run = Simulator().run(lambda: bad[(1,)](X), {})
    assert type(run.error).__name__ == "CompilationError"
    assert (run.failed, run.rejected) == (None, False)


def test_functions_decorated_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as inside:
        inside.setenv("TRITON_INTERPRET", "1")

        @triton.jit
        def helper(v):
            return tl.sum(v, axis=0)

        @triton.autotune(configs=[triton.Config({"B": 16}), triton.Config({"B": 32})], key=["n"])
        @triton.heuristics({"M": lambda args: args["B"]})
        @triton.jit
        def total(x, o, n, B: tl.constexpr, M: tl.constexpr):
            i = tl.arange(0, M)
            tl.store(o, helper(tl.load(x + i, mask=i < n, other=0.0)))

    def host() -> torch.Tensor:
        o = torch.empty(1)
        total[(1,)](X, o, 20)
        return o

    assert ran(host, configuration=1).outputs[0] == X.sum()
    assert ran(host).outputs[0] == X[:16].sum()


def test_routes_nest_and_are_restored() -> None:
    originals = (JITFunction.run, Autotuner.run)
    outer, inner = Recorder(), Recorder()
    outer.launch = inner.launch = lambda call: call.launch.kernel
    with route(outer):
        assert JITFunction.run is not originals[0]
        with route(inner):
            assert triton.runtime.driver.active.get_current_target().arch == 90
            assert copy[(1,)](X, X, 1, B=16) == "copy"
        assert copy[(1,)](X, X, 1, B=16) == "copy"
    assert (JITFunction.run, Autotuner.run) == originals
    with pytest.raises(RuntimeError), route(outer):
        raise RuntimeError
    assert JITFunction.run is originals[0]


class Noting(Recorder):
    """Keeps the kernels' names and runs nothing."""

    def launch(self, call: Call) -> object:
        self.launches.append(call.launch)
        return None


def test_threads_use_their_own_route_or_the_latest() -> None:
    main, own = Noting(), Noting()

    def plain() -> None:
        copy[(1,)](X, X, 1, B=16)

    def routed() -> None:
        with route(own):
            copy[(1,)](X, X, 1, B=16)

    with route(main):
        for target in (plain, routed):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        plain()
    assert (len(main.launches), len(own.launches)) == (2, 1)


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        copy[(2,)](x, o, x.numel(), B=16)
        return o

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return Copy.forward(ctx, gradient.contiguous()) * 3


def test_autograd_functions() -> None:
    def host() -> torch.Tensor | None:
        x = X.clone().requires_grad_()
        Copy.apply(x).sum().backward()
        return x.grad

    run = ran(host, shadow=True)
    assert len(run.launches) == 2
    assert torch.equal(run.outputs[0], torch.full((20,), 3.0))
