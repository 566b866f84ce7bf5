"""Memory that is taken page by page, when somebody writes to it: far more than there is.

Linux only, as Triton is: anonymous memory that is never reserved, over which one block of content
may be mapped again and again, private to whoever writes to it.
"""

import ctypes
import mmap
import os

import numpy as np
from numpy.typing import NDArray

# A process may have some 65,000 mappings; one stretch of memory gets at most so many of them.
_MOST_MAPPINGS = 2048
_SMALLEST_SEGMENT = 1 << 20
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
# From <asm-generic/mman.h>; Python names neither everywhere.
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000
_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
_PLACED = mmap.MAP_PRIVATE | _MAP_NORESERVE | _MAP_FIXED


def zero_pages(size: int) -> mmap.mmap:
    """Return at least ``size`` bytes of zeros (one page for none), whole pages.

    Huge pages are declined: one touched byte would cost two MiB.
    """
    pages = mmap.mmap(-1, max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE, flags=_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages


def repeat(pages: mmap.mmap, block: NDArray[np.uint8]) -> None:
    """Let every page of ``pages`` hold its part of ``block``, bytes repeated over and over.

    Raises ValueError unless ``block`` is a whole number of pages, OSError where the system refuses.
    """
    if not block.size or block.size % mmap.PAGESIZE:
        raise ValueError(f"a block of {block.size} bytes is no whole number of pages")
    size = len(pages)
    least = max(_SMALLEST_SEGMENT, -(-size // _MOST_MAPPINGS))
    segment = min(-(-least // block.size), -(-size // block.size)) * block.size
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    content = block.tobytes()
    file = os.memfd_create("trivet")
    try:
        for _ in range(segment // block.size):
            os.write(file, content)
        for start in range(0, size, segment):
            _place(address + start, min(segment, size - start), file)
    finally:
        os.close(file)


def _place(address: int, size: int, file: int) -> None:
    place = ctypes.CDLL(None, use_errno=True).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    if place(address, size, _PROTECTION, _PLACED, file, 0) != address:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
