"""Functions of NVIDIA's libdevice and AMD's ocml, by name."""

from __future__ import annotations

import re

import numpy as np

from trivet.simulator.compiler import Compiler
from trivet.simulator.ir import Operation
from trivet.simulator.operations import conversions
from trivet.simulator.operations.integers import COUNTS
from trivet.simulator.operations.registry import Handler, Unsupported, pure
from trivet.simulator.values import INTEGERS

_SYMBOL = re.compile(r"__(?:nv|ocml)_(?:fast_)?(\w+?)(?:_f(?:16|32|64))?$")
_BINARY = {
    "pow": "math.powf",
    "powf": "math.powf",
    "atan2": "math.atan2",
    "fmod": "arith.remf",
    "fmax": "arith.maxnumf",
    "fmin": "arith.minnumf",
    "copysign": "math.copysign",
    "hypot": "hypot",
    "fdim": "fdim",
    "rhypot": "rhypot",
    "nextafter": "nextafter",
    "div_rn": "arith.divf",
    "fdiv_rn": "arith.divf",
    "dadd_rn": "arith.addf",
    "fadd_rn": "arith.addf",
    "dmul_rn": "arith.mulf",
    "fmul_rn": "arith.mulf",
    "ddiv_rn": "arith.divf",
    "fdivide": "arith.divf",
    "sub_rn": "arith.subf",
    "fsub_rn": "arith.subf",
}
_PREDICATES = {"isnan": "uno", "isnand": "uno"}
_UNARY = {
    "fsqrt_rn": "sqrt",
    "dsqrt_rn": "sqrt",
    "sqrt_rn": "sqrt",
    "frsqrt_rn": "rsqrt",
    "frcp_rn": "rcp",
    "drcp_rn": "rcp",
    "native_exp": "exp",
    "native_exp2": "exp2",
    "native_log": "log",
    "native_log2": "log2",
    "native_sqrt": "sqrt",
    "native_rsqrt": "rsqrt",
    "native_sin": "sin",
    "native_cos": "cos",
}
_ROUNDED = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_NEAREST = {"llrint": "rint", "llround": "round", "ilogb": "logb"}
# Beyond every exponent of float64, subnormals included.
_FAR = 2200
_FLOAT_TO_INTEGER = re.compile(r"(?:float|double)2(u?)(int|ll)_(r[nzdu])$")
_INTEGER_TO_FLOAT = re.compile(r"(u?)(?:int|ll)2(?:float|double)_r[nzdu]$")


@pure("tt.extern_elementwise")
def build_library_call(operation: Operation, compiler: Compiler) -> Handler:
    """Call of a library function; the symbol tells which one."""
    symbol = str(operation.attributes["symbol"])
    matched = _SYMBOL.match(symbol)
    name = matched[1] if matched else symbol
    found = _float_function(name, operation, compiler) or _conversion(name, operation, compiler)
    if found is None and name.endswith("f"):
        found = _float_function(name[:-1], operation, compiler)
    found = found or _integer_function(name)
    if found is None:
        raise Unsupported(f"library function {symbol}")
    return found


def _float_function(name: str, operation: Operation, compiler: Compiler) -> Handler | None:
    element = operation.operand_types[0].element
    arithmetic = compiler.arithmetic
    if not operation.operand_types[0].is_float:
        return None
    if name in ("fma", "fma_rn", "fmaf_rn", "mad"):
        return arithmetic.fma(element)
    if name in _BINARY:
        return arithmetic.binary(_BINARY[name], element)
    if not operation.result_types[0].is_float:
        return _predicate(name, operation, compiler)
    if name in ("ldexp", "scalbn"):
        return _scaled(element, compiler)
    if name in ("norm3d", "rnorm3d"):
        return _length(name, element, compiler)
    return arithmetic.unary(_UNARY.get(name, name), element)


def _scaled(element: str, compiler: Compiler) -> Handler | None:
    """x * 2^n with an integer n, rounded once."""
    scale = compiler.arithmetic.binary("ldexp", element)
    convert = compiler.arithmetic.from_integer(element)
    if scale is None:
        return None
    times = scale
    return lambda x, exponent: times(x, convert(np.clip(exponent, -_FAR, _FAR)))


def _length(name: str, element: str, compiler: Compiler) -> Handler | None:
    """Length of a vector of three, or its reciprocal."""
    hypotenuse = compiler.arithmetic.binary("hypot", element)
    last = compiler.arithmetic.binary("rhypot" if name[0] == "r" else "hypot", element)
    if hypotenuse is None or last is None:
        return None
    inner, outer = hypotenuse, last
    return lambda x, y, z: outer(inner(x, y), z)


