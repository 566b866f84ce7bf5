"""Kernels whose compiled text rounds in a known way."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

FLOATS = ("*fp32",) * 3


@triton.jit
def dot(a, b, c, PRECISION: tl.constexpr, TYPE: tl.constexpr):
    i = tl.arange(0, 64)
    place = i[:, None] * 64 + i[None, :]
    x, y = tl.load(a + place), tl.load(b + place)
    tl.store(c + place, tl.dot(x, y, input_precision=PRECISION, out_dtype=TYPE))


@triton.jit
def exponential(a, b, c):
    i = tl.arange(0, 128)
    tl.store(c + i, tl.exp(tl.load(a + i)) / tl.load(b + i))


@triton.jit
def functions(a, b, c):
    i = tl.arange(0, 128)
    x = tl.load(a + i)
    waves = tl.sin(x) + tl.cos(x) + libdevice.tanh(x) + tl.sigmoid(x)
    roots = tl.sqrt(x) + tl.rsqrt(x) + tl.sqrt_rn(x) + tl.div_rn(x, tl.load(b + i))
    tl.store(c + i, waves + roots + tl.log(x) + tl.exp2(x) + tl.log2(x) + libdevice.expm1(x))


@triton.jit
def fast(a, b, c):
    i = tl.arange(0, 128)
    x = tl.load(a + i)
    y = libdevice.fast_expf(x) + libdevice.fast_sinf(x) + libdevice.fast_logf(x)
    tanh = tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(c + i, y + libdevice.fast_dividef(x, tl.load(b + i)) + tanh)


def _dot(kind, precision="ieee", out=tl.float32):
    return dot, (f"*{kind}", f"*{kind}", "*fp32"), {"PRECISION": precision, "TYPE": out}


@triton.jit
def total(a, b, c, BLOCK: tl.constexpr):
    x = tl.load(a + tl.arange(0, BLOCK))
    tl.store(c, tl.sum(tl.log(1.0 + tl.exp(x)), axis=0))


SPECIALISATIONS = {
    **{f"sum {block}": (total, FLOATS, {"BLOCK": block}) for block in (128, 1024, 4096)},
    **{
        f"dot {form}": _dot("fp32", form) for form in ("tf32", "ieee", "tf32x3", "bf16x3", "bf16x6")
    },
    "dot bfloat16": _dot("bf16"),
    "dot half accumulator": _dot("fp16", out=tl.float16),
    "exp": (exponential, FLOATS, {}),
    "store bfloat16": (exponential, ("*fp32", "*fp32", "*bf16"), {}),
    "functions": (functions, FLOATS, {}),
    "fast": (fast, FLOATS, {}),
}
