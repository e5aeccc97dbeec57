"""What the declared actions do to real memory: a name in the model, a function here.

A call works on a `Change`, not on the memory: new pointers are collected there and taken over only when every
action has succeeded, so a failed call has nothing to restore, only fresh allocations to give back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import (
    Action,
    AllocationError,
    DeclarationError,
    Fact,
    InvalidPointerError,
    ReleaseError,
    SyncedMemoryError,
)
from syncedmem.model.errors import words
from syncedmem.model.interface import MemcpyKind

from .failures import reporting, where_of
from .flight import queue_copy
from .host import cpu_allocator
from .owned import OwnedBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from syncedmem.model.interface import Pointer

    from .allocator import DeviceAllocator
    from .flight import Push

__all__ = ["BINDINGS", "EMPTY_BINDINGS", "Change", "Sides"]


# Looked up once: a plain integer, because an IntFlag takes ten times as long to test, and members of an enum,
# because getting at them takes as long as a call.
_PINNED = int(Fact.CPU_MALLOC_USE_CUDA)
_UP, _DOWN = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU


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
        self.pageable = pageable
        self.device: Any = device  # Any: the rows that reach for it do not exist in a memory without a device
        try:
            self.pinned: Any = pageable if device is None else device.pinned_host()
        except Exception:
            with reporting("pinned_host", device):
                raise


class Change:
    """What one call is doing.

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
        self.sides = sides
        self.size = size
        self.cpu, self.gpu = pointers
        # Any: an action that frees a side is performed only if the side is ours.
        self.own_cpu: Any
        self.own_gpu: Any
        self.own_cpu, self.own_gpu = owned
        self.before = before
        self.after = after
        self.argument = argument
        self.push: Push | None = None
        self.new: tuple[OwnedBlock, ...] = ()
        self._freeing: OwnedBlock | None = None

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


def _allocate_cpu(change: Change) -> None:
    change.own_cpu = change.allocate(change.host(change.after))
    change.cpu = change.own_cpu.ptr


def _zero_cpu(change: Change) -> None:
    change.host(change.after).memset_zero(change.cpu, change.size)


def _copy_to_cpu(change: Change) -> None:
    change.sides.device.memcpy(change.gpu, change.cpu, change.size, _DOWN)


def _adopt_cpu(change: Change) -> None:
    change.cpu, change.own_cpu = change.argument, None


def _free_cpu(change: Change) -> None:
    change.free(change.own_cpu)


def _allocate_gpu(change: Change) -> None:
    change.own_gpu = change.allocate(change.sides.device)
    change.gpu = change.own_gpu.ptr


def _zero_gpu(change: Change) -> None:
    change.sides.device.memset_zero(change.gpu, change.size)


def _copy_to_gpu(change: Change) -> None:
    change.sides.device.memcpy(change.cpu, change.gpu, change.size, _UP)


def _copy_to_gpu_async(change: Change) -> None:
    def keep(push: Push | None) -> None:
        change.push = push

    ends = change.cpu, change.gpu
    queue_copy(change.sides.device, ends, change.size, _UP, change.argument, keep)


def _adopt_gpu(change: Change) -> None:
    change.gpu, change.own_gpu = change.argument, None


def _free_gpu(change: Change) -> None:
    change.free(change.own_gpu)


def _nothing(change: Change) -> None:
    """What an action does to zero bytes."""


def _empty_cpu(change: Change) -> None:
    change.cpu = cpu_allocator().empty(0)


def _empty_gpu(change: Change) -> None:
    change.gpu = change.sides.device.empty(0)


def _complete(table: Mapping[Action, Callable[[Change], None]]) -> Mapping[Action, Callable[[Change], None]]:
    """A binding table that has a function for every declared action.

    Raises
    ------
    DeclarationError
    """
    missing = [action.value for action in Action if action not in table]
    if missing:
        raise DeclarationError(f"no implementation for: {', '.join(missing)}")
    return table


BINDINGS = _complete(
    {
        Action.ALLOCATE_CPU: _allocate_cpu,
        Action.ZERO_CPU: _zero_cpu,
        Action.COPY_TO_CPU: _copy_to_cpu,
        Action.ADOPT_CPU: _adopt_cpu,
        Action.FREE_CPU: _free_cpu,
        Action.ALLOCATE_GPU: _allocate_gpu,
        Action.ZERO_GPU: _zero_gpu,
        Action.COPY_TO_GPU: _copy_to_gpu,
        Action.COPY_TO_GPU_ASYNC: _copy_to_gpu_async,
        Action.ADOPT_GPU: _adopt_gpu,
        Action.FREE_GPU: _free_gpu,
    }
)

EMPTY_BINDINGS = _complete(
    {
        **dict.fromkeys(Action, _nothing),
        Action.ALLOCATE_CPU: _empty_cpu,
        Action.ALLOCATE_GPU: _empty_gpu,
        Action.ADOPT_CPU: _adopt_cpu,
        Action.ADOPT_GPU: _adopt_gpu,
    }
)
"""For memories of zero bytes: the heads move as ever, and no allocator is asked for anything."""
