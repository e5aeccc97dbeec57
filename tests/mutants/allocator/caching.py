"""`CachingPool`: a corrected pool of KuiperLLama's, in steps that a bug can replace one by one."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any

__all__ = ["CachingPool", "Entry"]

MIB = 1 << 20

_LIBRARY = ctypes.CDLL(None)
_LIBRARY.malloc.restype, _LIBRARY.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
_LIBRARY.free.restype, _LIBRARY.free.argtypes = None, (ctypes.c_void_p,)


@dataclass
class Entry:
    """Memory that the pool got from the system."""

    address: int
    size: int
    busy: bool = True
    asked: int = 0


class CachingPool:
    """Small buffers by first fit, big ones by best fit with little waste; idle small ones are reclaimed.

    The threshold of the reclaim is small, so that a short run exceeds it.

    Attributes
    ----------
    live_bytes, live_blocks : int
    current_device : int
    """

    reclaim_above = 2 * MIB

    def __init__(self) -> None:
        self.small: list[Entry] = []
        self.big: list[Entry] = []
        self.idle_bytes = self.live_bytes = self.live_blocks = self.current_device = 0
        self.lock: Any = threading.RLock()

    def allocate(self, size: int) -> int:
        """Allocate this many bytes; 0 for zero bytes."""
        with self.lock:
            if not size:
                return self.nothing()
            entry = self.fitting(size) or self.fresh(size)
            entry.busy, entry.asked = True, size
            self.live_bytes += size
            self.live_blocks += 1
            return entry.address

    def release(self, pointer: int) -> None:
        """Release memory; the pool keeps it for the next request."""
        with self.lock:
            self.reclaim()
            self.take_back(pointer)

    def close(self) -> None:
        """Free everything to the system."""
        for entry in self.small + self.big:
            _LIBRARY.free(entry.address)
        self.small, self.big = [], []

    # --- the steps

    def nothing(self) -> int:
        """The result for zero bytes."""
        return 0

    def fitting(self, size: int) -> Entry | None:
        """An idle buffer that fits, or None."""
        if size > MIB:
            fits = [it for it in self.big if not it.busy and 0 <= it.size - size < MIB]
            return min(fits, key=lambda it: it.size, default=None)
        for entry in self.small:
            if not entry.busy and entry.size >= size:
                self.idle_bytes -= entry.size
                return entry
        return None

    def fresh(self, size: int) -> Entry:
        """A buffer from the system."""
        address = _LIBRARY.malloc(size)
        if not address:
            raise MemoryError(f"no room for {size} bytes")
        entry = Entry(address, size)
        (self.big if size > MIB else self.small).append(entry)
        return entry

    def reclaim(self) -> None:
        """Free idle small buffers to the system if there are many."""
        if self.idle_bytes > self.reclaim_above:
            for entry in self.small:
                if not entry.busy:
                    _LIBRARY.free(entry.address)
            self.small = [entry for entry in self.small if entry.busy]
            self.idle_bytes = 0

    def take_back(self, pointer: int) -> None:
        """Mark a buffer idle."""
        entry = self.find(pointer)
        if entry is None or not entry.busy:
            self.stray(pointer, entry)
            return
        entry.busy = False
        self.uncount(entry)
        if entry in self.small:
            self.idle_bytes += entry.size

    def find(self, pointer: int) -> Entry | None:
        """The buffer at an address."""
        return next((it for it in (*self.small, *self.big) if it.address == pointer), None)

    def stray(self, pointer: int, entry: Entry | None) -> None:
        """Refuse a release of a buffer that is not in use."""
        raise ValueError(f"{pointer:#x} is not in use{'' if entry is None else ' any more'}")

    def uncount(self, entry: Entry) -> None:
        """Count one block less."""
        self.live_bytes -= entry.asked
        self.live_blocks -= 1
