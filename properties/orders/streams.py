"""A stream of targets worked into orders, fills and books."""

from typing import Any

import numpy as np
import torch

from trivet import Contract, Tensor, integers, log_uniform, sizes
from trivet.impl import orders as kernels
from trivet.oracles import orders as oracles
from trivet.properties._expect import at_most, same_values
from trivet.properties.decision.inputs import BLOCK, SIMULATIONS, Array, Rerun, filled, widened
from trivet.properties.orders.inputs import COUNTS, NANOSECONDS, quotes, rare

BUY, SELL, NONE, FLATTEN = range(4)
POSITION, CASH, BASIS, REALISED, FILLED, SEQUENCE, REFUSED = range(7)


def time_runs_back(ts: torch.Tensor) -> dict[str, object]:
    """The third event is earlier than the second."""
    later = torch.tensor([5, 9, 8, 9], dtype=torch.int64)
    quotes = {n: torch.ones(4, dtype=torch.int32) for n in ("bid", "ask", "bid_size", "ask_size")}
    own = {n: torch.zeros((4, 1), dtype=torch.int32) for n in ("target", "exits")}
    state = {"book": torch.zeros((7, 1), dtype=torch.int64)}
    state |= {"slots": torch.zeros((5, 2, 1), dtype=torch.int64)}
    state |= {"latency": torch.zeros(1, dtype=torch.int64), "delta_floor": torch.ones(1)}
    return {"ts": later, **quotes, **own, **state}


orders_work = Contract(
    kernel=kernels.work,
    oracles=[oracles.work],
    dims=SIMULATIONS | {"E": sizes(0, 24), "Q": sizes(1, 5, production=8)},
    args={
        **quotes("E"),
        "target": Tensor("E S", dtypes=COUNTS, domain=integers(-12, 12)),
        "exits": Tensor("E S", dtypes=COUNTS, domain=integers(0, 11).map(rare)),
        "delta_floor": Tensor("S", domain=log_uniform(0.5, 8, zero=True)),
        "latency": Tensor("S", dtypes=NANOSECONDS, domain=integers(0, 6)),
        "book": Tensor("7 S", dtypes=NANOSECONDS, domain=integers(0, 0), role="inout"),
        "slots": Tensor("5 Q S", dtypes=NANOSECONDS, domain=integers(0, 0), role="inout"),
        "block": BLOCK,
    },
    outputs={
        "position": Tensor("E S", dtypes=COUNTS),
        "side": Tensor("E S", dtypes=COUNTS),
        "lots": Tensor("E S", dtypes=COUNTS),
        "active": Tensor("E S", dtypes=COUNTS),
    },
    raises=(
        (ValueError, "event 2 after 9", time_runs_back),
        (ValueError, "latency", filled("latency", -1)),
        (ValueError, "delta_floor", filled("delta_floor", -0.5)),
        (TypeError, "delta_floor", widened("delta_floor")),
    ),
)


@orders_work.law
def books_balance(out: Any, bid: Array, ask: Array) -> None:
    """Money at the mid is what was realised and what is open, exactly, doubled.

    2 cash + position (bid + ask) = 2 realised + (position (bid + ask) - 2 basis); a flat book has
    no basis.
    """
    position, cash, basis, realised = out.book[:4]
    touch = bid[-1] + ask[-1] if len(bid) else 0
    open_profit = position * touch - 2 * basis
    same_values(2 * cash + position * touch, 2 * realised + open_profit, "doubled equity")
    same_values(np.where(position == 0, basis, 0), np.zeros_like(basis), "basis of a flat book")


@orders_work.law
def position_is_the_sum_of_fills(out: Any, exits: Array, rerun: Rerun) -> None:
    """Without exits, what was ordered is held or in flight, to the lot, and no more was filled."""
    free = rerun(exits=np.zeros_like(exits))
    ordered = np.where(free.side == BUY, free.lots, -free.lots).sum(axis=0)
    lots, side = free.slots[:2]
    waiting = np.where(side == BUY, lots, -lots).sum(axis=0)
    same_values(free.book[POSITION] + waiting, ordered, "held and in flight")
    at_most(free.book[FILLED], free.lots.sum(axis=0), "filled lots")


@orders_work.law
def nothing_fills_before_it_arrives(exits: Array, latency: Array, ts: Array, rerun: Rerun) -> None:
    """Orders that arrive after the last event stay where they are; refusals count the rest."""
    late = rerun(exits=np.zeros_like(exits), latency=np.full_like(latency, 1 << 40))
    same_values(late.position, np.zeros_like(late.position), "position before any arrival")
    at_most(np.diff(late.active, axis=0) * -1, np.zeros_like(late.active[1:]), "slots given up")


