"""Places that are not the ones meant, because 32 bits did not hold them."""

from __future__ import annotations

import numpy as np

from trivet.simulator.chunk import Chunk
from trivet.simulator.memory import View
from trivet.simulator.stored import Access
from trivet.simulator.wide import Wide


def settled(
    access: Access, chunk: Chunk, view: View, offsets: np.ndarray, mask: np.ndarray | None
) -> np.ndarray:
    """``offsets`` as the kernel has them, after a report of live lanes whose place wrapped."""
    if not isinstance(offsets, Wide):
        return offsets
    plain, exact, origin = offsets.view(np.ndarray), offsets.exact, offsets.origin
    if exact is None or origin is None:
        return plain
    wrong = plain != exact if mask is None else (plain != exact) & mask
    if not wrong.any():
        return plain
    first = tuple(np.argwhere(wrong)[0])
    place = tuple(index if size > 1 else 0 for index, size in zip(first, plain.shape, strict=True))
    keys, row = chunk.keys, first[0]
    if wrong.shape[0] == 1 and chunk.active is not None:
        row = int(np.argmax(chunk.active))
    chunk.launch.sanitizer.report_wrap(
        view,
        (int(plain[place]), int(exact[place])),
        int(keys[row]) + access.number,
        origin,
        int(np.count_nonzero(wrong)),
    )
    return plain
