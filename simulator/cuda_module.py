"""What `torch.cuda` and its neighbours answer while a device is stood in for.

Everything happens at once and on the CPU: streams order nothing, events are always done, and the
device has the figures of the one that Triton is shown.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

# Tensors live in the CPU's memory: suites that ask how much there is are told half of it.
_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
_CAPABILITY = (9, 0)
_NAME = "trivet's simulated device"


class Stream:
    """A stream, on which all work is done as soon as it is given."""

    device = torch.device("cuda", 0)
    cuda_stream = 0
    stream_id = 0
    device_index = 0
    priority = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._outer: list[Any] = []

    def synchronize(self) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Return that all work is done."""
        return True

    def wait_stream(self, stream: "Stream") -> None:
        """Wait for nothing."""

    def wait_event(self, event: "Event") -> None:
        """Wait for nothing."""

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Return an event that is done."""
        done = event or Event()
        done.record()
        return done

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the stream as it is."""


class Event:
    """An event with the time at which it was recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._at = time.perf_counter()

    def record(self, stream: Stream | None = None) -> None:
        """Take the time."""
        self._at = time.perf_counter()

    def elapsed_time(self, end: "Event") -> float:
        """Return the milliseconds until ``end``, on the CPU's clock."""
        return (end._at - self._at) * 1e3

    def query(self) -> bool:
        """Return that it is done."""
        return True

    def wait(self, stream: Stream | None = None) -> None:
        """Wait for nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""


class Chosen(contextlib.AbstractContextManager[None]):
    """Stands in for `torch.cuda.device`, `device_of` and `stream`: there is one of each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept any device or stream."""

    def __exit__(self, *error: object) -> None:
        """Choose nothing else."""


class Generator(torch.Generator):
    """A generator on whatever device: its numbers come from the CPU."""

    def __new__(cls, device: Any = None) -> "Generator":
        """Return a generator of the CPU's."""
        return super().__new__(cls, device="cpu")  # type: ignore[call-arg]


def properties(device: Any = None) -> SimpleNamespace:
    """Return what `torch.cuda.get_device_properties` does."""
    # Triton is being imported, or not at all, when the stand-in opens.
    from trivet.simulator.device import SimulatedDriver

    figures = SimulatedDriver.utils.get_device_properties()
    return SimpleNamespace(
        name=_NAME,
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        total_memory=_MEMORY,
        multi_processor_count=figures["multiprocessor_count"],
        warp_size=figures["warpSize"],
        shared_memory_per_block_optin=figures["max_shared_mem"],
        shared_memory_per_multiprocessor=figures["max_shared_mem"],
        regs_per_multiprocessor=figures["max_num_regs"],
        max_threads_per_multi_processor=2048,
        gcnArchName="",
        is_integrated=0,
        L2_cache_size=50 * 2**20,
    )


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


_stream = Stream()
_NOTHING = (
    "synchronize empty_cache set_device init _lazy_init ipc_collect reset_peak_memory_stats "
    "reset_max_memory_allocated reset_accumulated_memory_stats set_stream "
    "set_per_process_memory_fraction"
)
_NUMBERS = (
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved utilization "
    "current_device current_blas_handle"
)
# A function of its own for each name: torch.compile tells functions apart by identity.
_CUDA: dict[str, Any] = {
    **{name: _always(None) for name in _NOTHING.split()},
    **{name: _always(0) for name in _NUMBERS.split()},
    **{name: _always(True) for name in ("is_available", "is_initialized", "is_bf16_supported")},
    **{name: _always(_stream) for name in ("current_stream", "default_stream")},
    **{name: type(name, (Chosen,), {}) for name in ("device", "device_of", "stream")},
    "manual_seed": lambda seed: torch.default_generator.manual_seed(int(seed)),
    "manual_seed_all": lambda seed: torch.default_generator.manual_seed(int(seed)),
    "is_current_stream_capturing": _always(False),
    "device_count": _always(1),
    "get_device_name": _always(_NAME),
    "get_device_capability": _always(_CAPABILITY),
    "get_device_properties": properties,
    "get_arch_list": _always(["sm_90"]),
    "mem_get_info": _always((_MEMORY, _MEMORY)),
    "memory_stats": _always({}),
    "get_rng_state": lambda *args, **kwargs: torch.default_generator.get_state(),
    "get_rng_state_all": lambda: [torch.default_generator.get_state()],
    "set_rng_state": lambda state, *args: torch.default_generator.set_state(state),
    "set_rng_state_all": lambda states: torch.default_generator.set_state(states[0]),
    "Stream": Stream,
    "Event": Event,
}


