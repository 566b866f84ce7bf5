"""Integer books: position, cash, and what the position cost; exact, whatever the order."""

from typing import NamedTuple

import triton
import triton.language as tl


class Book(NamedTuple):
    """The books of a block of simulations, int64, prices in hundredths.

    cash falls by lots times price at every fill; basis is what the open position cost, realised
    what closed lots fetched beyond that; filled counts lots of both sides, which cost money each.
    """

    position: tl.tensor
    cash: tl.tensor
    basis: tl.tensor
    realised: tl.tensor
    filled: tl.tensor


@triton.jit
def share(amount: tl.tensor, part: tl.tensor, whole: tl.tensor) -> tl.tensor:
    """Return amount * part / whole truncated toward zero, int64; 0 <= part <= whole, whole > 0.

    The product itself may take 80 bits. Quotient and remainder carry the amount's sign, so that
    the two truncated terms add up to the truncated sum.
    """
    quotient = amount // whole
    rest = amount - quotient * whole
    return quotient * part + (rest * part) // whole


@triton.jit
def reduction(position: tl.tensor, lots: tl.tensor) -> tl.tensor:
    """Return how many of the signed lots close a position: those of the other side, up to all."""
    opposite = ((position > 0) & (lots < 0)) | ((position < 0) & (lots > 0))
    return tl.where(opposite, tl.minimum(tl.abs(position), tl.abs(lots)), 0)


@triton.jit
def settle(book: Book, lots: tl.tensor, price: tl.tensor) -> Book:
    """Return the books after a fill of signed lots at a price; 0 lots change nothing.

    What crosses zero closes first, then opens.
    """
    closing = reduction(book.position, lots)
    signed = tl.where(lots > 0, closing, -closing)
    released = share(book.basis, closing, tl.maximum(tl.abs(book.position), 1))
    return Book(
        book.position + lots,
        book.cash - lots * price,
        (book.basis - released) + (lots - signed) * price,
        book.realised + (-signed * price - released),
        book.filled + tl.abs(lots),
    )


@triton.jit
def load_book(pointer: tl.tensor, place: tl.tensor, stride: int, live: tl.tensor) -> Book:
    """Read books whose fields lie `stride` elements apart; zeros where not live."""
    return Book(
        tl.load(pointer + place, mask=live, other=0),
        tl.load(pointer + stride + place, mask=live, other=0),
        tl.load(pointer + 2 * stride + place, mask=live, other=0),
        tl.load(pointer + 3 * stride + place, mask=live, other=0),
        tl.load(pointer + 4 * stride + place, mask=live, other=0),
    )


@triton.jit
def store_book(
    pointer: tl.tensor, place: tl.tensor, stride: int, book: Book, live: tl.tensor
) -> None:
    """Write books whose fields lie `stride` elements apart, where live."""
    tl.store(pointer + place, book.position, mask=live)
    tl.store(pointer + stride + place, book.cash, mask=live)
    tl.store(pointer + 2 * stride + place, book.basis, mask=live)
    tl.store(pointer + 3 * stride + place, book.realised, mask=live)
    tl.store(pointer + 4 * stride + place, book.filled, mask=live)
