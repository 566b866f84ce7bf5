"""What the C library does with the memory of temporaries."""

import ctypes
from functools import cache

_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_KEPT_BYTES, _MAPPED_FROM = 64 << 20, 8 << 20


@cache
def keep_freed_memory() -> None:
    """Let the process keep up to 64 MiB that it freed, instead of handing each tile back.

    A tile that comes fresh from the system is zeroed page by page at its first touch, which takes
    longer than most operations on it. Where the C library is not glibc nothing changes.
    """
    try:
        adjust = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    adjust(_MAP, _MAPPED_FROM)
    adjust(_TRIM, _KEPT_BYTES)