@orders_work.law
def orders_never_fill_at_their_own_event(
    bid: Array, ask_size: Array, exits: Array, latency: Array, rerun: Rerun
) -> None:
    """In a locked book of plenty, at latency 0, an order is filled by the event after its own."""
    plenty = np.full_like(ask_size, 1000)
    free = {"ask": bid, "bid_size": plenty, "ask_size": plenty, "exits": np.zeros_like(exits)}
    out = rerun(latency=np.zeros_like(latency), **free)
    same_values(out.position[:1], np.zeros_like(out.position[:1]), "position at the first event")
    same_values(out.book[FILLED] * (len(bid) < 2), np.zeros_like(latency), "lots filled")


@orders_work.law
def same_signal_twice_seeds_once(target: Array, exits: Array, latency: Array, rerun: Rerun) -> None:
    """A constant target is ordered once, whatever is still in flight, and nothing is refused."""
    steady = np.broadcast_to(target[:1], target.shape)
    out = rerun(target=steady, exits=np.zeros_like(exits), latency=latency + 4)
    orders = (out.side != NONE).sum(axis=0)
    at_most(orders, np.ones_like(orders), "orders of a constant target")
    same_values(out.book[REFUSED], np.zeros_like(latency), "refusals of a constant target")


@orders_work.law
def orders_have_lots(out: Any, rerun: Rerun, delta_floor: Array) -> None:
    """No order of 0 lots, with the band turned off as well; what is no order has none."""
    for each in (out, rerun(delta_floor=np.zeros_like(delta_floor))):
        sent = (each.side == BUY) | (each.side == SELL)
        at_most(sent.astype(int), each.lots, "1 where an order was sent")
        same_values(np.where(sent, 0, each.lots), np.zeros_like(each.lots), "lots of no order")


@orders_work.law
def latencies_of_zero_and_one_agree(ts: Array, latency: Array, rerun: Rerun) -> None:
    """Where time stamps strictly increase, 1 ns comes to the same as none, bitwise."""
    rising = ts + np.arange(len(ts))
    at_once, after = (rerun(ts=rising, latency=np.full_like(latency, delay)) for delay in (0, 1))
    for name in ("position", "side", "lots", "active", "book"):
        same_values(getattr(after, name), getattr(at_once, name), f"{name} at 1 ns")


@orders_work.law
def flattened_books_are_empty(out: Any, exits: Array) -> None:
    """After an exit nothing is held and nothing in flight, whatever size was displayed."""
    left = np.where(exits == 1, np.abs(out.position) + out.active, 0)
    same_values(left, np.zeros_like(left), "lots and slots after an exit")
    same_values(np.where(exits == 1, out.side, FLATTEN), np.full_like(left, FLATTEN), "side")


@orders_work.law
def books_stay_exact_at_the_largest_prices(
    ts: Array,
    bid: Array,
    ask: Array,
    bid_size: Array,
    ask_size: Array,
    target: Array,
    exits: Array,
    delta_floor: Array,
    latency: Array,
    book: Array,
    slots: Array,
    rerun: Rerun,
) -> None:
    """Prices near 2^31 and lots near 2^20 leave every number what Python's integers say.

    A product of basis and lots has 70 bits there; prices under zero occur.
    """
    given = {
        "bid": (bid - 10000) * 500_000_000,
        "ask": (ask - 10001) * 400_000_000,
        "bid_size": bid_size * 80_000,
        "ask_size": ask_size * 90_000,
        "target": target * 87_381,
    }
    rest = {"exits": exits, "delta_floor": delta_floor, "latency": latency}
    wanted = oracles.work(None, ts=ts, **given, **rest, book=book, slots=slots)
    same_values(rerun(**given).book, wanted[4], "book")


@orders_work.law
def streams_can_be_cut_anywhere(
    out: Any,
    ts: Array,
    bid: Array,
    ask: Array,
    bid_size: Array,
    ask_size: Array,
    target: Array,
    exits: Array,
    rerun: Rerun,
) -> None:
    """Two launches with the state carried over give what one gives, bitwise."""
    cut = len(ts) // 2
    given = {"ts": ts, "bid": bid, "ask": ask, "bid_size": bid_size, "ask_size": ask_size}
    given |= {"target": target, "exits": exits}
    first = rerun(**{name: value[:cut] for name, value in given.items()})
    rest = {name: value[cut:] for name, value in given.items()}
    second = rerun(**rest, book=first.book, slots=first.slots)
    for name in ("position", "side", "lots", "active"):
        both = np.concatenate([getattr(first, name), getattr(second, name)])
        same_values(both, getattr(out, name), f"{name} of two launches")
    same_values(second.book, out.book, "book of two launches")
    same_values(second.slots, out.slots, "slots of two launches")


@orders_work.law
def permuting_simulations_permutes_results(
    out: Any, target: Array, exits: Array, delta_floor: Array, latency: Array, rerun: Rerun
) -> None:
    """Simulations do not see each other."""
    again = rerun(
        target=target[:, ::-1],
        exits=exits[:, ::-1],
        delta_floor=delta_floor[::-1],
        latency=latency[::-1],
    )
    for name in ("position", "side", "lots", "active", "book", "slots"):
        reversed_back = getattr(again, name)[..., ::-1]
        same_values(reversed_back, getattr(out, name), f"{name} in the other order")
