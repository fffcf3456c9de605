"""What the C library does with memory that is free again: it keeps it, unless told otherwise.

LanceDB works in many threads, and glibc keeps a heap for each that only grows: writing 12,000
passages took 94 MiB more than the passages; with two heaps, and free memory given back after each
tidying, 20 MiB. Other C libraries are left as they are.
"""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8
HEAPS = 2


def keep_few_heaps() -> None:
    """From now on threads share the heaps that there are. Holds for the process."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def give_back() -> None:
    """Gives memory that is free back to the system. Takes milliseconds: for a thread."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
