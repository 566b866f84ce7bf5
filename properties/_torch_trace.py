"""Runs a reference written in torch on bounded numbers: below autograd, operation by operation.

Every float tensor is a real float64 tensor, so that views and in-place writes are torch's own; what
is known beyond its values (errors, doubt) is kept beside each storage, per element. An operation
that moves nothing (a view) runs as it is, any other by its rule in bounded arithmetic.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from trivet.oracles._bounded import Bounded, lift, single_terms, terms_of
from trivet.oracles._context import Context
from trivet.oracles._discrete import Discrete
from trivet.oracles._errors import OracleError, Undecidable
from trivet.oracles._formats import FORMATS
from trivet.properties._torch_storage import Storage, owned, reshaped_origin, same_place, strided

Rule = Callable[..., Any]

RULES: dict[str, Rule] = {}
# They show their argument's storage though their schema does not say so, or change how it is shown.
_ALIASES = frozenset({
    "_unsafe_view", "lift_fresh", "lift", "detach", "alias", "detach_", "squeeze_", "unsqueeze_",
    "transpose_", "t_", "swapaxes_", "swapdims_",
})  # fmt: skip
_METADATA = frozenset({"size", "stride", "numel", "dim", "storage_offset", "is_same_size"})
_FACTORIES = frozenset({
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "zeros",
    "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
    "arange", "linspace", "eye", "scalar_tensor", "tril_indices", "triu_indices",
})  # fmt: skip
_CHANCE = frozenset({
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like",
    "bernoulli", "normal", "uniform", "multinomial", "native_dropout",
})  # fmt: skip
# What takes a plain Python or NumPy number out of a float tensor, and so loses its bound.
_LEAVING = {
    getattr(torch.Tensor, name)
    for name in ("item", "tolist", "numpy", "__float__", "__array__", "__int__", "__complex__")
}


class NoRuleError(Exception):
    """A rule does not cover these settings of its operation."""


class OpaqueError(OracleError):
    """The reference uses an operation without a rule: its value is known, its bound is not."""


def torch_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of the ATen operations `names`.

    It gets ATen's arguments in ATen's order, float tensors as Bounded, integers as NumPy arrays
    (Discrete where in doubt).
    """

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Interprets torch operations of one evaluation of a reference."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave out the wrapper that imports torch's compiler: nothing is compiled here."""
        return False

    def __init__(self, context: Context) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.context = context
        self.opaque: OpaqueError | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = func._schema.name.removeprefix("aten::")
        stored = (kwargs or {}).get("dtype")
        kwargs = with_floats(kwargs or {}, torch.float64)
        if name in _METADATA or is_view(func, name):
            self._same_kind(name, func, args)
            return func(*args, **kwargs)
        if name.rstrip("_") in _CHANCE:
            raise self.refuse(f"{name} draws random numbers")
        if name in _FACTORIES:
            return _cleared(name, func(*args, **kwargs))
        if name == "_local_scalar_dense":
            return self._number(args[0])
        if not self._traced(args, kwargs):
            result = func(*args, **kwargs)
            if not _floating(result) or (name == "_to_copy" and stored is None):
                return result
        return self._by_rule(name, func, args, kwargs, stored)

    def refuse(self, reason: str) -> OpaqueError:
        """The error that makes the reference opaque; remembered should the reference catch it."""
        self.opaque = OpaqueError(reason, reason.split()[0])
        return self.opaque

    def _same_kind(self, name: str, func: Any, args: Sequence[Any]) -> None:
        if name == "view" and func._overloadname == "dtype":
            raise self.refuse("view(dtype) reads the bits of numbers")

    def _number(self, tensor: torch.Tensor) -> Any:
        known = self.unwrap(tensor)
        if isinstance(known, Discrete):
            raise Undecidable("a branch or index of the oracle depends on rounding", "bool")
        if isinstance(known, Bounded) and known.error.any():
            raise self.refuse("item() takes a plain number out of a rounded one")
        return tensor.numpy().item()

    def _traced(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether a float takes part, or an integer in doubt."""
        for leaf in (*_leaves(args), *kwargs.values()):
            if isinstance(leaf, float):
                return True
            if isinstance(leaf, torch.Tensor) and (
                leaf.dtype.is_floating_point or isinstance(self.unwrap(leaf), Discrete)
            ):
                return True
        return False

    def _by_rule(
        self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any], stored: Any
    ) -> Any:
        written = written_arguments(func, args, kwargs)
        if name == "copy_" and same_place(args[0], args[1]):
            return args[0]  # x[i] += y ends in x[i] = x[i]
        plain = name.rstrip("_") if name not in RULES else name
        rule = RULES.get(plain)
        if rule is None or len(written) > 1 or (written and name not in RULES and "out" in kwargs):
            raise self.refuse(f"{name} has no rule")
        kwargs.pop("out", None)
        if stored is not None:
            kwargs["dtype"] = stored
        operands = _mapped(self._operand, args)
        options = {key: self._operand(value) for key, value in kwargs.items()}
        leaves = [*_leaves(operands), *options.values()]
        if not any(isinstance(leaf, (Bounded, Discrete)) for leaf in leaves):
            operands = _mapped(self._lifted, operands)
        result = self._applied(rule, plain, operands, options)
        if written:
            self._write(written[0], result)
            return written[0]
        return self._wrapped(result, leaves)

    def _applied(self, rule: Rule, name: str, operands: Any, options: Any) -> Any:
        try:
            return rule(*operands, **options)
        except (Undecidable, OpaqueError):
            raise
        except OracleError as error:
            raise self.refuse(f"{name}: {error}") from error
        except (TypeError, NoRuleError) as error:
            raise self.refuse(f"{name} has no rule for these settings ({error})") from error

    def _operand(self, leaf: Any) -> Any:
        return self.unwrap(leaf) if isinstance(leaf, torch.Tensor) else leaf

    def _lifted(self, leaf: Any) -> Any:
        return lift(self.context, leaf) if isinstance(leaf, np.ndarray) else leaf

    def unwrap(self, tensor: torch.Tensor) -> Any:
        """The number of a tensor: Bounded for floats; a plain array or Discrete for others."""
        if tensor.dtype.is_complex or tensor.layout is not torch.strided:
            raise self.refuse(f"a tensor of {tensor.dtype}, {tensor.layout}, has no rule")
        if tensor.dtype.is_floating_point and tensor.dtype != torch.float64:
            return lift(self.context, tensor.detach().to(torch.float64).numpy())
        known = self._storage_of(tensor)
        if known.base is None:
            value = tensor.detach().numpy()
            if known.doubt is None:
                return value
            doubt = strided(known.doubt, tensor)
            return Discrete(self.context, value, doubt) if doubt.any() else value
        place = (int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride()))
        number = known.seen.get(place)
        if number is None:
            number = self._view(known.base, tensor)
            number.origin = reshaped_origin(number, place, known)
            known.seen[place] = number
        return number

    def _view(self, base: Bounded, tensor: torch.Tensor) -> Bounded:
        value, error = (strided(part, tensor) for part in (base.value, base.error))
        view = Bounded(self.context, value, error, base.facts)
        if base.terms is not None:
            view.terms = base.terms.moved(lambda part: strided(part, tensor))
        return view

    def _storage_of(self, tensor: torch.Tensor) -> Storage:
        storage = tensor.untyped_storage()
        known = getattr(storage, "_trivet_known", None)
        if known is not None and known.owner is self:
            return known  # type: ignore[no-any-return]
        base = None
        if tensor.dtype == torch.float64:
            flat = torch.empty(0, dtype=torch.float64).set_(storage)
            # A constant that the reference wrote down: a literal, rounded where float32 must.
            base = lift(self.context, flat.numpy())
        storage._trivet_known = known = Storage(self, base)  # type: ignore[attr-defined]
        return known

    def wrap(self, number: Bounded) -> torch.Tensor:
        """A tensor for `number`, which owns its arrays."""
        tensor = torch.from_numpy(number.value)
        flat = Bounded(self.context, number.value.reshape(-1), number.error.reshape(-1))
        flat.facts = number.facts
        known = Storage(self, flat)
        if terms_of(number) is not None:
            flat.terms = number.terms and number.terms.moved(np.ravel)
        known.seen[(0, tuple(tensor.shape), tuple(tensor.stride()))] = number
        tensor.untyped_storage()._trivet_known = known  # type: ignore[attr-defined]
        return tensor

    def _wrapped(self, result: Any, operands: Sequence[Any]) -> Any:
        if isinstance(result, (tuple, list)):
            return type(result)(self._wrapped(part, operands) for part in result)
        if isinstance(result, Bounded):
            return self.wrap(owned(result, operands))
        if isinstance(result, Discrete):
            tensor = torch.from_numpy(np.array(result.value))
            self._storage_of(tensor).doubt = np.array(result.undecided).reshape(-1)
            return tensor
        if isinstance(result, (np.ndarray, np.generic)):
            return torch.from_numpy(np.array(result))
        return result

    def _write(self, tensor: torch.Tensor, result: Any) -> None:
        """Store a result in a tensor's memory, with what is known of it."""
        known = self._storage_of(tensor)
        if known.base is None:
            value, doubt = result, np.zeros((), bool)
            if isinstance(result, Discrete):
                value, doubt = result.value, result.undecided
            if np.any(doubt) and known.doubt is None:
                known.doubt = np.zeros(tensor.untyped_storage().nbytes() // tensor.itemsize, bool)
            tensor.detach().numpy()[...] = value
            if known.doubt is not None:
                strided(known.doubt, tensor)[...] = doubt
            return
        if tensor.dtype != torch.float64:
            raise self.refuse(f"writing into a tensor of {tensor.dtype} has no rule")
        part = lift(self.context, result)
        if terms_of(part) is not None and known.base.terms is None:
            known.base.terms = single_terms(known.base)
        known.freeze()
        self._view(known.base, tensor)[...] = part


class Leaving(TorchFunctionMode):
    """Refuses what turns a float tensor into plain numbers, below which no bound is kept."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if func in _LEAVING and args[0].dtype.is_floating_point:
            raise self.tracer.refuse(f"{func.__name__}() takes plain numbers out of a float tensor")
        return func(*args, **(kwargs or {}))


def _mapped(function: Rule, args: Sequence[Any]) -> list[Any]:
    return [
        _mapped(function, arg) if isinstance(arg, (list, tuple)) else function(arg) for arg in args
    ]


def _leaves(args: Sequence[Any]) -> Iterator[Any]:
    for arg in args:
        yield from _leaves(arg) if isinstance(arg, (list, tuple)) else (arg,)


def with_floats(kwargs: Mapping[str, Any], floats: torch.dtype) -> dict[str, Any]:
    """Keyword arguments with the type `floats` for every float type."""
    dtype = kwargs.get("dtype")
    if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
        return {**kwargs, "dtype": floats}
    return dict(kwargs)


@cache
def is_view(func: Any, name: str) -> bool:
    """Whether an operation returns a part of its argument's storage and computes nothing."""
    if name in _ALIASES:
        return True
    marks = [result.alias_info for result in func._schema.returns]
    return any(mark is not None and not mark.is_write for mark in marks)


def written_arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The tensors that an operation writes in place, by its schema."""
    given = (
        args[position] if position < len(args) else kwargs.get(name)
        for position, name in _written(func)
    )
    return [tensor for tensor in given if isinstance(tensor, torch.Tensor)]


@cache
def _written(func: Any) -> list[tuple[int, str]]:
    return [
        (position, argument.name)
        for position, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _floating(result: Any) -> bool:
    leaves = _leaves(result if isinstance(result, (list, tuple)) else (result,))
    return any(isinstance(x, torch.Tensor) and x.dtype.is_floating_point for x in leaves)


def _cleared(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """What a reference leaves empty holds zeros, the same in every run."""
    return tensor.zero_() if "empty" in name else tensor


def narrow_name(dtype: Any, context: Context) -> str | None:
    """The format that a cast to `dtype` rounds to: one that the contract declares for storage."""
    name = str(dtype).removeprefix("torch.")
    declared = name in context.precision.storage.values()
    return name if declared and name in FORMATS else None
