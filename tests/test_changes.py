"""Inputs made of inputs: dense copies, one row alone, some arguments replaced."""

import numpy as np
import pytest
import torch

from trivet import (
    ANY,
    Choice,
    Contract,
    Scalar,
    Tensor,
    integers,
    offsets,
    permutation,
    reals,
    sizes,
)
from trivet.properties._cases import Case, Recipe, build
from trivet.properties._changes import batch_dim, changed, dense, one_row
from trivet.properties._engine import judge
from trivet.properties._verdict import InapplicableError, NotPromisedError


def kernel(**arguments):
    """Takes anything."""


def contract_of(kernel=kernel, dims=None, **args):
    dims = dims or {"M": sizes(0, 9), "N": sizes(1, 9)}
    return Contract(kernel=kernel, oracles=[lambda **arguments: None], dims=dims, args=args)


def inputs_of(contract, dims, dtype="float32", scalars=None, **recipes):
    drawn = {name: Recipe("normal", 3) for name in contract.tensors()}
    return build(contract, Case(dims, {**drawn, **recipes}, scalars or {}), dtype)


BATCH = {"x": Tensor("M N", layouts=ANY), "w": Tensor("N"), "tau": Scalar(float, 0, 1)}
SIZES = {"M": 4, "N": 3}


def test_dense_copies_are_contiguous_and_equal():
    inputs = inputs_of(
        contract_of(**BATCH), SIZES, scalars={"tau": 0.5}, x=Recipe("normal", 1, layout="order:1,0")
    )
    before = inputs.tensors["x"]
    assert not before.is_contiguous()
    plain = dense(inputs)
    for name in ("x", "w"):
        tensor = plain.tensors[name]
        assert tensor.is_contiguous()
        assert tensor.storage_offset() == 0
        assert torch.equal(tensor, inputs.tensors[name])
        assert (
            tensor.untyped_storage().data_ptr() != inputs.tensors[name].untyped_storage().data_ptr()
        )
    assert plain.tensors["tau"] == 0.5
    assert inputs.tensors["x"] is before


def test_an_offset_is_a_layout():
    inputs = inputs_of(contract_of(**BATCH), SIZES, scalars={"tau": 0.5}, w=Recipe(layout="offset"))
    assert inputs.tensors["w"].storage_offset()
    assert dense(inputs).tensors["w"].storage_offset() == 0


def test_dense_inputs_have_no_dense_copies():
    assert dense(inputs_of(contract_of(**BATCH), SIZES, scalars={"tau": 0.5})) is None


def test_shared_storage_is_not_parted():
    contract = contract_of(
        x=Tensor("N", layouts=ANY), y=Tensor("N", layouts=ANY, alias=("x",), role="inout")
    )
    recipe = Recipe("normal", 1, layout="offset")
    apart = inputs_of(contract, SIZES, x=recipe, y=recipe)
    assert dense(apart) is not None
    shared = inputs_of(
        contract, SIZES, x=recipe, y=Recipe("normal", 1, layout="offset", share="same:x")
    )
    assert dense(shared) is None


def test_absent_arguments_stay_absent():
    contract = contract_of(x=Tensor("N", layouts=ANY), b=Tensor("N", optional=True))
    inputs = inputs_of(contract, SIZES, x=Recipe(layout="offset"), b=Recipe(absent=True))
    assert dense(inputs).tensors["b"] is None


def test_one_row_alone():
    def takes_sizes(x, w, tau, M, N):
        """The kernel wants to know its sizes."""

    contract = contract_of(takes_sizes, **BATCH)
    inputs = inputs_of(contract, SIZES, scalars={"tau": 0.5})
    row, dim, index = one_row(contract, inputs)
    assert (dim, index) == ("M", 2)
    assert row.dims == {"M": 1, "N": 3}
    assert (row.tensors["M"], row.arrays["M"], inputs.tensors["M"]) == (1, 1, 4)
    assert torch.equal(row.tensors["x"], inputs.tensors["x"][2:3])
    assert (row.arrays["x"] == inputs.arrays["x"][2:3]).all()
    assert row.tensors["w"] is inputs.tensors["w"]
    row.tensors["x"][:] = 9
    assert (inputs.tensors["x"] != 9).all()


def test_a_single_row_has_no_row_among_others():
    contract = contract_of(x=Tensor("M N"))
    for size in (0, 1):
        with pytest.raises(InapplicableError, match=f"M = {size}: no row among others"):
            one_row(contract, inputs_of(contract, {"M": size, "N": 3}))


def test_absent_and_scalar_shaped_arguments_have_no_rows():
    contract = contract_of(x=Tensor("M N"), b=Tensor("M", optional=True), s=Tensor(("M", "")))
    inputs = inputs_of(contract, SIZES, b=Recipe(absent=True), s=Recipe(shape=1))
    row, _, _ = one_row(contract, inputs)
    assert row.tensors["b"] is None
    assert row.tensors["s"] is inputs.tensors["s"]


