"""What host wrappers check before any launch; every error names the argument."""

from collections.abc import Sequence

import numpy as np
import torch

LARGEST_BLOCK = 128
LARGEST_TILE = 1 << 15


class Arguments:
    """Checks the arguments of one call against each other, in the order in which they come.

    The first tensor that has a dim fixes its size, the first tensor of all fixes the device.
    """

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.device: torch.device | None = None

    def tensor(self, name: str, value: object, dims: str, dtype: torch.dtype) -> torch.Tensor:
        """Return `value`, a contiguous tensor of this dtype whose shape is `dims`, like "B H".

        Raises TypeError for another type or dtype, ValueError for another rank, shape, device
        or for gaps in memory.
        """
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
        if value.dtype != dtype:
            raise TypeError(f"{name} must be {dtype}, got {value.dtype}")
        self._shape(name, tuple(value.shape), dims.split())
        if self.device is None:
            self.device = value.device
        if value.device != self.device:
            raise ValueError(f"{name} must be on {self.device}, got {value.device}")
        if not value.is_contiguous():
            raise ValueError(f"{name} must be contiguous, got strides {tuple(value.stride())}")
        return value

    def _shape(self, name: str, shape: tuple[int, ...], dims: Sequence[str]) -> None:
        wanted = f"({', '.join(dims)})"
        if len(shape) != len(dims):
            raise ValueError(f"{name} must have shape {wanted}, got {shape}")
        for dim, size in zip(dims, shape, strict=True):
            expected = self.sizes.setdefault(dim, size)
            if size != expected:
                raise ValueError(
                    f"{name} must have shape {wanted} with {dim} = {expected}, got {shape}"
                )


def count(name: str, value: object, smallest: int) -> int:
    """Return `value`, an integer of at least `smallest`; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < smallest:
        raise ValueError(f"{name} must be at least {smallest}, got {value}")
    return value


def blocks(**sizes: object) -> None:
    """Every block size is a power of two from 1 to 128, and they fit one tile.

    Raises TypeError or ValueError otherwise.
    """
    elements = 1
    for name, value in sizes.items():
        size = count(name, value, 1)
        if size > LARGEST_BLOCK or size & (size - 1):
            raise ValueError(f"{name} must be a power of two up to {LARGEST_BLOCK}, got {size}")
        elements *= size
    if elements > LARGEST_TILE:
        raise ValueError(f"{' * '.join(sizes)} must be at most {LARGEST_TILE}, got {elements}")


def horizons(number: int) -> None:
    """ValueError unless there are 1 to 128 horizons, which one tile holds side by side."""
    if not 1 <= number <= LARGEST_BLOCK:
        raise ValueError(f"N must be from 1 to {LARGEST_BLOCK} horizons, got {number}")


def captured(value: torch.Tensor) -> bool:
    """Whether a CUDA graph is being captured on the value's device."""
    return value.is_cuda and torch.cuda.is_current_stream_capturing()


def every(name: str, value: torch.Tensor, good: torch.Tensor, wanted: str) -> None:
    """ValueError naming the first element of `value` that is not `good`.

    While a CUDA graph is captured no value can be read: the run before the capture was checked.
    """
    if captured(value) or bool(good.all()):
        return
    index = tuple(int(i) for i in (~good).nonzero()[0])
    place = ", ".join(map(str, index))
    raise ValueError(f"{name} must be {wanted}, got {name}[{place}] = {value[index].item()}")


def finite_positive(name: str, value: torch.Tensor) -> None:
    """ValueError unless every element lies in (0, inf)."""
    every(name, value, (value > 0) & (value < torch.inf), "finite and positive")


def finite_not_negative(name: str, value: torch.Tensor) -> None:
    """ValueError unless every element lies in [0, inf)."""
    every(name, value, (value >= 0) & (value < torch.inf), "finite and not negative")


def within(name: str, value: torch.Tensor, low: int, high: int) -> None:
    """ValueError unless every element of an integer tensor lies in [low, high]."""
    every(name, value, (value >= low) & (value <= high), f"from {low} to {high}")


def disjoint(name: str, table: torch.Tensor, channels: int) -> None:
    """ValueError unless the slots of a table are -1 or channels, none of them twice."""
    within(name, table, -1, channels - 1)
    if captured(table):
        return
    slots = table.cpu().numpy()
    times = np.bincount(slots[slots >= 0], minlength=channels)
    if times.max(initial=0) > 1:
        channel = int(times.argmax())
        raise ValueError(
            f"{name} must name no channel twice, got channel {channel} {times[channel]} times"
        )
