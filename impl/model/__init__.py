"""The perception model on its kernels: windows for training, single events for inference.

features      input projection and scan blocks over a window
next_features the same for one event
window        logits, probabilities and recurrent states of windows, dense or per branch
seed          scan states after a window, by single steps
step          one event of inference, always per branch
after_window  seed and step in one: the event after a window
"""

from trivet.impl.model.features import features, next_features
from trivet.impl.model.stepping import Step, after_window, seed, step
from trivet.impl.model.window import Window, window

__all__ = ["Step", "Window", "after_window", "features", "next_features", "seed", "step", "window"]
