"""The optimiser: what AdamW and its block diagonal step promise."""

from trivet.properties.optimiser.adam import optimiser_adamw
from trivet.properties.optimiser.block_diagonal import (
    optimiser_block_diagonal_start,
    optimiser_block_diagonal_step,
)

__all__ = [
    "optimiser_adamw",
    "optimiser_block_diagonal_start",
    "optimiser_block_diagonal_step",
]
