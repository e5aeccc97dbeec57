"""Wrong statistics and limits, and lost memory."""

from __future__ import annotations

import ctypes

from ..registry import seeded_bug
from .pool import Pool


@seeded_bug("A17-statistics", "RMM: a statistics adaptor that counts requests, not successes")
class CountsRefusals(Pool):
    """A refused request is counted as live."""

    def refuse(self, size: int) -> int:
        self.live_blocks += 1
        return super().refuse(size)


@seeded_bug("A17-statistics", "a peak that goes down again")
class PeakIsNow(Pool):
    """The peak is the present number of live bytes."""

    def uncount(self, size: int) -> None:
        super().uncount(size)
        self.peak_bytes = self.live_bytes


@seeded_bug("A17-statistics", "a counter of 16 bits")
class CountsRoughly(Pool):
    """Of blocks of more than 64 KiB only the remainder after division by 64 KiB is counted."""

    def count(self, size: int) -> None:
        super().count(size & 0xFFFF or size)

    def uncount(self, size: int) -> None:
        super().uncount(size & 0xFFFF or size)


@seeded_bug("A17-statistics", "KuiperLLama: a double release is counted twice", double_free="ignore")
class CountsDoubleFrees(Pool):
    """A free of a block that is already free is ignored, but counted."""

    def deallocate(self, pointer: int, size: int, stream: object = None) -> None:
        if pointer in self.sizes:
            super().deallocate(pointer, size, stream)
        else:
            self.live_bytes -= size


@seeded_bug("A18-limit", "CuPy set_limit; a limit that is compared before the size is added", limit="1048576")
class LooksBeforeItAdds(Pool):
    """A request of any size is met as long as the limit is not reached."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self._real, self.limit = self.limit, 1 << 40

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        if self.live_bytes >= self._real:
            raise MemoryError
        return super().allocate(size, alignment, stream)


@seeded_bug("A18-limit", "RMM limiting adaptor: bytes counted and never subtracted")
class LimitsTheTotal(Pool):
    """Freed blocks still count against the limit."""

    total = 0

    def __init__(self) -> None:
        super().__init__(1 << 20)

    def allocate(self, size: int, alignment: int = 64, stream: object = None) -> int:
        self.total += size
        if self.total > self.limit:
            raise MemoryError
        return super().allocate(size, alignment, stream)


@seeded_bug("A17-statistics", "KuiperLLama Buffer: allocate() overwrites the old pointer")
class ReallocKeepsTheOld(Pool):
    """A realloc does not free the old block."""

    def realloc(self, pointer: int, size: int) -> int:
        old = self.sizes[pointer]
        address = self.allocate(size)
        ctypes.memmove(address, pointer, min(old, size))
        return address


@seeded_bug("A16-no-leaks", "a list that is shortened by one entry too many")
class LosesOneInEight(Pool):
    """Every eighth freed block is lost."""

    given = 0

    def put_back(self, start: int, end: int) -> None:
        self.given += 1
        if self.given % 8:
            super().put_back(start, end)


@seeded_bug("A21-device-kept", "KuiperLLama: the current device was 3, and 0 after a reclaim")
class LeavesADevice(Pool):
    """A free selects the block's device, and leaves it selected."""

    def __init__(self) -> None:
        super().__init__()
        self.current_device = 3

    def put_back(self, start: int, end: int) -> None:
        self.current_device = 0
        super().put_back(start, end)
