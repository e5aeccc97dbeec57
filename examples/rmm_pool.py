"""A pool of RMM over the C library.  It needs no GPU; test it with `syncedmem fuzz examples/rmm_pool.py:pool`.

`rmm_known.txt` has what is known of it: `--known examples/rmm_known.txt`.
"""

from __future__ import annotations

import ctypes
import sys

import rmm.mr

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype, libc.aligned_alloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 2
libc.free.argtypes = [ctypes.c_void_p]


def allocate(size: int, stream: object) -> int:
    """Memory from the C library, aligned as RMM promises."""
    del stream
    rounded = -(-size // 256) * 256
    address: int | None = libc.aligned_alloc(256, rounded) if rounded <= sys.maxsize else None
    if not address:
        raise MemoryError
    return address


def free(address: int, size: int, stream: object) -> None:
    """Give memory back to the C library."""
    del size, stream
    libc.free(address)


UPSTREAM = rmm.mr.CallbackMemoryResource(allocate, free)


def pool() -> object:
    """A new pool for every round."""
    return rmm.mr.PoolMemoryResource(UPSTREAM, initial_pool_size=1 << 24, maximum_pool_size=1 << 28)
