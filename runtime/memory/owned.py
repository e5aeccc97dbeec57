"""`OwnedBlock`: a block that has to be released; `Owned`: the blocks of an object, released when it is gone.

An interrupt (Ctrl-C, ``SystemExit``) can come at the start of every Python function.  If it comes in the middle of an
allocation or a release, nobody can tell whether that has happened.  The block counts as lost, and a warning says so:
better lost than released twice.  Everywhere else nothing is lost, because a block that is dropped releases itself: so
it does not matter whether an interrupt kept the one who should have done it from doing so.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from syncedmem.model import ReleaseError

from ..allocators.failures import told, warn_of_interrupted_release, warn_of_leak, where_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.model.interface import Pointer

    from ..allocators.base import DeviceAllocator
    from .flight import Push

__all__ = ["Owned", "OwnedBlock"]


# Both classes end in this way.  At the exit of the interpreter the globals of modules may be gone, so that nothing
# works; then the memory goes with the process.  The function that tells is a default for the same reason.
def _end(thing: OwnedBlock | Owned, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
    """Release what is left, because nobody has it any more."""
    if not hasattr(thing, "flights"):
        return  # an interrupt came while it was made
    try:
        thing.end()
    except ResourceWarning:
        raise  # warnings are errors in this process, and Python prints the error of a finaliser
    except Exception:
        if not is_over():
            raise


class OwnedBlock:
    """A block that somebody has to release.

    Parameters
    ----------
    allocator : DeviceAllocator
        The allocator of the block.
    byte_size : int
        In bytes; warnings say it.
    *ptr : pointer
        The block, if it was allocated already; nothing if `allocate` will do it.

    Attributes
    ----------
    slot : tuple
        The pointer, as long as we have to release the block; empty before and after that.
    flights : sequence of Push
        The copies that may still use the block.
    """

    __slots__ = ("_byte_size", "allocator", "flights", "slot")

    def __init__(self, allocator: DeviceAllocator, byte_size: int, *ptr: Pointer) -> None:
        self.allocator: DeviceAllocator = allocator
        self._byte_size = byte_size
        self.slot: tuple[Pointer, ...] = ptr
        self.flights: Sequence[Push] = ()

    def allocate(self) -> Pointer | None:
        """Allocate the block."""
        try:
            ptr = self.allocator.allocate(self._byte_size)
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, RecursionError):
                where = where_of(self.allocator)
                warn_of_leak(f"{self._byte_size} bytes on {where} may be lost: their allocation was interrupted", error)
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
            warn_of_interrupted_release(self.allocator, self._byte_size, interrupt)
            raise

    def give_back(self, error: BaseException, stuck: str = "") -> None:
        """Release the block on the way out of a call that ends with `error`.

        If that fails, or the copy into it is still in flight for the reason `stuck`, the block leaks and a warning says
        so.
        """
        if problem := self._problem(stuck):
            warn_of_leak(self._leaked(problem), error)

    def end(self) -> None:
        """Release the block because its owner is gone, when copies in flight are over; a warning tells of a leak."""
        if self.slot and (problem := self._problem("".join([flight.end() for flight in self.flights]))):
            warnings.warn(self._leaked(problem), ResourceWarning, stacklevel=4)  # where the owner was dropped

    def _problem(self, stuck: str) -> str:
        """Release the block unless a copy is stuck; returns why it leaks, or nothing."""
        if not stuck:
            try:
                self.release()
            except ReleaseError as refused:
                stuck = told(refused.__cause__ or refused)
        leaks, self.slot = bool(self.slot), ()
        return stuck if leaks else ""

    def _leaked(self, problem: str) -> str:
        return f"{self._byte_size} bytes leaked on {where_of(self.allocator)}: {problem}"

    __del__ = _end


class Owned:
    """The blocks of an object, which has the only reference to this; they are released when the object is gone.

    Attributes
    ----------
    blocks : sequence of OwnedBlock or None
        In the order in which they are released.
    flights : sequence of Push
        The copies that must be over before the object is gone, also those between buffers that others own.
    """

    __slots__ = ("blocks", "flights")

    def __init__(self) -> None:
        self.blocks: Sequence[OwnedBlock | None] = ()
        self.flights: Sequence[Push] = ()

    def end(self) -> None:
        """Release all blocks when copies in flight are over, also after an interrupt in one of these."""
        for flight in self.flights:
            flight.end()
        blocks = filter(None, self.blocks)
        try:
            for block in blocks:
                block.end()
        finally:
            for block in blocks:  # those that are left after an interrupt
                block.end()

    __del__ = _end
