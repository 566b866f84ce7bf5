"""Executors: where the launches of a kernel run, and the record of one run."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from trivet.oracles._precision import Precision
from trivet.simulator._dots import TF32
from trivet.simulator._torch import torch
from trivet.simulator.addressed import addresses_noted
from trivet.simulator.binding import Launch
from trivet.simulator.faults import Fault
from trivet.simulator.guarded import guarded_storages
from trivet.simulator.held_errors import HeldErrors
from trivet.simulator.host import HostWatch
from trivet.simulator.launch import route
from trivet.simulator.limits import (
    UNLIMITED,
    Limits,
    TimeIsUp,
    is_out_of_memory,
    late,
    limited,
    too_large,
)
from trivet.simulator.machine import Settings
from trivet.simulator.session import ARITHMETICS, KernelFailure, Session, broken_watch
from trivet.simulator.traffic import Traffic

__all__ = ["Executor", "KernelFailure", "Run", "Simulator", "executor_named", "normalised"]


@dataclass
class Run:
    """The record of one call of a kernel's host function.

    ``outputs`` is what it returned, as a tuple; ``error`` what it raised, or the KernelFailure of
    a launch whose exception it swallowed; ``failed`` the fault that ended a launch;
    ``launch_error`` the first exception of a launch that could not start (arguments that do not
    bind, a kernel that does not compile); ``configurations`` the largest number of autotune
    configurations seen. ``shadow_rounded`` is the line where the host function took a rounded
    float out of a tensor (``item()``), so that the shadow goes on with it; empty without one.
    ``traffic`` counts programs, loads, stores and elements of all launches together; ``metered`` is
    the memory traffic of each launch, where that was asked for.
    """

    outputs: tuple[object, ...] = ()
    launches: list[Launch] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    traffic: dict[str, int] = field(default_factory=dict)
    metered: list[Traffic] = field(default_factory=list)
    error: BaseException | None = None
    failed: Fault | None = None
    launch_error: Exception | None = None
    elements: int = 0
    configurations: int = 1
    shadow_failure: Fault | None = None
    shadow_rounded: str = ""
    watch: HostWatch | None = field(default=None, repr=False)
    errors: HeldErrors | None = field(default=None, repr=False)

    @property
    def rejected(self) -> bool:
        """Whether the host function itself refused its inputs: it raised, and no launch failed."""
        return self.error is not None and self.failed is None and self.launch_error is None

    def shadow_of(self, tensor: torch.Tensor) -> NDArray[np.float64] | None:
        """Return the float64 shadow of ``tensor``, same shape.

        None without shadows, for integers, and where a launch could not run on the shadow.
        """
        if self.watch is None or self.shadow_failure is not None:
            return None
        return self.watch.shadow_of(tensor)

    def error_of(self, tensor: torch.Tensor) -> NDArray[np.float64] | None:
        """Return how far rounding may have moved each element of ``tensor``, same shape.

        None where the run bounds no rounding: it was not asked to, or ``errors.reason`` or
        ``shadow_failure`` tells why it cannot.
        """
        unknown = self.errors is None or self.shadow_failure is not None or self.shadow_rounded
        if unknown or self.watch is None or self.watch.shadows is None:
            return None
        assert self.errors is not None
        with self.watch.paused():
            found = self.errors.of(tensor, self.watch.shadows)
        return None if self.errors.reason else found

    def initialised_of(self, tensor: torch.Tensor) -> NDArray[np.bool_]:
        """Return which elements of ``tensor`` a launch or the host has written, same shape."""
        if self.watch is None:
            return np.ones(tuple(tensor.shape), bool)
        return self.watch.written(tensor)


class Executor(Protocol):
    """Runs a kernel's host function and says what happened."""

    @property
    def name(self) -> str:
        """The executor's name on the command line."""
        ...

    def run(
        self,
        kernel: Callable[..., object],
        args: Mapping[str, object],
        *,
        read_only: Collection[str] = (),
        unwritten: Collection[str] = (),
        whole_storage: Collection[str] = (),
    ) -> Run:
        """Call ``kernel(**args)``; whatever the kernel does is in the record, never raised.

        ``read_only`` names arguments no launch may write, ``unwritten`` those whose contents
        count as uninitialised, ``whole_storage`` those that stand for all of their storage.
        """
        ...

    def variant(self, **options: object) -> "Executor":
        """Return the executor with other options, as laws that run the kernel again need it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """Runs launches on the CPU from their IR, with the host function under watch.

    ``arithmetic`` is native or as_interpreter; ``shadow`` adds the float64 shadow of the whole
    host function, its uncertain constants moved by ``nudge``; ``order`` (forward, reverse,
    shuffled, halves) and ``chunk`` say how programs follow each other; ``poison`` (nan, large,
    zero) fills undefined lanes; ``configuration`` chooses among an autotuner's configurations,
    modulo their number; ``cold`` runs all of them first on the caller's buffers, as the first
    call on a GPU does; ``ones`` makes constants of the integers that are 1, as Triton specialises
    them, where integers are general otherwise; ``programs`` runs about so many programs of each
    launch, its corners among them, on memory that is taken page by page: arguments may be far
    larger than there is (``virtual_tensor``). Such a launch is cut short when its fuel is spent,
    and no host operation may fill gigabytes. ``meter`` counts the memory traffic of each launch.
    ``tf32`` (round, truncate) says how dots that may use TF32 narrow their inputs, ``fused`` makes
    a product and its sum one operation, as GPU compilers do by default. ``running`` lets the shadow
    carry what rounding may have done under that precision. ``limits`` bound the time and memory of
    a call.
    """

    arithmetic: str = "native"
    nudge: int = 0
    shadow: bool = False
    order: str = "forward"
    chunk: int | None = None
    poison: str = "nan"
    fuel: int = Settings.fuel
    sanitize: bool = True
    seed: int = 0
    configuration: int = 0
    cold: bool = False
    ones: bool = False
    programs: int | None = None
    meter: bool = False
    tf32: str = "round"
    fused: bool = False
    running: Precision | None = None
    limits: Limits = UNLIMITED

    name = "simulator"

    def __post_init__(self) -> None:
        if self.arithmetic not in ARITHMETICS:
            raise ValueError(f"arithmetic {self.arithmetic!r}: expected one of {[*ARITHMETICS]}")
        if self.tf32 not in TF32:
            raise ValueError(f"tf32 {self.tf32!r}: expected one of {[*TF32]}")
        if self.arithmetic != "native" and any(self._options()):
            raise ValueError("tf32 and fused are options of the native arithmetic alone")

    def _options(self) -> tuple[str, str]:
        return "truncate" * (self.tf32 == "truncate"), "fused" * self.fused

    def variant(self, **options: Any) -> Self:
        """Return this simulator with other options, without the shadow unless asked for."""
        return replace(self, **{"shadow": False, "running": None, **options})

    def run(
        self,
        kernel: Callable[..., object],
        args: Mapping[str, object],
        *,
        read_only: Collection[str] = (),
        unwritten: Collection[str] = (),
        whole_storage: Collection[str] = (),
    ) -> Run:
        """Call ``kernel(**args)`` with launches and host operations watched; see Executor."""
        floats = {value for value in args.values() if isinstance(value, float)}
        watch = HostWatch(shadow=self.shadow, arguments=floats, partial=self.programs is not None)
        session = self.session(watch)
        session.read_only = guarded_storages(args, read_only)
        session.whole = _storages(args, whole_storage)
        for name in unwritten:
            if isinstance(args.get(name), torch.Tensor):
                watch.mark_unwritten(args[name], f"the argument {name}")  # type: ignore[arg-type]
        outputs, error = _call(kernel, args, session, watch, self.limits)
        if watch.broken is not None:
            session.fatal = session.fatal or broken_watch(watch.broken)
        if session.fatal is not None and not isinstance(error, KernelFailure):
            error = KernelFailure(session.fatal)
        totals = session.totals
        return Run(
            outputs=outputs,
            launches=session.launches,
            faults=[*watch.faults, *session.faults],
            traffic=dict(vars(totals)),
            metered=session.metered,
            error=error,
            failed=session.fatal,
            launch_error=session.error,
            elements=totals.elements,
            configurations=session.configurations,
            shadow_failure=session.shadow_failure,
            shadow_rounded=watch.rounded,
            watch=watch,
            errors=session.errors,
        )

    def session(self, watch: HostWatch) -> Session:
        """Return a handler for the launches of one run under ``watch``."""
        watch.errors = None if self.running is None else HeldErrors(self.running)
        settings = Settings(
            order=self.order,  # type: ignore[arg-type]
            chunk=self.chunk,
            poison=self.poison,  # type: ignore[arg-type]
            fuel=self.fuel,
            sanitize=self.sanitize,
            seed=self.seed,
            meter=self.meter,
        )
        return Session(
            watch,
            settings,
            arithmetic=" ".join(filter(None, [self.arithmetic, *self._options()])),
            nudge=self.nudge,
            configuration=self.configuration,
            cold=self.cold,
            ones=self.ones,
            programs=self.programs,
            errors=watch.errors,
        )


def executor_named(name: str, **options: Any) -> Executor:
    """Return the executor that `--on NAME` means: simulator, interpreter, compile or gpu.

    Raises ValueError for any other name.
    """
    if name == "simulator":
        return Simulator(**options)
    if name == "interpreter":
        from trivet.simulator.interpreter import Interpreter

        return Interpreter(**options)
    if name == "gpu":
        from trivet.simulator.gpu import Gpu

        return Gpu(**options)
    if name == "compile":
        from trivet.simulator.compiled.executor import Compile

        return Compile(**options)
    raise ValueError(f"executor {name!r}: expected simulator, interpreter, compile or gpu")


def normalised(value: object) -> tuple[object, ...]:
    """Return what a host function returned as a tuple: () for None, (x,) for a single value."""
    if value is None:
        return ()
    if isinstance(value, tuple | list):
        return tuple(value)
    if isinstance(value, dict):
        return tuple(value.values())
    return (value,)


def _call(
    kernel: Callable[..., object],
    args: Mapping[str, object],
    session: Session,
    watch: HostWatch,
    limits: Limits,
) -> tuple[tuple[object, ...], BaseException | None]:
    try:
        with limited(limits), route(session), watch, addresses_noted(session.addressed):
            return normalised(kernel(**args)), None
    except TimeIsUp as error:
        return (), session.stopped(late(error, limits))
    except (Exception, SystemExit) as error:
        if limits.memory is not None and is_out_of_memory(error):
            return (), session.stopped(too_large(error, limits))
        return (), error


def _storages(args: Mapping[str, object], names: Collection[str]) -> set[int]:
    tensors = [args.get(name) for name in names]
    return {t.untyped_storage()._cdata for t in tensors if isinstance(t, torch.Tensor)}
