"""References written in torch: recognised, traced under the dispatcher, or opaque.

A reference is torch's when its code names something of torch, or when tracing it as NumPy fails at
a method or keyword that only tensors have. It runs on real float64 tensors, its operations bounded
by the rules of `_torch_rules`, `_torch_moves` and `_torch_layers`. At an operation without a rule
the reference is opaque: its float64 value judges the logic of a kernel, and the bound on rounding
comes from the kernel's own run (`_opaque`).
"""

import os
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trivet.oracles._bounded import Bounded
from trivet.oracles._cache import evaluate_once
from trivet.oracles._context import Context, add_machinery
from trivet.oracles._errors import OracleError, Undecidable
from trivet.oracles._evaluate import (
    Argument,
    Oracle,
    Value,
    call_by_name,
    evaluate_float64,
    outputs_of,
    takes_namespace,
)
from trivet.oracles._logic import Opaque
from trivet.oracles._namespace import Namespace
from trivet.oracles._precision import Precision
from trivet.properties import _torch_layers as _torch_layers
from trivet.properties import _torch_moves as _torch_moves
from trivet.properties import _torch_rules as _torch_rules
from trivet.properties._torch_trace import Leaving, OpaqueError, Tracer, with_floats

add_machinery(os.path.join(os.path.dirname(__file__), "_torch"), os.path.dirname(torch.__file__))

_RECOGNISED: set[Any] = set()
# Of an opaque reference: relative changes of its inputs, half an ulp of float32 up or down.
_MOVES = 4
_MOVE = 2.0**-24


def evaluate_reference(
    oracle: Oracle, arguments: Mapping[str, Argument], *, precision: Precision, profile: str
) -> list[Value | None]:
    """The outputs of `oracle`, written in the namespace, NumPy or torch, with their bounds.

    Those of a torch reference with an operation that has no rule are Opaque. Raises OracleError
    where the oracle fails.
    """
    if not is_torch(oracle, arguments):
        try:
            return evaluate_once(oracle, arguments, precision=precision, profile=profile)
        except OracleError as error:
            if not _asks_for_tensors(error):
                raise
            _RECOGNISED.add(_key(oracle))
    try:
        return evaluate_once(
            oracle, arguments, precision=precision, profile=profile, caller=call_torch
        )
    except OpaqueError as error:
        return _opaque(oracle, arguments, str(error))


def evaluate_plain(oracle: Oracle, arguments: Mapping[str, Argument]) -> list[Any]:
    """The outputs of `oracle` in plain float64. Raises what the oracle raises."""
    if is_torch(oracle, arguments):
        return call_torch(oracle, arguments, None)
    return evaluate_float64(oracle, arguments)


def is_torch(oracle: Oracle, arguments: Mapping[str, Argument]) -> bool:
    """Whether `oracle` is to be called with tensors."""
    if takes_namespace(oracle, arguments):
        return False
    return _key(oracle) in _RECOGNISED or _names_torch(oracle)


def _key(oracle: Oracle) -> Any:
    return getattr(oracle, "__code__", oracle)


def _names_torch(oracle: Oracle) -> bool:
    key = _key(oracle)
    if any(_of_torch(value) for value in _reached(oracle, set())):
        _RECOGNISED.add(key)
    return key in _RECOGNISED


def _of_torch(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] == "torch"
    if isinstance(value, (torch.Tensor, torch.dtype)):
        return True
    return str(getattr(value, "__module__", "")).partition(".")[0] == "torch"