def patches(
    on_host: Callable[[torch.Tensor], torch.Tensor],
    set_default_device: Callable[[Any], None],
    default_device: Callable[[], torch.device],
) -> Iterator[AbstractContextManager[Any]]:
    """Yield the patches of torch, one context each; ``on_host`` marks a tensor as the CPU's."""
    for name, answer in _CUDA.items():
        yield patch.object(torch.cuda, name, answer, create=True)
    for name in ("from_numpy", "frombuffer"):
        made = getattr(torch, name)
        yield patch.object(torch, name, lambda *a, _made=made, **k: on_host(_made(*a, **k)))
    yield patch.object(torch, "Generator", Generator)
    yield patch.object(torch, "set_default_device", set_default_device)
    yield patch.object(torch, "get_default_device", default_device)
    yield patch.object(torch, "compile", _uncompiled)
    yield _wide_products()
    yield from _accelerator()
    yield from _autocast()


@contextlib.contextmanager
def _wide_products() -> Iterator[None]:
    """Give the CPU the products whose result is wider than their factors, as a device has them."""
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name in ("mm", "bmm", "addmm", "baddbmm"):
        product = getattr(torch, name)
        library.impl(f"{name}.dtype", _widened(product), "CPU")
        library.impl(f"{name}.dtype_out", _widened(product), "CPU")
    try:
        yield
    finally:
        library._destroy()


def _widened(product: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return ``product`` of arguments that end in the dtype of the result."""

    def widened(*args: Any, out: torch.Tensor | None = None, **scales: Any) -> torch.Tensor:
        *factors, dtype = args
        found = product(*(factor.to(dtype) for factor in factors), **scales)
        return found if out is None else out.copy_(found)

    return widened


def _uncompiled(model: Any = None, **options: Any) -> Any:
    """Stand in for `torch.compile`: its code for a device cannot run, the function itself can."""
    return _uncompiled if model is None else model


def _accelerator() -> Iterator[AbstractContextManager[Any]]:
    if not hasattr(torch, "accelerator"):
        return
    device = torch.device("cuda", 0)
    yield patch.object(torch.accelerator, "is_available", _always(True))
    yield patch.object(torch.accelerator, "current_accelerator", _always(device))
    yield patch.object(torch.accelerator, "device_count", _always(1))
    yield patch.object(torch.accelerator, "synchronize", _always(None))


def _autocast() -> Iterator[AbstractContextManager[Any]]:
    """Autocast of the device is the CPU's, with the device's own default of float16."""
    original = torch.autocast.__init__

    def enter(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        original(self, device_type, dtype, *args, **kwargs)

    yield patch.object(torch.autocast, "__init__", enter)
    enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype

    def is_enabled(device_type: str = "cuda") -> bool:
        return enabled("cpu" if device_type == "cuda" else device_type)

    def dtype_for(device_type: str = "cuda") -> torch.dtype:
        return dtype_of("cpu" if device_type == "cuda" else device_type)

    yield patch.object(torch, "is_autocast_enabled", is_enabled)
    yield patch.object(torch, "get_autocast_dtype", dtype_for)
    yield patch.object(torch, "get_autocast_gpu_dtype", lambda: dtype_for())
