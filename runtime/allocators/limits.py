"""`LimitingAllocator`: limits how many bytes are allocated at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import AllocationError

from .adaptor import Adaptor
from .failures import new_block
from .pointers import LiveBlocks, check_byte_size

if TYPE_CHECKING:
    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

__all__ = ["LimitingAllocator"]


class LimitingAllocator(Adaptor):
    """Refuses a request that would bring the allocated bytes above a limit; RMM's ``LimitingResourceAdaptor``.

    Parameters
    ----------
    upstream : DeviceAllocator
    limit : int
        In bytes.

    Raises
    ------
    InvalidSizeError, InvalidArgumentError
        If `limit` is not a size.
    """

    def __init__(self, upstream: DeviceAllocator, limit: int) -> None:
        super().__init__(upstream)
        self._limit = check_byte_size(limit, "limit")
        self._used = 0
        self._live = LiveBlocks(self.name)

    def allocate(self, byte_size: int) -> Pointer | None:
        """As `DeviceAllocator.allocate`, but a request beyond the limit is refused.

        Raises
        ------
        AllocationError
            If the request would bring the allocated bytes above the limit, or the upstream has no room.
        """
        size = check_byte_size(byte_size)
        # The bytes are counted before the upstream is asked, so that two threads cannot both get the last ones.  There
        # is no call in these lines, so CPython does not switch threads between them.  A lock would take longer than all
        # of them.
        used = self._used
        if used + size > self._limit:
            raise AllocationError(self.name, size, f"{used} of at most {self._limit} bytes are in use")
        self._used = used + size
        try:
            ptr, key, _ = new_block(self._upstream, size)
        except BaseException:
            self._used -= size
            raise
        if ptr is not None:
            self._live.blocks[key] = ptr, size
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        if ptr is not None:
            # The bytes are free only after the release.  In two lines: `-=` would read the count before it.
            freed = self._live.release(ptr, self._upstream, gone=self._count_out)
            self._used -= freed

    def _count_out(self, size: int) -> None:
        self._used -= size

    def _is_live(self, ptr: Pointer) -> bool | None:
        return ptr in self._live

    @property
    def limit(self) -> int:
        """The most bytes that may be allocated at once."""
        return self._limit

    @property
    def allocated_bytes(self) -> int:
        """How many bytes are allocated."""
        return self._used
