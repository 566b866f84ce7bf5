"""What one `kernel[grid](...)` means: parameters bound, types named, constexprs told apart."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from triton.runtime.jit import mangle_type

from trivet.simulator._torch import triton
from trivet.simulator.rebuild import compiled

NUMBERS = (bool, int, float)
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_COMMON_OPTIONS = ("debug", "device_type", "device", "stream", "ir_override")


@dataclass(frozen=True)
class Launch:
    """One recorded launch, as size generation, audit and bench read it.

    ``dtypes`` maps parameters to Triton's type names; ``divisible_16`` names the pointers whose
    address, ``int_divisible_16`` the integers whose value, is a multiple of 16; ``equal_1`` the
    integers that are 1. ``shapes`` and ``strides`` (in elements) are those of tensor arguments.
    ``function`` is the JITFunction.
    """

    kernel: str
    grid: tuple[int, int, int]
    constexprs: dict[str, object]
    dtypes: dict[str, Any]
    divisible_16: tuple[str, ...]
    int_divisible_16: tuple[str, ...]
    equal_1: tuple[str, ...]
    num_warps: int
    num_stages: int
    options: dict[str, object]
    scalars: dict[str, bool | int | float]
    shapes: dict[str, tuple[int, ...]]
    strides: dict[str, tuple[int, ...]]
    function: Any = field(repr=False, compare=False)

    @property
    def programs(self) -> int:
        """How many programs the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True)
class Leaf:
    """One runtime argument of the lowered kernel: a tensor, a descriptor or a number."""

    name: str
    type: str
    value: Any


@dataclass(frozen=True)
class Call:
    """A bound launch: what a handler of `route` receives.

    ``signature`` and ``constexprs`` (by path) are what `lower` takes, ``leaves`` the runtime
    arguments in order, ``bound`` every parameter by name. ``proceed`` launches as Triton would,
    hooks included; a handler that launches in another way calls ``run_hooks`` first.
    """

    function: Any
    launch: Launch
    signature: dict[str, Any]
    constexprs: dict[tuple[int, ...], object]
    leaves: tuple[Leaf, ...]
    bound: Mapping[str, Any]
    proceed: Callable[[], object] = field(repr=False)
    run_hooks: Callable[[], None] = field(repr=False)


def bind(
    function: Any,
    grid: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    proceed: Callable[[], object],
    run_hooks: Callable[[], None],
) -> Call:
    """Bind one launch of the JITFunction ``function`` as Triton binds it.

    Raises TypeError for missing, surplus or unsupported arguments, KeyError for unknown options,
    ValueError for a grid that no device accepts.
    """
    names = function.signature.parameters
    options = {name: value for name, value in kwargs.items() if name not in names}
    _check_options(options)
    given = {name: value for name, value in kwargs.items() if name in names}
    arguments = function.signature.bind(*args, **given)
    arguments.apply_defaults()
    bound = {name: compiled(value) for name, value in arguments.arguments.items()}
    signature = {p.name: _type_of(bound[p.name], p) for p in function.params}
    constexprs: dict[tuple[int, ...], object] = {}
    leaves: list[Leaf] = []
    for number, (name, kind) in enumerate(signature.items()):
        for path, part, value in _parts((number,), kind, bound[name]):
            if part == "constexpr":
                constexprs[path] = value
            else:
                leaves.append(Leaf(".".join([name, *map(str, path[1:])]), part, value))
    shape = grid_of(grid, bound)
    launch = _record(function, shape, signature, constexprs, leaves, {**options, **bound})
    runtime = tuple(leaves)
    return Call(function, launch, signature, constexprs, runtime, bound, proceed, run_hooks)


def with_ones(call: Call) -> Call:
    """Return the call with integers that are 1 made constants, as Triton specialises them."""
    parameters = call.function.params
    ones = {
        p.name
        for p in parameters
        if type(call.bound[p.name]) is int and call.bound[p.name] == 1 and not p.do_not_specialize
    }
    signature = {name: "constexpr" if name in ones else t for name, t in call.signature.items()}
    constants: dict[tuple[int, ...], object] = {
        (number,): 1 for number, p in enumerate(parameters) if p.name in ones
    }
    leaves = tuple(leaf for leaf in call.leaves if leaf.name not in ones)
    merged = {**call.constexprs, **constants}
    return replace(call, signature=signature, constexprs=merged, leaves=leaves)


