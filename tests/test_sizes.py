import pytest

from trivet import Choice, Contract, Tensor, divisors, integers, offsets, partition, sizes
from trivet.properties._dims import closest, extent, production_dims, settle
from trivet.properties._edges import classes_within, edge_sizes, size_class
from trivet.properties._sizes import DomainError, as_dim, formula


def kernel(x):
    return x


def contract(dims, **args):
    return Contract(
        kernel=lambda **given: given, oracles=[kernel], dims=dims, args=args or {"x": Tensor("")}
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K//group", 7),
        ("N + 1", 6),
        ("-N + 2**3", 3),
        ("min(K, N, 3) * max(N, 2)", 15),
        ("K % group", 2),
        ("(N - 1) * 2", 8),
    ],
)
def test_arithmetic(text, value):
    assert formula(text)({"K": 30, "group": 4, "N": 5}) == value


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("N / 2", "N / 2"),
        ("__import__('os')", "__import__('os')"),
        ("N.real", "N.real"),
        ("1.5", "1.5"),
        ("True", "True"),
        ("N if N else 1", "N if N else 1"),
        ("min()", "min()"),
        ("abs(N)", "abs(N)"),
        ("[N]", "[N]"),
    ],
)
def test_what_is_no_arithmetic_is_refused(text, part):
    with pytest.raises(ValueError, match="is not integer arithmetic") as caught:
        formula(text)
    assert repr(part) in str(caught.value)


def test_arithmetic_that_does_not_parse():
    with pytest.raises(ValueError, match="does not parse"):
        formula("N +")


def test_a_power_out_of_hand_or_a_division_by_zero_has_no_value():
    for text in ("2**N", "2**-1", "1//0"):
        with pytest.raises(DomainError, match="has no value here"):
            formula(text)({"N": 10**9})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sizes(3, 2), "sizes(3, 2) holds no size: the first end is above the second"),
        (lambda: sizes(-1, 2), "sizes(-1, 2) starts below 0: no dim has a negative size"),
        (lambda: Choice(), "Choice() has nothing to choose from: give it at least one value"),
        (
            lambda: sizes(1, 2, production="big"),
            "sizes(production='big'): expected a whole number from 1 up",
        ),
        (
            lambda: as_dim(2.5),
            "2.5 is no size: use sizes(lo, hi), divisors('C'), Choice(8, 16) or arithmetic over "
            "earlier dims such as 'S + NQ'",
        ),
    ],
)
def test_a_size_without_values_says_so(make, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert str(caught.value) == message


def test_later_dims_use_earlier_ones_in_ends_and_choices():
    tied = contract(
        {
            "B": sizes(1, 6),
            "BC": Choice(1, "B"),
            "C": sizes(1, 60),
            "G": divisors("C"),
            "W": sizes(1, 12),
            "L": sizes("W-1", 8),
            "NK": "B + L",
        }
    )
    wishes = {"B": 5, "BC": 4, "C": 12, "G": 5, "W": 4, "L": 1}
    assert settle(tied, wishes) == {
        "B": 5, "BC": 5, "C": 12, "G": 4, "W": 4, "L": 3, "NK": 8,
    }  # fmt: skip
    moved = closest(tied, {"B": 1, "BC": 1, "C": 7, "G": 1, "W": 12, "L": 8})
    assert moved["W"] == 9
    assert moved["L"] == 8
    assert extent(tied, "NK") == (1, 14)


def test_divisors_of_a_prime_and_of_zero():
    assert list(divisors("C").options({"C": 13})) == [1, 13]
    assert list(divisors("C").options({"C": 0})) == [1]


def test_members_that_do_not_fit_are_cut_down_to_those_that_do():
    table = Tensor("N M", dtypes=("int32",), domain=partition("H"))
    dims = {"H": sizes(1, 300), "N": sizes(1, 9), "M": sizes(1, 28)}
    found = closest(contract(dims, table=table), {"H": 300, "N": 9, "M": 28})
    assert found["N"] * found["M"] >= found["H"]
    assert found["H"] > 200


def test_dims_that_can_never_hold_the_members_are_refused():
    table = Tensor("N M", dtypes=("int32",), domain=partition("H"))
    dims = {"H": sizes(100, 300), "N": sizes(1, 4), "M": sizes(1, 8)}
    with pytest.raises(ValueError, match=r"argument table: .* slots cannot hold the H = 100") as e:
        contract(dims, table=table)
    assert "no sizes of the contract's dims can meet this" in str(e.value)


def test_unique_numbers_that_never_fit_are_refused():
    index = Tensor("N", dtypes=("int32",), domain=integers(0, 9, unique=True))
    with pytest.raises(ValueError, match="11 distinct numbers do not fit between 0 and 9"):
        contract({"N": sizes(11, 40)}, index=index)
    assert closest(contract({"N": sizes(1, 40)}, index=index), {"N": 40}) == {"N": 10}


def test_sizes_move_off_zero_where_an_index_needs_a_row():
    index = Tensor("N", dtypes=("int32",), domain=integers(0, "V-1"))
    both = contract({"N": sizes(0, 9), "V": sizes(0, 9)}, index=index)
    assert closest(both, {"N": 4, "V": 0})["V"] >= 1
    assert closest(both, {"N": 0, "V": 0}) == {"N": 0, "V": 0}


def test_segments_that_must_not_be_empty_bound_their_number():
    cu = Tensor("N+1", dtypes=("int32",), domain=offsets("T", empty=False))
    dims = closest(contract({"T": sizes(1, 50), "N": sizes(1, 80)}, cu=cu), {"T": 5, "N": 60})
    assert dims["N"] <= dims["T"]


def test_ends_that_cannot_be_met_together():
    with pytest.raises(ValueError, match=r"dim L: sizes\(W, 8\) holds no size at W = 9"):
        contract({"W": sizes(9, 12), "L": sizes("W", 8)})


def test_production_sizes_default_to_the_largest():
    dims = {"M": sizes(0, 40, production=2**17), "N": sizes(1, 300), "P": "M*N"}
    assert production_dims(contract(dims)) == {"M": 2**17, "N": 300, "P": 300 * 2**17}
    assert production_dims(contract({"N": sizes(1, 3)})) is None


def test_several_production_sizes_take_turns():
    dims = {"M": sizes(0, 9, production=(2**17, 3)), "N": sizes(1, 9, production=64)}
    both = [production_dims(contract(dims), number) for number in range(3)]
    assert both == [{"M": 2**17, "N": 64}, {"M": 3, "N": 64}, {"M": 2**17, "N": 64}]


def test_edges_are_ends_block_edges_and_several_chunks():
    edges = edge_sizes(range(0, 301), (64,))
    assert {1, 2, 63, 64, 65, 131, 191, 300} <= set(edges)
    assert 0 not in edges
    assert edge_sizes([1, 2, 4], ()) == [1, 2, 4]


def test_size_classes():
    found = [
        size_class(size, (16, 64), 0, 300) for size in (0, 1, 5, 15, 16, 17, 40, 100, 200, 300)
    ]
    assert found == [
        "0", "lo+1", "under 16", "16-1", "16", "16+1", "over 16", "over 64", "over 2 x 64", "hi",
    ]  # fmt: skip
    assert len(classes_within((64,), 1, 40)) >= 5
    assert len(classes_within((64,), 1, 300)) >= 9
