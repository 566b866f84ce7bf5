"""Domains, bad inputs and host functions that the contracts of the scan share."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trivet import Choice, Tensor, reals, sizes
from trivet.impl import scan as kernels
from trivet.oracles import scan as oracles

Array = NDArray[Any]
Rerun = Any

# R rows of a batch, T steps, H channels, S states of a channel. At production a batch at which
# the elements of a window cannot be counted in 31 bits.
ROWS = sizes(0, 4, production=2**17 + 1)
EVENT = {"R": ROWS, "H": sizes(1, 20, production=128), "S": sizes(1, 6, production=16)}
WINDOW = {
    "R": ROWS,
    "T": sizes(0, 40, production=200),
    "H": sizes(1, 20, production=128),
    "S": sizes(1, 5, production=16),
}


DECAY = reals(0, 1)
SIZE = reals(0, 4)
WINDOW_ARGS = {
    "a": Tensor("R T H", domain=DECAY),
    "step": Tensor("R T H", domain=SIZE),
    "B": Tensor("R T S"),
    "C": Tensor("R T S"),
    "D": Tensor("H"),
    "u": Tensor("R T H"),
    "x_0": Tensor("R H S"),
    "reset": Tensor("R T", dtypes=("bool",), optional=True),
}
EVENT_ARGS = {
    "a": Tensor("R H", domain=DECAY),
    "step": Tensor("R H", domain=SIZE),
    "B": Tensor("R S"),
    "C": Tensor("R S"),
    "D": Tensor("H"),
    "u": Tensor("R H"),
    "x": Tensor("R H S"),
    "reset": Tensor("R", dtypes=("bool",), optional=True),
}
# The first of each is the kernels' own choice; chunk alone sets the order of the sums over time.
CHUNK = Choice(16, 4)
CHANNELS = Choice(16, 4)
PARTS = Choice(256, 3, 1)


def replayed(
    a: torch.Tensor,
    step: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    u: torch.Tensor,
    x_0: torch.Tensor,
    reset: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A window by `scan_step`, event after event: y (R, T, H) and the terminal state."""
    state, seen = x_0.clone(), []
    for t in range(u.shape[1]):
        decay, size, entry, written, read = (each[:, t].contiguous() for each in (a, step, u, B, C))
        cut = None if reset is None else reset[:, t].contiguous()
        y, state = kernels.scan_step(decay, size, written, read, D, entry, state, cut)
        seen.append(y)
    return torch.stack(seen, 1) if seen else u.clone(), state


# ------------------------------------------------------------------------------ bad inputs


def a_in_float64(a: torch.Tensor) -> dict[str, object]:
    """Decays of another dtype."""
    return {"a": a.double()}


def step_that_is_no_tensor() -> dict[str, object]:
    """A number where a tensor is wanted."""
    return {"step": 0.5}


def B_of_other_states(B: torch.Tensor) -> dict[str, object]:
    """Input weights for a state more."""
    return {"B": torch.zeros(*B.shape[:-1], B.shape[-1] + 1)}


def D_too_long(D: torch.Tensor) -> dict[str, object]:
    """A direct term for one channel more."""
    return {"D": torch.zeros(len(D) + 1)}


def u_of_another_rank(u: torch.Tensor) -> dict[str, object]:
    """Inputs with an axis too many."""
    return {"u": u[None]}


def u_on_another_device(u: torch.Tensor) -> dict[str, object]:
    """Inputs that lie elsewhere."""
    return {"u": u.to("meta")}


def reset_of_numbers(u: torch.Tensor) -> dict[str, object]:
    """Resets as numbers, of which the kernel would not know which ones count."""
    return {"reset": torch.zeros(u.shape[:-1], dtype=torch.int32)}


def reset_of_another_batch(u: torch.Tensor) -> dict[str, object]:
    """Resets for a row more."""
    return {"reset": torch.zeros(u.shape[0] + 1, *u.shape[1:-1], dtype=torch.bool)}


def channels_that_are_no_power_of_two() -> dict[str, object]:
    """A block of channels that no tile has."""
    return {"block_channels": 12}


BAD = (
    (TypeError, "a", a_in_float64),
    (TypeError, "step", step_that_is_no_tensor),
    (ValueError, "B", B_of_other_states),
    (ValueError, "D", D_too_long),
    (ValueError, "u", u_of_another_rank),
    (ValueError, "u", u_on_another_device),
    (TypeError, "reset", reset_of_numbers),
    (ValueError, "reset", reset_of_another_batch),
    (ValueError, "block_channels", channels_that_are_no_power_of_two),
)


def x_0_of_other_channels(x_0: torch.Tensor) -> dict[str, object]:
    """A state for a channel more."""
    return {"x_0": torch.zeros(x_0.shape[0], x_0.shape[1] + 1, x_0.shape[2])}


def more_states_than_a_tile(B: torch.Tensor, x_0: torch.Tensor) -> dict[str, object]:
    """States that one program cannot hold."""
    wide = torch.zeros(*B.shape[:2], 129)
    return {"B": wide, "C": wide, "x_0": torch.zeros(*x_0.shape[:2], 129)}


def no_state(B: torch.Tensor, x_0: torch.Tensor) -> dict[str, object]:
    """Channels without any state."""
    return {"B": B[..., :0], "C": B[..., :0], "x_0": x_0[..., :0]}


def chunk_of_twelve() -> dict[str, object]:
    """A chunk that no tile has."""
    return {"chunk": 12}


BAD_WINDOW = (
    *BAD,
    (ValueError, "x_0", x_0_of_other_channels),
    (ValueError, "128 states", more_states_than_a_tile),
    (ValueError, "states", no_state),
    (ValueError, "chunk", chunk_of_twelve),
)

# ------------------------------------------------------------------------------ parts of windows


def cut_window(steps: slice, **window: Array | None) -> dict[str, Any]:
    """Some steps of each argument of a window, whose second axis is time; None stays None."""
    return {name: None if each is None else each[:, steps] for name, each in window.items()}


def whole_numbers(drawn: Array) -> Array:
    """Small whole numbers in place of those drawn: sums of products of three are exact."""
    return np.round(drawn)


def terminal(
    m: Any, a: Any, step: Any, B: Any, C: Any, D: Any, u: Any, x_0: Any, reset: Any
) -> Any:
    """The oracle's terminal state alone."""
    return oracles.scan_chunked(m, a, step, B, C, D, u, x_0, reset)[1]
