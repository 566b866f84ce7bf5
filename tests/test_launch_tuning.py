"""Autotuned launches and heuristics: one configuration by number, hooks, cold first calls."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from trivet.simulator.executors import Simulator


@triton.jit
def count(o, B: tl.constexpr):
    tl.atomic_add(o + tl.arange(0, B), 1.0)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


def ran(host: Any, **options: Any) -> Any:
    """Run a host function without arguments; nothing may go wrong."""
    run = Simulator(**options).run(host, {})
    assert run.error is None, run.error
    assert run.faults == []
    return run


def configured(**options: Any) -> Any:
    log: list[str] = []

    def hook(named: dict[str, Any], **_: object) -> None:
        log.append(f"hook {named['B']} {named['o'].sum().item():g}")

    configs = [triton.Config({"B": 8}, pre_hook=hook), triton.Config({"B": 16}, num_warps=2)]
    tuned = triton.autotune(configs=configs, key=[], **options)(count)
    return tuned, log


def test_autotune_picks_a_configuration_and_leaves_the_cache() -> None:
    tuned, log = configured()

    def host() -> torch.Tensor:
        o = torch.zeros(16)
        tuned[lambda meta: (1,)](o)
        return o

    for configuration, written in ((0, 8), (1, 16), (2, 8)):
        run = ran(host, configuration=configuration)
        assert run.outputs[0].sum() == written
        assert run.configurations == 2
        assert len(run.launches) == 1
    assert log == ["hook 8 0", "hook 8 0"]
    assert tuned.cache == {}
    assert run.launches[0].constexprs == {"B": 8}


def test_cold_autotune_runs_every_configuration_first() -> None:
    def total(**options: Any) -> float:
        tuned, _ = configured(**options)

        def host() -> torch.Tensor:
            o = torch.zeros(16)
            tuned[(1,)](o)
            tuned[(1,)](o)
            return o

        run = ran(host, cold=True)
        assert [launch.constexprs["B"] for launch in run.launches] == [8, 8, 8, 16, 16, 8, 8]
        return float(run.outputs[0].sum())

    assert total() == 3 * 8 + 2 * 16 + 8 + 8
    assert total(reset_to_zero=["o"]) == 8 + 8
    assert total(restore_value=["o"]) == 8 + 8


@pytest.mark.parametrize("configurations", [2, 3, 4, 5, 6])
def test_tuning_shows_in_a_kernel_that_undoes_itself(configurations: int) -> None:
    @triton.jit
    def negated(x, B: tl.constexpr):
        i = tl.arange(0, 8)
        tl.store(x + i, -tl.load(x + i))

    configs = [triton.Config({"B": b}) for b in range(configurations)]

    def total(**options: Any) -> float:
        tuned = triton.autotune(configs=configs, key=[], **options)(negated)

        def host() -> torch.Tensor:
            x = torch.ones(8)
            tuned[(1,)](x)
            return x

        return float(ran(host, cold=True).outputs[0].sum())

    assert total() == 8
    assert total(restore_value=["x"]) == -8


def test_pruning_and_user_hooks() -> None:
    calls: list[str] = []

    def prune(configs: list[Any], named: dict[str, Any], **_: object) -> list[Any]:
        calls.append("prune")
        assert named["o"].shape == (16,)
        return configs[1:]

    tuned, _ = configured(
        prune_configs_by={"early_config_prune": prune},
        pre_hook=lambda named, reset_only=False: calls.append(f"pre {reset_only}"),
        post_hook=lambda named, exception: calls.append(f"post {exception}"),
    )
    run = ran(lambda: tuned[(1,)](torch.zeros(16)), configuration=4)
    assert run.launches[0].constexprs == {"B": 16}
    assert calls == ["prune"]


def test_configurations_that_a_static_assertion_rules_out() -> None:
    @triton.autotune(configs=[triton.Config({"B": b}) for b in (8, 16, 32)], key=[])
    @triton.jit
    def bounded(o, B: tl.constexpr):
        tl.static_assert(B > 10)
        tl.static_assert(B < 20)
        tl.atomic_add(o + tl.arange(0, B), 1.0)

    def host() -> torch.Tensor:
        o = torch.zeros(32)
        bounded[(1,)](o)
        return o

    for options in ({}, {"configuration": 2}, {"configuration": 1}):
        run = ran(host, **options)
        assert [launch.constexprs["B"] for launch in run.launches] == [16]
        assert run.launch_error is None
    assert ran(host, cold=True).outputs[0].sum() == 3 * 16
    wide = triton.autotune(configs=[triton.Config({"B": b}) for b in (32, 64)], key=[])(bounded.fn)
    run = Simulator().run(lambda: wide[(1,)](torch.zeros(64)), {})
    assert type(run.error).__name__ == "CompileTimeAssertionFailure"
    assert not run.rejected


def test_heuristics_and_pre_run_hooks() -> None:
    @triton.heuristics({"B": lambda args: triton.next_power_of_2(args["n"])})
    @triton.jit
    def filled(o, n, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(o + i, 1.0, mask=i < n)

    seen: list[object] = []
    filled.fn.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["B"]))

    def host() -> torch.Tensor:
        o = torch.empty(20)
        filled[(1,)](o, 20)
        return o

    run = ran(host)
    assert run.outputs[0].sum() == 20
    assert (run.launches[0].constexprs, seen) == ({"B": 32}, [32])


def test_grids_planned_from_a_compiled_kernel() -> None:
    """The way of Triton's fused softmax tutorial: warm up, read the occupancy, launch."""

    def host() -> torch.Tensor:
        o = torch.zeros(16)
        properties = triton.runtime.driver.active.utils.get_device_properties(0)
        kernel = count.warmup(o, B=16, num_warps=8, grid=(1,))
        kernel._init_handles()
        occupancy = properties["max_num_regs"] // (kernel.n_regs * 32 * 8)
        occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
        again = kernel[(min(occupancy, 3), 1, 1)](o, 16)
        assert again.metadata.num_warps == 8
        return o

    run = ran(host)
    assert run.outputs[0].tolist() == [3.0] * 16
    assert run.launches[0].num_warps == 8