FORMS = {
    "no leading dim": (
        {},
        {"x": Tensor(""), "y": Tensor("M N")},
        "the first input has no leading dim",
    ),
    "arithmetic": ({}, {"x": Tensor("2*M N")}, "the first input has no leading dim of its own"),
    "several shapes": (
        {},
        {"x": Tensor(("M N", "M"))},
        "the first input has no leading dim of its",
    ),
    "two rows at least": (
        {"M": sizes(2, 9), "N": sizes(1, 9)},
        {"x": Tensor("M N")},
        "dim M does not admit a single row",
    ),
    "a derived dim": (
        {"M": sizes(1, 9), "N": "M + 1"},
        {"x": Tensor("M N")},
        "dim N depends on dim M: its rows do not stand alone",
    ),
    "not leading": (
        {},
        {"x": Tensor("M N"), "y": Tensor("N M")},
        "argument y depends on dim M: its rows do not stand alone",
    ),
    "twice": ({}, {"x": Tensor("M M")}, "argument x depends on dim M"),
    "a scalar": (
        {},
        {"x": Tensor("M N"), "at": Scalar(int, 0, "M")},
        "argument at depends on dim M",
    ),
    "values": (
        {},
        {"x": Tensor("M N"), "rows": Tensor("N", dtypes=("int32",), domain=integers(0, "M"))},
        "argument rows depends on dim M",
    ),
    "structure": (
        {},
        {"x": Tensor("M N"), "order": Tensor("M", dtypes=("int32",), domain=permutation())},
        "argument order depends on dim M",
    ),
    "offsets into rows": (
        {},
        {"x": Tensor("M N"), "starts": Tensor("N+1", dtypes=("int32",), domain=offsets("M"))},
        "argument starts depends on dim M",
    ),
}


@pytest.mark.parametrize(("dims", "args", "reason"), FORMS.values(), ids=FORMS.keys())
def test_rows_that_do_not_stand_alone(dims, args, reason):
    with pytest.raises(NotPromisedError) as found:
        batch_dim(contract_of(dims=dims, **args))
    assert str(found.value).startswith(reason)


def test_an_output_buffer_does_not_name_the_batch():
    contract = contract_of(out=Tensor("N", role="out"), x=Tensor("M N"), kind=Choice("M", "N"))
    assert batch_dim(contract) == "M"


def test_changed_arguments_are_rounded_to_what_arrives():
    contract = contract_of(x=Tensor("M N", dtypes=("bfloat16",)), tau=Scalar(float, 0, 1))
    inputs = inputs_of(contract, SIZES, "bfloat16", scalars={"tau": 0.5})
    values = np.full((4, 3), 1.001)
    found = changed(contract, inputs, {"x": values, "tau": 0.1})
    assert found.tensors["x"].dtype is torch.bfloat16
    assert (found.arrays["x"] == 1).all()
    assert found.tensors["tau"] == found.arrays["tau"] == float(np.float32(0.1))
    assert (inputs.tensors["tau"], inputs.arrays["tau"]) == (0.5, 0.5)


def test_changed_integers_stay_exact():
    contract = contract_of(i=Tensor("N", dtypes=("int64",)), flag=Choice(True, False))
    inputs = inputs_of(contract, SIZES, "int64", scalars={"flag": 0})
    found = changed(contract, inputs, {"i": np.array([2**53 + 1, 0, -1]), "flag": False})
    assert found.tensors["i"].tolist() == found.arrays["i"].tolist() == [2**53 + 1, 0, -1]
    assert found.tensors["flag"] is False


def test_an_argument_may_be_taken_away():
    contract = contract_of(x=Tensor("N"), b=Tensor("N", optional=True))
    found = changed(contract, inputs_of(contract, SIZES), {"b": None})
    assert found.tensors["b"] is found.arrays["b"] is None


def test_dims_change_where_the_kernel_takes_them():
    def takes_one(x, M):
        """N is read off x."""

    contract = contract_of(takes_one, x=Tensor("M N"))
    found = changed(contract, inputs_of(contract, SIZES), {"M": 2, "N": 5, "x": np.ones((2, 5))})
    assert found.dims == {"M": 2, "N": 5}
    assert found.tensors["M"] == found.arrays["M"] == 2
    assert "N" not in found.tensors
    assert found.arrays["N"] == 5
    assert found.tensors["x"].shape == (2, 5)


def test_an_unknown_argument_is_named():
    contract = contract_of(x=Tensor("N"), b=Tensor("N"))
    with pytest.raises(TypeError, match="rerun: no argument y; arguments: x, b"):
        changed(contract, inputs_of(contract, SIZES), {"y": 1})


def test_a_row_that_misses_an_assumption_is_not_tried():
    from tests.tiny import doubled, twice

    contract = Contract(
        doubled, [twice], {"M": sizes(1, 9), "N": sizes(1, 9)}, {"x": Tensor("M N")}
    )

    @contract.assume
    def several_rows(M):
        return M > 1

    laws = ["matches_oracle", "ignores_batch"]
    found = {v.law: v for v in judge(contract, name="case", laws=laws)}
    assert found["ignores_batch"].state == "not_promised"
    assert found["ignores_batch"].reason == "a row alone does not meet the assumption several_rows"


def mean(x):
    from tests.tiny import doubled

    return doubled(x) - x.mean(0)


def test_an_oracle_that_mixes_rows_promises_no_row_alone():
    args = {"x": Tensor("M N", domain=reals(1, 2))}
    contract = Contract(
        mean, [lambda x: 2 * x - x.mean(0)], {"M": sizes(1, 9), "N": sizes(1, 9)}, args
    )
    (verdict,) = judge(contract, name="case", laws=["ignores_batch"])
    assert (verdict.state, verdict.reason) == (
        "not_promised",
        "the oracle's row depends on the other rows of M",
    )
