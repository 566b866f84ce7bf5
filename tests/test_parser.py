"""The parser reads the printed form of every construct the machine runs."""

import pytest

from trivet.simulator.ir import Frame, Type, walk
from trivet.simulator.parser import parse

LOOP = """#loc = loc("/src/kernels.py":10:1)
module {
  tt.func public @sum(%x: !tt.ptr<f32> loc("x"(#loc)), %n: i32 loc("n"(#loc))) attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32 loc(#loc1)
    %c1_i32 = arith.constant 1 : i32 loc(#loc1)
    %cst = arith.constant dense<0xFF800000> : tensor<4x8xf32> loc(#loc1)
    %acc:2 = scf.for %i = %c0_i32 to %n step %c1_i32 iter_args(%a = %cst, %b = %c0_i32) -> (tensor<4x8xf32>, i32)  : i32 {
      %s = arith.addf %a, %cst : tensor<4x8xf32> loc(#loc2)
      scf.yield %s, %i : tensor<4x8xf32>, i32 loc(#loc1)
    } loc(#loc5)
    scf.for %j = %c0_i32 to %n step %c1_i32  : i32 {
      tt.store %x, %cst_0 : !tt.ptr<f32> loc(#loc4)
    } loc(#loc4)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("s"(#loc3))
#loc3 = loc(callsite("/lib/standard.py":5:9 at #loc4))
#loc4 = loc("/src/kernels.py":12:14)
#loc5 = loc("acc"(#loc6))
#loc6 = loc(fused[#loc1, #loc4])
"""  # noqa: E501


def operations(text):
    return list(walk(parse(text).entry.blocks))


def named(text, name):
    return next(op for op in operations(text) if op.name == name)


def one(line, parameters="%a: i32, %t: tensor<4xf32>"):
    text = f"module {{\n tt.func public @k({parameters}) {{\n {line}\n tt.return\n }}\n}}\n"
    return operations(text)[0]


def test_function_has_its_name_arguments_and_types():
    entry = parse(LOOP).entry
    assert entry.name == "sum"
    assert entry.arguments == ["%x", "%n"]
    assert entry.argument_types == [Type((), "ptr<f32>"), Type((), "i32")]


def test_loop_binds_counter_carried_values_and_results():
    loop = named(LOOP, "scf.for")
    assert loop.results == ["%acc#0", "%acc#1"]
    assert loop.operands == ["%c0_i32", "%n", "%c1_i32", "%cst", "%c0_i32"]
    assert loop.result_types == [Type((4, 8), "f32"), Type((), "i32")]
    assert loop.regions[0][0].arguments == ["%i", "%a", "%b"]


def test_loop_that_yields_nothing_ends_in_an_explicit_yield():
    loops = [op for op in operations(LOOP) if op.name == "scf.for"]
    assert [op.name for op in loops[1].regions[0][0].operations] == ["tt.store", "scf.yield"]


def test_locations_resolve_names_call_sites_and_fusions():
    module = parse(LOOP)
    addition, loop = named(LOOP, "arith.addf"), named(LOOP, "scf.for")
    kernel = Frame("/src/kernels.py", 12)
    assert module.frames(addition.location) == (Frame("/lib/standard.py", 5), kernel)
    assert module.frames(loop.location) == (kernel,)
    assert module.frames(named(LOOP, "arith.constant").location) == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tensor<4x8xf32>", Type((4, 8), "f32")),
        ("tensor<16x!tt.ptr<bf16>>", Type((16,), "ptr<bf16>")),
        ("!tt.ptr<i8>", Type((), "ptr<i8>")),
        ("!tt.ptr<f32, 1>", Type((), "ptr<f32>")),
        ("!tt.tensordesc<tensor<32x16xf16>>", Type((32, 16), "desc<f16>")),
        ("!tt.tensordesc<32x16xf16>", Type((32, 16), "desc<f16>")),
        ("tensor<8xi1, #blocked>", Type((8,), "i1")),
        ("index", Type((), "index")),
    ],
)
def test_types(text, kind):
    entry = parse(f"module {{\n tt.func @k(%a: {text}) {{\n tt.return\n }}\n}}").entry
    assert entry.argument_types == [kind]


