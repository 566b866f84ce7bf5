"""The running errors of one run, held beside the shadows: what launches wrote, what the host made.

A launch's errors are held with the values it left. An element that the host has changed since, or
that no launch wrote has the error of what was moved there (a copy, a cast, an index), else the one
measured on this very run: how far the native number lies from
the shadow, where that is no more than one rounding of float32. Anything further off was computed
by torch operations whose rounding nobody bounds: ``unbounded`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trivet.oracles._precision import Precision
from trivet.simulator._torch import torch
from trivet.simulator.elements import element_type
from trivet.simulator.nested import leaves, mapped
from trivet.simulator.operators import Operator
from trivet.simulator.running import STORED, Number, Running
from trivet.simulator.shadow import Shadows
from trivet.simulator.storages import flat_array, is_plain

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
        stored, allowed = self._known(tensor, shadows)
        if not allowed.all():
            self.unbounded = "torch operations of the host function round float numbers"
        return stored

    def _known(self, tensor: torch.Tensor, shadows: Shadows) -> tuple[np.ndarray, np.ndarray]:
        """The whole storage as STORED numbers, and where their errors are known."""
        value = shadows.array(tensor)
        native = flat_array(tensor, element_type(tensor.dtype).array).astype(np.float64)
        error, allowed = _measured(native, value)
        before = self._held.get(_address(tensor))
        if before is not None and before.shape == value.shape:
            kept = (before["value"] == value) | (np.isnan(before["value"]) & np.isnan(value))
            error = np.where(kept, before["error"], error)
            allowed = allowed | kept
        stored = np.empty(value.shape, STORED)
        stored["value"], stored["error"] = value, error
        return stored, allowed

    def moved(
        self,
        function: Callable[..., Any],
        known: Operator,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: object,
        shadows: Shadows,
    ) -> None:
        """Let errors follow the elements that a torch operation only moves or casts.

        A cast rounds where its format is declared, and counts as none where it is not.
        """
        copies = known.name == "copy_" and _is_float(args[1])
        target = args[0] if copies else result
        if not known.moves or (known.written and not copies) or not _is_float(target):
            return
        assert isinstance(target, torch.Tensor)
        try:
            if copies:
                error = self._lifted(args[1], shadows)
            else:
                error = function(
                    *mapped(lambda value: self._lifted(value, shadows), args),
                    **mapped(lambda value: self._lifted(value, shadows), dict(kwargs)),
                )
            sources = [leaf for leaf in leaves((args, kwargs)) if _is_float(leaf)]
            self._place(target, error, sources[-1], shadows)
        except Exception:
            return  # not followed: what the host made is then measured

    def _lifted(self, value: Any, shadows: Shadows) -> Any:
        if isinstance(value, torch.dtype):
            return torch.float64 if value.is_floating_point else value
        if isinstance(value, float):
            return 0.0
        return torch.from_numpy(self.of(value, shadows)) if _is_float(value) else value

    def _place(
        self, target: torch.Tensor, error: torch.Tensor, source: torch.Tensor, shadows: Shadows
    ) -> None:
        stored, allowed = self._known(target, shadows)
        value = _window(stored["value"], target)
        cast = self.arithmetic.cast(
            element_type(source.dtype).element, element_type(target.dtype).element, "rtne"
        )
        rounded = cast(Number(value, np.broadcast_to(error.numpy(), value.shape)))
        _write(stored["error"], target, rounded.error)
        _write(allowed, target, np.ones(value.shape, bool))
        stored["error"][~allowed] = np.inf
        self._held[_address(target)] = stored

    def settle(self, tensor: torch.Tensor, stored: np.ndarray, shadows: Shadows) -> None:
        """Hold what a launch left in ``stored``; its values become the shadow."""
        shadows.array(tensor)[...] = stored["value"]
        self._held[_address(tensor)] = stored

    def of(self, tensor: torch.Tensor, shadows: Shadows) -> np.ndarray:
        """The error of every element of ``tensor``, same shape."""
        return _window(self.array(tensor, shadows)["error"], tensor)


def _is_float(value: object) -> bool:
    return isinstance(value, torch.Tensor) and is_plain(value) and value.is_floating_point()


def _window(flat: np.ndarray, tensor: torch.Tensor) -> np.ndarray:
    """The elements of a whole storage that ``tensor`` shows, a copy."""
    whole = torch.from_numpy(np.ascontiguousarray(flat))
    shown = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return np.asarray(shown.clone().numpy())


def _write(flat: np.ndarray, tensor: torch.Tensor, part: np.ndarray) -> None:
    """Put ``part`` where ``tensor`` lies in a whole storage."""
    whole = torch.from_numpy(np.array(flat))
    shown = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    shown.copy_(torch.from_numpy(np.array(part)))
    flat[...] = whole.numpy()


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _measured(native: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far ``native`` lies from ``value``, and whether one rounding may explain it."""
    with np.errstate(all="ignore"):
        same = (native == value) | (np.isnan(native) & np.isnan(value))
        apart = np.where(same, 0.0, np.abs(native - value))
        allowed = same | (apart <= _ONE_ROUNDING * np.abs(value) + _SMALLEST)
    return apart, allowed
