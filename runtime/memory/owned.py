"""`OwnedBlock`: a block that has to be released, known from its allocation to its release.

``handover`` says when an interrupt can come, and why C code has to store what ``allocate`` returns; here it is
``slot.extend(map(allocate, (size,)))``.  The record of an allocator changes in one step.  The owner of a block has more
to do, so there are three more rules.  With them no block is lost or owned twice, whenever an interrupt comes:

* **A release can be repeated.**  After an interrupt nobody can tell whether the allocator has taken the block.  So the
  release is repeated.  Either the allocator takes the block now, or it raises `InvalidPointerError`, which means that
  it took the block before.  Any other error of an allocator is a refusal, ``MemoryError`` included.
* **A step that must not stay half done is repeated in the frame that called it**, as in `finish`: ``try: step()``, and
  for a ``BaseException`` ``step()`` once more, and then ``raise``.  A context manager written in Python cannot do this,
  because an interrupt can come when its ``__exit__`` starts.
* **A finaliser has a second chance.**  There are two finalisers: that of `Finaliser`, and that of the `Holding` in it,
  which frees what the first one has left.  Unlike the `SecondChance` of an allocator, they raise the interrupt again
  when everything is freed.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidPointerError, ReleaseError, SyncedMemoryError

from ..allocators.failures import told, warn_of_leak, where_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from syncedmem.model.interface import Pointer

    from ..allocators.base import DeviceAllocator
    from .flight import Push

__all__ = ["Finaliser", "Holding", "OwnedBlock", "finish"]


_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = ctypes.c_ulong, ctypes.py_object


def _finalise(it: Holding | Finaliser, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
    """Do the work of ``__del__``, even if it is interrupted.  The interrupt is then raised where code can catch it.

    At the exit of the interpreter the globals of modules may be gone, so that nothing works; then the memory goes with
    the process.  The function that tells is a default for the same reason.
    """
    interrupt: BaseException | None = None
    try:
        it.dispose()
    except ResourceWarning:
        raise  # warnings are errors in this process, and Python prints the error of a finaliser
    except BaseException as error:  # noqa: BLE001 -- an interrupt: raised again below, unless it did no harm
        interrupt = error
    if interrupt is None or is_over():
        return
    it.dispose()
    again, interrupt = _again(interrupt), None  # the traceback of the interrupt refers to this frame
    if isinstance(it, Finaliser) and hasattr(it, "held"):
        del it.held  # its finaliser has nothing to do; it runs now, before the interrupt comes
    if again is not None:
        # C code makes this call, so CPython looks for interrupts only after this finaliser.
        [_] = map(_raise_in_thread, [get_ident()], [again])


def _again(interrupt: BaseException) -> type[BaseException] | None:
    """The exception to raise in place of an interrupt that came in a finaliser; None if everything was freed anyway."""
    kind = type(interrupt)
    if issubclass(kind, MemoryError | RecursionError):
        return None

    def init(self: BaseException) -> None:
        kind.__init__(self, *interrupt.args)

    # CPython raises the exception as a class, without arguments.
    return type(kind.__name__, (kind,), {"__init__": init}) if interrupt.args else kind


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
    slot : sequence
        The pointer, as long as we have to release the block; empty before and after that.
    """

    __slots__ = ("_tried", "allocator", "slot")

    def __init__(self, allocator: DeviceAllocator, *ptr: Pointer) -> None:
        self.allocator: DeviceAllocator = allocator
        self.slot: Any = [*ptr]
        self._tried = False  # whether a release was begun and not refused

    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate the block.  Whatever is raised, an allocated block is in the slot."""
        self.slot.extend(map(self.allocator.allocate, (byte_size,)))
        return self.slot[0]

    @property
    def ptr(self) -> Pointer | None:
        """The pointer, as long as we have to release the block; None for zero bytes."""
        return self.slot[0]

    def release(self) -> None:
        """Release the block, if it is not released already.

        If an interrupt is raised, `is_gone` tells whether the block was released.

        Raises
        ------
        ReleaseError
            If the allocator refuses it; we still have to release it.
        """
        if not self.slot:
            return
        tried, self._tried = self._tried, True
        returned: list[None] = []  # C code stores the result here, as in `allocate`
        try:
            returned.extend(map(self.allocator.release, self.slot))
        except Exception as error:
            if returned:  # the error came after the release
                self.slot = ()
                raise
            if not (tried and isinstance(error, InvalidPointerError)):
                self._tried = False
                raise ReleaseError("release", where_of(self.allocator), error) from error
        self.slot = ()

    def is_gone(self) -> bool:
        """Whether a release was begun and has happened; a release that was interrupted is finished first."""
        if not self._tried:
            return False
        with suppress(ReleaseError):
            self.release()
        return not self.slot

    def surrender(self) -> str:
        """Release the block for a caller that cannot keep it; repeated once if memory or stack run out.

        Returns
        -------
        str
            The message of the allocator's error, or an empty string; not the error, whose traceback keeps frames alive.
        """
        problem = ""
        for _ in range(2):
            try:
                self.release()
            except ReleaseError as refused:
                problem = told(refused.__cause__ or refused)
                if not isinstance(refused.__cause__, MemoryError | RecursionError):
                    break
            else:
                return ""
        return problem

    def give_back(self, byte_size: int, error: BaseException, stuck: str = "") -> None:
        """Release the block on the way out of a call that ends with `error`.

        If that fails, or the copy into it is still in flight for the reason `stuck`, the block leaks and a warning says
        so.
        """
        if not self.slot:
            return
        problem = stuck or self.surrender()
        if problem:
            warn_of_leak(f"{byte_size} bytes leaked on {where_of(self.allocator)}: {problem}", error)
            self.slot = ()


def finish(step: Callable[[], object]) -> None:
    """Do a step that must not stay half done: after an interrupt it is repeated, and then the interrupt is raised."""
    try:
        step()
    except SyncedMemoryError:
        raise
    except BaseException as interrupt:
        try:
            step()  # first everything is freed, then the interrupt is raised
        except SyncedMemoryError as error:
            interrupt.add_note(told(error))
        raise


class Holding:
    """The blocks of one owner.

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
        self.blocks: Sequence[Any] = ()
        self.flights: Sequence[Push] = ()

    def dispose(self) -> None:
        """Free all blocks when copies in flight are over; a block that cannot be freed leaks, and a warning says so."""
        if not hasattr(self, "flights"):
            return  # an interrupt came while this object was made
        stuck = "".join([flight.land() for flight in self.flights])
        for block in self.blocks:
            if block is None:
                continue
            problem = stuck if block.slot else ""
            if not stuck and (refused := block.surrender()):
                problem = f"release failed on {where_of(block.allocator)}: {refused}"
            if problem:
                block.slot = ()
                message = f"{self._byte_size} bytes of {self._owner} leaked: {problem}"
                warnings.warn(message, ResourceWarning, stacklevel=4)  # where the owner of a Finaliser was dropped

    __del__ = _finalise


class Finaliser:
    """Frees the blocks of a `Holding` when its owner, which has the only reference to this, is gone."""

    __slots__ = ("held",)

    def __init__(self, held: Holding) -> None:
        self.held: Holding = held

    def dispose(self) -> None:
        """See `Holding.dispose`."""
        if hasattr(self, "held"):
            self.held.dispose()

    __del__ = _finalise
