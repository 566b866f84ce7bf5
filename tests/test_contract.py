import dataclasses
import inspect

import pytest

from trivet import (
    ANY,
    UNIT_LAST,
    Choice,
    Contract,
    Scalar,
    Tensor,
    integers,
    log_uniform,
    reals,
    sizes,
)

DIMS = {"M": sizes(0, 40), "N": sizes(1, 300)}


def softmax(x):
    return x


def oracle(m, x):
    return x


def contract(**changes):
    fields = {
        "kernel": softmax,
        "oracles": [oracle],
        "dims": DIMS,
        "args": {"x": Tensor("M N", dtypes=("float32", "bfloat16"))},
    }
    return Contract(**{**fields, **changes})


def anything(**given):
    return given


def with_args(**args):
    return contract(kernel=anything, args=args)


def test_a_contract_has_eight_fields_and_no_ninth():
    names = [field.name for field in dataclasses.fields(Contract)]
    assert names == list(inspect.signature(Contract).parameters)
    assert len(names) == 8


def test_a_plain_contract():
    plain = contract()
    assert plain.dtypes() == ("float32", "bfloat16")
    assert plain.read_only_arguments() == ("x",)
    assert plain.written_arguments() == plain.unwritten_arguments() == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": 3}, "kernel=3: expected the host function people call"),
        ({"oracles": []}, "oracles=[]: expected at least one function"),
        ({"dims": [1]}, "dims=[1]: expected a dict by name"),
        ({"args": {}}, "args={}: a kernel without arguments has nothing to vary"),
        ({"args": {"x": "M N"}}, "argument x: 'M N' is no Tensor, Scalar or Choice"),
        (
            {"args": {"x": Tensor("M K")}},
            "argument x: 'M K' uses 'K', which is no dim or int argument; known: M, N",
        ),
        (
            {"args": {"y": Tensor("M N")}},
            "argument y: the kernel is softmax(x) and takes no 'y'",
        ),
        (
            {"args": {"x": Tensor("M"), "xx": Tensor("M")}},
            "argument xx: the kernel is softmax(x) and takes no 'xx'; did you mean 'x'?",
        ),
        (
            {"dims": {**DIMS, "x": sizes(1, 2)}},
            "'x' is both a dim and an argument: rename one of them",
        ),
        ({"dims": {**DIMS, "ref": sizes(1, 2)}}, "dim 'ref': laws reserve that name; rename it"),
        (
            {"dims": {"M": sizes(1, "N"), "N": sizes(1, 3)}},
            "dim M: sizes(1, N) uses 'N', which comes later; a dim may use the earlier ones: none",
        ),
        (
            {"dims": {**DIMS, "K": sizes(1, "Q")}},
            "dim K: sizes(1, Q) uses 'Q', which is no dim; a dim may use the earlier ones: M, N",
        ),
        ({"dims": {"M-1": sizes(1, 2)}}, "dim 'M-1': expected a Python name"),
        (
            {"backward": "reverse"},
            "backward='reverse': expected a host function, 'autograd' or None",
        ),
        (
            {"raises": [ValueError]},
            "raises: <class 'ValueError'> is no (exception type, part of its message, case)",
        ),
        (
            {"raises": [(ValueError, "tau", {"tau": None})]},
            "raises: the case replaces 'tau', which is no argument; arguments: x",
        ),
        (
            {"outputs": {"y": Tensor("M Q")}},
            "output y: 'M Q' uses 'Q', which is no dim or int argument; known: M, N",
        ),
    ],
)
def test_a_contract_that_contradicts_itself_says_what_to_do(changes, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        contract(**changes)
    assert str(caught.value) == message


def test_an_oracle_alone_is_to_be_put_in_a_list():
    with pytest.raises(ValueError, match=r"expected a list, \[oracle\]"):
        contract(oracles=oracle)


def test_a_kernel_parameter_that_nothing_gives():
    def scaled(x, scale):
        return x * scale

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        contract(kernel=scaled)
    assert str(caught.value) == (
        "the kernel is scaled(x, scale), and the contract says nothing of 'scale': "
        "add it to args (or to dims, if it is a size)"
    )


@pytest.mark.parametrize("name", ["ref", "bound", "kernel", "rerun", "grads", "launches", "args"])
def test_reserved_names_are_refused(name):
    with pytest.raises(ValueError, match=f"argument '{name}': laws reserve that name"):
        with_args(**{name: Tensor("M")})


def test_only_a_buffer_may_be_called_out():
    with pytest.raises(ValueError, match="only a buffer may be called 'out'"):
        with_args(out=Tensor("M"))
    buffer = with_args(x=Tensor("M"), out=Tensor("M", role="out"))
    assert buffer.unwritten_arguments() == ("out",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Tensor(3),
            "Tensor(3): expected a shape such as 'M N', or a tuple of legal shapes",
        ),
        (
            lambda: Tensor("M N / 2"),
            "Tensor('M N / 2'): '/' is not arithmetic: it does not parse; dims are separated by "
            "blanks, a term has none inside",
        ),
        (
            lambda: Tensor("M", dtypes=("int32",), domain=reals(0, 1)),
            "Tensor(dtypes=('int32',)): int32 holds no floats; use integers(lo, hi)",
        ),
        (
            lambda: Tensor("M", role="output"),
            "Tensor(role='output'): expected 'in', 'inout' or 'out'",
        ),
        (
            lambda: Tensor("M", alias="x"),
            "Tensor(alias='x'): expected 'storage' or a tuple of argument names",
        ),
        (
            lambda: Tensor("M", unread=UNIT_LAST),
            "Tensor(unread=UNIT_LAST): expected ANY, or leave it out",
        ),
        (
            lambda: Scalar(str, 0, 1),
            "Scalar(<class 'str'>, ...): expected float or int; use Choice for other values",
        ),
        (
            lambda: Scalar(float, 2, 1),
            "Scalar(float, 2, 1) holds no value: the first end is above the second",
        ),
        (lambda: reals(1, 0), "reals(1, 0) holds no value: the first bound is above the second"),
        (
            lambda: log_uniform(0, 1),
            "log_uniform(0, 1): the low end must be positive; zero=True admits 0 itself",
        ),
        (
            lambda: integers(5, 4),
            "integers(5, 4) holds no value: the first bound is above the second",
        ),
    ],
)
def test_an_argument_that_makes_no_sense_says_so(make, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert str(caught.value) == message


def test_an_unknown_dtype_lists_the_known_ones():
    with pytest.raises(ValueError, match="'float12' is none of float16, bfloat16, float32"):
        Tensor("M", dtypes=("float12",))
    with pytest.raises(ValueError, match="argument x: dtypes='y' is neither a dtype nor"):
        with_args(x=Tensor("M", dtypes="y"))


def test_layouts_and_aliases_name_other_tensors():
    with pytest.raises(ValueError, match="layouts='k' names no other tensor"):
        with_args(q=Tensor("M N", layouts="k"))
    with pytest.raises(ValueError, match="differ in their number of dims"):
        with_args(q=Tensor("M N", layouts="k"), k=Tensor("M", layouts=ANY))
    with pytest.raises(ValueError, match="names 'z', which is no other tensor argument"):
        with_args(x=Tensor("M", alias=("z",)))


def test_bounds_use_dims_and_int_arguments_only():
    with pytest.raises(ValueError, match="'its domain' uses 'V', which is no dim or int argument"):
        with_args(x=Tensor("M", dtypes=("int32",), domain=integers(0, "V-1")))
    good = with_args(
        v=Scalar(int, 1, 9),
        mode=Choice(2, 4),
        x=Tensor("M mode", dtypes=("int32",), domain=integers(0, "v-1")),
    )
    assert good.tensors()["x"].domain.names == {"v"}
    with pytest.raises(ValueError, match="the sentinel 300 does not fit in int8"):
        with_args(x=Tensor("M", dtypes=("int8",), domain=integers(0, 9, sentinel=300)))
    with pytest.raises(ValueError, match="argument x: no float16 lies between 1e"):
        with_args(x=Tensor("M", dtypes=("float16",), domain=reals(1e6, 1e7)))


def test_dtypes_move_in_step():
    mixed = with_args(
        i=Tensor("M", dtypes=("int32",)),
        x=Tensor("M", dtypes=("float32", "float16")),
        w=Tensor("M", dtypes=("float32", "bfloat16")),
        y=Tensor("M", dtypes="x"),
    )
    assert mixed.dtypes() == ("float32", "float16")
    found = {name: mixed.dtype_of(name, "float16") for name in mixed.args}
    assert found == {"i": "int32", "x": "float16", "w": "bfloat16", "y": "float16"}


def test_a_shared_argument_is_not_read_only():
    shared = with_args(x=Tensor("M"), y=Tensor("M"), out=Tensor("M", role="out", alias=("x",)))
    assert shared.read_only_arguments() == ("y",)
    whole = with_args(x=Tensor("M", alias="storage"))
    assert whole.whole_storage_arguments() == ("x",)


def test_laws_take_what_they_need_by_name():
    plain = contract()

    @plain.law
    def rows_sum_to_one(out, bound, N):
        """Each row
        sums to one.

        More about it.
        """

    @plain.law(dtypes=("float32",))
    def is_positive(out, x):
        assert (out > 0).all()

    first, second = plain.laws
    assert (first.name, first.claim) == ("rows_sum_to_one", "Each row sums to one.")
    assert first.needs == ("out", "bound", "N")
    assert (second.claim, second.dtypes) == ("is positive", ("float32",))


def test_a_law_that_cannot_be_given_its_arguments():
    def odd(outs):
        """Odd."""

    with pytest.raises(ValueError, match=r"law odd: needs 'outs', .*mean 'out'\?"):
        contract().law(odd)

    def repeats(out):
        """Twice."""

    with pytest.raises(ValueError, match="law repeats: there is a law of that name already"):
        contract().law(repeats)

    def fine(out):
        """Fine."""

    with pytest.raises(ValueError, match="not among the contract's: float32, bfloat16"):
        contract().law(fine, dtypes=("float64",))


def test_assumptions_see_dims_and_arguments():
    plain = contract()

    @plain.assume
    def at_least_two_rows(x, M):
        return M >= 2

    assert plain.assumptions == {"at_least_two_rows": at_least_two_rows}

    def late(out):
        return True

    with pytest.raises(ValueError, match="assume late: needs 'out'"):
        plain.assume(late)


def test_laws_are_removed_with_a_reason_and_made_bitwise():
    plain = contract()
    plain.without("ignores_batch", "the rows are normalised together")
    plain.bitwise("ignores_layout")
    assert plain.removed == {"ignores_batch": "the rows are normalised together"}
    assert plain.is_bitwise("ignores_layout")
    assert not plain.is_bitwise("repeats")
    with pytest.raises(ValueError, match=r"without\('ignores_batches'\): .* mean 'ignores_batch'?"):
        plain.without("ignores_batches", "x")
    with pytest.raises(ValueError, match="give the reason"):
        plain.without("repeats", " ")


def test_faults_are_kernels_or_edits():
    plain = contract()

    @plain.fault(expects=("stays_in_bounds",), number=7)
    def mask_one_too_far(x):
        """The mask admits one lane too many."""
        return x

    @plain.fault(expects="matches_oracle")
    def forgets_the_maximum(edit):
        return edit("x - m", "x")

    kernel, edit = plain.faults
    assert (kernel.name, kernel.number, kernel.is_edit) == ("mask_one_too_far", 7, False)
    assert kernel.story == "The mask admits one lane too many."
    assert edit.is_edit
    assert edit.expects == ("matches_oracle",)
    with pytest.raises(ValueError, match="name one or two laws"):
        plain.fault(expects=())
    with pytest.raises(ValueError, match="no law has that name"):
        plain.fault(expects=("is_nice",))
