"""`Transaction`: one call of a memory, which succeeds as a whole or changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, InvalidPointerError, ReleaseError, SyncedMemoryError
from syncedmem.model.errors import words

from ..allocators.failures import reporting, where_of
from .owned import OwnedBlock
from .tables import PINNED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from syncedmem.model.interface import Pointer

    from ..allocators.base import DeviceAllocator
    from .flight import Push

__all__ = ["Sides", "Transaction"]


class Sides:
    """The allocators of a memory's two sides.

    Attributes
    ----------
    pageable, pinned : DeviceAllocator
        For host memory, in CPU mode and in GPU mode.
    device : DeviceAllocator or None
    """

    __slots__ = ("device", "pageable", "pinned")

    def __init__(self, pageable: DeviceAllocator, pinned: DeviceAllocator, device: DeviceAllocator | None) -> None:
        self.pageable: DeviceAllocator = pageable
        self.pinned: DeviceAllocator = pinned
        self.device: Any = device  # Any: the rows that reach for it do not exist in a memory without a device

    @property
    def where(self) -> DeviceAllocator:
        """The allocator that errors name."""
        where: DeviceAllocator = self.device or self.pageable
        return where


class Transaction:
    """The work of one call.  It changes this object, not the memory.

    New pointers are collected here, and the memory takes them over only when all actions have succeeded.  So after a
    failed call nothing has to be restored; only fresh allocations have to be given back.

    Attributes
    ----------
    sides : Sides
    size : int
        In bytes.
    cpu, gpu : pointer or None
        The pointers, as the actions so far have left them.
    own_cpu, own_gpu : OwnedBlock or None
        The blocks of these pointers, if the memory owns them.
    after : int
        The packed state after the call, as the table declares it.
    argument : object
        The pointer that is adopted, or the stream.
    push : Push or None
        The copy that was queued, or may have been.
    new : tuple of OwnedBlock
        The blocks that this call has allocated; empty after it has taken effect.
    freeing : OwnedBlock or None
        The block that the memory owned before the call, and that is being released; without a pointer it is released,
        so the call cannot be undone.
    """

    __slots__ = (
        "after",
        "argument",
        "cpu",
        "freeing",
        "gpu",
        "new",
        "own_cpu",
        "own_gpu",
        "push",
        "sides",
        "size",
    )

    def __init__(  # noqa: PLR0913 -- one value of each kind that an action may need
        self,
        sides: Sides,
        size: int,
        pointers: tuple[Pointer, Pointer],
        owned: Sequence[OwnedBlock | None],
        after: int,
        argument: Any,
    ) -> None:
        self.sides: Sides = sides
        self.size: int = size
        self.cpu: Pointer
        self.gpu: Pointer
        self.cpu, self.gpu = pointers
        # Any: an action that frees a side runs only if the memory owns that side.
        self.own_cpu: Any
        self.own_gpu: Any
        self.own_cpu, self.own_gpu = owned
        self.after: int = after
        self.argument: Any = argument
        self.push: Push | None = None
        self.new: tuple[OwnedBlock, ...] = ()
        self.freeing: OwnedBlock | None = None

    def act(self, actions: Sequence[str], bindings: Mapping[str, Callable[[Transaction], None]]) -> None:
        """Perform actions in order; an error of an allocator becomes a `SyncedMemoryError`."""
        for action in actions:
            try:
                bindings[action](self)
            except Exception:
                with reporting(action, self.sides.where):
                    raise

    def host(self, state: int) -> DeviceAllocator:
        """The allocator of host memory for a packed state, by its pinned flag."""
        return self.sides.pinned if state & PINNED else self.sides.pageable

    def allocate(self, allocator: DeviceAllocator) -> OwnedBlock:
        """Allocate a block, which is given back if the call fails."""
        block = OwnedBlock(allocator, self.size)
        self.new = (*self.new, block)
        try:
            ptr = block.allocate()
        except SyncedMemoryError:
            raise
        except MemoryError as error:
            raise AllocationError(where_of(allocator), self.size, words(error)) from error
        if ptr is None:
            raise AllocationError(where_of(allocator), self.size, "the allocator returned None")
        return block

    def free(self, block: OwnedBlock) -> None:
        """Release a block that the memory owned before the call.

        Raises
        ------
        ReleaseError
            If the allocator refuses to release it.
        """
        self.freeing = block
        try:
            block.release()
        except ReleaseError as error:
            if not isinstance(error.__cause__, InvalidPointerError):
                raise
            block.slot = ()  # the allocator does not know our block: somebody else has released it

    def keep(self, push: Push | None) -> None:
        """Remember a copy between the two sides, which may be in flight from now on; None: nothing was queued."""
        flights = () if push is None else (push,)
        self.push = push
        for block in (self.own_cpu, self.own_gpu):
            if block is not None:
                block.flights = flights

    def undo(self, error: BaseException) -> None:
        """Give back what this call has allocated, because it ends with `error`; a block that leaks is reported.

        A queued copy uses that memory, so it is waited for first.  If the wait fails, the memory is left to the copy,
        and `push` says that the copy is still in flight.
        """
        stuck = "" if self.push is None else self.push.end()
        if not stuck:
            self.keep(None)
        for block in self.new:
            block.give_back(error, stuck)
