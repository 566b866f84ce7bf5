"""Launches compiled for GPUs that are not here: specialised as Triton would, counted, compared."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource

from trivet.simulator import parser
from trivet.simulator.binding import bind
from trivet.simulator.compiled import (
    CompilerMissingError,
    Measurement,
    compare,
    measure,
    missing,
    toolchain,
)
from trivet.simulator.compiled.cost import cost_of
from trivet.simulator.compiled.listing import frequent_place, gcn_listing, sass_listing
from trivet.simulator.compiled.metrics import matrix_rank
from trivet.simulator.compiled.request import request_of
from trivet.simulator.compiled.rules import RULES


@triton.jit
def scaled(x, y, n, step, factor, wide: tl.int64, pair, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i * step, tl.load(x + i, mask=i < n) * factor + wide + pair[0], mask=i < n)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x"])
def plain(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i, mask=i < n)


def launch_of(function, *args, **kwargs):
    call = bind(function, (2,), args, kwargs, lambda: None, lambda: None)
    return call.launch


def launch_scaled(offset=0, n=64, step=2, **options):
    x = torch.zeros(128 + offset)[offset:]
    return launch_of(scaled, x, torch.zeros(128), n, step, 0.5, 16, (3, 1), BLOCK=16, **options)


def tritons_own(function, args, backend):
    """The signature, constants and attributes of Triton's JIT for the same arguments."""
    from triton._C.libtriton import native_specialize_impl

    described = {}
    for parameter, value in zip(function.params, args, strict=True):
        if parameter.is_constexpr:
            continue
        kind, letters = native_specialize_impl(
            backend,
            value,
            False,
            not parameter.do_not_specialize,
            not parameter.do_not_specialize_on_alignment,
        )
        described[parameter.name] = (parameter.annotation_type or kind, letters)
    return described


@pytest.mark.parametrize(
    ("target", "machine", "backend"),
    [
        ("sm_90", GPUTarget("cuda", 90, 32), CUDABackend),
        ("gfx942", GPUTarget("hip", "gfx942", 64), HIPBackend),
    ],
)
@pytest.mark.parametrize("n", [1, 15, 16, 2**31])
@pytest.mark.parametrize("offset", [0, 1])
def test_a_request_is_specialised_as_triton_specialises_the_launch(
    target, machine, backend, n, offset
):
    x, y = torch.zeros(128 + offset)[offset:], torch.zeros(128)
    for function, args in ((scaled, (x, y, n, 1, 0.5, 16, (3, 1), 16)), (plain, (x, n, 16))):
        request = request_of(launch_of(function, *args[:-1], BLOCK=16), target)
        places = {name: place for place, name in enumerate(function.arg_names)}
        for name, (kind, letters) in tritons_own(function, args, backend(machine)).items():
            place = places[name]
            assert request.signature[name] == kind, name
            if isinstance(kind, tuple):
                continue
            assert ((place,) in request.constants) == (kind == "constexpr"), name
            wanted = backend.parse_attr(letters) if isinstance(letters, str) else []
            assert request.attributes.get((place,), []) == wanted, name


def test_the_words_of_a_specialisation_tell_launches_apart():
    words = request_of(launch_scaled(), "sm_90").text
    assert words == (
        "x=*fp32/16 y=*fp32/16 n=i32/16 step=i32 factor=fp32 wide=i64/16 "
        "pair.0=i32 pair.1=1 BLOCK=16"
    )
    shifted = request_of(launch_scaled(offset=1, step=1, num_warps=8), "sm_90").text
    assert shifted.split()[0] == "x=*fp32"
    assert "step=1" in shifted.split()
    assert shifted.endswith("num_warps=8")


def test_a_tensor_of_more_than_two_gigabytes_is_far_on_amd_alone():
    launch = launch_scaled()
    far = replace(launch, shapes={**launch.shapes, "x": (2**30,)})
    assert "x=*fp32/16/far" in request_of(far, "gfx942").text
    assert "far" not in request_of(far, "sm_90").text


def test_keys_follow_what_an_artifact_depends_on():
    key = request_of(launch_scaled(), "sm_90").key
    assert request_of(launch_scaled(n=128), "sm_90").key == key
    for other in (launch_scaled(offset=1), launch_scaled(step=16), launch_scaled(num_warps=8)):
        assert request_of(other, "sm_90").key != key
    assert request_of(launch_scaled(), "sm_80").key != key


