"""The launches of one run in the simulator: arguments to memory, machines, faults, the shadow."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache

from trivet.simulator._torch import torch
from trivet.simulator.addressed import Addressed
from trivet.simulator.arithmetic import Arithmetic, AsInterpreter, Native, Shadow
from trivet.simulator.binding import NUMBERS, Call, Launch, is_descriptor, with_ones
from trivet.simulator.faults import Fault, Report
from trivet.simulator.frontend import Lowered, UnsupportedKernelError, lower
from trivet.simulator.given import ErrorMemory, Given, Memory, ShadowMemory, plain_tensor
from trivet.simulator.guarded import Guard
from trivet.simulator.held_errors import HeldErrors
from trivet.simulator.host import HostWatch
from trivet.simulator.influence import Before
from trivet.simulator.machine import Machine, Settings
from trivet.simulator.memory import Argument
from trivet.simulator.selection import chosen_programs
from trivet.simulator.standin import SimulatedKernel
from trivet.simulator.storages import TooLargeError
from trivet.simulator.traffic import Traffic

ARITHMETICS: dict[str, type[Arithmetic]] = {
    "native": Native,
    "as_interpreter": AsInterpreter,
    "shadow": Shadow,
}
_MACHINES = 256


class KernelFailure(Exception):
    """A launch ended with a fatal fault (no fuel, an unsupported operation): never a rejection."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


@dataclass
class Totals:
    """What the launches of a run did together."""

    programs: int = 0
    loads: int = 0
    stores: int = 0
    elements: int = 0
    written: int = 0

    def add(self, report: Report) -> None:
        """Count one launch."""
        self.programs += report.programs
        self.loads += report.loads
        self.stores += report.stores
        self.elements += report.elements
        self.written += report.written


@dataclass
class Session:
    """Handles the routed launches of one run.

    ``read_only`` has guards and ``whole`` storages by address. ``fatal`` is the first fault that
    ended a launch, ``error`` the first exception of a launch that could not start; both stay
    known whatever the wrapper does with the exception. With ``errors`` the shadow runs on numbers
    that carry what rounding may have done.
    """

    watch: HostWatch
    settings: Settings
    arithmetic: str = "native"
    nudge: int = 0
    configuration: int = 0
    cold: bool = False
    ones: bool = False
    programs: int | None = None
    errors: HeldErrors | None = None
    read_only: Mapping[int, Guard | None] = field(default_factory=dict)
    whole: Collection[int] = ()
    launches: list[Launch] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    metered: list[Traffic] = field(default_factory=list)
    addressed: Addressed = field(default_factory=Addressed)
    fatal: Fault | None = None
    error: Exception | None = None
    shadow_failure: Fault | None = None
    configurations: int = 1
    _tuned: set[object] = field(default_factory=set)

    def tuned(self, configurations: int, key: object) -> bool:
        """Note how many configurations a tuned launch has; return whether ``key`` is new."""
        self.configurations = max(self.configurations, configurations)
        new = key not in self._tuned
        self._tuned.add(key)
        return new

    def refused(self, error: Exception) -> None:
        """Remember that a launch could not start."""
        self.error = self.error or error

    def forgiven(self, error: Exception) -> None:
        """Forget a launch whose configuration the kernel itself refuses at compile time."""
        self.launches.pop()
        self.error = None if self.error is error else self.error

    def launch(self, call: Call) -> SimulatedKernel:
        """Run one launch natively and, if the watch keeps one, on the shadow.

        Raises Triton's own errors for a kernel that does not compile, KernelFailure for a launch
        that a fatal fault ended.
        """
        self.launches.append(call.launch)
        call.run_hooks()
        if self.ones:
            call = with_ones(call)
        try:
            lowered = lower(call.function, call.signature, call.constexprs, call.launch.options)
            with _plain_torch():
                _check_devices(call)
        except UnsupportedKernelError as error:
            raise self._ended(_broken(call.launch, error)) from error
        except Exception as error:
            self.refused(error)
            raise
        if self.settings.meter:
            self.metered.append(Traffic(call.launch.kernel))
        if min(call.launch.grid) > 0:
            try:
                with self.watch.paused(), _plain_torch():
                    self._run(call, lowered)
            except TooLargeError as error:
                raise self._ended(_broken(call.launch, error)) from error
        options = {k: v for k, v in call.launch.options.items() if k not in call.bound}
        return SimulatedKernel(call.function, options)

    def _run(self, call: Call, lowered: Lowered) -> None:
        memory = Memory(self)
        given = [part for leaf in call.leaves for part in memory.given(leaf)]
        shadow = None
        if self.watch.shadows is not None and self.shadow_failure is None:
            shadow = ShadowMemory(self) if self.errors is None else ErrorMemory(self, self.errors)
            lifted = [part for leaf in call.leaves for part in shadow.given(leaf)]
        settings = self.settings
        if self.programs is not None:
            spans = [item.allocation.data.size for item in given if isinstance(item, Argument)]
            chosen = chosen_programs(call.launch.grid, self.programs, spans)
            settings = replace(settings, programs=chosen)
        report = self._watched(call, lowered, given, settings, memory)
        memory.settle()
        self.totals.add(report)
        if report.traffic is not None:
            self.metered[-1] = report.traffic
        self.faults += [fault for fault in report.faults if not self._ends(fault)]
        fatal = next((fault for fault in report.faults if self._ends(fault)), None)
        if fatal is not None:
            raise self._ended(fatal)
        if shadow is not None:
            quiet = replace(settings, sanitize=False, meter=False)
            report = self._launch(call, lowered, self._shadow_arithmetic(), lifted, quiet, shadow)
            shadow.settle()
            self.shadow_failure = next((f for f in report.faults if f.fatal), None)

    def _watched(
        self,
        call: Call,
        lowered: Lowered,
        given: list[Given],
        settings: Settings,
        memory: Memory,
    ) -> Report:
        """Run the kernel; forget reads of undefined memory that do not show in what it wrote."""
        watched = settings.sanitize and self.programs is None
        before = Before.of(given, lowered) if watched else None

        def run() -> Report:
            return self._launch(call, lowered, self.arithmetic, given, settings, memory)

        report = run()
        if before is not None:
            before.forgive(report, run)
        return report

    def _ends(self, fault: Fault) -> bool:
        """Whether a fault ends the run; chosen programs may run out of fuel, the others go on."""
        return fault.fatal and not (self.programs is not None and fault.kind == "fuel")

    def stopped(self, fault: Fault) -> KernelFailure:
        """Remember the fault that stopped the call itself."""
        self.fatal = self.fatal or fault
        return KernelFailure(fault)

    def _ended(self, fault: Fault) -> KernelFailure:
        """Remember the fault that ended a launch."""
        self.faults.append(fault)
        self.fatal = self.fatal or fault
        return KernelFailure(fault)

    def _shadow_arithmetic(self) -> str:
        return f"shadow {self.nudge}" if self.nudge else "shadow"

    def _launch(
        self,
        call: Call,
        lowered: Lowered,
        arithmetic: str,
        given: list[Given],
        settings: Settings,
        memory: Memory,
    ) -> Report:
        try:
            settings = replace(settings, warps=call.launch.num_warps)
            reachable = memory.reachable() if "tt.int_to_ptr" in lowered.text else []
            if isinstance(memory, ErrorMemory):
                machine = Machine(lowered.module, memory.errors.arithmetic)
            else:
                machine = _machine(lowered, arithmetic)
            return machine.launch(call.launch.grid, given, settings, reachable)
        except Exception as error:
            return Report(faults=[_broken(call.launch, error)])


