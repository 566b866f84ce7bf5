"""The precision audit of PTX: small kernels compiled for sm_90 in a child, and texts by hand."""

import json
import os
import subprocess
import sys

import pytest

from trivet import Precision
from trivet.oracles._profile import profile_named
from trivet.simulator.ptx import Plan, audit, parse
from trivet.simulator.ptx_depth import addition_depth

FLOAT, HALF, BRAIN = ("float32",), ("float16", "float32"), ("bfloat16", "float32")


@pytest.fixture(scope="module")
def compiled():
    environment = dict(os.environ, TRITON_DEFAULT_FP_FUSION="1")
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-W", "error", __file__]
    child = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def plan(*dtypes, profile="gpu", **precision):
    names = frozenset(dtypes or FLOAT)
    return Plan(Precision(**precision), names, profile_named(profile))


def findings(text, *dtypes, **settings):
    return [str(finding) for finding in audit(parse(text), plan(*dtypes, **settings))]


def test_a_default_dot_of_floats_is_tf32(compiled):
    counts = parse(compiled["dot tf32"])
    assert counts.matrix[("tf32", "f32")] > 0
    [finding] = audit(counts, plan())
    assert str(finding).startswith("mma with tf32 inputs, 8 times: float32 operands keep 11 bits")
    assert not audit(counts, plan(approx=("tf32",)))


def test_an_ieee_dot_is_a_chain_of_fused_products(compiled):
    counts = parse(compiled["dot ieee"])
    assert not counts.matrix
    assert counts.arithmetic["fma", "f32"] == 2048  # 64 products of 32 elements a thread
    assert not audit(counts, plan())


def test_three_products_of_tf32_parts_are_no_loss(compiled):
    assert parse(compiled["dot tf32x3"]).narrowed("tf32") > 0
    assert not findings(compiled["dot tf32x3"])


def test_two_bfloat16_parts_are_as_good_as_tf32_and_three_as_float32(compiled):
    assert findings(compiled["dot bf16x3"])
    assert not findings(compiled["dot bf16x3"], approx=("tf32",))
    assert not findings(compiled["dot bf16x6"])


def test_products_of_stored_types_are_the_kernels_own(compiled):
    assert not findings(compiled["dot bfloat16"], *BRAIN)
    assert findings(compiled["dot bfloat16"], *HALF) == [
        "mma with bf16 inputs, 4 times: the kernel stores nothing in bfloat16"
    ]


def test_a_half_accumulator_must_be_declared(compiled):
    text = compiled["dot half accumulator"]
    assert findings(text, *HALF) == [
        "mma with f16 accumulator, 4 times: sums are promised in float32"
    ]
    assert not findings(text, *HALF, accumulate="float16")


def test_exponential_and_division_are_bounded_by_the_profile(compiled):
    counts = parse(compiled["exp"])
    assert counts.approximate == {("ex2", "f32"): 1, ("div.full", "f32"): 1}
    assert not audit(counts, plan())


def test_roots_waves_and_logarithms_of_triton_are_bounded(compiled):
    counts = parse(compiled["functions"])
    assert counts.approximate[("sqrt", "f32")] == counts.approximate[("rsqrt", "f32")] == 1
    assert counts.flushing > 0
    assert not audit(counts, plan())


def test_flushing_needs_a_profile_that_allows_it(compiled):
    [finding] = findings(compiled["functions"], profile="simulator")
    assert finding.startswith(".ftz, ")


def test_fast_functions_are_found(compiled):
    assert sorted(findings(compiled["fast"])) == [
        "div.approx.f32, once: an approximation that no profile bounds",
        "lg2.approx.f32, once: an approximation that no profile bounds",
        "sin.approx.f32, once: an approximation that no profile bounds",
        "tanh.approx.f32, once: an approximation that no profile bounds",
    ]


def test_a_bfloat16_store_must_be_declared(compiled):
    text = compiled["store bfloat16"]
    assert parse(text).narrowing == {("bf16", "rn"): 1}
    assert findings(text) == ["cvt.rn.bf16, once: the kernel stores nothing in bfloat16"]
    assert not findings(text, *BRAIN)
    assert not findings(text, storage={"weights": "bfloat16"})


