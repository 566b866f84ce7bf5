"""Running events through simulations: any range of events in one launch, the state in place."""

import torch
import triton

from trivet.impl import _checks
from trivet.impl._replay.kernel import replay_kernel
from trivet.impl._replay.state import DEFAULTS, SHAPES, Events, Settings, State
from trivet.impl.decision.signals import columns_of
from trivet.impl.policy.programs import check_programs
from trivet.impl.sampling import Sampler


def run(
    events: Events,
    settings: Settings,
    state: State,
    *,
    start: int = 0,
    stop: int | None = None,
    programs: torch.Tensor | None = None,
    sampler: Sampler | None = None,
    block: int = 32,
) -> None:
    """Take the simulations of `settings` through events start to stop - 1; `state` in place.

    One launch, whatever the number of events; the next one goes on where it ended, bitwise as if
    there had been no cut. programs (P, L, 2) int32 are policy programs; a sampler reads the
    probabilities of its ticks, and changes nothing. Raises ValueError or
    TypeError before anything runs: for time running backwards naming the event, for
    probabilities, settings and programs naming the first bad one.
    """
    last = events.p.shape[1] if stop is None else stop
    _check_run(events, settings, state, start, last, programs)
    _checks.blocks(block=block)
    if not settings.cost.shape[0] or start == last:
        return
    _launch(events, settings, state, (start, last), programs, block)
    if sampler is not None:
        sampler.take(events.p, start, last)


def _launch(
    events: Events,
    settings: Settings,
    state: State,
    span: tuple[int, int],
    programs: torch.Tensor | None,
    block: int,
) -> None:
    simulations = settings.cost.shape[0]
    _, length, horizons = events.p.shape
    places = state.slots.shape[1]
    given = (*events.quotes.values(), events.p, *(getattr(settings, name) for name in DEFAULTS))
    code = settings.program if programs is None else programs
    sizes = (simulations, length, horizons, places, *span)
    steps = 0 if programs is None else programs.shape[1]
    blocks = (block, columns_of(horizons), triton.next_power_of_2(places))
    replay_kernel[(triton.cdiv(simulations, block),)](
        *given,
        *state.tensors(),
        code,
        *sizes,
        steps,
        programs is not None,
        *blocks,
        num_warps=1,
        enable_fp_fusion=False,
    )


def _check_run(
    events: Events,
    settings: Settings,
    state: State,
    start: int,
    last: int,
    programs: torch.Tensor | None,
) -> None:
    """TypeError or ValueError naming the argument of `run` that is wrong."""
    arguments = _checks.Arguments()
    events.check(arguments)
    tapes, length, horizons = events.p.shape
    settings.check(arguments, tapes, 0 if programs is None else programs.shape[0])
    state.check(arguments)
    if not 0 <= start <= last <= length:
        raise ValueError(f"start to stop must lie in 0 to {length}, got {start} to {last}")
    if programs is not None:
        check_programs(programs, horizons)


def replay(
    ts: torch.Tensor,
    bid: torch.Tensor,
    ask: torch.Tensor,
    bid_size: torch.Tensor,
    ask_size: torch.Tensor,
    p: torch.Tensor,
    tape: torch.Tensor,
    threshold: torch.Tensor,
    cost: torch.Tensor,
    delta_floor: torch.Tensor,
    stop_multiple: torch.Tensor,
    horizon_floor: torch.Tensor,
    conviction_floor: torch.Tensor,
    trade_floor: torch.Tensor,
    max_lots: torch.Tensor,
    latency_ns: torch.Tensor,
    max_hold_ns: torch.Tensor,
    Q: int,
    cut: int = 0,
    sampling_stride: int = 0,
    *,
    block: int = 32,
) -> dict[str, torch.Tensor]:
    """Run tapes from the first event to the last and return the state by name, as in `State`.

    Events (T, E) and settings (S,) as in `Events` and `Settings`; Q order slots; two launches,
    cut at an event; probabilities sampled every so many events, 0 for never. Raises as `run`.
    """
    simulations = cost.shape[0]
    first = (tape, threshold, cost, delta_floor, stop_multiple, horizon_floor)
    values = (*first, conviction_floor, trade_floor, max_lots, latency_ns, max_hold_ns)
    names = (name for name in DEFAULTS if name != "program")
    settings = Settings.of(simulations, cost.device, **dict(zip(names, values, strict=True)))
    events = Events(ts, bid, ask, bid_size, ask_size, p)
    state = State.fresh(simulations, p.shape[-1], Q, cost.device)
    sampler = Sampler(sampling_stride) if sampling_stride else None
    run(events, settings, state, stop=cut, sampler=sampler, block=block)
    run(events, settings, state, start=cut, sampler=sampler, block=block)
    return {name: getattr(state, name) for name in SHAPES}