LOOPS = """
module {
  tt.func public @k(%x: !tt.ptr<f32>, %n: i32, %m: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c16 = arith.constant 16 : i32
    %p = tt.get_program_id x : i32
    %e = arith.muli %p, %c16 : i32
    %t = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    scf.for %i = %c0 to %n step %c16  : i32 {
      %a = tt.load %t : tensor<64x!tt.ptr<f32>>
      scf.for %j = %c0 to %e step %c16  : i32 {
        %b = arith.addf %a, %a : tensor<64xf32>
        tt.store %t, %b : tensor<64x!tt.ptr<f32>>
      }
    }
    %l = tt.load %m : !tt.ptr<i32>
    scf.for %i = %c0 to %l step %c16  : i32 {
      %d = tt.load %t : tensor<64x!tt.ptr<f32>>
    }
    tt.return
  }
}
"""


def test_bytes_count_loops_by_their_bounds_in_the_middle_program():
    cost = cost_of(parser.parse(LOOPS), (8, 1, 1), ("x", "n", "m"), {"n": 40})
    outer, inner, unknown = 3, 4, 1  # ceil(40 / 16), program 4 of 8, a bound that is loaded
    assert cost.read == 256 * outer + 4 + 256 * unknown
    assert cost.written == 256 * outer * inner
    assert cost.floating == 64 * outer * inner
    assert (cost.iterations, cost.unknown) == (outer * inner, 1)


SASS = """
.text.k:
	//## File "/home/a/k.py", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
	//## File "/home/a/k.py", line 7
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E R4, desc[UR4][R2.64] ;
	//## File "/home/a/k.py", line 8
        /*0030*/               @P6 BRA `(.L_x_0) ;
        /*0040*/                   EXIT ;
.L_x_1:
        /*0050*/                   BRA `(.L_x_1);
        /*0060*/                   NOP;
"""
GCN = """
\t.file\t1 "/home/a" "k.py"
\t.loc\t1 3 0                          ; k.py:3:0
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB0_1:
\t.loc\t1 7 5                          ; k.py:7:5
\tbuffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
.Lfunc_end0:
\ts_nop 0
"""


@pytest.mark.parametrize(
    ("read", "text", "load", "count"),
    [(sass_listing, SASS, "LDG", 5), (gcn_listing, GCN, "buffer_load", 4)],
)
def test_a_listing_knows_loops_and_lines_and_drops_the_padding(read, text, load, count):
    listing = read(text)
    assert (len(listing.instructions), listing.loops, listing.deepest) == (count, 1, 1)
    assert frequent_place(listing.matching(load)) == ("/home/a/k.py", 7)
    assert listing.innermost[0].opcode.startswith(load)


def test_matrix_units_rank_by_speed_and_by_the_width_of_their_inputs():
    kinds = ["", "DMMA.884", "HMMA.1688.F32.TF32", "HMMA.16816.F32.BF16"]
    kinds += ["HGMMA.64x128x8.F32.TF32", "HGMMA.64x128x16.F32.BF16"]
    ranks = [matrix_rank(kind) for kind in kinds]
    assert ranks == sorted(set(ranks))


BASE = {"load_bits": 128.0, "registers": 40, "bytes_read": 4096, "matrix_kind": "HMMA"}


def measured(error="", **metrics):
    lines = {"kernel": "k.py:3: def k(", "load_bits": "k.py:7: v = tl.load(x)"}
    return Measurement("k", "", "sm_90", {**BASE, **metrics}, lines, error=error)


@pytest.mark.parametrize(
    ("metrics", "found"),
    [
        ({}, []),
        ({"load_bits": 32.0}, [("load_bits", "HARD", "k.py:7: v = tl.load(x)")]),
        ({"load_bits": 0}, []),
        ({"registers": 44}, []),
        ({"registers": 45}, [("registers", "SOFT", "k.py:3: def k(")]),
        ({"registers": 8, "bytes_read": 1024}, []),
        ({"matrix_kind": "DMMA"}, [("matrix_kind", "SOFT", "k.py:3: def k(")]),
        (
            {"registers": 99, "bytes_read": 4097},
            [("bytes_read", "HARD", "k.py:3: def k("), ("registers", "SOFT", "k.py:3: def k(")],
        ),
    ],
)
def test_only_what_is_worse_past_its_tolerance_is_a_change(metrics, found):
    changes = compare(BASE, measured(**metrics))
    assert [(c.metric, c.kind, c.line) for c in changes] == found
    assert all(change.words for change in changes)


