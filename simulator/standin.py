"""What a launch or a warm-up returns where nothing was compiled for a device."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class SimulatedKernel:
    """Stands in for Triton's CompiledKernel, as far as host code uses one to plan its launches.

    The figures are those of a small kernel; they steer occupancy and grids, never values.
    """

    n_regs = 32
    n_spills = 0
    n_max_threads = 1024

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._function = function
        self._options = options
        self.name = function.__name__
        self.metadata = SimpleNamespace(
            name=self.name,
            shared=1024,
            num_warps=options.get("num_warps") or 4,
            num_stages=options.get("num_stages") or 3,
            num_ctas=options.get("num_ctas") or 1,
        )

    def _init_handles(self) -> None:
        """Load nothing."""

    def __getitem__(self, grid: Any) -> Callable[..., object]:
        """Return a launcher that takes every parameter by position, constexprs included."""

        def launch(*args: Any) -> object:
            return self._function.run(*args, grid=grid, warmup=False, **self._options)

        return launch
