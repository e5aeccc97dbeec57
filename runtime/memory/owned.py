"""`OwnedBlock`: a block that has to be released, known from the moment it is allocated until it is back.

When an interrupt can come is said in ``handover``, and that C code stores what ``allocate`` returns: here by
``slot.extend(map(allocate, (size,)))``.  An allocator's books change in one step; who owns a block has more to do, so
three rules are added.  With them no block is lost or owned twice, whenever an interrupt comes:

* **A release can be repeated.**  After an interrupt nobody can tell whether the allocator has taken the block.  So the
  release is repeated: now the allocator takes it, or says `InvalidPointerError`, which means that it had.  What an
  allocator raises otherwise, ``MemoryError`` too, is a refusal.
* **What must not stay half done is repeated in the frame that called it**: ``try: step()``, and for a
  ``BaseException`` ``step()`` once more and ``raise``, as `finish` does.  No context manager written in Python can do
  that, because an interrupt can come when its ``__exit__`` starts.
* **A finaliser has a second chance.**  There are two: that of `Finaliser`, and that of the `Holding` in it, which frees
  what the first has left.  Unlike the `SecondChance` of an allocator they raise the interrupt again once all is freed.
"""

from __future__ import annotations

import ctypes
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


def _finalise(it: Holding | Finaliser) -> None:
    """Do what ``__del__`` has to do, whatever interrupts it; the interrupt comes again where it can be raised."""
    interrupt: BaseException | None = None
    try:
        it.dispose()
    except ResourceWarning:
        raise  # warnings are errors here, and Python shows what a finaliser raises
    except BaseException as error:  # noqa: BLE001 -- it is raised again below, or has done no harm
        interrupt = error
    if interrupt is None:
        return
    it.dispose()
    again, interrupt = _again(interrupt), None  # its traceback knows this frame
    if isinstance(it, Finaliser) and hasattr(it, "held"):
        del it.held  # its finaliser has nothing left to do; let it run before the interrupt comes
    if again is not None:
        # C code makes the call, and CPython looks for interrupts after this finaliser only.
        [_] = map(_raise_in_thread, [get_ident()], [again])


def _again(interrupt: BaseException) -> type[BaseException] | None:
    """What to raise in place of an interrupt that came in a finaliser; None if all was freed in spite of it."""
    kind = type(interrupt)
    if issubclass(kind, MemoryError | RecursionError):
        return None

    def init(self: BaseException) -> None:
        kind.__init__(self, *interrupt.args)

    # CPython raises a class without arguments.
    return type(kind.__name__, (kind,), {"__init__": init}) if interrupt.args else kind


class OwnedBlock:
    """A block that somebody has to release.

    Parameters
    ----------
    allocator : DeviceAllocator
        Where it comes from and goes back to.
    *ptr : pointer
        What was allocated already; nothing if `allocate` will do it.

    Attributes
    ----------
    slot : sequence
        The pointer, while the block is ours to release; empty before and after.
    """

    __slots__ = ("_tried", "allocator", "slot")

    def __init__(self, allocator: DeviceAllocator, *ptr: Pointer) -> None:
        self.allocator: DeviceAllocator = allocator
        self.slot: Any = [*ptr]
        self._tried = False  # a release was begun, and not refused

    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate the block; whatever is raised, what was allocated is in the slot."""
        self.slot.extend(map(self.allocator.allocate, (byte_size,)))
        return self.slot[0]

    @property
    def ptr(self) -> Pointer | None:
        """The pointer; None before and after, and of no bytes."""
        return self.slot[0] if self.slot else None

    def release(self) -> None:
        """Release the block, if that has not happened.

        If an interrupt comes out of here, `is_gone` tells what became of the block.

        Raises
        ------
        ReleaseError
            If the allocator refuses it; it is still ours.
        """
        if not self.slot:
            return
        tried, self._tried = self._tried, True
        returned: list[None] = []  # stored by C code, as in `allocate`
        try:
            returned.extend(map(self.allocator.release, self.slot))
        except Exception as error:
            if returned:  # it has come after the release
                self.slot = ()
                raise
            if not (tried and isinstance(error, InvalidPointerError)):
                self._tried = False
                raise ReleaseError("release", where_of(self.allocator), error) from error
        self.slot = ()

    def is_gone(self) -> bool:
        """Whether a release was begun and has happened; one that was interrupted is finished first."""
        if not self._tried:
            return False
        with suppress(ReleaseError):
            self.release()
        return not self.slot

    def surrender(self) -> str:
        """Release the block for somebody who cannot keep it; if memory or stack run out, once more.

        Returns
        -------
        str
            What the allocator said, if it refused: words only, as the error knows the frames that it came through.
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

        If that fails, or a copy into it is `stuck`, the block leaks, and a warning says so.
        """
        if not self.slot:
            return
        problem = stuck or self.surrender()
        if problem:
            warn_of_leak(f"{byte_size} bytes leaked on {where_of(self.allocator)}: {problem}", error)
            self.slot = ()


def finish(step: Callable[[], object]) -> None:
    """Do what must not stay half done: after an interrupt it is repeated and goes on, then the interrupt is raised."""
    try:
        step()
    except SyncedMemoryError:
        raise
    except BaseException as interrupt:
        try:
            step()  # what is being freed is freed first
        except SyncedMemoryError as error:
            interrupt.add_note(told(error))
        raise


class Holding:
    """The blocks that somebody owns.

    Parameters
    ----------
    owner : str
        What the owner is, for warnings.
    byte_size : int
        Of each block.

    Attributes
    ----------
    blocks : sequence of OwnedBlock or None
    flights : sequence of Push
        The copies that have to be over before the blocks are released.
    """

    __slots__ = ("_byte_size", "_owner", "blocks", "flights")

    def __init__(self, owner: str, byte_size: int) -> None:
        self._owner = owner
        self._byte_size = byte_size
        self.blocks: Sequence[Any] = ()
        self.flights: Sequence[Push] = ()

    def dispose(self) -> None:
        """Free everything, once copies in flight are over; what cannot be freed leaks, and a warning says so."""
        if not hasattr(self, "flights"):
            return  # an interrupt came before there was anything
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
                warnings.warn(message, ResourceWarning, stacklevel=3)

    __del__ = _finalise


class Finaliser:
    """Frees what is in a `Holding` when the owner, which has the only reference, is gone."""

    __slots__ = ("held",)

    def __init__(self, held: Holding) -> None:
        self.held: Holding = held

    def dispose(self) -> None:
        """See `Holding.dispose`."""
        if hasattr(self, "held"):
            self.held.dispose()

    __del__ = _finalise
