"""The perception model on its kernels: windows for training, single events for inference.

features  input projection and scan blocks over a window
window    logits, probabilities and recurrent states of windows, dense or per branch
seed      scan states after a window, by single steps
step      one event of inference, always per branch
"""

from trivet.impl.model.features import features
from trivet.impl.model.stepping import Step, seed, step
from trivet.impl.model.window import Window, window

__all__ = ["Step", "Window", "features", "seed", "step", "window"]