def _reached(function: Any, seen: set[int]) -> Iterator[Any]:
    """What the code of a function, and of the functions it uses, names."""
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    found = [_content(cell) for cell in function.__closure__ or ()]
    for name in _names(function.__code__):
        known = function.__globals__.get(name)
        found.append(torch if name == "torch" and known is None else known)
    for value in found:
        yield value
        yield from _reached(value, seen)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    inner = (_names(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*inner)


def _asks_for_tensors(error: OracleError) -> bool:
    """Whether a reference failed as NumPy at what only a tensor has."""
    cause = error.__cause__
    if isinstance(cause, AttributeError):
        name = cause.name or ""
        return hasattr(torch.Tensor, name) and not hasattr(np.ndarray, name)
    return isinstance(cause, TypeError) and any(
        word in str(cause) for word in ("'dim'", "'keepdim'")
    )


def call_torch(
    oracle: Oracle, arguments: Mapping[str, Argument], context: Context | None
) -> list[Any]:
    """The outputs of a reference in torch: traced in a context, plain float64 arrays without."""
    if context is None:
        return _plain(oracle, arguments)
    with _default_type(torch.float64):
        return _traced(oracle, arguments, context)


@contextmanager
def _default_type(floats: torch.dtype) -> Iterator[None]:
    """Let what names no float type have the type `floats`."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(floats)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Floats(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """One float type wherever the reference names any."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """As the tracer: nothing is compiled here."""
        return False

    def __init__(self, floats: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.floats = floats

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **with_floats(kwargs or {}, self.floats))


@contextmanager
def in_floats(floats: torch.dtype) -> Iterator[None]:
    """Let a plain reference compute in the one float type `floats`."""
    with _default_type(floats), _Floats(floats), np.errstate(all="ignore"):
        yield


def _plain(
    oracle: Oracle, arguments: Mapping[str, Argument], floats: torch.dtype = torch.float64
) -> list[Any]:
    """The outputs of a reference run in the float type `floats`, as float64 arrays."""
    tensors = {name: untraced(value, floats) for name, value in arguments.items()}
    with in_floats(floats):
        outputs = outputs_of(call_by_name(oracle, tensors, Namespace()))
    return [_array(output) for output in outputs]


def untraced(value: Argument, floats: torch.dtype) -> Any:
    """An argument as a plain tensor of its own, floats in the type `floats`."""
    if not isinstance(value, np.ndarray):
        return value
    tensor = torch.from_numpy(value.copy())
    return tensor.to(floats) if tensor.is_floating_point() else tensor


def _array(output: Any) -> Any:
    if isinstance(output, torch.Tensor):
        output = output.detach()
        output = output.double() if output.is_floating_point() else output
        return output.resolve_conj().numpy()
    return None if output is None else np.asarray(output)


def _traced(oracle: Oracle, arguments: Mapping[str, Argument], context: Context) -> list[Any]:
    tracer = Tracer(context)
    tensors = {name: _tensor(tracer, value) for name, value in arguments.items()}
    name = getattr(oracle, "__name__", repr(oracle))
    try:
        with np.errstate(all="ignore"), Leaving(tracer), tracer:
            outputs = outputs_of(call_by_name(oracle, tensors, Namespace()))
    except (Undecidable, OpaqueError):
        raise
    except Exception as error:
        if tracer.opaque is None:
            text = f"oracle {name} fails on tensors: {type(error).__name__}: {error}"
            raise OracleError(text) from error
    if tracer.opaque is not None:
        raise tracer.opaque
    return [tracer.unwrap(x) if isinstance(x, torch.Tensor) else x for x in outputs]


def _tensor(tracer: Tracer, value: Argument) -> Any:
    """An argument as a tensor of its own: floats exact, integers and bools plain."""
    if isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        array = np.array(value, np.float64, order="C")
        return tracer.wrap(Bounded(tracer.context, array, np.zeros(array.shape)))
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def _opaque(oracle: Oracle, arguments: Mapping[str, Argument], reason: str) -> list[Value | None]:
    """The float64 outputs of an opaque reference, and how much rounding moves them.

    The change of its float32 run on inputs that are off by half an ulp, over half an ulp, holds
    its inputs' condition and that of its own steps. It stands for the condition in the law of
    logic, which allows 1e-9 of it where float64 rounds 1e-16. It is no bound on any rounding.
    """
    values = call_torch(oracle, arguments, None)
    conditions = [np.zeros(np.shape(value)) for value in values]
    changes = [np.zeros(np.shape(value)) for value in values]
    for seed in range(_MOVES):
        near, far = (_all_moved(arguments, seed, size) for size in (_MOVE, 2 * _MOVE))
        _widen(conditions, _changes(oracle, near, values, torch.float32), 1 / _MOVE)
        _widen(changes, _changes(oracle, far, values, torch.float64), 1.0)
    return [
        _opaque_value(*parts, reason) for parts in zip(values, conditions, changes, strict=True)
    ]


def _widen(widest: list[Any], found: list[Any], factor: float) -> None:
    for old, new in zip(widest, found, strict=True):
        np.fmax(old, new * factor, out=old)


def _changes(
    oracle: Oracle, moved: Mapping[str, Argument], values: list[Any], floats: torch.dtype
) -> list[Any]:
    """How far a run in ``floats`` on moved inputs lies from `values`.

    Infinite where that run fails, or has outputs of another shape.
    """
    try:
        others = _plain(oracle, moved, floats)
    except Exception:
        others = [None] * len(values)
    with np.errstate(all="ignore"):
        return [
            np.abs(np.asarray(other, np.float64) - value)
            if other is not None and np.shape(other) == np.shape(value)
            else np.full(np.shape(value), np.inf)
            for value, other in zip(values, others, strict=True)
        ]


def _all_moved(arguments: Mapping[str, Argument], seed: int, size: float) -> dict[str, Argument]:
    generator = np.random.default_rng(seed)
    return {name: _moved(value, generator, size) for name, value in arguments.items()}


def _moved(value: Argument, generator: np.random.Generator, size: float) -> Argument:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    signs = generator.integers(0, 2, value.shape) * 2 - 1
    return np.asarray(value * (1 + signs * size))


def _opaque_value(value: Any, condition: Any, change: Any, reason: str) -> Value | None:
    if value is None:
        return None
    blame: Callable[[tuple[int, ...]], str] = lambda index: reason  # noqa: E731
    if value.dtype.kind != "f":
        return Value(value, None, blame)
    return Opaque(value, np.full(value.shape, np.inf), blame, reason, condition, change)
