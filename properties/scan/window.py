"""A window forward: what the scan in chunks promises."""

from typing import Any

import numpy as np

from trivet import Contract, Tensor
from trivet.impl import scan as kernels
from trivet.oracles import scan as oracles
from trivet.properties._expect import at_most, interval, near, same_bits, same_values
from trivet.properties.scan.inputs import (
    BAD_WINDOW,
    CHANNELS,
    CHUNK,
    WINDOW,
    WINDOW_ARGS,
    Array,
    Rerun,
    cut_window,
    replayed,
    terminal,
    whole_numbers,
)

NAMES = ("y", "x_T")

scan_chunked = Contract(
    kernel=kernels.scan_chunked,
    oracles=[oracles.scan_chunked, oracles.scan_chunked_scalar],
    dims=WINDOW,
    args={**WINDOW_ARGS, "chunk": CHUNK, "block_channels": CHANNELS},
    outputs={"y": Tensor("R T H"), "x_T": Tensor("R H S")},
    backward=kernels.scan_chunked_backward,
    raises=BAD_WINDOW,
)
scan_chunked.bitwise("ignores_batch")


@scan_chunked.law
def chunks_of_any_size_agree(out: Any, bound: Any, rerun: Rerun) -> None:
    """Chunks of one step, and one chunk longer than the window, give the same, within the bound."""
    for chunk in (1, 64):
        again = rerun(chunk=chunk, block_channels=8)
        for name, got, wanted, error in zip(NAMES, again, out, bound, strict=True):
            near(got, wanted, 2 * error, f"{name} in chunks of {chunk}")


@scan_chunked.law
def no_event_returns_the_state(
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    u: Array,
    x_0: Array,
    reset: Array | None,
    rerun: Rerun,
) -> None:
    """T = 0 gives x_0 back, bitwise, -0.0 and NaN included."""
    odd = np.where(np.arange(x_0.size).reshape(x_0.shape) % 3 == 0, -0.0, x_0)
    odd[..., -1] = np.nan
    empty = cut_window(slice(0, 0), a=a, step=step, B=B, C=C, u=u, reset=reset)
    same_bits(rerun(**empty, x_0=odd)[1], odd, "x_T of no event")


