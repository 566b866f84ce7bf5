"""One stream of events on the host, and what makes it malformed."""

from dataclasses import dataclass, fields

import numpy as np
import torch

from trivet.impl import _replay


@dataclass(frozen=True)
class Tape:
    """E events: labels of N horizons; ts (E,) int64 ns; bid, ask, bid_size, ask_size (E,) int32;
    p (E, N) float32. Prices are in hundredths, sizes in lots."""

    labels: tuple[str, ...]
    ts: np.ndarray
    bid: np.ndarray
    ask: np.ndarray
    bid_size: np.ndarray
    ask_size: np.ndarray
    p: np.ndarray

    def arrays(self) -> list[np.ndarray]:
        """The arrays, in order."""
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def events(self, device: str) -> _replay.Events:
        """The events as one tape on a device."""
        return _replay.Events(*(torch.from_numpy(a)[None].to(device) for a in self.arrays()))
