"""The device that Triton's host code sees while launches are routed to the simulator.

torch is imported only when somebody asks for it: `trivet run` shows this device while Triton
itself is being imported.
"""

from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget

# The figures that tuning code asks for, of an H100 SXM (CUDA Programming Guide, table of compute
# capabilities): they steer heuristics and grids, never values.
_PROPERTIES = {
    "max_shared_mem": 232448,
    "max_num_regs": 65536,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "sm_clock_rate": 1980000,
    "mem_clock_rate": 2619000,
    "mem_bus_width": 5120,
}


class _Utilities:
    """The part of a driver's utilities that host code reads."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """Return the properties by Triton's names."""
        return dict(_PROPERTIES)


class SimulatedDriver:
    """Stands in for Triton's active driver: device 0, sm_90, whose tensors live on the CPU."""

    utils = _Utilities()

    def get_current_device(self) -> int:
        """Return device 0."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Accept any device: there is one."""

    def get_current_stream(self, device: int | None = None) -> int:
        """Return the default stream."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """Return compute capability 9.0."""
        return 9, 0

    def get_current_target(self) -> GPUTarget:
        """Return the target that kernels are lowered for."""
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> Any:
        """Return the device where tensors are expected."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Return torch's interface of the device."""
        import torch

        return torch.cpu

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return a benchmark that runs its function once and reports equal times."""

        def run_once(function: Callable[[], object], **_: object) -> list[float]:
            function()
            return [1.0, 1.0, 1.0]

        return run_once
