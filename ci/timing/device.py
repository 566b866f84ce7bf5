"""The device whose time is taken: a stamp before and after each call, a cold cache, its peaks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch

# Vendors' peaks by a part of the device's name: bytes a second, and operations a second of the
# tensor cores in bfloat16 and of float32 arithmetic. Floors from them are bounds, not predictions.
_PEAKS = (
    ("H200", (4.8e12, 989e12, 67e12)),
    ("H100", (3.35e12, 989e12, 67e12)),
    ("A100", (2.04e12, 312e12, 19.5e12)),
    ("MI300X", (5.3e12, 1307e12, 163e12)),
)
# Far more than any last cache; writing it also keeps the device busy while the host enqueues the
# call behind it, so that the stamps lie close around the call and not around Python.
_EVICTED = 512 << 20


class Stamp(Protocol):
    """A moment on the device; a later one minus an earlier one is seconds."""

    def __sub__(self, earlier: Self, /) -> float:
        """Seconds from ``earlier`` to here; waits until both have passed."""
        ...


@dataclass(frozen=True)
class Peaks:
    """The most that a device can do in a second: bytes moved, operations of each kind."""

    bytes: float
    matrix: float
    vector: float

    def floor(self, moved: float, matrix: float = 0, vector: float = 0) -> float:
        """Seconds that so many bytes and operations take at least, whatever overlaps."""
        return max(moved / self.bytes, matrix / self.matrix, vector / self.vector)


class Device(Protocol):
    """Where calls run and are timed.

    ``place`` is torch's name for it; ``executor`` judges gates there; ``large`` says whether sizes
    that fill a GPU are meant.
    """

    name: str
    place: str
    executor: str
    large: bool
    peaks: Peaks | None

    def stamp(self) -> Any:
        """Mark this moment of the device's work; see Stamp."""
        ...

    def flush(self) -> None:
        """Drive everything out of the last cache."""
        ...

    def wait(self) -> None:
        """Wait until all work is done."""
        ...

    def call(self, launch: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Call ``launch(**arguments)`` on tensors that lie at ``place``."""
        ...

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` under torch's compiler for this device."""
        ...


class EventStamp:
    """A CUDA event that has been recorded."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._event.record()

    def __sub__(self, earlier: "EventStamp") -> float:
        self._event.synchronize()
        return float(earlier._event.elapsed_time(self._event)) / 1e3


class CudaDevice:
    """The current CUDA or ROCm device. Raises NoGpuError where torch sees none."""

    place = "cuda"
    executor = "gpu"
    large = True

    def __init__(self) -> None:
        from trivet.simulator.gpu import require_gpu

        require_gpu()
        about = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.name = about.name
        self.peaks = peaks_of(about.name)
        self._evicting = torch.empty(_EVICTED, dtype=torch.int8, device="cuda")

    def stamp(self) -> EventStamp:
        """Record an event."""
        return EventStamp()

    def flush(self) -> None:
        """Write half a gigabyte."""
        self._evicting.zero_()

    def wait(self) -> None:
        """Synchronise."""
        torch.cuda.synchronize()

    def call(self, launch: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Call it: the tensors are on the device already."""
        return launch(**arguments)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Load the compiler at the first call: it takes seconds."""
        held: list[Callable[..., Any]] = []

        def launch(**arguments: Any) -> Any:
            if not held:
                held.append(torch.compile(function))
            return held[0](**arguments)

        return launch


def peaks_of(name: str) -> Peaks | None:
    """The peaks of a device by its name, None for one that is not in the table."""
    found = [peaks for part, peaks in _PEAKS if part in name]
    return Peaks(*found[0]) if found else None
