"""The machine: runs a kernel's IR on the CPU, many programs at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np

from trivet.simulator import operations  # noqa: F401  (registers the rules)
from trivet.simulator._heap import keep_freed_memory
from trivet.simulator.addresses import Addresses, nowhere, takes_addresses
from trivet.simulator.aliasing import reached_arguments, written_arguments
from trivet.simulator.arithmetic import Arithmetic
from trivet.simulator.chunk import Chunk, Launch
from trivet.simulator.compiler import Compiler, Routine, program_coordinates
from trivet.simulator.deadlocks import deadlock_fault
from trivet.simulator.faults import Report, Trap
from trivet.simulator.ir import Module, Operation, Type, walk
from trivet.simulator.memory import Argument, View
from trivet.simulator.ordering import Ordering
from trivet.simulator.routines import call
from trivet.simulator.sanitizer import Sanitizer
from trivet.simulator.scheduler import Deadlock, Scheduler, waiting_operations
from trivet.simulator.traffic import Meter
from trivet.simulator.values import INTEGERS, Descriptor, Pointer, Value
from trivet.simulator.wraps import Wraps

_CHUNK_ELEMENTS = 1 << 17
_MOST_PROGRAMS = 1 << 14
_MANY_EPOCHS = 1 << 40
_SYNCHRONISING = ("tt.atomic_cas", "tt.atomic_rmw", "tt.atomic_poll", "tt.atomic_load")
_ACQUIRE = frozenset({"acquire", "acq_rel"})


@dataclass(frozen=True)
class Settings:
    """How to run a launch.

    ``order`` of the programs: ``halves`` runs the second half first; in any but ``forward``
    programs that may wait give their turn away whenever they can. ``chunk`` is the number of
    programs in lock step, None to fit the tiles to the cache. ``poison`` fills masked lanes
    without ``other``. ``fuel`` bounds the work, in about microseconds. ``programs`` restricts the
    launch to these linear program numbers. ``warps`` a program has: with more than one, a release
    covers tile accesses only behind a barrier. ``meter`` counts the traffic, in forward order.
    """

    order: Literal["forward", "reverse", "shuffled", "halves"] = "forward"
    chunk: int | None = None
    poison: Literal["nan", "large", "zero"] = "nan"
    fuel: int = 20_000_000
    sanitize: bool = True
    seed: int = 0
    programs: tuple[int, ...] | None = None
    warps: int = 1
    meter: bool = False

    def __post_init__(self) -> None:
        if self.meter and self.order != "forward":
            raise ValueError(f"traffic is metered in forward order, not {self.order!r}")


class Machine:
    """A kernel prepared for one arithmetic; launching it is cheap."""

    def __init__(self, module: Module, arithmetic: Arithmetic) -> None:
        keep_freed_memory()
        self._module = module
        self._arithmetic = arithmetic
        self._compiler = Compiler(module, arithmetic)
        self._routine = self._compiler.routine(module.entry.name)
        self._takes_addresses = takes_addresses(module)
        # Whatever a pointer made of an integer may reach is written.
        every = frozenset(range(len(module.entry.arguments)))
        self._written = every if self._takes_addresses else written_arguments(module)
        self._sites = [partial(self._compiler.line, site) for site in self._compiler.sites]
        self._waits = _waits(module, self._compiler, self._written)
        self._synchronises = self._waits or _synchronises(module, self._compiler)
        self._wraps = Wraps(module, self._written)

    @cached_property
    def _watching(self) -> Routine:
        """The routine that tells where integers on their way to an address wrap."""
        watched = self._wraps.operations
        compiler = Compiler(self._module, self._arithmetic, watched)
        return compiler.routine(self._module.entry.name)

    def launch(
        self,
        grid: tuple[int, int, int],
        arguments: Sequence[Argument | int | float | bool],
        settings: Settings,
        reachable: Sequence[Argument] = (),
    ) -> Report:
        """Run every program; memory changes in place.

        ``arguments`` are those of the IR's entry function, in order; ``reachable`` are the other
        tensors, to which the kernel may have pointers in memory. Faults are reported, never
        raised; after a fatal one the rest of the launch did not run. Raises ValueError when the
        number of arguments is wrong.
        """
        kinds = self._module.entry.argument_types
        if len(kinds) != len(arguments):
            raise ValueError(f"{len(kinds)} arguments expected, {len(arguments)} given")
        views = [View(item) for item in arguments if isinstance(item, Argument)]
        if self._takes_addresses:
            views += [*map(View, reachable), nowhere()]
        launch = self._open(grid, views, arguments, settings)
        launch.watching = settings.sanitize and self._wraps.possible(grid, arguments)
        with np.errstate(all="ignore"):
            values = self._argument_values(kinds, arguments)
            try:
                self._run(launch, values, settings)
            except Trap as trap:
                launch.report.faults.append(trap.fault)
        if launch.meter is not None:
            launch.report.traffic = launch.meter.close()
        return launch.report

    def _open(
        self,
        grid: tuple[int, int, int],
        views: list[View],
        arguments: Sequence[Argument | int | float | bool],
        settings: Settings,
    ) -> Launch:
        report = Report()
        ordering = Ordering(len(self._sites), settings.warps) if self._synchronises else None
        written = {
            id(item.allocation)
            for position, item in enumerate(arguments)
            if isinstance(item, Argument) and position in self._written
        }
        largest = grid[0] * grid[1] * grid[2] if ordering is None else _MANY_EPOCHS

        def coordinates(number: int) -> tuple[int, int, int]:
            return program_coordinates(ordering.owner(number) if ordering else number, grid)

        sanitizer = Sanitizer(self._module.entry.name, self._sites, largest, coordinates, report)
        sanitizer.ordered = ordering.covered if ordering else None
        sanitizer.line_of = self._compiler.line
        shared = frozenset(
            number
            for number, view in enumerate(views)
            if self._takes_addresses or id(view.argument.allocation) in written
        )
        return Launch(
            grid=grid,
            views=views,
            report=report,
            sanitizer=sanitizer,
            ordering=ordering,
            written=shared,
            sanitize=settings.sanitize,
            poison=settings.poison,
            fuel=settings.fuel,
            addresses=Addresses(views) if self._takes_addresses else None,
            meter=Meter(self._module.entry.name, views, self._sites) if settings.meter else None,
        )

    def _argument_values(
        self, kinds: Sequence[Type], arguments: Sequence[Argument | int | float | bool]
    ) -> list[Value]:
        values: list[Value] = []
        pointers = 0
        for kind, item in zip(kinds, arguments, strict=True):
            if isinstance(item, Argument):
                values.append(Pointer(pointers, np.zeros(1, np.int64)))
                pointers += 1
            elif kind.is_float:
                scalar = self._arithmetic.argument(float(item), kind.element)
                values.append(self._arithmetic.map(lambda array: array.reshape(1), scalar))
            else:
                values.append(_integer(int(item), kind.element))
        for position, kind in enumerate(kinds):
            if kind.element.startswith("desc<"):
                middle = position + 1 + len(kind.shape)
                sizes = values[position + 1 : middle]
                strides = values[middle : middle + len(kind.shape)]
                values[position] = Descriptor(values[position], sizes, strides, kind.shape, "zero")
        return values

    def _run(self, launch: Launch, values: list[Value], settings: Settings) -> None:
        if self._waits:
            self._take_turns(launch, values, settings)
            return
        for programs in self._chunks(launch, settings):
            self._run_chunk(launch, values, programs)

    def _run_chunk(self, launch: Launch, values: list[Value], programs: np.ndarray) -> None:
        routine = self._watching if launch.watching else self._routine
        call(routine, Chunk(launch, programs), values)
        launch.report.programs += len(programs)
        if launch.meter is not None:
            launch.meter.end_chunk(len(programs), last=False)

    def _take_turns(self, launch: Launch, values: list[Value], settings: Settings) -> None:
        """Run programs that may wait for each other; one that does gives its turn away."""
        scheduler = launch.scheduler = Scheduler(settings.order != "forward")

        def work(program: int) -> None:
            with np.errstate(all="ignore"):
                self._run_chunk(launch, values, np.array([program]))

        x, y, z = launch.grid
        try:
            scheduler.run(map(int, ordered_programs(x * y * z, settings)), work)
        except Deadlock as found:
            raise Trap(
                deadlock_fault(
                    found,
                    self._module.entry.name,
                    lambda site: self._sites[site](),
                    lambda number: program_coordinates(number, launch.grid),
                )
            ) from None
        finally:
            launch.fuel = -1

    def _chunks(self, launch: Launch, settings: Settings) -> Iterator[np.ndarray]:
        x, y, z = launch.grid
        programs = ordered_programs(x * y * z, settings)
        size = settings.chunk or self._fitting_chunk()
        size = 1 if self._synchronises else size
        for start in range(0, len(programs), size):
            yield programs[start : start + size]

    def _fitting_chunk(self) -> int:
        return max(1, min(_MOST_PROGRAMS, _CHUNK_ELEMENTS // self._compiler.largest_tile))


def ordered_programs(count: int, settings: Settings) -> np.ndarray:
    """Linear program numbers in the order in which they run."""
    chosen = settings.programs
    programs = np.arange(count) if chosen is None else np.array(chosen, np.int64)
    count = len(programs)
    if settings.order == "reverse":
        return programs[::-1]
    if settings.order == "shuffled":
        return np.random.default_rng(settings.seed).permutation(programs)
    if settings.order == "halves":
        return np.roll(programs, -(count // 2))
    return programs


def _integer(value: int, element: str) -> np.ndarray:
    """Scalar argument of one element; larger unsigned values keep their bits."""
    dtype = np.dtype(INTEGERS[element])
    if dtype == np.bool_:
        return np.array([bool(value)])
    bits = 8 * dtype.itemsize
    wrapped = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return np.array([wrapped], dtype)


def _waits(module: Module, compiler: Compiler, written: frozenset[int]) -> bool:
    """Whether a loop without a counter reads what a program of the launch may write."""
    looping = waiting_operations(module)
    if any(each.name.startswith("tt.atomic") and compiler.is_used(each) for each in looping):
        return True
    loads = {id(each) for each in looping if not each.name.startswith("tt.atomic")}
    return bool(loads and reached_arguments(module, lambda each: id(each) in loads) & written)


def _synchronises(module: Module, compiler: Compiler) -> bool:
    """Whether programs hand data over through a scalar atomic: they run one at a time."""
    operations_of = [op for function in module.functions.values() for op in walk(function.blocks)]
    return any(_acquires(operation, compiler) for operation in operations_of)


def _acquires(operation: Operation, compiler: Compiler) -> bool:
    if operation.name not in _SYNCHRONISING:
        return False
    scalar = operation.result_types[0].shape == ()
    return scalar and bool(_ACQUIRE & set(operation.words)) and compiler.is_used(operation)
