"""State of a controller: tensors by name, checked when they come back."""

from collections.abc import Mapping

import torch


class StateError(ValueError):
    """A saved state that does not belong to this controller."""


def restored(
    own: Mapping[str, torch.Tensor], saved: Mapping[str, torch.Tensor], controller: str
) -> dict[str, torch.Tensor]:
    """Return copies of the saved tensors, on the devices of the controller's own.

    Raises StateError for a name, dtype or shape other than its own.
    """
    if set(saved) != set(own):
        raise StateError(
            f"state of {controller}: expected the entries {', '.join(sorted(own))}, "
            f"got {', '.join(sorted(saved)) or 'none'}"
        )
    for name, tensor in own.items():
        given = saved[name]
        if given.dtype != tensor.dtype or given.shape != tensor.shape:
            raise StateError(
                f"state of {controller}: {name} must be {tuple(tensor.shape)} {tensor.dtype}, "
                f"got {tuple(given.shape)} {given.dtype}"
            )
    return {name: saved[name].to(tensor.device, copy=True) for name, tensor in own.items()}
