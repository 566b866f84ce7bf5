import numpy as np
import pytest
import torch

from trivet import ANY, DENSE, UNIT_LAST, Contract, Tensor, integers, permutation, reals, sizes
from trivet.properties._cases import Case, Recipe, build, layouts_of, shares_of
from trivet.properties._dtypes import DTYPES
from trivet.properties._layouts import geometry, layout_kinds
from trivet.properties._tensors import as_torch, empty_storage, torch_view, write

SHAPES = [(), (5,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (0, 4), (1, 1), (2, 2, 2, 2, 2)]


def anything(**given):
    return given


@pytest.mark.parametrize("layout", [DENSE, UNIT_LAST, ANY])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_layout_of_a_family_keeps_its_promise(layout, shape):
    kinds = layout_kinds(layout, len(shape))
    assert kinds[0] == "dense"
    assert len(set(kinds)) == len(kinds)
    for kind in kinds:
        place = geometry(kind, shape)
        view = torch_view(torch.empty(place.storage), shape, place)
        assert view.shape == shape, kind
        if layout is DENSE:
            assert view.is_contiguous(), kind
        if layout is UNIT_LAST and shape:
            assert view.stride(-1) == 1, kind


def test_any_reaches_all_strides():
    kinds = layout_kinds(ANY, 3)
    families = {kind.partition(":")[0] for kind in kinds}
    assert families == {"dense", "offset", "first", "last", "order", "every", "repeat"}
    assert sum(kind.startswith("order") for kind in kinds) == 5
    assert "repeat:all" in kinds
    assert not [k for k in layout_kinds(ANY, 3, repeats=False) if k.startswith("repeat")]


def test_the_last_part_of_a_longer_dim_starts_inside_its_storage():
    first, last = geometry("first:1", (3, 4)), geometry("last:1", (3, 4))
    assert first.strides == last.strides == (7, 1)
    assert (first.offset, last.offset) == (0, 3)
    assert geometry("order:1,0", (3, 4)).strides == (1, 3)
    assert geometry("every:0", (3, 4)).strides == (8, 1)
    assert geometry("repeat:all", (3, 4)).strides == (0, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "int8", "int64", "bool"])
def test_storage_outside_the_view_is_poison(dtype):
    storage = DTYPES[dtype]
    values = np.ones((3, 4))
    place = geometry("last:1", values.shape)
    flat = empty_storage(place.storage, storage)
    held = write(flat, values, place)
    assert (held.astype(float) == 1).all()
    tensor = torch_view(as_torch(flat, storage), values.shape, place)
    assert tensor.dtype is getattr(torch, dtype)
    assert (tensor.to(torch.float64) == 1).all()
    outside = np.ones(place.storage, bool)
    outside.reshape(3, 7)[:, 3:] = False
    rest = flat.astype(np.float64)[outside]
    if storage.floating:
        assert np.isnan(rest).all()
    elif dtype != "bool":
        assert (np.abs(rest) >= 0x5A).all()


def contract(**args):
    return Contract(
        kernel=anything, oracles=[anything], dims={"M": sizes(0, 9), "N": sizes(1, 9)}, args=args
    )


def built(bound, dims, dtype="float32", **recipes):
    return build(bound, Case(dims, recipes), dtype)


def test_what_a_view_holds_is_what_the_oracle_sees():
    bound = contract(x=Tensor("M N", dtypes=("float32", "bfloat16"), layouts=ANY))
    for dtype in ("float32", "bfloat16"):
        for layout in layouts_of(bound, "x", 2):
            found = built(bound, {"M": 3, "N": 5}, dtype, x=Recipe("normal", 1, layout=layout))
            tensor, array = found.tensors["x"], found.arrays["x"]
            assert (tensor.to(torch.float64).numpy() == array).all(), layout
            assert array.dtype == np.float64


def test_repeated_rows_are_equal_rows():
    bound = contract(x=Tensor("M N", layouts=ANY))
    found = built(bound, {"M": 3, "N": 5}, x=Recipe("normal", 1, layout="repeat:0"))
    assert found.tensors["x"].stride() == (0, 1)
    assert (found.arrays["x"] == found.arrays["x"][0]).all()


def test_nothing_is_repeated_where_it_would_break_the_domain():
    bound = contract(
        x=Tensor("M N", layouts=ANY, role="inout"),
        p=Tensor("M N", dtypes=("int32",), domain=permutation(), layouts=ANY),
        s=Tensor("M N", domain=reals().map(np.sort), layouts=ANY),
        u=Tensor("N", dtypes=("int32",), domain=integers(0, 99, unique=True), layouts=ANY),
        i=Tensor("M N", dtypes=("int32",), domain=integers(0, 9), layouts=ANY),
    )
    for name, rank in (("x", 2), ("p", 2), ("s", 2), ("u", 1)):
        assert not [k for k in layouts_of(bound, name, rank) if k.startswith("repeat")]
    assert "repeat:1" in layouts_of(bound, "i", 2)


def test_the_layout_of_another_argument():
    bound = contract(q=Tensor("M N", layouts=UNIT_LAST), k=Tensor("M N", layouts="q"))
    for layout in layouts_of(bound, "q", 2):
        found = built(bound, {"M": 3, "N": 5}, q=Recipe(layout=layout))
        assert found.tensors["q"].stride() == found.tensors["k"].stride(), layout


def test_arguments_that_share_storage():
    bound = contract(x=Tensor("M N"), y=Tensor("M N", alias=("x",)), out=Tensor("M N", role="out"))
    assert shares_of(bound, "y") == ("apart", "packed:x", "same:x")
    assert shares_of(bound, "x") == ("apart",)
    dims = {"M": 3, "N": 5}
    for share, same in (("apart", False), ("packed:x", True), ("same:x", True)):
        found = built(bound, dims, x=Recipe("normal", 1), y=Recipe("normal", 2, share=share))
        x, y = found.tensors["x"], found.tensors["y"]
        assert (x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()) is same
        assert (x.data_ptr() == y.data_ptr()) is (share == "same:x")
        assert (x.double().numpy() == found.arrays["x"]).all()
        assert (y.double().numpy() == found.arrays["y"]).all()


def test_an_out_buffer_holds_nothing():
    bound = contract(x=Tensor("M N"), out=Tensor("M N", role="out", alias=("x",)))
    found = built(bound, {"M": 2, "N": 3})
    assert found.arrays["out"] is None
    assert torch.isnan(found.tensors["out"]).all()
    in_place = built(bound, {"M": 2, "N": 3}, out=Recipe(share="same:x"))
    assert in_place.tensors["out"].data_ptr() == in_place.tensors["x"].data_ptr()
    assert (in_place.tensors["x"] == 1).all()
