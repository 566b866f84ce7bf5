"""Reading a ring beside the kernels that write it, wherever it lives."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from trivet.impl.trace.layout import CAPACITY_AT, HEAD_AT, RECORD, STEP_AT, Ring


class Reader:
    """Copies of a ring's head and records; on a GPU through a stream of its own.

    Raises ValueError for a ring whose header and slots disagree.
    """

    def __init__(self, ring: Ring) -> None:
        self.ring, self.capacity = ring, ring.capacity
        self._stream: torch.cuda.Stream | None = None
        if ring.slots.device.type == "cuda":
            self._stream = torch.cuda.Stream(ring.slots.device)  # type: ignore[no-untyped-call]
        held = int(ring.header[CAPACITY_AT])
        if held != self.capacity:
            raise ValueError(f"the ring's header must say capacity {self.capacity}, got {held}")

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Copies do not wait for the kernels that are queued."""
        if self._stream is None:
            yield
            return
        with torch.cuda.stream(self._stream):
            yield

    def position(self) -> tuple[int, int]:
        """Records ever written, and the step counter."""
        with self._beside():
            header = self.ring.header.cpu()
        return int(header[HEAD_AT]), int(header[STEP_AT])

    def copy(self, first: int, stop: int) -> np.ndarray:
        """A copy (stop - first,) of the records number first to stop - 1, at most a capacity."""
        if first == stop:
            return np.empty(0, RECORD)
        start, end = first % self.capacity, (stop - 1) % self.capacity + 1
        slots = self.ring.slots
        parts = [slots[start:end]] if start < end else [slots[start:], slots[:end]]
        with self._beside():
            rows = np.concatenate([part.cpu().numpy() for part in parts])
        return rows.view(RECORD)[:, 0]

    def settle(self) -> None:
        """Wait until the kernels that are queued have written."""
        if self._stream is not None:
            torch.cuda.synchronize(self._stream.device)
