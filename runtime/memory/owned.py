"""`OwnedBlock`: a block that has to be released; `Finaliser`: releases the blocks of an owner that is gone.

An interrupt (Ctrl-C, ``SystemExit``) can come in the middle of an allocation or a release.  Then nobody can tell
whether it has happened.  The block counts as lost, and a warning says so: better lost than released twice.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from syncedmem.model import ReleaseError

from ..allocators.failures import told, warn_of_leak, where_of
from ..allocators.pointers import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.model.interface import Pointer

    from ..allocators.base import DeviceAllocator
    from .flight import Push

__all__ = ["Finaliser", "OwnedBlock"]


class OwnedBlock:
    """A block that somebody has to release.

    Parameters
    ----------
    allocator : DeviceAllocator
        The allocator of the block.
    *ptr : pointer
        The block, if it was allocated already; nothing if `allocate` will do it.

    Attributes
    ----------
    slot : tuple
        The pointer, as long as we have to release the block; empty before and after that.
    """

    __slots__ = ("allocator", "slot")

    def __init__(self, allocator: DeviceAllocator, *ptr: Pointer) -> None:
        self.allocator: DeviceAllocator = allocator
        self.slot: tuple[Pointer, ...] = ptr

    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate the block."""
        try:
            ptr = self.allocator.allocate(byte_size)
        except BaseException as error:
            if not isinstance(error, Exception):
                self._warn_of_interrupt(byte_size, "allocation", error)
            raise
        self.slot = (ptr,)
        return ptr

    def release(self) -> None:
        """Release the block, if it is not released already.

        Raises
        ------
        ReleaseError
            If the allocator refuses it; we still have to release it.
        """
        slot, self.slot = self.slot, ()
        if not slot:
            return
        try:
            self.allocator.release(slot[0])
        except Exception as error:
            self.slot = slot
            raise ReleaseError("release", where_of(self.allocator), error) from error
        except BaseException as interrupt:
            self._warn_of_interrupt(size_of(slot[0]), "release", interrupt)
            raise

    def give_back(self, byte_size: int, error: BaseException, stuck: str = "") -> None:
        """Release the block on the way out of a call that ends with `error`.

        If that fails, or the copy into it is still in flight for the reason `stuck`, the block leaks and a warning says
        so.
        """
        problem = stuck if self.slot else ""
        if not stuck:
            try:
                self.release()
            except ReleaseError as refused:
                problem = told(refused.__cause__ or refused)
        if problem:
            self.slot = ()
            warn_of_leak(f"{byte_size} bytes leaked on {where_of(self.allocator)}: {problem}", error)

    def _warn_of_interrupt(self, byte_size: int, what: str, interrupt: BaseException) -> None:
        warn_of_leak(
            f"{byte_size} bytes on {where_of(self.allocator)} may be lost: their {what} was interrupted", interrupt
        )


class Finaliser:
    """Releases the blocks of an owner, which has the only reference to this, when the owner is gone.

    Parameters
    ----------
    owner : str
        The owner, as warnings show it.
    byte_size : int
        The size of each block in bytes.

    Attributes
    ----------
    blocks : sequence of OwnedBlock or None
    flights : sequence of Push
        The copies that must be over before the blocks are released.
    """

    __slots__ = ("_byte_size", "_owner", "blocks", "flights")

    def __init__(self, owner: str, byte_size: int) -> None:
        self._owner = owner
        self._byte_size = byte_size
        self.blocks: Sequence[OwnedBlock | None] = ()
        self.flights: Sequence[Push] = ()

    def _dispose(self) -> None:
        """Release all blocks when copies in flight are over; a warning tells of one that cannot be released."""
        stuck = "".join([flight.end() for flight in self.flights])
        problems: list[str] = []
        self._release([block for block in self.blocks if block is not None], stuck, problems)
        for problem in problems:
            message = f"{self._byte_size} bytes of {self._owner} leaked: {problem}"
            warnings.warn(message, ResourceWarning, stacklevel=3)  # where the owner was dropped

    def _release(self, blocks: list[OwnedBlock], stuck: str, problems: list[str]) -> None:
        """Release blocks; also after an interrupt in one of them, the others."""
        if not blocks:
            return
        block = blocks[0]
        try:
            if stuck and block.slot:
                problems.append(stuck)
            elif not stuck:
                block.release()
        except ReleaseError as refused:
            reason = told(refused.__cause__ or refused)
            problems.append(f"release failed on {where_of(block.allocator)}: {reason}")
        finally:
            block.slot = ()
            self._release(blocks[1:], stuck, problems)

    # At the exit of the interpreter the globals of modules may be gone, so that nothing works; then the memory goes
    # with the process.  The function that tells is a default for the same reason.
    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not hasattr(self, "flights"):
            return  # an interrupt came while this object was made
        try:
            self._dispose()
        except ResourceWarning:
            raise  # warnings are errors in this process, and Python prints the error of a finaliser
        except Exception:
            if not is_over():
                raise