def _predicate(name: str, operation: Operation, compiler: Compiler) -> Handler | None:
    """Classification; CUDA's answer with int32, so does ours."""
    arithmetic, element = compiler.arithmetic, operation.operand_types[0].element
    unordered, equal = arithmetic.compare("uno"), arithmetic.compare("oeq")
    absolute = arithmetic.unary("absf", element)
    infinity = arithmetic.constant(float("inf"), element)
    below, bits = arithmetic.compare("olt"), arithmetic.bits(element)
    if absolute is None:
        return None
    size = absolute
    tests: dict[str, Handler] = {
        "isnan": lambda x: unordered(x, x),
        "isinf": lambda x: equal(size(x), infinity),
        "isfinited": lambda x: below(size(x), infinity),
        "finite": lambda x: below(size(x), infinity),
        "signbit": lambda x: bits(x) < 0,
    }
    test = tests.get(name) or tests.get(name.rstrip("df")) or tests.get(name[:-1])
    if test is None:
        return None
    decide = test
    return lambda value: decide(value).astype(np.int32)


def _conversion(name: str, operation: Operation, compiler: Compiler) -> Handler | None:
    arithmetic = compiler.arithmetic
    source, target = operation.operand_types[0].element, operation.result_types[0].element
    to_integer = _FLOAT_TO_INTEGER.match(name)
    if to_integer:
        signs = (np.uint32, np.uint64) if to_integer[1] else (np.int32, np.int64)
        dtype = signs[to_integer[2] == "ll"]
        rounded = arithmetic.unary(_ROUNDED[to_integer[3]], source)
        convert = conversions.to_integer(arithmetic, source, dtype)
        signed = np.int64 if to_integer[2] == "ll" else np.int32
        if rounded is None:
            return None
        towards = rounded
        return lambda value: convert(towards(value)).view(signed)
    if name.rstrip("f") in _NEAREST:
        nearest = arithmetic.unary(_NEAREST[name.rstrip("f")], source)
        whole = conversions.to_integer(arithmetic, source, INTEGERS[target])
        return None if nearest is None else _chain(nearest, whole)
    to_float = _INTEGER_TO_FLOAT.match(name)
    if to_float:
        convert = arithmetic.from_integer(target)
        if not to_float[1]:
            return convert
        return lambda value: convert(value.view(f"u{value.itemsize}"))
    if name in ("float_as_int", "float_as_uint", "double_as_longlong"):
        return arithmetic.bits(source)
    if name in ("int_as_float", "uint_as_float", "longlong_as_double"):
        return arithmetic.from_bits(target)
    return None


def _chain(first: Handler, second: Handler) -> Handler:
    return lambda value: second(first(value))


def _integer_function(name: str) -> Handler | None:
    table: dict[str, Handler] = {
        "abs": np.abs,
        "llabs": np.abs,
        "min": np.minimum,
        "llmin": np.minimum,
        "max": np.maximum,
        "llmax": np.maximum,
        "popc": _population,
        "popcll": _population,
        "clz": _leading_zeros,
        "clzll": _leading_zeros,
        "ffs": _first_set,
        "ffsll": _first_set,
        "mulhi": lambda a, b: ((a.astype(np.int64) * b) >> 32).astype(np.int32),
        "brev": _reversed_bits,
        "mul24": lambda a, b: _low24(a) * _low24(b),
        "umul24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    }
    return table.get(name)


def _low24(value: np.ndarray) -> np.ndarray:
    """The low 24 bits as a signed number."""
    return (value << 8) >> 8


def _population(value: np.ndarray) -> np.ndarray:
    return np.asarray(COUNTS["math.ctpop"](value)).astype(np.int32)


def _leading_zeros(value: np.ndarray) -> np.ndarray:
    return np.asarray(COUNTS["math.ctlz"](value)).astype(np.int32)


def _first_set(value: np.ndarray) -> np.ndarray:
    return np.where(value == 0, 0, COUNTS["math.cttz"](value) + 1).astype(np.int32)


def _reversed_bits(value: np.ndarray) -> np.ndarray:
    bits = np.unpackbits(
        np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, -1), axis=-1
    )
    return np.packbits(bits[..., ::-1], axis=-1).view(value.dtype).reshape(value.shape)
