"""Evaluates an oracle: in float64, or with a bound on every admissible execution."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.oracles import _blends as _blends
from trivet.oracles import _choices as _choices
from trivet.oracles import _composites as _composites
from trivet.oracles import _discretes as _discretes
from trivet.oracles import _functions as _functions
from trivet.oracles import _plain as _plain
from trivet.oracles import _products as _products
from trivet.oracles import _selection as _selection
from trivet.oracles._bounded import Bounded
from trivet.oracles._context import Context, Recorder, Site
from trivet.oracles._discrete import Discrete
from trivet.oracles._errors import OracleError, Undecidable
from trivet.oracles._formats import Array
from trivet.oracles._namespace import Namespace
from trivet.oracles._precision import Precision
from trivet.oracles._profile import profile_named
from trivet.oracles._rebind import rebound

Oracle = Callable[..., Any]
Argument = npt.NDArray[Any] | int | float | bool | None
Index = tuple[int, ...]
# Calls an oracle and returns its outputs: traced in a context, in plain float64 without one.
Caller = Callable[[Oracle, Mapping[str, Argument], Context | None], list[Any]]


@dataclass
class Value:
    """One output of an oracle.

    value: float64, integer or bool array. error: float64 array of its shape, the bound, infinity
    where undecidable; None for integers and bools that rounding cannot change. `blame(index)`
    names the step of the oracle that contributes most to the error there, and its share.
    """

    value: npt.NDArray[Any]
    error: Array | None
    blame: Callable[[Index], str]


def evaluate(
    oracle: Oracle,
    arguments: Mapping[str, Argument],
    *,
    precision: Precision | None = None,
    profile: str = "simulator",
    caller: Caller | None = None,
) -> list[Value | None]:
    """The outputs of `oracle` with their bounds, in order; None where the oracle returns None.

    Float arrays are exact stored values, float scalars are rounded to float32 already. An oracle
    whose first parameter is `m` gets the math namespace, any other its arguments by name; `caller`
    calls one that is not written in NumPy. Raises OracleError, naming function and operation,
    when the oracle fails on traced arrays.
    """
    call = caller or call_numpy

    def run(recorder: Recorder | None) -> list[Any]:
        return call(oracle, arguments, Context(known, precision or Precision(), recorder))

    known = profile_named(profile)
    try:
        outputs = run(None)
    except Undecidable:
        return [_undecidable(value) for value in call(oracle, arguments, None)]
    return [
        None if output is None else _value(output, _Blame(run, position, output))
        for position, output in enumerate(outputs)
    ]


def evaluate_float64(
    oracle: Oracle, arguments: Mapping[str, Argument]
) -> list[npt.NDArray[Any] | None]:
    """The outputs of `oracle` in plain float64. Raises what the oracle raises."""
    copies = {
        name: np.array(value).view(_Wide) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    with np.errstate(all="ignore"):
        outputs = outputs_of(call_by_name(oracle, copies, Namespace()))
    return [None if output is None else np.asarray(output) for output in outputs]


def call_numpy(
    oracle: Oracle, arguments: Mapping[str, Argument], context: Context | None
) -> list[Any]:
    """The outputs of an oracle in the namespace or in NumPy."""
    if context is None:
        return evaluate_float64(oracle, arguments)
    traced = {name: trace(context, value) for name, value in arguments.items()}
    return outputs_of(call_traced(oracle, traced, Namespace(context)))


def takes_namespace(oracle: Oracle, arguments: Collection[str]) -> bool:
    """Whether the first parameter of `oracle` is the math namespace `m`."""
    parameters = list(inspect.signature(oracle).parameters)
    return bool(parameters) and parameters[0] == "m" and "m" not in arguments


class _Wide(np.ndarray[Any, np.dtype[Any]]):
    """A float64 array that stays one when a reference stores it in another float format."""

    def astype(self, dtype: Any, *settings: Any, **options: Any) -> Any:
        """As numpy.ndarray.astype, with float64 for every float format."""
        if self.dtype == np.float64 and np.dtype(dtype).kind not in "iub":
            dtype = np.float64
        return super().astype(dtype, *settings, **options)


def call_by_name(oracle: Oracle, arguments: Mapping[str, Any], namespace: Namespace) -> Any:
    """What `oracle` returns for those of `arguments` that it takes, `m` first where it wants it."""
    positional = [namespace] if takes_namespace(oracle, arguments) else []
    parameters = inspect.signature(oracle).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return oracle(*positional, **arguments)
    known = {name: arguments[name] for name in parameters if name in arguments}
    return oracle(*positional, **known)


def call_traced(oracle: Oracle, traced: Mapping[str, Any], namespace: Namespace) -> Any:
    """What `oracle` returns for traced arguments. Raises OracleError naming it when it fails."""
    name = getattr(oracle, "__name__", repr(oracle))
    try:
        with np.errstate(all="ignore"):
            if not takes_namespace(oracle, traced):
                oracle = rebound(oracle, namespace)
            return call_by_name(oracle, traced, namespace)
    except Undecidable:
        raise
    except OracleError as error:
        text = f"oracle {name}: {error}"
        raise OracleError(text, error.operation) from error
    except Exception as error:
        text = f"oracle {name} fails on traced arrays: {type(error).__name__}: {error}"
        raise OracleError(text) from error


def trace(context: Context, value: Any) -> Any:
    """Floats as bounded arrays without error; integers, bools and None as they are."""
    if isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating)
    ):
        array = np.array(value, np.float64)
        return Bounded(context, array, np.zeros(array.shape))
    return value.copy() if isinstance(value, np.ndarray) else value


def outputs_of(result: Any) -> list[Any]:
    """What an oracle returned as a list of outputs."""
    if isinstance(result, dict):
        return list(result.values())
    if isinstance(result, (tuple, list)):
        return list(result)
    return [result]


def _value(output: Any, blame: Callable[[Index], str]) -> Value:
    if isinstance(output, Bounded):
        return Value(np.asarray(output.value), np.asarray(output.error), blame)
    if isinstance(output, Discrete):
        return Value(output.value, np.where(output.undecided, np.inf, 0.0), blame)
    plain = np.asarray(output)
    error = np.zeros(plain.shape) if np.issubdtype(plain.dtype, np.floating) else None
    return Value(plain, error, blame)


def _undecidable(value: Any) -> Value | None:
    if value is None:
        return None
    reason = "the oracle branches on a condition that rounding may change"
    return Value(value, np.full(value.shape, np.inf), lambda index: reason)


class _Blame:
    """Finds, when asked, the step whose own rounding the bound at an index owes most to.

    The oracle is evaluated again without the rounding of one step at a time.
    """

    def __init__(
        self, run: Callable[[Recorder | None], list[Any]], position: int, output: Any
    ) -> None:
        self._run = run
        self._position = position
        self._error = output.error if isinstance(output, Bounded) else None

    def __call__(self, index: Index) -> str:
        if self._error is None:
            return "no step rounds"
        whole = float(self._error[index])
        if not np.isfinite(whole) or whole == 0:
            return "no step rounds" if whole == 0 else "undecidable"
        recorder = Recorder()
        self._run(recorder)
        shares = {site: self._share(site, index, whole) for site in recorder.sites}
        if not shares:
            return "no step rounds"
        site = max(shares, key=lambda known: shares[known])
        return f"{site} gives {shares[site]:.0%} of the bound"

    def _share(self, site: Site, index: Index, whole: float) -> float:
        output = self._run(Recorder(muted=site))[self._position]
        return 1.0 - float(output.error[index]) / whole
