"""A gated linear recurrence, h_t = a_t h_(t-1) + b_t per channel, in chunks of time."""

import numpy as np
import torch
import triton
import triton.language as tl

from trivet import UNIT_LAST, Contract, Tensor, reals, sizes


@triton.jit
def one_after_the_other(a_first, b_first, a_second, b_second):
    """Compose two steps h -> a h + b into one step of the same form."""
    return a_first * a_second, a_second * b_first + b_second


@triton.jit
def scan_kernel(
    a_ptr,
    b_ptr,
    initial_ptr,
    states_ptr,
    terminal_ptr,
    T,
    D,
    a_batch,
    a_time,
    b_batch,
    b_time,
    states_batch,
    states_time,
    HAS_INITIAL: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program a sequence and block of channels; chunks of time follow one another."""
    batch = tl.program_id(0).to(tl.int64)
    channels = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    alive = channels < D
    if HAS_INITIAL:
        carry = tl.load(initial_ptr + batch * D + channels, mask=alive, other=0.0)
    else:
        carry = tl.zeros([BLOCK_D], dtype=tl.float32)
    last = tl.arange(0, BLOCK_T)[:, None] == BLOCK_T - 1
    for start in range(0, T, BLOCK_T):
        times = (start + tl.arange(0, BLOCK_T)).to(tl.int64)[:, None]
        inside = (times < T) & alive[None, :]
        a_at = a_ptr + batch * a_batch + times * a_time + channels[None, :]
        b_at = b_ptr + batch * b_batch + times * b_time + channels[None, :]
        # Past the end a step changes nothing, so that the last row always holds the carry.
        a = tl.load(a_at, mask=inside, other=1.0).to(tl.float32)
        b = tl.load(b_at, mask=inside, other=0.0).to(tl.float32)
        decay, gained = tl.associative_scan((a, b), axis=0, combine_fn=one_after_the_other)
        states = decay * carry[None, :] + gained
        states_at = states_ptr + batch * states_batch + times * states_time + channels[None, :]
        tl.store(states_at, states.to(states_ptr.dtype.element_ty), mask=inside)
        carry = tl.sum(tl.where(last, states, 0.0), axis=0)
    tl.store(terminal_ptr + batch * D + channels, carry, mask=alive)


def scan_in_chunks(a, b, initial=None):
    """Run the recurrence over ``a`` and ``b`` (B, T, D) from ``initial`` (B, D) or zero.

    Returns every state (B, T, D) in the dtype of ``b`` and the terminal one (B, D) in float32.
    """
    B, T, D = b.shape
    states = torch.empty((B, T, D), dtype=b.dtype, device=b.device)
    terminal = torch.empty((B, D), dtype=torch.float32, device=b.device)
    scan_kernel[(B, triton.cdiv(D, 32))](
        a,
        b,
        initial,
        states,
        terminal,
        T,
        D,
        *a.stride()[:2],
        *b.stride()[:2],
        *states.stride()[:2],
        HAS_INITIAL=initial is not None,
        BLOCK_T=16,
        BLOCK_D=32,
    )
    return states, terminal


def oracle(m, a, b, initial):
    states = m.linear_scan(a, b, initial, axis=1)
    return states, states[:, -1]


FLOATS = ("float32", "bfloat16")

chunked_scan = Contract(
    kernel=scan_in_chunks,
    oracles=[oracle],
    # At the production sizes offsets no longer fit into 32 bits, whichever dim lies outermost.
    dims={
        "B": sizes(0, 5, production=2**11),
        "T": sizes(1, 200, production=2**10),
        "D": sizes(1, 70, production=2**11),
    },
    args={
        "a": Tensor("B T D", dtypes=FLOATS, domain=reals(0, 1), layouts=UNIT_LAST),
        "b": Tensor("B T D", dtypes=FLOATS, layouts=UNIT_LAST),
        "initial": Tensor("B D", optional=True),
    },
    outputs={
        "states": Tensor("B T D", dtypes="b"),
        "terminal": Tensor("B D", dtypes=("float32",)),
    },
)


@chunked_scan.law
def halves_with_carry_equal_the_whole(out, bound, rerun, a, b, T):
    """Scanning the first half, then the second from its terminal state, scans the whole."""
    cut = T // 2
    first = rerun(a=a[:, :cut], b=b[:, :cut])
    second = rerun(a=a[:, cut:], b=b[:, cut:], initial=first.terminal)
    states = np.concatenate([first.states, second.states], axis=1)
    assert (np.abs(states - out.states) <= 2 * bound.states).all(), "a state differs"
    assert (np.abs(second.terminal - out.terminal) <= 2 * bound.terminal).all(), (
        "the terminal state differs"
    )


@chunked_scan.law
def shut_gate_forgets(rerun, a, b):
    """Where the gate is shut the past is gone: the states are the increments, bit for bit."""
    states = rerun(a=np.zeros_like(a)).states
    assert (states == b).all(), "a shut gate lets something through"


@chunked_scan.fault(expects=("halves_with_carry_equal_the_whole", "matches_oracle"))
def tail_decays_the_carry(edit):
    """Steps past the end wipe out the terminal state; whole chunks pass."""
    return edit("other=1.0", "other=0.0")


@chunked_scan.fault(expects=("leaves_inputs_unchanged",))
def states_overwrite_the_increments(edit):
    """In place saves an allocation; a test that computes its reference first passes."""
    return edit("states = torch.empty((B, T, D), dtype=b.dtype, device=b.device)", "states = b")


@chunked_scan.fault(expects=("ignores_layout",))
def gates_read_with_the_increments_strides(edit):
    """Right as long as both are laid out alike, as fresh tensors are."""
    return edit("*a.stride()[:2]", "*b.stride()[:2]")


@chunked_scan.fault(expects=("offsets_fit",))
def times_counted_in_32_bits(edit):
    """With time outermost its stride times the last step passes 2^31; this very kernel had it."""
    return edit("tl.arange(0, BLOCK_T)).to(tl.int64)[:, None]", "tl.arange(0, BLOCK_T))[:, None]")
