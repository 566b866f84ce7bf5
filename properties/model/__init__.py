"""The perception model: what windows, single events and the event after a window promise."""

from trivet.properties.model.stepping import model_after_window, model_step
from trivet.properties.model.window import model_features, model_window, model_window_dense

__all__ = [
    "model_after_window",
    "model_features",
    "model_step",
    "model_window",
    "model_window_dense",
]
