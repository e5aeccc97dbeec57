"""`Transaction`: one call of a memory, which succeeds as a whole or changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, Fact, InvalidPointerError, ReleaseError, SyncedMemoryError
from syncedmem.model.errors import words

from ..allocators.failures import reporting, where_of
from .owned import OwnedBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from syncedmem.model import Action
    from syncedmem.model.interface import Pointer

    from ..allocators.base import DeviceAllocator
    from .flight import Push

__all__ = ["Sides", "Transaction"]

# A plain integer, because an IntFlag takes ten times as long to test.
_PINNED = int(Fact.CPU_MALLOC_USE_CUDA)


class Sides:
    """Where a memory's two sides come from.

    Attributes
    ----------
    pageable, pinned : DeviceAllocator
        Host memory in CPU mode and in GPU mode.
    device : DeviceAllocator or None
    """

    __slots__ = ("device", "pageable", "pinned")

    def __init__(self, pageable: DeviceAllocator, device: DeviceAllocator | None) -> None:
        self.pageable: DeviceAllocator = pageable
        self.device: Any = device  # Any: the rows that reach for it do not exist in a memory without a device
        try:
            self.pinned: Any = pageable if device is None else device.pinned_host()
        except Exception:
            with reporting("pinned_host", device):
                raise

    @property
    def where(self) -> DeviceAllocator:
        """The allocator that errors name."""
        where: DeviceAllocator = self.device or self.pageable
        return where


class Transaction:
    """What one call is doing: it works on this, not on the memory.

    New pointers are collected here and taken over only when every action has succeeded, so a failed call has nothing to
    restore, only fresh allocations to give back.

    Attributes
    ----------
    sides : Sides
    size : int
        In bytes.
    cpu, gpu : pointer or None
        The pointers as they are so far.
    own_cpu, own_gpu : OwnedBlock or None
        What lies behind the pointers as they are so far, if it is ours.
    before, after : int
        The packed state before the call and, as declared, after it.
    argument : object
        The adopted pointer or the stream.
    push : Push or None
        Set when a copy was queued, or may have been.
    new : tuple of OwnedBlock
        What was allocated by this call, until it has taken effect.
    """

    __slots__ = (
        "_freeing",
        "after",
        "argument",
        "before",
        "cpu",
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
        before: int,
        after: int,
        argument: Any,
    ) -> None:
        self.sides: Sides = sides
        self.size: int = size
        self.cpu: Pointer
        self.gpu: Pointer
        self.cpu, self.gpu = pointers
        # Any: an action that frees a side is performed only if the side is ours.
        self.own_cpu: Any
        self.own_gpu: Any
        self.own_cpu, self.own_gpu = owned
        self.before: int = before
        self.after: int = after
        self.argument: Any = argument
        self.push: Push | None = None
        self.new: tuple[OwnedBlock, ...] = ()
        self._freeing: OwnedBlock | None = None

    def act(self, actions: Sequence[Action], bindings: Mapping[Action, Callable[[Transaction], None]]) -> None:
        """Perform actions in order; whatever an allocator raises comes out as an error of the family."""
        for action in actions:
            try:
                bindings[action](self)
            except Exception:
                with reporting(action.value, self.sides.where):
                    raise

    def host(self, state: int) -> DeviceAllocator:
        """The allocator of host memory that goes with the pinned flag of a packed state."""
        allocator: DeviceAllocator = self.sides.pinned if state & _PINNED else self.sides.pageable
        return allocator

    def allocate(self, allocator: DeviceAllocator) -> OwnedBlock:
        """Allocate, to be given back if the call fails."""
        block = OwnedBlock(allocator)
        self.new = (*self.new, block)  # known before it is there
        try:
            ptr = block.allocate(self.size)
        except SyncedMemoryError:
            raise
        except MemoryError as error:
            raise AllocationError(where_of(allocator), self.size, words(error)) from error
        if ptr is None:
            raise AllocationError(where_of(allocator), self.size, "the allocator returned None")
        return block

    def free(self, block: OwnedBlock) -> None:
        """Release a block that was ours before the call.

        Raises
        ------
        ReleaseError
            If the allocator refuses it.
        """
        self._freeing = block
        try:
            block.release()
        except ReleaseError as error:
            if not isinstance(error.__cause__, InvalidPointerError):
                raise
            block.slot = ()  # ours and not there: somebody else has released it

    @property
    def freed(self) -> bool:
        """Whether memory that was ours before the call is gone, so that there is no way back."""
        return self._freeing is not None and self._freeing.is_gone()

    def undo(self, error: BaseException) -> None:
        """Give back what this call allocated, because it ends with `error`; what cannot be given back is reported.

        A queued copy is waited for first, because it uses that memory.  If that fails the memory is left to the copy,
        and `push` says that it is still on its way.  After an interrupt it can be called again.
        """
        stuck = "" if self.push is None else self.push.land()
        if not stuck:
            self.push = None
        for block in self.new:
            block.give_back(self.size, error, stuck)
