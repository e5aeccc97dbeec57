"""What the pool and the adaptors cost, as ratios to a baseline that is timed in the same run.

Run with ``make bench``.  These are measurements, not tests: nothing fails when a machine is slow.  Every figure is the
median over rounds, in processor time, and the two sides of a ratio alternate within each round.

The baseline for our pool is RMM's pool.  Python drives it over a callback, as ours is driven over an allocator.  It
needs no GPU driver: ``pip install rmm-cu12``.  If it is not installed, its rows say so.
"""

from __future__ import annotations

import ctypes
import importlib
import statistics
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from figures import options_of, publish

from syncedmem.runtime import (
    CPUDeviceAllocator,
    LimitingAllocator,
    PoolAllocator,
    StatisticsAllocator,
    TrackingAllocator,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 101
LOOP = 1_000
SMALL = 4096
KEPT = 64


class Fixed:
    """An allocator that always returns the same block, so only the allocator above it takes time."""

    name = "fixed:0"

    def __init__(self) -> None:
        self.block = np.zeros(SMALL, np.uint8)

    def allocate(self, byte_size: int) -> Any:
        """Return the block."""
        return self.block if byte_size else None

    def release(self, ptr: Any) -> None:
        """Do nothing."""


def pairs(allocator: Any) -> float:
    """Seconds for an allocation and its release."""
    allocate, release = allocator.allocate, allocator.release
    start = time.thread_time()
    for _ in range(LOOP):
        release(allocate(SMALL))
    return (time.thread_time() - start) / LOOP


def hits(pool: Any) -> float:
    """Seconds for an allocation that finds an idle block, without the release."""
    allocate, blocks = pool.allocate, deque[Any](maxlen=KEPT)
    took = 0.0
    for _ in range(LOOP // KEPT):
        start = time.thread_time()
        for _ in range(KEPT):
            blocks.append(allocate(SMALL))
        took += time.thread_time() - start
        for block in blocks:
            pool.release(block)
    return took / (LOOP // KEPT * KEPT)


def compared(first: Callable[[], float], second: Callable[[], float]) -> tuple[float, float, float]:
    """The medians of two measurements that alternate, and the median of their ratio."""
    rounds = [(first(), second()) for _ in range(ROUNDS)]
    return (
        statistics.median(a for a, _ in rounds),
        statistics.median(b for _, b in rounds),
        statistics.median(a / b for a, b in rounds),
    )


def _take(libc: Any, size: int, stream: object) -> int:
    del stream
    return int(libc.malloc(size))


def _give(libc: Any, ptr: int, size: int, stream: object) -> None:
    del size, stream
    libc.free(ptr)


class RmmPool:
    """RMM's pool over memory of the C library, with the two methods that are measured.

    Raises
    ------
    ImportError
        If RMM is not installed.
    """

    def __init__(self) -> None:
        rmm: Any = importlib.import_module("rmm.mr")
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
        # RMM calls these functions as long as it lives, so they are kept, with the objects that they use.
        self._callbacks = (partial(_take, libc), partial(_give, libc))
        upstream = rmm.CallbackMemoryResource(*self._callbacks)
        self._pool = rmm.PoolMemoryResource(upstream, initial_pool_size=64 << 20, maximum_pool_size=64 << 20)
        self.allocate = self._pool.allocate

    def release(self, ptr: int) -> None:
        """Give an address back; RMM needs its size."""
        self._pool.deallocate(ptr, SMALL)


def pool_rows() -> list[dict[str, Any]]:
    """A hit of the pool, compared with RMM's pool and with the time that NumPy takes for an array."""
    pool = PoolAllocator(CPUDeviceAllocator())
    for block in [pool.allocate(SMALL) for _ in range(KEPT)]:
        pool.release(block)
    fresh = CPUDeviceAllocator()
    rows = [
        _row(
            "PoolAllocator.allocate, small hit / CPUDeviceAllocator",
            partial(hits, pool),
            partial(hits, fresh),
            "<= 1 us",
        ),
    ]
    try:
        theirs = RmmPool()
    except ImportError as error:
        missing = f"RMM is not installed: pip install rmm-cu12 ({error})"
        return [*rows, {"what": "PoolAllocator / RMM's pool, allocate + release", "left out": missing}]
    return [
        *rows,
        _row("PoolAllocator / RMM's pool, allocate, hit", partial(hits, pool), partial(hits, theirs), "< 1"),
        _row("PoolAllocator / RMM's pool, allocate + release", partial(pairs, pool), partial(pairs, theirs), "< 1"),
    ]


def adaptor_rows() -> list[dict[str, Any]]:
    """What an adaptor adds to an allocation and a release."""
    fixed: Any = Fixed()
    adaptors = (TrackingAllocator(fixed), StatisticsAllocator(fixed), LimitingAllocator(fixed, 1 << 30))
    rows: list[dict[str, Any]] = []
    for adaptor in adaptors:
        row = _row(f"{type(adaptor).__name__}, allocate + release", partial(pairs, adaptor), partial(pairs, fixed), "")
        row |= {"adds_us": (row["us"] - row["against_us"]) / 2, "wanted": "adds <= 0.3 us a call"}
        rows.append(row)
    return rows


def _row(what: str, first: Callable[[], float], second: Callable[[], float], wanted: str) -> dict[str, Any]:
    ours, theirs, ratio = compared(first, second)
    return {"what": what, "us": ours * 1e6, "against_us": theirs * 1e6, "ratio": ratio, "wanted": wanted}


def show(row: dict[str, Any]) -> str:
    """One line of the table."""
    parts = [f"{row['what']:56}"]
    if "ratio" in row:
        parts.append(f"{row['us']:8.3f} us {row['against_us']:8.3f} us   ratio {row['ratio']:6.2f}")
    parts += [f"{key} {row[key]:.3f}" for key in ("adds_us",) if key in row]
    parts += [row["left out"]] if "left out" in row else [f"(wanted {row['wanted']})"]
    return "  ".join(parts)


def main() -> None:
    """Measure, print, and write the figures where ``--json`` says."""
    options = options_of(__doc__).parse_args()
    rows = [*pool_rows(), *adaptor_rows()]
    publish(rows, show, options.json)


if __name__ == "__main__":
    main()