def test_what_no_longer_compiles_is_hard_and_what_never_did_is_no_change():
    (change,) = compare(BASE, measured(error="no such instruction"))
    assert (change.metric, change.kind) == ("compiles", "HARD")
    assert "no such instruction" in change.words
    assert compare({}, measured(error="no such instruction")) == []


def test_every_rule_says_what_a_change_costs():
    assert len({rule.metric for rule in RULES}) == len(RULES)
    assert all(rule.words and rule.worse in (1, -1) for rule in RULES)


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """What measure() says in two fresh processes, and what Triton compiles without a detour."""
    found = []
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "TRIVET_CACHE": str(tmp_path_factory.mktemp("cache")),
            "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton")),
            "TRITON_DEFAULT_FP_FUSION": "1",
            "PYTHONHASHSEED": seed,
        }
        environment.pop("TRITON_INTERPRET", None)
        child = subprocess.run(
            [sys.executable, __file__], capture_output=True, text=True, env=environment
        )
        assert child.returncode == 0, child.stderr
        found.append(json.loads(child.stdout))
    return found


def test_metrics_are_the_same_in_every_process(artifacts):
    first, second = artifacts
    assert first["measured"] == second["measured"]
    assert {len(metrics) > 30 for metrics in first["measured"].values()} == {True}


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_the_detour_through_text_changes_no_instruction(artifacts, target):
    assert artifacts[0]["direct"][target] == artifacts[0]["measured"][target]["opcodes"]


def test_a_missing_tool_is_named(monkeypatch):
    toolchain.cache_clear()
    knob = vars(type(triton.knobs.nvidia))["nvdisasm"]
    monkeypatch.setattr(knob, "default_path", "/nowhere/nvdisasm")
    with pytest.raises(CompilerMissingError, match="brings no nvdisasm here: Cannot find nvdisasm"):
        measure([launch_scaled()], "sm_90")
    assert missing("sm_90").startswith("Triton")
    assert missing("gfx942") == ""


def test_a_crash_of_the_compiler_is_an_error_of_that_kernel(artifacts):
    text = "the compiler ended with status 7 on k for sm_90"
    assert artifacts[0]["crash"] == [text, True]


def test_a_compiler_that_was_killed_says_nothing_of_the_kernel(artifacts):
    assert artifacts[0]["killed"] == "the compiler ended by signal 9 on k for sm_90"


class _Ending:
    """Ends the process that receives it."""

    def __init__(self, by_signal):
        self.how = (signal.raise_signal, (9,)) if by_signal else (os._exit, (7,))

    def __reduce__(self):
        return self.how


def _direct(launch, target, folder):
    """The opcodes of the launch compiled by Triton from its function, in this process."""
    from trivet.simulator.compiled._child import Task, read_artifact
    from trivet.simulator.compiled.metrics import metrics_of
    from trivet.simulator.compiled.targets import device_named, is_nvidia, tool_path

    request = request_of(launch, target)
    source = ASTSource(scaled, request.signature, request.constants, request.attributes)
    machine = device_named(target).target
    made = triton.compile(source, target=machine, options=request.options)
    names = ("nvdisasm", "cuobjdump") if is_nvidia(target) else ()
    task = Task("", machine, {}, *(str(tool_path(name)) for name in names))
    return metrics_of(read_artifact(made, task, folder), target).metrics["opcodes"]


def _main() -> None:
    from trivet.simulator.compiled import CompilerError
    from trivet.simulator.compiled._child import Task
    from trivet.simulator.compiled.compiler import compile_task

    launch = launch_scaled()
    report = {"measured": {}, "direct": {}}
    with tempfile.TemporaryDirectory() as folder:
        for target in ("sm_90", "gfx942"):
            (measurement,) = measure([launch], target)
            assert not measurement.error, measurement.error
            report["measured"][target] = measurement.metrics
            report["direct"][target] = _direct(launch, target, Path(folder))
    crash = compile_task(Task("", _Ending(False), {}), what="k for sm_90")
    report["crash"] = [crash.error, crash.crashed]
    try:
        compile_task(Task("", _Ending(True), {}), what="k for sm_90")
    except CompilerError as error:
        report["killed"] = str(error)
    print(json.dumps(report))


if __name__ == "__main__":
    _main()
