"""The precision of AMD's assembly: the counts that the audit of PTX asks for, read off gfx9 code.

Division written `/` is rounded correctly there, and a function's own reciprocal is corrected by
fused products: a reciprocal that only multiplies is the fast division, which no table bounds, nor
the native sine and cosine, nor functions of half floats. The native logarithm is in every
logarithm, which the profile bounds. Rounding to bfloat16 is integer arithmetic
on these GPUs and not told apart from other such; the PTX of the same kernel shows it.
"""

import re
from collections.abc import Iterator, Sequence

from trivet.simulator.compiled.listing import Instruction, gcn_listing
from trivet.simulator.ptx import Counts

_MATRIX = re.compile(r"v_(?:mfma|smfmac|wmma)_(f\d+|bf16)_\d+x\d+x\d+_?(.*)")
_INPUTS = {"xf32": "tf32", "fp8": "e4m3", "bf8": "e5m2"}
_FUNCTION = re.compile(r"v_(exp|rcp|rsq|sqrt|sin|cos|log(?=_f16))_(f16|f32)(?:_e\d+)?$")
_NAMES = {"exp": "ex2", "rsq": "rsqrt", "log": "lg2"}
_NARROWING = re.compile(
    r"v_(?:cvt_(?:pk_|pkrtz_|sr_)?|fma_mix(?:lo|hi)_)(f16|bf16|fp8|bf8)(?:_f32)?"
)
_ARITHMETIC = re.compile(r"v_(?:pk_)?(add|sub|mul|fma)\w*_(f16|f32|f64)(?:_|$)")
_REGISTERS = re.compile(r"\bv(?:(\d+)|\[(\d+):(\d+)\])")
# Triton's ways to split float32 operands, by what their products are as good as.
_SPLIT = {"bf16x6": "f32", "tf32x3": "f32", "bf16x3": "tf32"}
_DOT = re.compile(r"tt\.dot .*?(?:inputPrecision = (\w+))? : tensor<[\dx]*xf32>")


def parse(assembly: str, ttir: str) -> Counts:
    """Count the instructions of AMD's ``assembly`` that round.

    ``ttir`` is the IR that it was compiled from: it says how products of float32 are split.
    """
    instructions = gcn_listing(assembly).instructions
    counts = Counts()
    for number, item in enumerate(instructions):
        if found := _MATRIX.match(item.opcode):
            counts.matrix[_inputs(found[2], ttir), found[1]] += 1
        elif found := _FUNCTION.match(item.opcode):
            counts.approximate[_operation(found[1], number, instructions), found[2]] += 1
        elif found := _NARROWING.match(item.opcode):
            _narrow(counts, item.opcode, _INPUTS.get(found[1], found[1]))
        elif found := _ARITHMETIC.match(item.opcode):
            counts.arithmetic[found[1], found[2]] += 2 if "_pk_" in item.opcode else 1
    modes = re.findall(r"\.amdhsa_float_denorm_mode_32 (\d)", assembly)
    counts.flushing = sum(mode != "3" for mode in modes)
    return counts


def _inputs(types: str, ttir: str) -> str:
    """The type of a product's inputs: that of the whole float32 where they are parts of one."""
    kind = next((_INPUTS[name] for name in _INPUTS if types.startswith(name)), "")
    kind = kind or types.partition("_")[0]
    asked = set(_DOT.findall(ttir))
    if kind in ("bf16", "tf32") and asked and asked <= _SPLIT.keys():
        return max(_SPLIT[each] for each in asked)
    return kind


def _narrow(counts: Counts, opcode: str, target: str) -> None:
    rounding = "rz" if "pkrtz" in opcode else "rs" if "_sr_" in opcode else "rn"
    counts.narrowing[target, rounding] += 2 if "_pk" in opcode else 1


def _operation(name: str, number: int, instructions: Sequence[Instruction]) -> str:
    if name == "rcp" and _only_multiplies(number, instructions):
        return "div"
    return _NAMES.get(name, name)


def _only_multiplies(number: int, instructions: Sequence[Instruction]) -> bool:
    """Whether the reciprocal at ``number`` has uses, and every one is a plain product."""
    held = _registers(instructions[number].operands.partition(",")[0])
    uses = 0
    for item in instructions[number + 1 :]:
        result, _, sources = item.operands.partition(",")
        if item.opcode.startswith(("global_store", "buffer_store", "ds_write")):
            result, sources = "", item.operands
        if held & _registers(sources):
            if not re.match(r"v_(?:pk_)?mul_f", item.opcode):
                return False
            uses += 1
        fused = re.match(r"v_(?:pk_)?fmac", item.opcode)
        if held & _registers(result):
            return uses > 0 and not fused
    return uses > 0


def _registers(operand: str) -> set[int]:
    return set(_each(operand))


def _each(operand: str) -> Iterator[int]:
    for single, first, last in _REGISTERS.findall(operand):
        yield from [int(single)] if single else range(int(first), int(last) + 1)