def grid_of(grid: Any, bound: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the grid as three integers; a function of the bound arguments is called first.

    Raises ValueError where a device would refuse the launch.
    """
    if callable(grid):
        grid = grid(dict(bound))
    sizes = [int(size) for size in (grid if hasattr(grid, "__len__") else (grid,))]
    if len(sizes) > 3:
        raise ValueError(f"a grid has at most three dimensions, this one is {tuple(sizes)}")
    first, second, third = (*sizes, 1, 1, 1)[:3]
    for size, limit in zip((first, second, third), _GRID_LIMITS, strict=True):
        if size > limit:
            raise ValueError(f"the grid {(first, second, third)} exceeds {_GRID_LIMITS}")
    return first, second, third


def is_tensor(value: object) -> bool:
    """Return whether Triton takes ``value`` as a pointer."""
    return hasattr(value, "data_ptr") and hasattr(value, "dtype")


def is_descriptor(value: object) -> bool:
    """Return whether ``value`` is a tensor descriptor made on the host."""
    return hasattr(value, "block_shape") and is_tensor(getattr(value, "base", None))


def _check_options(options: Mapping[str, object]) -> None:
    for name in options:
        if name not in _known_options():
            raise KeyError(f"Keyword argument {name} was specified but unrecognised")


@cache
def _known_options() -> frozenset[str]:
    from triton.backends.amd.compiler import HIPOptions
    from triton.backends.nvidia.compiler import CUDAOptions

    fields = {*CUDAOptions.__dataclass_fields__, *HIPOptions.__dataclass_fields__}
    return frozenset(fields | set(_COMMON_OPTIONS))


def _type_of(value: Any, parameter: Any) -> Any:
    if parameter.is_constexpr or value is None:
        return "constexpr"
    named = getattr(parameter, "annotation_type", "")
    if named and isinstance(named, str):
        _check_range(parameter.name, value, named)
        return named
    kind = _type_of_value(value)
    if parameter.is_const and isinstance(kind, str) and kind.startswith("*"):
        return f"*k{kind[1:]}"
    return kind


def _check_range(name: str, value: object, kind: str) -> None:
    """OverflowError, as from Triton's launcher, for a number that its annotated type cannot hold.

    Triton takes the annotation `int` for 32 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int) or kind[0] not in "iu":
        return
    bits = int(kind[1:])
    low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if bits > 1 and not low <= value <= high:
        raise OverflowError(f"{name} = {value} does not fit in {kind}, its annotation's type")


def _type_of_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "u1"
    if type(value) is int:
        return _integer_type(value)
    if type(value) is float:
        return "fp32"
    if is_tensor(value) and not isinstance(value, triton.runtime.jit.TensorWrapper):
        return f"*{_dtype_name(value.dtype)}"
    return mangle_type(value)


def _integer_type(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return "i32"
    return "u64" if value >= 2**63 else "i64"


@cache
def _dtype_name(dtype: Any) -> str:
    probe = triton.runtime.jit.MockTensor(dtype)
    return str(mangle_type(probe)).removeprefix("*")


def _parts(
    path: tuple[int, ...], kind: Any, value: Any
) -> Iterator[tuple[tuple[int, ...], str, Any]]:
    if isinstance(kind, tuple):
        for number, (inner, part) in enumerate(zip(kind, value, strict=True)):
            yield from _parts((*path, number), inner, compiled(part))
    else:
        yield path, kind, value


def _record(
    function: Any,
    grid: tuple[int, int, int],
    signature: Mapping[str, Any],
    constexprs: Mapping[tuple[int, ...], object],
    leaves: list[Leaf],
    options: Mapping[str, Any],
) -> Launch:
    tensors = {n.name: _base(n.value) for n in leaves if not isinstance(n.value, NUMBERS)}
    scalars = {leaf.name: leaf.value for leaf in leaves if isinstance(leaf.value, NUMBERS)}
    integers = {k: v for k, v in scalars.items() if isinstance(v, int) and v is not True}
    names = function.arg_names
    return Launch(
        kernel=function.__name__,
        grid=grid,
        constexprs={
            ".".join([names[p[0]], *map(str, p[1:])]): value for p, value in constexprs.items()
        },
        dtypes={name: kind for name, kind in signature.items() if kind != "constexpr"},
        divisible_16=tuple(k for k, t in tensors.items() if t.data_ptr() % 16 == 0),
        int_divisible_16=tuple(k for k, v in integers.items() if v % 16 == 0),
        equal_1=tuple(k for k, v in integers.items() if v == 1),
        num_warps=int(options.get("num_warps") or 4),
        num_stages=int(options.get("num_stages") or 3),
        options={k: v for k, v in options.items() if k in _known_options()},
        scalars=scalars,
        shapes={name: tuple(t.shape) for name, t in tensors.items()},
        strides={name: tuple(t.stride()) for name, t in tensors.items()},
        function=function,
    )


def _base(value: Any) -> Any:
    return value.base if is_descriptor(value) else value
