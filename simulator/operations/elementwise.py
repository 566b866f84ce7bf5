"""Float operations, one element at a time."""

from __future__ import annotations

from trivet.simulator._functions import BINARY, WIDE_BINARY
from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations.registry import Handler, Unsupported, pure

# fmt: off
_UNARY = (
    "absf", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh",
    "erf", "erfc", "exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "round",
    "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)
# fmt: on


@pure(*(name for name in (*BINARY, *WIDE_BINARY) if "." in name))
def build_binary(operation: Operation, compiler: Compiler) -> Handler:
    """Float operation of two operands."""
    function = compiler.arithmetic.binary(operation.name, operation.result_types[0].element)
    if function is None:
        raise Unsupported(f"{compiler.arithmetic.name} arithmetic has no {operation.name}")
    return function


@pure("arith.negf", "tt.precise_sqrt", *(f"math.{name}" for name in _UNARY))
def build_unary(operation: Operation, compiler: Compiler) -> Handler:
    """Float function of one operand."""
    name = operation.name.partition(".")[2].removeprefix("precise_")
    function = compiler.arithmetic.unary(name, operation.result_types[0].element)
    if function is None:
        raise Unsupported(f"{compiler.arithmetic.name} arithmetic has no {operation.name}")
    return function


@pure("math.fma")
def build_fma(operation: Operation, compiler: Compiler) -> Handler:
    """Fused multiply-add."""
    return compiler.arithmetic.fma(operation.result_types[0].element)


@pure("tt.clampf")
def build_clamp(operation: Operation, compiler: Compiler) -> Handler:
    """``min(max(x, low), high)``, with the NaN rule the operation asks for."""
    wins = "all" in operation.words or operation.attributes.get("propagateNan") in (1, "all")
    kind = "imumf" if wins else "numf"
    element = operation.result_types[0].element
    upper = compiler.arithmetic.binary(f"arith.max{kind}", element)
    lower = compiler.arithmetic.binary(f"arith.min{kind}", element)
    if upper is None or lower is None:
        raise Unsupported(f"{compiler.arithmetic.name} arithmetic has no clamp")
    return lambda value, low, high: lower(upper(value, low), high)


@pure("arith.cmpf")
def build_compare(operation: Operation, compiler: Compiler) -> Handler:
    """Float comparison; ordered predicates are false for NaN, unordered ones true."""
    return compiler.arithmetic.compare(operation.words[0])
