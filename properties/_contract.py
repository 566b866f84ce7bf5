"""The contract: what a kernel promises, checked as it is written down."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar, overload

from trivet.oracles._precision import Precision
from trivet.properties import _validation
from trivet.properties._arguments import Argument, Scalar, Tensor
from trivet.properties._dims import closest
from trivet.properties._dtypes import DTYPES, Dtype
from trivet.properties._law import Fault, Law, claim_of, story_of
from trivet.properties._sizes import Dim

Function = TypeVar("Function", bound=Callable[..., Any])
__all__ = ["Contract", "Scalar", "Tensor"]


@dataclass(frozen=True, eq=False)
class Contract:
    """What a kernel promises: its domain, its oracles and its precision.

    ``kernel`` is the host function that people call; ``oracles`` compute the right answer
    independently; ``dims`` and ``args`` say which inputs are legal. Raises ValueError where the
    contract contradicts itself, naming the part and what to do.
    """

    kernel: Callable[..., Any]
    oracles: Sequence[Callable[..., Any]]
    dims: Mapping[str, Any]
    args: Mapping[str, Argument]
    outputs: Mapping[str, Tensor] | None = None
    backward: Callable[..., Any] | Literal["autograd"] | None = None
    precision: Precision = field(default_factory=Precision)
    raises: Sequence[tuple[type[BaseException], str, object]] = ()

    def __post_init__(self) -> None:
        _validation.fields(self)
        _validation.arguments(self)
        closest(self, {})  # a domain that no sizes can meet raises here

    @cached_property
    def forms(self) -> Mapping[str, Dim]:
        """The dims as size forms, in order."""
        return _validation.forms(self.dims, self.args)

    @cached_property
    def laws(self) -> list[Law]:
        """The contract's own laws, in order of definition."""
        return []

    @cached_property
    def assumptions(self) -> dict[str, Callable[..., object]]:
        """The preconditions by name."""
        return {}

    @cached_property
    def removed(self) -> dict[str, str]:
        """The standard laws taken out, each with its reason."""
        return {}

    @cached_property
    def exact_laws(self) -> set[str]:
        """The laws that must hold to the bit."""
        return set()

    @cached_property
    def faults(self) -> list[Fault]:
        """The past bugs, in order of definition."""
        return []

    @overload
    def law(self, function: Function) -> Function: ...
    @overload
    def law(self, *, dtypes: Sequence[str]) -> Callable[[Function], Function]: ...
    def law(self, function: Any = None, *, dtypes: Sequence[str] | None = None) -> Any:
        """Add a law: a function of dims, arguments and out, ref, bound, kernel, rerun, by name.

        It fails by an assertion. ``@c.law(dtypes=("float32",))`` restricts it to some dtypes.
        """
        if function is None:
            return lambda later: self._add_law(later, dtypes)
        return self._add_law(function, dtypes)

    def _add_law(self, function: Function, dtypes: Sequence[str] | None) -> Function:
        needs = _validation.law(self, function, dtypes)
        chosen = None if dtypes is None else tuple(dtypes)
        self.laws.append(Law(function.__name__, claim_of(function), needs, function, chosen))
        return function

    def assume(self, function: Function) -> Function:
        """Add a precondition over dims and arguments; inputs that fail it are discarded."""
        _validation.assumption(self, function)
        self.assumptions[function.__name__] = function
        return function

    def without(self, law: str, reason: str) -> None:
        """Remove a standard law; every report shows the reason."""
        _validation.known_law(self, law, "without")
        if not reason.strip():
            raise ValueError(f"without({law!r}): give the reason, every report shows it")
        self.removed[law] = reason

    def bitwise(self, law: str) -> None:
        """Demand that a law holds to the bit, not only within the bound."""
        _validation.known_law(self, law, "bitwise")
        self.exact_laws.add(law)

    def fault(
        self, *, expects: Sequence[str], number: int | None = None
    ) -> Callable[[Function], Function]:
        """Add a past bug: above a replacement kernel, or a function that returns a text edit.

        ``expects`` names the laws that must turn red, at most two.
        """
        names = _validation.expectations(self, expects)

        def add(function: Function) -> Function:
            self.faults.append(
                Fault(function.__name__, story_of(function), names, number, function)
            )
            return function

        return add

    def with_kernel(self, kernel: Callable[..., Any]) -> "Contract":
        """The same promises of another kernel; laws, assumptions and faults are shared."""
        twin = copy(self)
        object.__setattr__(twin, "kernel", kernel)
        return twin

    def is_bitwise(self, law: str) -> bool:
        """Whether ``law`` must hold to the bit."""
        return law in self.exact_laws

    def tensors(self) -> Mapping[str, Tensor]:
        """The tensor arguments, in order."""
        return self._tensors

    @cached_property
    def _tensors(self) -> Mapping[str, Tensor]:
        return {name: arg for name, arg in self.args.items() if isinstance(arg, Tensor)}

    @cached_property
    def delicate(self) -> tuple[tuple[str, str], ...]:
        """The (argument, dtype) whose domain some sizes cannot meet: one dtype per storage type."""
        found: dict[tuple[str, str], str] = {}
        for name, tensor in self.tensors().items():
            for dtype in self.dtypes():
                storage = self.storage_of(name, dtype)
                domain = tensor.domain_at(storage)
                if tensor.role != "out" and (domain.structured or domain.names):
                    found.setdefault((name, storage.name), dtype)
        return tuple((name, dtype) for (name, _), dtype in found.items())

    def written_arguments(self) -> tuple[str, ...]:
        """The arguments declared out or inout, in order."""
        return tuple(name for name, arg in self.tensors().items() if arg.role != "in")

    def unwritten_arguments(self) -> tuple[str, ...]:
        """The out buffers: handed over with nothing written in them."""
        return tuple(name for name, arg in self.tensors().items() if arg.role == "out")

    def read_only_arguments(self) -> tuple[str, ...]:
        """The arguments that the kernel must not write (one shared with a written one it may)."""
        shared = {other for name in self.written_arguments() for other in self.aliases(name)}
        names = (name for name, arg in self.tensors().items() if arg.role == "in")
        return tuple(name for name in names if name not in shared)

    def whole_storage_arguments(self) -> tuple[str, ...]:
        """The arguments that stand for their whole storage."""
        return tuple(name for name, arg in self.tensors().items() if arg.alias == "storage")

    def aliases(self, name: str) -> tuple[str, ...]:
        """The arguments whose storage ``name`` may share."""
        alias = self.tensors()[name].alias
        return alias if isinstance(alias, tuple) else ()

    def dtypes(self) -> tuple[str, ...]:
        """The dtypes the contract is judged at: those of the first argument that has several.

        Where none has several, the dtype of the first float argument, else of the first tensor.
        """
        found = [a.dtypes for a in self.tensors().values() if isinstance(a.dtypes, tuple)]
        several = [dtypes for dtypes in found if len(dtypes) > 1]
        floats = [dtypes for dtypes in found if DTYPES[dtypes[0]].floating]
        return (several or floats or found or [("float32",)])[0]

    def dtype_of(self, name: str, dtype: str) -> str:
        """The storage type of argument ``name`` when the contract is judged at ``dtype``."""
        return self._dtype(self.tensors()[name], dtype)

    def storage_of(self, name: str, dtype: str) -> Dtype:
        """As ``dtype_of``, with its facts."""
        return DTYPES[self.dtype_of(name, dtype)]

    def _dtype(self, tensor: Tensor, dtype: str) -> str:
        if isinstance(tensor.dtypes, str):
            return self.dtype_of(tensor.dtypes, dtype)
        if dtype in tensor.dtypes:
            return dtype
        if dtype not in self.dtypes():
            known = ", ".join(self.dtypes())
            raise ValueError(f"{dtype} is none of the dtypes the contract is judged at: {known}")
        return tensor.dtypes[self.dtypes().index(dtype) % len(tensor.dtypes)]

    def output_dtype(self, name: str, dtype: str) -> str | None:
        """The declared type of output ``name`` at ``dtype``, None where none is declared."""
        declared = (self.outputs or {}).get(name)
        return None if declared is None else self._dtype(declared, dtype)
