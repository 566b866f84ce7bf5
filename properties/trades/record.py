"""The open trade record: its bytes, and what closing a trade credits."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor, integers, log_uniform, reals
from trivet.impl import trades as kernels
from trivet.oracles import trades as oracles
from trivet.properties._expect import at_most, same_bits, same_values
from trivet.properties.decision.inputs import (
    BLOCK,
    HORIZONS,
    SIMULATIONS,
    Array,
    Rerun,
    filled,
    widened,
)
from trivet.properties.orders.inputs import COUNTS, NANOSECONDS

WHOLE = Tensor("S", dtypes=COUNTS, domain=integers(-(2**31), 2**31 - 1))
COUNT = Tensor("S", dtypes=COUNTS, domain=integers(0, 2**31 - 1))
MONEY = Tensor("S", domain=reals(-1e12, 1e12))
SHARE = Tensor("S", domain=reals(0, 1))
FIELDS = {
    "entry_ts": Tensor("S", dtypes=NANOSECONDS, domain=integers(0, 2**62)),
    "price": WHOLE,
    "size": WHOLE,
    "realized": MONEY,
    "at_entry": SHARE,
    "conviction": SHARE,
    "magnitudes": Tensor("S 4", domain=reals(0, 1)),
    "pnl": Tensor("S", domain=reals(-1, 1)),
    "peak": MONEY,
    "degradation": COUNT,
    "disagreement": COUNT,
    "dominant": Tensor("S", dtypes=COUNTS, domain=integers(0, 255)),
}
WORDS = Tensor("S 16", dtypes=COUNTS)

trades_pack = Contract(
    kernel=kernels.pack,
    oracles=[oracles.pack],
    dims=SIMULATIONS,
    args={**FIELDS, "block": BLOCK},
    outputs={"record": WORDS},
    raises=(
        (ValueError, "dominant", filled("dominant", 256)),
        (TypeError, "realized", widened("realized")),
    ),
)


@trades_pack.law
def fields_come_back_from_the_bytes(
    out: Array,
    entry_ts: Array,
    price: Array,
    size: Array,
    realized: Array,
    at_entry: Array,
    conviction: Array,
    magnitudes: Array,
    pnl: Array,
    peak: Array,
    degradation: Array,
    disagreement: Array,
    dominant: Array,
) -> None:
    """Unpacking what was packed gives every field back, bitwise, at every simulation."""
    before = (entry_ts, price, size, realized, at_entry, conviction, magnitudes)
    fields = (*before, pnl, peak, degradation, disagreement, dominant)
    raw = np.ascontiguousarray(out.astype("<i4")).view(kernels.RECORD)[:, 0]
    for name, value in zip(kernels.RECORD.names or (), fields, strict=True):
        same_bits(raw[name].astype(value.dtype), value, f"{name} of the bytes")


@trades_pack.law
def last_three_bytes_are_zero(out: Array) -> None:
    """Byte 60 has its word for itself."""
    same_values(out[:, 15] & ~0xFF, np.zeros_like(out[:, 15]), "bytes 61 to 63")


def with_a_byte_alone(words: Array) -> Array:
    """Words whose last holds one byte, and whose floats are numbers: records of open trades."""
    numbers = words.copy()
    bits = words[:, [4, 5, 6, 7, 8, 9, 10, 11, 12]] & 0x00FFFFFF
    numbers[:, [4, 5, 6, 7, 8, 9, 10, 11, 12]] = bits | 0x3E000000
    numbers[:, [1, 13, 14]] &= 0x7FFFFFFF
    numbers[:, 15] &= 7
    return numbers


RECORDS = Tensor("S 16", dtypes=COUNTS, domain=integers(-(2**31), 2**31 - 1).map(with_a_byte_alone))
trades_unpack = Contract(
    kernel=kernels.unpack,
    oracles=[oracles.unpack],
    dims=SIMULATIONS,
    args={"record": RECORDS, "block": BLOCK},
    outputs={name: Tensor(t.shape, dtypes=t.dtypes) for name, t in FIELDS.items()},
    raises=((TypeError, "record", widened("record")),),
)


@trades_unpack.law
def distinct_bytes_are_told_apart(out: Any, record: Array, rerun: Rerun) -> None:
    """Changing byte 20 or byte 60 moves its own field alone: a float, and the horizon."""
    changed = record.copy()
    changed[:, 5] ^= 0x55
    again = rerun(record=changed)
    same_values(again.dominant, out.dominant, "dominant with another byte 20")
    changed = record.copy()
    changed[:, 15] ^= 0x55
    again = rerun(record=changed)
    same_values(again.dominant, out.dominant ^ 0x55, "dominant with another byte 60")
    same_bits(again.at_entry, out.at_entry, "conviction with another byte 60")


def as_rows(domain: Any) -> Tensor:
    """A moment for each horizon and simulation."""
    return Tensor("N S", domain=domain, role="inout")


trades_credit = Contract(
    kernel=kernels.credit,
    oracles=[oracles.credit, oracles.credit_scalar],
    dims=SIMULATIONS | HORIZONS,
    args={
        "record": Tensor("S 16", dtypes=COUNTS, domain=RECORDS.domain, role="inout"),
        "profit": Tensor("S", domain=reals(-1e4, 1e4)),
        "lots": Tensor("S", dtypes=NANOSECONDS, domain=integers(1, 1 << 16)),
        "closes": Tensor("S", dtypes=COUNTS, domain=integers(0, 1)),
        "closed": Tensor("N S", dtypes=NANOSECONDS, domain=integers(0, 9), role="inout"),
        "mean": as_rows(reals(-100, 100)),
        "square": as_rows(log_uniform(1e-3, 1e6, zero=True)),
        "block": BLOCK,
    },
    raises=((ValueError, "lots", filled("lots", 0)), (TypeError, "profit", widened("profit"))),
)


@trades_credit.law
def other_horizons_keep_their_bits(
    out: Any, record: Array, closes: Array, mean: Array, square: Array
) -> None:
    """A close moves the moments of the horizon of byte 60 alone, and of no open trade."""
    own = (record[:, 15] & 0xFF)[None, :] == np.arange(len(mean))[:, None]
    others = ~(own & (closes == 1)[None, :])
    same_bits(np.where(others, out.mean, 0), np.where(others, mean, 0), "mean of the others")
    same_bits(np.where(others, out.square, 0), np.where(others, square, 0), "square of the others")


@trades_credit.law
def closing_zeroes_all_64_bytes(out: Any, record: Array, closes: Array) -> None:
    """A closed record is all zeros; an open one keeps its bytes."""
    wanted = np.where((closes == 1)[:, None], 0, record)
    same_values(out.record, wanted, "record")


@trades_credit.law
def first_profit_is_the_mean(
    profit: Array, lots: Array, closes: Array, closed: Array, mean: Array, rerun: Rerun
) -> None:
    """The first trade of a horizon is its mean, bitwise, and its variance is 0 within rounding."""
    zeros = np.zeros_like(mean)
    out = rerun(closed=np.zeros_like(closed), mean=zeros, square=zeros)
    credited = out.closed == 1
    each = np.broadcast_to((profit.astype(np.float32) / lots.astype(np.float32)), mean.shape)
    same_values(np.where(credited, out.mean, 0), np.where(credited, each, 0), "mean of one trade")
    same_values(np.where(credited, out.square, 0), zeros, "square of one trade")
    at_most(out.closed.sum(axis=0), closes, "trades credited")
