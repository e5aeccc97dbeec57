"""`LimitingAllocator`: no more than so many bytes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import AllocationError

from ..adaptor import Adaptor
from ..pointers import LiveBlocks, check_byte_size

if TYPE_CHECKING:
    from ..allocator import DeviceAllocator
    from ..pointers import Pointer

__all__ = ["LimitingAllocator"]


class LimitingAllocator(Adaptor):
    """Refuses what would bring the bytes that are out above a limit; RMM's ``LimitingResourceAdaptor``.

    Parameters
    ----------
    upstream : DeviceAllocator
    limit : int
        In bytes.

    Raises
    ------
    InvalidSizeError, InvalidArgumentError
        If `limit` is no size.
    """

    def __init__(self, upstream: DeviceAllocator, limit: int) -> None:
        super().__init__(upstream)
        self._limit = check_byte_size(limit, "limit")
        self._used = 0
        self._live = LiveBlocks(self.name)

    def allocate(self, byte_size: int) -> Pointer | None:
        """As `DeviceAllocator.allocate`; beyond the limit there is no room.

        Raises
        ------
        AllocationError
        """
        size = check_byte_size(byte_size)
        # Taken before it is asked for, so that two threads cannot both have the rest.  There is no call in these lines,
        # so CPython lets no other thread run among them; a lock would take longer than all the rest here.
        used = self._used
        if used + size > self._limit:
            raise AllocationError(self.name, size, f"{used} of at most {self._limit} bytes are in use")
        self._used = used + size
        try:
            ptr = self._upstream.allocate(size)
        except BaseException:
            self._used -= size
            raise
        if ptr is not None:
            self._live.add(ptr, size)
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        if ptr is None:
            return
        size = self._live.remove(ptr)
        try:
            self._upstream.release(ptr)
        except BaseException:
            self._live.add(ptr, size)
            raise
        self._used -= size

    @property
    def limit(self) -> int:
        """The most bytes that may be out at once."""
        return self._limit

    @property
    def allocated_bytes(self) -> int:
        """How many are."""
        return self._used