def test_comparison_yields_booleans_of_the_operands_shape():
    op = one("%r = arith.cmpi slt, %t, %t : tensor<4xi32>")
    assert (op.words, op.result_types) == (["slt"], [Type((4,), "i1")])


def test_select_with_a_scalar_condition_knows_it():
    op = one("%r = arith.select %c, %t, %t : tensor<4xf32>")
    assert op.operand_types[0] == Type((), "i1")
    op = one("%r = arith.select %c, %t, %t : tensor<4xi1>, tensor<4xf32>")
    assert op.operand_types[0] == Type((4,), "i1")


def test_load_yields_what_its_pointer_points_to():
    op = one("%r = tt.load %p, %m, %o evictionPolicy = evict_last : tensor<4x!tt.ptr<f16>>")
    assert op.operands == ["%p", "%m", "%o"]
    assert op.result_types == [Type((4,), "f16")]


def test_attributes_of_both_forms():
    op = one("%r = tt.trans %t {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>")
    assert op.attributes == {"order": [1, 0]}
    op = one(
        '%r = tt.extern_elementwise %t {libname = "", pure = true, symbol = "__nv_tanhf"} : '
        "(tensor<4xf32>) -> tensor<4xf32>"
    )
    assert op.attributes == {"libname": "", "pure": True, "symbol": "__nv_tanhf"}


def test_region_in_parentheses_keeps_attributes_types_and_results():
    text = """module {
  tt.func public @k(%v: tensor<64xf32>, %i: tensor<64xi32>) {
    %0:2 = "tt.reduce"(%v, %i) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc8 at #loc7)), %b: i32, %c: f32, %d: i32):
      %e = arith.cmpf ogt, %a, %c : f32
      tt.reduce.return %a, %b : f32, i32
    }) : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
    tt.return
  }
}
"""
    op = named(text, "tt.reduce")
    assert op.results == ["%0#0", "%0#1"]
    assert op.attributes == {"axis": 0}
    assert op.operand_types == [Type((64,), "f32"), Type((64,), "i32")]
    assert op.result_types == [Type((), "f32"), Type((), "i32")]
    assert op.regions[0][0].arguments == ["%a", "%b", "%c", "%d"]


def test_branches_name_their_targets_and_arguments():
    text = """module {
  tt.func public @k(%p: i1, %n: i32) {
    cf.cond_br %p, ^bb1(%n : i32), ^bb2
  ^bb1(%m: i32):  // 2 preds: ^bb0, ^bb1
    cf.br ^bb1(%m : i32)
  ^bb2:  // pred: ^bb0
    tt.return
  }
}
"""
    blocks = parse(text).entry.blocks
    assert [block.label for block in blocks] == ["", "^bb1", "^bb2"]
    branch = blocks[0].operations[-1]
    assert branch.operands == ["%p"]
    assert branch.successors == [("^bb1", ["%n"]), ("^bb2", [])]
    assert blocks[1].arguments == ["%m"]


def test_while_without_values():
    text = """module {
  tt.func public @k(%p: i1) {
    scf.while : () -> () {
      scf.condition(%p)
    } do {
      scf.yield
    }
    tt.return
  }
}
"""
    loop = named(text, "scf.while")
    assert (loop.operands, loop.result_types, len(loop.regions)) == ([], [], 2)


def test_call_names_its_callee():
    op = one('%r:2 = tt.call @"helper__f32"(%a, %t) : (i32, tensor<4xf32>) -> (f32, i32)')
    assert op.words == ["helper__f32"]
    assert op.operands == ["%a", "%t"]


@pytest.mark.parametrize("text", ["", "module {\n}\n"])
def test_text_without_a_function_is_refused(text):
    with pytest.raises(ValueError, match="no function"):
        parse(text)


def test_line_that_is_no_operation_is_refused():
    with pytest.raises(ValueError, match="not an operation"):
        one("what is this")
