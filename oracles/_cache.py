"""Values of oracles that were asked before: kept by what the oracle computes and on what."""

import functools
import hashlib
import types
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trivet.oracles._context import is_intercepted
from trivet.oracles._evaluate import Argument, Caller, Oracle, Value, evaluate
from trivet.oracles._precision import Precision

# Types of these packages are known by name; those of users may change under the same one.
_FIXED = frozenset({"builtins", "math", "numpy", "torch", "typing"})
# Reruns and faults of one contract come back to a few hundred inputs of some kilobytes each.
_CAPACITY = 64 * 2**20


class ValueCache:
    """The newest values, within `capacity` bytes of values, bounds and arguments."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self.capacity = capacity
        self.size = 0
        self._kept: OrderedDict[bytes, tuple[int, list[Value | None]]] = OrderedDict()

    def get(self, key: bytes) -> list[Value | None] | None:
        """Return the values kept under `key`, now the newest; None where there are none."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return list(self._kept[key][1])

    def put(self, key: bytes, values: list[Value | None], size: int) -> None:
        """Keep values of `size` bytes, and let the oldest go."""
        if size > self.capacity:
            return
        self._kept[key] = (size, list(values))
        self.size += size
        while self.size > self.capacity:
            self.size -= self._kept.popitem(last=False)[1][0]

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()
        self.size = 0


CACHE = ValueCache()


def evaluate_once(
    oracle: Oracle,
    arguments: Mapping[str, Argument],
    *,
    precision: Precision,
    profile: str,
    caller: Caller | None = None,
) -> list[Value | None]:
    """As `evaluate`, from the cache where this code saw these inputs before.

    The arrays of the values are read-only. An oracle whose code leans on objects that cannot be
    told apart by content is evaluated anew each time, and so is a mutated plan.
    """
    key = None if is_intercepted() else key_of(oracle, arguments, precision, profile)
    if key is None:
        return evaluate(oracle, arguments, precision=precision, profile=profile, caller=caller)
    values = CACHE.get(key)
    if values is None:
        values = evaluate(oracle, arguments, precision=precision, profile=profile, caller=caller)
        size = sum(np.asarray(argument).nbytes for argument in arguments.values())
        CACHE.put(key, values, size + sum(map(_frozen, values)))
    return values


def _frozen(value: Value | None) -> int:
    """Make the arrays of a value read-only and return their bytes."""
    arrays = [] if value is None else [a for a in (value.value, value.error) if a is not None]
    for array in arrays:
        array.setflags(write=False)
    return sum(array.nbytes for array in arrays)


def key_of(
    oracle: Oracle, arguments: Mapping[str, Argument], precision: Precision, profile: str
) -> bytes | None:
    """A digest of all that a value depends on; None for an oracle that has no fingerprint."""
    try:
        digest = hashlib.blake2b("\0".join(_described(oracle, ())).encode(), digest_size=16)
    except (_UnknownError, ValueError):  # the latter from a closure's cell that is still empty
        return None
    digest.update(repr((profile, precision)).encode())
    for name, value in sorted(arguments.items()):
        array = np.asarray(value)
        digest.update(repr((name, type(value).__name__, array.dtype.str, array.shape)).encode())
        if array.dtype == object and value is not None:
            return None
        digest.update(b"" if value is None else np.ascontiguousarray(array).tobytes())
    return digest.digest()


class _UnknownError(Exception):
    """An object that two processes, or two versions of a module, might fill differently."""


def _described(value: Any, seen: tuple[int, ...]) -> Iterator[str]:
    """What tells `value` from others by content: functions by code and all the code they use."""
    if isinstance(value, types.FunctionType):
        yield from () if id(value) in seen else _function(value, (*seen, id(value)))
    elif value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        yield repr(value)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    elif isinstance(value, (tuple, list, set, frozenset)):
        for item in value if isinstance(value, (tuple, list)) else sorted(value, key=repr):
            yield from _described(item, seen)
    elif isinstance(value, dict):
        for item in value.items():
            yield from _described(item, seen)
    elif isinstance(value, functools.partial):
        yield from _described((value.func, value.args, value.keywords), seen)
    elif isinstance(value, (types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        yield f"{getattr(value, '__module__', '')}.{value.__name__}"
    elif isinstance(value, type) and value.__module__.partition(".")[0] in _FIXED:
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        raise _UnknownError


def _function(function: types.FunctionType, seen: tuple[int, ...]) -> Iterator[str]:
    yield f"{function.__module__}.{function.__qualname__}"
    yield from _described((function.__defaults__, function.__kwdefaults__), seen)
    yield from _described([cell.cell_contents for cell in function.__closure__ or ()], seen)
    yield from _code(function.__code__)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from _described(function.__globals__[name], seen)


def _code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_filename}:{code.co_firstlineno} {code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        yield from _code(constant) if isinstance(constant, types.CodeType) else [repr(constant)]


def _names(code: types.CodeType) -> set[str]:
    nested = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*map(_names, nested))
