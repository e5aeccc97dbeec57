"""`LimitingAllocator`: no more than so many bytes at once."""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING

from syncedmem.model import AllocationError

from .adaptor import Adaptor
from .handover import take_back
from .pointers import LiveBlocks, check_byte_size

if TYPE_CHECKING:
    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator

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
        allocating, ptr = map(self._upstream.allocate, (size,)), None
        # Taken before it is asked for, so that two threads cannot both have the rest.  There is no call in these lines,
        # so CPython lets no other thread run among them; a lock would take longer than all the rest here.
        used = self._used
        if used + size > self._limit:
            raise AllocationError(self.name, size, f"{used} of at most {self._limit} bytes are in use")
        self._used = used + size
        try:
            (ptr,) = allocating
            if ptr is not None:
                self._live.blocks[id(ptr)] = ptr, size
        except BaseException as error:
            take_back(self._upstream, ptr, error)
            self._used -= size
            raise
        return ptr

    def release(self, ptr: Pointer | None) -> None:
        if ptr is None:
            return
        releasing = map(self._upstream.release, (ptr,))
        blocks, key = self._live.blocks, id(ptr)
        try:
            noted = blocks[key]
            # Less by its size, computed when it is unpacked, after the release: until then nobody may have the room.
            used = map(sub, map(getattr, (self,), ("_used",)), (noted[1],))
            del blocks[key]
        except KeyError:
            raise self._live.unknown(ptr) from None
        try:
            (_,) = releasing
            (self._used,) = used
        except BaseException:
            blocks[key] = noted
            raise

    @property
    def limit(self) -> int:
        """The most bytes that may be out at once."""
        return self._limit

    @property
    def allocated_bytes(self) -> int:
        """How many are."""
        return self._used
