"""What a workload is: its oracle, the promise it makes, right kernels and wrong ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trivet import Tensor
from trivet.ci._power.inputs import Random
from trivet.ci._power.numbers import Arguments, Array
from trivet.oracles._evaluate import Value, evaluate
from trivet.oracles._precision import Precision


@dataclass(frozen=True)
class Output:
    """What a right kernel returned.

    declared: whether it sums within the declared depth. profile: whose accuracy of elementary
    functions it has ("simulator": float64, rounded once; "interpreter": a CPU's own float32).
    """

    name: str
    values: Array
    declared: bool = False
    profile: str = "simulator"


@dataclass(frozen=True)
class Promise:
    """What the kernels' contract declares: the depth of sums, formulas not promised."""

    depth: int | None = None
    approx: tuple[str, ...] = ()


class Workload(ABC):
    """One formula. Outputs have the cases along their first axis.

    cases: how many a batch has; batches: how many batches of each kind are judged for false
    alarms. dims: the sizes that a contract of it would declare; unbatched: arguments that all
    cases share. uses_functions: torch's result depends on its exp or tanh. gradients: outputs
    are those.
    """

    name: str
    cases: int
    batches: int
    promise: Promise
    dims: Mapping[str, Any]
    unbatched: tuple[str, ...] = ()
    dtype: Any = np.float32
    uses_functions: bool = False
    gradients: bool = False

    @abstractmethod
    def inputs(self, rng: Random, cases: int, kind: str) -> Arguments:
        """float32 arguments of `cases` cases."""

    @abstractmethod
    def domains(self, dtype: str) -> dict[str, Tensor]:
        """The arguments that a contract would declare: one case, at one dtype."""

    @abstractmethod
    def oracle(self) -> Callable[..., Any]:
        """The formula, a function of the math namespace and the arguments by name."""

    def value(self, exact: Arguments, precision: Precision, profile: str) -> Value:
        """The oracle's value and bound for float64 arguments."""
        (value,) = evaluate(self.oracle(), exact, precision=precision, profile=profile)
        assert value is not None
        return value

    @abstractmethod
    def right(self, arguments: Arguments) -> Array:
        """The kernel whose variants the faults are; it sums within the declared depth."""

    @abstractmethod
    def native(self, arguments: Arguments) -> Array:
        """What torch computes."""

    @abstractmethod
    def others(self, arguments: Arguments) -> Iterator[Output]:
        """What other right kernels compute."""

    @abstractmethod
    def faults(self, arguments: Arguments) -> Iterator[tuple[str, Array]]:
        """Name and result of each wrong kernel."""
