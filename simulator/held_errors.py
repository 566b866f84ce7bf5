"""The running errors of one run, held beside the shadows: what launches wrote, what the host made.

A launch's errors are held with the values it left. An element that the host has changed since, or
that no launch wrote, has the error measured on this very run: how far the native number lies from
the shadow, where that is no more than one rounding of float32. Anything further off was computed
by torch operations whose rounding nobody bounds: ``unbounded`` says so.
"""

from __future__ import annotations

import numpy as np

from trivet.oracles._precision import Precision
from trivet.simulator._torch import torch
from trivet.simulator.elements import element_type
from trivet.simulator.running import STORED, Running
from trivet.simulator.shadow import Shadows
from trivet.simulator.storages import flat_array

# A little more than half an ulp: relative to the shadow, which is not rounded itself.
_ONE_ROUNDING = 2.0**-24 * (1 + 2.0**-10)
_SMALLEST = 2.0**-149


class HeldErrors:
    """Errors by storage, for one run under one ``precision``."""

    def __init__(self, precision: Precision) -> None:
        self.arithmetic = Running(precision)
        self.unbounded = ""
        self._held: dict[int, np.ndarray] = {}

    @property
    def reason(self) -> str:
        """Why there is no bound; empty where there is one."""
        return self.unbounded or self.arithmetic.doubt

    def array(self, tensor: torch.Tensor, shadows: Shadows) -> np.ndarray:
        """The whole storage of a float tensor as STORED numbers, to be run on by a launch."""
        value = shadows.array(tensor)
        native = flat_array(tensor, element_type(tensor.dtype).array).astype(np.float64)
        error, allowed = _measured(native, value)
        before = self._held.get(_address(tensor))
        if before is not None and before.shape == value.shape:
            kept = (before["value"] == value) | (np.isnan(before["value"]) & np.isnan(value))
            error = np.where(kept, before["error"], error)
            allowed = allowed | kept
        if not allowed.all():
            self.unbounded = "torch operations of the host function round float numbers"
        stored = np.empty(value.shape, STORED)
        stored["value"], stored["error"] = value, error
        return stored

    def settle(self, tensor: torch.Tensor, stored: np.ndarray, shadows: Shadows) -> None:
        """Hold what a launch left in ``stored``; its values become the shadow."""
        shadows.array(tensor)[...] = stored["value"]
        self._held[_address(tensor)] = stored

    def of(self, tensor: torch.Tensor, shadows: Shadows) -> np.ndarray:
        """The error of every element of ``tensor``, same shape."""
        stored = np.ascontiguousarray(self.array(tensor, shadows)["error"])
        flat = torch.from_numpy(stored)
        window = flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return window.clone().numpy()


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _measured(native: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far ``native`` lies from ``value``, and whether one rounding may explain it."""
    with np.errstate(all="ignore"):
        same = (native == value) | (np.isnan(native) & np.isnan(value))
        apart = np.where(same, 0.0, np.abs(native - value))
        allowed = same | (apart <= _ONE_ROUNDING * np.abs(value) + _SMALLEST)
    return apart, allowed
