"""The optimiser: AdamW, and its step on skip weights that stay zero off bucket.

adamw                 one step of any parameter, in place
block_diagonal_start  zero parameters and moments off bucket, at the transition
block_diagonal_step   masked gradient, AdamW, rate of each horizon, zero off bucket; one launch
"""

from trivet.impl.optimiser.adam import adamw
from trivet.impl.optimiser.block_diagonal import block_diagonal_start, block_diagonal_step

__all__ = ["adamw", "block_diagonal_start", "block_diagonal_step"]
