"""A handler that records launches and lets Triton run them: for the interpreter and the GPU."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trivet.simulator.binding import Call, Launch
from trivet.simulator.launch import route
from trivet.simulator.standin import SimulatedKernel


@dataclass
class Recorder:
    """Records every routed launch and, unless ``dry``, proceeds with it as Triton would."""

    configuration: int = 0
    cold: bool = False
    launches: list[Launch] = field(default_factory=list)
    error: Exception | None = None
    configurations: int = 1
    dry: bool = False

    def launch(self, call: Call) -> object:
        """Record one launch and run it; its exception is remembered and goes on."""
        self.launches.append(call.launch)
        if self.dry:
            return SimulatedKernel(call.function, {})
        try:
            return call.proceed()
        except Exception as error:
            self.refused(error)
            raise

    def refused(self, error: Exception) -> None:
        """Remember that a launch failed."""
        self.error = self.error or error

    def forgiven(self, error: Exception) -> None:
        """Forget a launch whose configuration the kernel itself refuses at compile time."""
        self.launches.pop()
        self.error = None if self.error is error else self.error

    def tuned(self, configurations: int, key: object) -> bool:
        """Note how many configurations a tuned launch has."""
        self.configurations = max(self.configurations, configurations)
        return True


def launches_of(kernel: Callable[..., object], args: Mapping[str, Any]) -> list[Launch]:
    """Return the launches of ``kernel(**args)``, none of which runs; its exceptions come out.

    What the kernel computes from the results of a launch is computed from unwritten memory.
    """
    recorder = Recorder(dry=True)
    with route(recorder):
        kernel(**args)
    return recorder.launches
