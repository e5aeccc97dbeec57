"""KuiperLLama's pool, with one of its defects each."""

from __future__ import annotations

import time

from ..registry import seeded_bug
from .caching import MIB, CachingPool, Entry

__all__: list[str] = []


@seeded_bug("A16-no-leaks", "KuiperLLama: release returns if there is no small buffer")
class ReleasesNothingWithoutSmall(CachingPool):
    """As long as there are only big buffers, a release marks nothing idle."""

    def take_back(self, pointer: int) -> None:
        if self.small:
            super().take_back(pointer)
        else:
            entry = self.find(pointer)
            assert entry is not None
            self.uncount(entry)


@seeded_bug("A09-zero-size", "KuiperLLama: a request for zero bytes gets any idle buffer", zero_size="null")
class ZeroTakesAnIdleBuffer(CachingPool):
    """A request for zero bytes takes the first idle buffer, until somebody releases it."""

    def nothing(self) -> int:
        entry = next((it for it in self.small if not it.busy), None)
        return entry.address if entry is not None else 0


@seeded_bug("A06-out-of-memory", "KuiperLLama: failure is a message and null")
class NullOnFailure(CachingPool):
    """If the system has no memory left, the result is null."""

    def allocate(self, size: int) -> int:
        try:
            return super().allocate(size)
        except MemoryError:
            return 0


@seeded_bug("A07-free-accepts", "KuiperLLama: cudaFree of a buffer that a reclaim freed is fatal")
class ReclaimForgetsBusy(CachingPool):
    """A reclaim drops every small buffer from the list, also buffers in use."""

    def reclaim(self) -> None:
        if self.idle_bytes > self.reclaim_above:
            super().reclaim()
            self.small = []


@seeded_bug("A07-free-accepts", "a reclaim that does not check whether a buffer is in use")
class ReclaimsBusy(CachingPool):
    """A reclaim marks the first busy buffer idle, so that two callers get it."""

    def reclaim(self) -> None:
        if self.idle_bytes > self.reclaim_above // 2:
            super().reclaim()
            for entry in self.small[:1]:
                entry.busy = False


@seeded_bug("A17-statistics", "KuiperLLama: a double release counts its size twice", double_free="ignore")
class CountsDoubleReleases(CachingPool):
    """A release of an idle buffer is ignored, but counted."""

    def stray(self, pointer: int, entry: Entry | None) -> None:
        assert entry is not None
        self.uncount(entry)


@seeded_bug("A21-device-kept", "KuiperLLama: a reclaim leaves another device current")
class ReclaimLeavesADevice(CachingPool):
    """A reclaim selects one device after the other, and leaves the last one current."""

    reclaim_above = MIB // 16

    def __init__(self) -> None:
        super().__init__()
        self.current_device = 3

    def reclaim(self) -> None:
        if self.idle_bytes > self.reclaim_above:
            self.current_device = 0
        super().reclaim()


@seeded_bug(
    "A20-threads", "KuiperLLama: no locks, and vectors that several threads change", threads=4, thread_safe="yes"
)
class PoolWithoutLocks(CachingPool):
    """Two threads can find the same idle buffer.  There is no reclaim, because it would crash."""

    def allocate(self, size: int) -> int:
        if not size:
            return 0
        entry = self.fitting(size) or self.fresh(size)
        time.sleep(0)  # lets another thread run, which in C can happen at any instruction
        entry.busy, entry.asked = True, size
        self.live_bytes += size
        self.live_blocks += 1
        return entry.address

    def release(self, pointer: int) -> None:
        self.take_back(pointer)