@lru_cache(maxsize=_MACHINES)
def _machine(lowered: Lowered, arithmetic: str) -> Machine:
    return Machine(lowered.module, _arithmetic(arithmetic))


def _arithmetic(text: str) -> Arithmetic:
    """Return the arithmetic that ``text`` names: ``native truncate fused``, ``shadow 2``, ..."""
    name, *options = text.split()
    if name == "native":
        return Native("truncate" if "truncate" in options else "round", "fused" in options)
    return Shadow(int(options[0])) if options else ARITHMETICS[name]()


def _plain_torch() -> AbstractContextManager[None]:
    """Let tensors answer for themselves where a device is stood in for."""
    plain: AbstractContextManager[None] = torch._C.DisableTorchFunction()
    return plain


def _check_devices(call: Call) -> None:
    for leaf in call.leaves:
        if isinstance(leaf.value, NUMBERS):
            continue
        base = leaf.value.base if is_descriptor(leaf.value) else leaf.value
        device = plain_tensor(base).device
        if device.type != "cpu":
            raise ValueError(
                f"argument {leaf.name} of {call.launch.kernel} lives on {device}; "
                "the simulator takes tensors on the CPU"
            )


def broken_watch(error: Exception) -> Fault:
    """Turn an exception of the host watch itself into a fault: no verdict can come of it."""
    text = f"the watch over the host function failed: {type(error).__name__}: {error}"
    return _unsupported("", "", str(error) if isinstance(error, TooLargeError) else text)


def _broken(launch: Launch, error: Exception) -> Fault:
    """Turn an exception of the machine itself into a fault: no verdict can come of it."""
    code = launch.function.fn.__code__
    line = f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
    text = f"the simulator cannot run {launch.kernel}: {type(error).__name__}: {error}"
    return _unsupported(launch.kernel, line, text)


def _unsupported(kernel: str, line: str, text: str) -> Fault:
    return Fault(
        kind="unsupported",
        kernel=kernel,
        argument="",
        index="",
        program=(0, 0, 0),
        other_program=None,
        line=line,
        other_line=None,
        source="",
        text=text,
        lanes=0,
    )