@scan_chunked.law
def halves_equal_the_whole(
    out: Any,
    bound: Any,
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    u: Array,
    reset: Array | None,
    T: int,
    chunk: int,
    rerun: Rerun,
) -> None:
    """The first part, then the rest from its terminal state: bitwise where the cut is an edge."""
    window = {"a": a, "step": step, "B": B, "C": C, "u": u, "reset": reset}
    edge = chunk * ((T // chunk + 1) // 2)
    for cut in (edge, T // 2):
        first = rerun(**cut_window(slice(0, cut), **window))
        second = rerun(**cut_window(slice(cut, T), **window), x_0=first[1])
        got = np.concatenate([first[0], second[0]], axis=1), second[1]
        for name, part, wanted, error in zip(NAMES, got, out, bound, strict=True):
            allowed = 0 * error if cut == edge else 2 * error
            near(part, wanted, allowed, f"{name} of a window cut at {cut}")


@scan_chunked.law
def replayed_events_equal_the_window(
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    D: Array,
    u: Array,
    x_0: Array,
    reset: Array | None,
    rerun: Rerun,
) -> None:
    """Single steps reach the window's terminal state: bitwise in chunks of 1, else near it."""
    window = cut_window(slice(0, 5), a=a, step=step, B=B, C=C, u=u, reset=reset)
    events = rerun.other(replayed, **window)
    for name, got, wanted in zip(NAMES, events, rerun(**window, chunk=1), strict=True):
        same_bits(got, wanted, f"{name} of replayed events")
    _, error = interval(terminal, **window, D=D, x_0=x_0)
    near(rerun(**window)[1], events[1], 2 * error, "x_T beside replayed events")


@scan_chunked.law
def a_shut_gate_forgets(out: Any, a: Array, u: Array, x_0: Array, T: int, rerun: Rerun) -> None:
    """Behind a = 0 nothing of what came before is left, not a bit, wherever in a chunk it lies."""
    at = 2 * T // 3
    shut = a.copy()
    shut[:, at : at + 1] = 0.0
    other = u.copy()
    other[:, :at] = 1.0 - u[:, :at]
    seen = rerun(a=shut)
    again = rerun(a=shut, u=other, x_0=x_0 + 1 if T else x_0)
    same_values(again[0][:, at:], seen[0][:, at:], "y behind a shut gate")
    same_values(again[1], seen[1], "x_T behind a shut gate")
    at_most(np.abs(seen[1]), np.full_like(seen[1], np.inf), "|x_T| behind a shut gate")


@scan_chunked.law
def open_gates_integrate(
    a: Array,
    step: Array,
    B: Array,
    u: Array,
    x_0: Array,
    reset: Array | None,
    rerun: Rerun,
) -> None:
    """At a = 1 the terminal state of whole numbers is x_0 plus all of step B u, exactly."""
    whole = {"step": whole_numbers(step), "B": whole_numbers(B), "u": whole_numbers(u)}
    start = whole_numbers(x_0)
    gained = (whole["step"] * whole["u"])[..., None] * whole["B"][:, :, None, :]
    got = rerun(**whole, a=np.ones_like(a), x_0=start, reset=None if reset is None else 0 * reset)
    same_values(got[1], start + gained.sum(axis=1), "x_T of open gates")


@scan_chunked.law
def gates_open_or_shut_are_exact(
    a: Array, step: Array, B: Array, u: Array, x_0: Array, reset: Array | None, rerun: Rerun
) -> None:
    """With a of 0 and 1 in any order, the terminal state of whole numbers is exact."""
    whole = {"step": whole_numbers(step), "B": whole_numbers(B), "u": whole_numbers(u)}
    gate = np.round(a)
    state = start = whole_numbers(x_0)
    for t in range(a.shape[1]):
        if reset is not None:
            state = np.where(reset[:, t, None, None], 0.0, state)
        gained = (whole["step"] * whole["u"])[:, t, :, None] * whole["B"][:, t, None, :]
        state = gate[:, t, :, None] * state + gained
    same_values(rerun(**whole, a=gate, x_0=start)[1], state, "x_T of open and shut gates")


@scan_chunked.law
def long_windows_of_small_decays_stay_finite(
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    D: Array,
    u: Array,
    x_0: Array,
    rerun: Rerun,
) -> None:
    """Where the product of all a underflows long before the end, the state is still right."""
    long = {"step": step, "B": B, "C": C, "u": u}
    long = {name: np.tile(each, (1, 4, 1))[:, :80] for name, each in long.items()}
    # Of every third power, so that products of some pairs, and of all triples, underflow.
    long["a"] = np.float32(1e-30) ** (1 + np.tile(a, (1, 4, 1))[:, :80]).astype(np.float32)
    wanted, error = interval(terminal, **long, D=D, x_0=x_0, reset=None)
    near(rerun(**long, reset=None)[1], wanted, error, "x_T of small decays")


@scan_chunked.law
def a_reset_parts_the_window(
    a: Array,
    step: Array,
    B: Array,
    C: Array,
    D: Array,
    u: Array,
    x_0: Array,
    T: int,
    R: int,
    rerun: Rerun,
) -> None:
    """From a reset on, the window is one of its own from 0, also where the state was not finite."""
    at = T // 2
    window = {"a": a, "step": step, "B": B, "C": C, "u": u}
    reset = np.zeros((R, T), bool)
    reset[:, at : at + 1] = True
    rest = cut_window(slice(at, T), **window)
    start = np.zeros_like(x_0) if T else x_0
    alone = rerun(**rest, x_0=start, reset=None)
    error = [
        interval(of, **rest, D=D, x_0=start, reset=None)[1]
        for of in (oracles.scan_chunked, terminal)
    ]
    for spoilt in (np.inf, np.nan):
        before = u.copy()
        before[:, :at] = spoilt
        odd = np.full_like(x_0, spoilt) if T else x_0
        y, x_T = rerun(**window | {"u": before}, x_0=odd, reset=reset)
        near(y[:, at:], alone[0], 2 * error[0], f"y from a reset on, {spoilt} before")
        near(x_T, alone[1], 2 * error[1], f"x_T from a reset on, {spoilt} before")
