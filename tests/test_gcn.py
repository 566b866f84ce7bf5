"""The precision audit of AMD's assembly: kernels compiled for gfx942 with planted offences."""

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trivet import Precision
from trivet.oracles._profile import profile_named
from trivet.simulator.compiled import gcn, measure
from trivet.simulator.ptx import Plan, audit, from_json
from trivet.simulator.recorder import launches_of


@triton.jit
def _functions(x, o, WHICH: tl.constexpr):
    i = tl.arange(0, 64)
    v = tl.load(x + i)
    w = tl.load(x + i + 64)
    if WHICH == "divide":
        y = v / w
    elif WHICH == "library":
        y = libdevice.atan(v) + libdevice.tanh(w) + libdevice.pow(v, w) + libdevice.log1p(v)
    elif WHICH == "own":
        y = tl.exp(v) + tl.log(w) + tl.sin(v) + tl.sqrt(w) + tl.rsqrt(v)
    elif WHICH == "fast division":
        y = libdevice.fast_dividef(v, w)
    elif WHICH == "quotient by hand":
        y = libdevice.fast_dividef(1.0, v + w) * w * v
    elif WHICH == "native sine":
        y = tl.inline_asm_elementwise("v_sin_f32 $0, $1", "=v,v", [v], tl.float32, True, 1)
    elif WHICH == "half exponential":
        y = tl.inline_asm_elementwise("v_exp_f16 $0, $1", "=v,v", [v], tl.float32, True, 1)
    elif WHICH == "half":
        y = v.to(tl.float16).to(tl.float32) + w
    else:
        y = v + w
    tl.store(o + i, y)


@triton.jit
def _product(x, y, o, PRECISION: tl.constexpr, KIND: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    left, right = tl.load(x + at).to(KIND), tl.load(y + at).to(KIND)
    tl.store(o + at, tl.dot(left, right, input_precision=PRECISION))


def counts_of(kernel, *arguments):
    def host(*given):
        kernel[(1,)](*given, num_warps=1)

    (launch,) = launches_of(lambda: host(*arguments), {})
    (measured,) = measure([launch], "gfx942", whole=False)
    assert not measured.error
    return from_json(measured.rounding)


def findings(counts, *dtypes, **precision):
    names = frozenset(dtypes or ("float32",))
    return [str(f) for f in audit(counts, Plan(Precision(**precision), names, GFX942))]


GFX942 = profile_named("gfx942")


def functions(which):
    return counts_of(_functions, torch.empty(128), torch.empty(64), which)


def product(precision, kind=tl.float32):
    tiles = [torch.empty(32, 32) for _ in range(3)]
    return counts_of(_product, *tiles, precision, kind)


@pytest.mark.parametrize("which", ["sum", "divide", "library", "own"])
def test_division_and_functions_as_the_backend_makes_them_are_bounded(which):
    assert findings(functions(which)) == []


@pytest.mark.parametrize(
    ("which", "found"),
    [
        ("fast division", "div.approx.f32, once: an approximation that no profile bounds"),
        ("quotient by hand", "div.approx.f32, once: an approximation that no profile bounds"),
        ("native sine", "sin.approx.f32, once: an approximation that no profile bounds"),
        ("half exponential", "ex2.approx.f16, once: an approximation that no profile bounds"),
        ("half", "cvt.rn.f16, once: the kernel stores nothing in float16"),
    ],
)
def test_an_approximation_that_is_planted_is_found(which, found):
    assert findings(functions(which)) == [found]


def test_a_product_in_tf32_must_be_declared():
    counts = product("tf32")
    [finding] = findings(counts)
    assert finding.startswith("mma with tf32 inputs, ")
    assert findings(counts, approx=("tf32",)) == []
    assert findings(product("ieee")) == []


def test_products_of_bfloat16_are_the_kernels_own_or_parts_of_a_float32():
    counts = product("ieee", tl.bfloat16)
    assert findings(counts)[0].endswith("the kernel stores nothing in bfloat16")
    assert findings(counts, "bfloat16", "float32") == []
    assert findings(product("bf16x3"))[0].startswith("mma with tf32 inputs")
    assert findings(product("bf16x6")) == []


BY_HAND = """
	v_rcp_f32_e32 v1, v2
	v_fma_f32 v4, -v2, v1, 1.0
	v_mul_f32_e32 v5, v3, v1
	v_rcp_f32_e32 v6, v7
	v_pk_mul_f32 v[8:9], v[8:9], v[6:7]
	v_rcp_f32_e32 v10, v11
	global_store_dword v12, v10, s[0:1]
	v_cvt_pkrtz_f16_f32 v1, v2, v3
	v_mfma_f32_32x32x16_fp8_bf8 v[20:35], v[16:17], v[18:19], v[20:35]
.Lfunc_end0:
	.amdhsa_float_denorm_mode_32 0
"""


def test_registers_are_followed_and_modes_read():
    counts = gcn.parse(BY_HAND, "")
    assert counts.approximate == {("rcp", "f32"): 2, ("div", "f32"): 1}
    assert counts.narrowing == {("f16", "rz"): 2}
    assert counts.matrix == {("e4m3", "f32"): 1}
    assert counts.flushing == 1
