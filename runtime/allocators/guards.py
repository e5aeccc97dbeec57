"""`GuardingAllocator`: finds writes beyond a block, and writes into a released block.

The device only has to copy, so this works in the same way on every device and on the host.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from syncedmem.model import MemoryCorruptionError
from syncedmem.model.interface import MemcpyKind, is_host

from .adaptor import Adaptor
from .failures import attempt, block_from, is_refused, take_back, told
from .pointers import LiveBlocks, check_byte_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from .base import DeviceAllocator
    from .pointers import HostArray

__all__ = ["GuardingAllocator"]

FRESH, FREED, GUARD = 0xA5, 0xDD, 0xFB
"""The bytes that fill new memory, released memory and red zones; the same as on the simulated device."""

_ZONE = 256
"""Bytes on each side of a block; so many keep the alignment of every device."""

_QUARANTINE, _MOST_BLOCKS = 4 << 20, 4096
"""How many bytes and how many released blocks are kept at most, the last ones; none when the upstream is full."""

_AFTER = "somebody wrote after its release into"


class _Block(NamedTuple):
    """A block of the upstream: a red zone, `size` bytes of the user, and another red zone."""

    whole: Pointer
    size: int


class _Quarantine:
    """Released blocks, the oldest first.  No call comes between the changes of the two attributes.

    Attributes
    ----------
    blocks : deque of _Block
    byte_size : int
        How many bytes their users had.
    """

    __slots__ = ("_upstream", "blocks", "byte_size")

    def __init__(self, upstream: DeviceAllocator) -> None:
        self._upstream = upstream
        self.byte_size: int = 0
        self.blocks: deque[_Block] = deque()

    def take(self) -> _Block | None:
        """The oldest block, which is kept no longer; None if there is none."""
        blocks = self.blocks
        try:
            block = blocks[0]
            del blocks[0]
            self.byte_size -= block.size
        except IndexError:
            return None
        return block

    # The guard empties its quarantine when it is gone.  If an interrupt kept it from doing so, this does it.
    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "blocks") and not is_over():
            while (block := self.take()) is not None:
                if problem := attempt(self._upstream.release, block.whole):
                    warnings.warn(f"memory leaked: {problem}", ResourceWarning, stacklevel=2)


class GuardingAllocator(Adaptor):
    """Puts red zones around every block, poisons new and released blocks, and keeps released blocks for a while.

    The red zones of a block are checked when it is released.  A released block is checked when it leaves the
    quarantine.  `check` checks all of them at any time.  Only code that writes through an address can be found: arrays
    themselves do not reach beyond their ends.

    Parameters
    ----------
    upstream : DeviceAllocator
    """

    keeps_memory = True

    def __init__(self, upstream: DeviceAllocator) -> None:
        super().__init__(upstream)
        self._kept = _Quarantine(upstream)
        self._live = LiveBlocks(self.name)
        there = not is_host(self)
        self._up = MemcpyKind.between(from_device=False, to_device=there)
        self._down = MemcpyKind.between(from_device=there, to_device=False)

    def allocate(self, byte_size: int) -> Pointer | None:
        size = check_byte_size(byte_size, limit=sys.maxsize - 2 * _ZONE)
        if size == 0:
            return None
        total, whole = size + 2 * _ZONE, None
        try:
            whole = self._room(total)
            content = np.full(total, GUARD, np.uint8)
            content[_ZONE : _ZONE + size] = FRESH
            self._upstream.memcpy(content, whole, content.size, self._up)
            ptr, block = whole[_ZONE : _ZONE + size], _Block(whole, size)
            key = id(ptr)
        except BaseException as error:
            take_back(self._upstream, whole, error)
            raise
        self._live.blocks[key] = ptr, block
        return ptr

    def _room(self, size: int) -> Pointer:
        try:
            return block_from(self._upstream, size)
        except MemoryError:
            if not self._kept.blocks:
                raise
            self._let_out(_QUARANTINE + 1)
        return block_from(self._upstream, size)

    def release(self, ptr: Pointer | None) -> None:
        """Put a block into quarantine; None is ignored.  A block that is too large for the quarantine is freed at once.

        Raises
        ------
        MemoryCorruptionError
            If somebody wrote into a red zone of the block; then the block is not released.  Also if somebody wrote into
            an older block that has to leave the quarantine now.  That error is raised once, and `ptr` is not released
            yet: call `release` again.
        """
        if ptr is None:
            return
        # From here on no other thread can find the block, so no lock is held while the device works.
        lent, key = self._live.blocks, id(ptr)
        try:
            # No call between these two lines, so only one of two threads succeeds, and no interrupt loses the block.
            entry = lent[key]
            del lent[key]
        except KeyError:
            raise self._live.unknown(ptr) from None
        block: _Block = entry[1]
        content, going = None, False
        try:
            self._check_zones(block)
            if block.size > _QUARANTINE:
                going = True
                self._upstream.release(block.whole)
                return
            self._let_out(block.size)
            content = self._read(self._inside(block))
            self._upstream.memcpy(np.full(block.size, FREED, np.uint8), ptr, block.size, self._up)
        except BaseException as error:
            lent[key] = entry  # the block still belongs to its owner, unless it is gone
            if content is not None:
                attempt(self._upstream.memcpy, content, ptr, block.size, self._up)
            if going and not is_refused(self._upstream, block.whole, error):
                del lent[key]
            raise
        kept = self._kept  # no call from here on, so that an error of the interpreter finds the block here or there
        kept.byte_size += block.size
        kept.blocks += (block,)

    def _let_out(self, size: int) -> None:
        """Let blocks leave the quarantine, the oldest first, until `size` more bytes fit in."""
        kept = self._kept
        while kept.byte_size + size > _QUARANTINE or len(kept.blocks) >= _MOST_BLOCKS:
            oldest = kept.take()
            if oldest is None:  # none is left; another thread may have taken the last one
                return
            spoilt, releasing = False, False
            try:
                spoilt = self._is_spoilt(oldest)
                releasing = True
                self._upstream.release(oldest.whole)
            except BaseException as error:
                if not releasing or is_refused(self._upstream, oldest.whole, error):
                    kept.byte_size += oldest.size
                    kept.blocks.appendleft(oldest)
                raise
            if spoilt:
                raise self._corruption(oldest, _AFTER)

    def check(self) -> None:
        """Check every block, those that are allocated and those in quarantine.

        Raises
        ------
        MemoryCorruptionError
            For the first block whose red zones somebody wrote into, or into which somebody wrote after its release.
        """
        for _, block in self._live.entries():
            self._check_zones(block)
        for block in list(self._kept.blocks):
            self._check_zones(block)
            if self._is_spoilt(block):
                raise self._corruption(block, _AFTER)

    def clear(self) -> None:
        """Empty the quarantine.

        Raises
        ------
        MemoryCorruptionError
            If somebody wrote into a block after its release.  That block has left the quarantine; younger blocks are
            still in it.
        """
        self._let_out(_QUARANTINE + 1)

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated, without those in quarantine."""
        return len(self._live)

    def _is_live(self, ptr: Pointer) -> bool | None:
        return ptr in self._live

    # At the exit of the interpreter the globals of modules may be gone; so the function that tells is a default.
    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_over():
            return
        kept = vars(self).get("_kept", None)
        for _ in range(0 if kept is None else 2 * len(kept.blocks)):  # a call frees at least one, if any can be
            try:
                self.clear()
            except MemoryCorruptionError as corruption:
                warnings.warn(f"found at the end: {told(corruption)}", ResourceWarning, stacklevel=2)
            except Exception:  # noqa: BLE001, S112 -- the quarantine tells of what cannot be released
                continue

    def _check_zones(self, block: _Block) -> None:
        for zone in (block.whole[:_ZONE], block.whole[_ZONE + block.size :]):
            if (self._read(zone) != GUARD).any():
                raise self._corruption(block, "somebody wrote into the red zone of")

    def _is_spoilt(self, block: _Block) -> bool:
        """Whether somebody wrote into a block in quarantine."""
        return bool((self._read(self._inside(block)) != FREED).any())

    def _inside(self, block: _Block) -> Pointer:
        return block.whole[_ZONE : _ZONE + block.size]

    def _read(self, part: Pointer) -> HostArray:
        host: HostArray = np.empty(len(part), np.uint8)
        self._upstream.memcpy(part, host, host.size, self._down)
        return host

    def _corruption(self, block: _Block, words: str) -> MemoryCorruptionError:
        return MemoryCorruptionError(self.name, block.size, words)