BY_HAND = """
// a comment with tanh.approx.f32 in it
/* and sin.approx.f32
   over lines */
.visible .entry kernel(.param .u64 x) {
$L__BB0_1:
    @%p1 cvt.rz.bf16x2.f32 %r1, %f1, %f2;
    @!%p2 bra $L__BB0_1;
    { add.f16x2 %r1, %r2, %r3; }
    mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3}, {%r4}, {%r5};
    tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r1];
    wgmma.fence.sync.aligned;
}
"""


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        # Elements of a thread by halves, five steps across 32 lanes, two across 4 warps.
        ("sum 128", 0 + 5 + 2),
        ("sum 1024", 3 + 5 + 2),
        ("sum 4096", 5 + 5 + 2),
        # One product after the other; a step of 8 (tf32) or 16 (bfloat16) products at a time.
        ("dot ieee", 63),
        ("dot tf32", 64 // 8),
        ("dot bfloat16", 64 // 16),
        ("dot tf32x3", 3 * 64 // 8),
        ("functions", 0),
        ("exp", 0),
    ],
)
def test_additions_on_a_path_are_counted(compiled, name, depth):
    assert parse(compiled[name]).depth == depth


def test_a_promised_depth_must_hold(compiled):
    assert not findings(compiled["sum 1024"], depth=10)
    assert not findings(compiled["sum 1024"])
    assert findings(compiled["sum 1024"], depth=9) == [
        "a chain of 10 additions, once: depth=9 promises fewer; declare 10 or more, or no depth"
    ]


def test_a_loop_of_accumulations_and_shared_memory_are_never_counted_too_high():
    exchanged = """
        .loc 1 7 3
        shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
        add.f32 %r3, %r1, %r2;
        st.shared.b32 [%r9], %r3;
        st.shared.b32 [%r9+4], %r8;
        ld.shared.b32 %r4, [%r9];
        shfl.sync.bfly.b32 %r5|%p1, %r4, 1, 31, -1;
        add.f32 %r6, %r4, %r5;
    """
    assert addition_depth(exchanged) == 1, "what was exchanged may have been %r8"
    assert addition_depth(exchanged.replace(", %r8", ", %r3")) == 2
    assert addition_depth(exchanged.replace(", %r8", ", %r3") + "cp.async.wait_all;") == 1


def test_formulas_and_polynomials_are_no_sums():
    assert addition_depth(".loc 1 7 3\nadd.f32 %r3, %r1, %r2; add.f32 %r4, %r3, %r2;") == 0
    horner = "\n".join(f"fma.rn.f32 %r{i + 1}, %r{i}, %r0, 0f3F800000;" for i in range(1, 9))
    assert addition_depth(horner) == 0


def test_packed_predicated_and_nested_instructions_are_counted():
    counts = parse(BY_HAND)
    assert counts.narrowing == {("bf16", "rz"): 2}
    assert counts.arithmetic == {("add", "f16"): 2}
    assert counts.matrix == {("f16", "f16"): 1, ("kind::f16", "f32"): 1}
    assert not counts.approximate
    assert findings(BY_HAND, *HALF, *BRAIN) == [
        "mma with f16 accumulator, once: sums are promised in float32",
        "cvt.rz.bf16, 2 times: truncates where storage rounds to nearest",
    ]


def test_a_family_of_types_is_right_where_one_of_them_is_stored():
    text = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;"
    assert not findings(text, *BRAIN)
    assert findings(text) == [
        "mma with kind::f16 inputs, once: the kernel stores nothing in float16 or bfloat16"
    ]


def _texts():
    import triton
    from tests.kernels import precise
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    texts = {}
    for name, (kernel, types, constants) in precise.SPECIALISATIONS.items():
        signature = dict(zip("abc", types, strict=True)) | dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        texts[name] = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    return texts


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    print(json.dumps(_texts()))
