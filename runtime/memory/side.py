"""`Side`: the one owner of a block, from its allocation to its release.

An interrupt, which is what a signal handler raises, can come at the start of every Python function and after every call
of a function in C.  So a pointer is taken out of its side before it is freed, and comes back only if the allocator says
that the block is not free: no block ever has two owners.  If an allocator of somebody else cannot say it, the block
counts as lost, and a warning says so: better lost than released twice.  The same holds in the middle of an allocation.
Everywhere else nothing is lost, because the pointer is still in its side: the next call gives back what an interrupted
one has left there, and a side that is dropped gives back what it has.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from syncedmem.model import AllocationError, InvalidPointerError, ReleaseError, SyncedMemoryError
from syncedmem.model.errors import words

from ..allocators.failures import block_from, is_refused, told, warn_of_leak, where_of
from ..allocators.unraisable import print_unraisable

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from ..allocators.base import DeviceAllocator
    from .flight import Flight
    from .views import Views

__all__ = ["Ending", "Side", "finalise"]


class Ending(Protocol):
    """What gives something back when nobody has it any more."""

    flights: list[Flight]

    def end(self) -> None:
        """Give it back."""


def _is_main_interpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        with suppress(ImportError):
            interpreters: Any = import_module(name)
            return bool(interpreters.get_current() == interpreters.get_main())
    return True


_is_stuck: Callable[[], bool] = bool if _is_main_interpreter() else sys.is_finalizing
"""Whether a thread that gives up the GIL now never gets it back."""


# The finaliser of sides and of what has sides: if an interrupt keeps one of the two from doing its work, the other does
# it.  Not `weakref.finalize`: it frees at the exit what other handlers of the exit still use, or never.  At the exit of
# the interpreter the globals of modules may be gone, so that nothing works; then the memory goes with the process.  The
# function that tells is a default for the same reason.
#
# A sub-interpreter that nobody has ended ends while the main one is torn down.  A thread that gives up the GIL then, as
# NumPy does to compare or to fill, never gets it back, and the process never ends.  So at that time nothing is done
# there, but for copies in flight, which use memory that Python frees next.
def finalise(
    thing: Ending, is_over: Callable[[], bool] = sys.is_finalizing, is_stuck: Callable[[], bool] = _is_stuck
) -> None:
    """Give back what is left, because nobody has it any more."""
    if is_stuck() and not getattr(thing, "flights", ()):  # an interrupt may have come while it was made
        return
    try:
        thing.end()
    except ResourceWarning:
        raise  # warnings are errors in this process, and Python prints the error of a finaliser
    except Exception:
        if not is_over():
            raise


class Side:
    """The memory of an object on one device.

    Parameters
    ----------
    byte_size : int
    flights : list of Flight
        The copies that may still use the memory; a list of the object's own, which it changes.
    ptr : pointer or None
    owner : DeviceAllocator or None

    Attributes
    ----------
    byte_size : int
    ptr : pointer or None
    owner : DeviceAllocator or None
        The allocator that gets the block back; None if the memory is somebody else's, or there is none.  An owner
        without a pointer means that an allocation has begun.
    flights : list of Flight
    views : Views or None
        What makes views of the memory; None before somebody has asked for one.
    """

    __slots__ = ("__weakref__", "byte_size", "flights", "owner", "ptr", "views")

    def __init__(
        self, byte_size: int, flights: list[Flight], ptr: Pointer = None, owner: DeviceAllocator | None = None
    ) -> None:
        self.byte_size: int = byte_size
        self.flights: list[Flight] = flights
        self.ptr: Pointer = ptr
        self.views: Views | None = None
        self.owner: Any = owner  # last: an interrupt before it leaves nothing to give back

    def allocate(self, allocator: DeviceAllocator) -> None:
        """Allocate the memory."""
        self.owner = allocator
        try:
            ptr = block_from(allocator, self.byte_size)
        except RecursionError:
            raise  # it can come from anywhere, as an interrupt does
        except Exception as error:
            self.owner = None
            if isinstance(error, MemoryError) and not isinstance(error, SyncedMemoryError):
                raise AllocationError(where_of(allocator), self.byte_size, words(error)) from error
            raise
        if ptr is None:
            self.owner = None  # zero bytes are nobody's
        else:
            self.ptr = ptr

    def release(self) -> None:
        """Give the block back, or forget somebody else's memory.

        Raises
        ------
        ReleaseError
            If the allocator refuses the block; it is in this side still.
        """
        ptr, owner, views = self.ptr, self.owner, self.views
        self.ptr = self.owner = self.views = None
        if owner is None or ptr is None:
            return
        try:
            owner.release(ptr)
        except InvalidPointerError:
            pass  # the allocator does not know the block: somebody else has released it
        except BaseException as error:
            # First, because asking may fail.  No interrupt may come before `is_refused` has an answer.
            self.ptr, self.owner, self.views = ptr, owner, views
            if not is_refused(owner, ptr, error):
                self.ptr = self.owner = self.views = None
                raise
            if isinstance(error, Exception):
                raise ReleaseError("release", where_of(owner), error) from error
            raise

    def give_back(self, error: BaseException | None, stuck: str = "") -> None:
        """Give the block back on the way out of a call that ends with `error`, or without a call.

        If that fails, or a copy is still in flight for the reason `stuck`, the block leaks and a warning says so.
        """
        owner, begun, problem = self.owner, self.ptr is None, stuck
        if not begun and owner is not None and not stuck:
            try:
                self.release()
            except ReleaseError as refused:
                problem = self._released_again(refused.__cause__ or refused)
        self.ptr = self.owner = self.views = None
        if owner is not None and begun:
            _warn(f"{self.byte_size} bytes on {where_of(owner)} may be lost: their allocation was interrupted", error)
        elif owner is not None and problem:
            _warn(f"{self.byte_size} bytes leaked on {where_of(owner)}: {problem}", error)

    def _released_again(self, error: BaseException) -> str:
        """Try a release again, which ended with this error; returns why it was refused, or nothing.

        What a signal handler raises, of whatever class, looks like a refusal; and nobody is left who could try again.
        """
        if not isinstance(error, SyncedMemoryError):
            with suppress(ReleaseError):
                self.release()
                print_unraisable(error)
                return ""
        return told(error)

    def end(self) -> None:
        """Give the block back because its owner is gone, when the copies in flight are over."""
        if getattr(self, "owner", None) is not None:  # an interrupt may have come while this was made
            self.give_back(None, "".join([flight.end() for flight in self.flights]))

    __del__ = finalise


def _warn(message: str, error: BaseException | None) -> None:
    """Warn of a leak; without a call, the warning names the place where the owner was dropped."""
    if error is None:
        warnings.warn(message, ResourceWarning, stacklevel=6)
    else:
        warn_of_leak(message, error)
