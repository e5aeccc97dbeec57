"""What the declared actions do to real memory: a name in the model, a function here.

A call works on a `Change`, not on the memory: new pointers are collected there and taken over only when every
action has succeeded, so a failed call has nothing to restore, only fresh allocations to give back.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from syncedmem.model import (
    Action,
    AllocationError,
    DeclarationError,
    DeviceError,
    Fact,
    ReleaseError,
    SyncedMemoryError,
)

from .allocator import DeviceAllocator, MemcpyKind
from .host import cpu_allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .allocator import Event, Pointer

__all__ = ["BINDINGS", "EMPTY_BINDINGS", "Change", "Push", "Sides"]


# A plain integer: an IntFlag takes ten times as long to test.
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
        self.pageable = pageable
        self.device: Any = device  # Any: the rows that reach for it do not exist in a memory without a device
        self.pinned = pageable if device is None else device.pinned_host()


class Push:
    """A copy to the device that was queued and may not have happened; keeps both of its ends alive."""

    __slots__ = ("_ends", "event")

    def __init__(self, event: Event, ends: tuple[Pointer, Pointer]) -> None:
        self.event = event
        self._ends = ends


class Change:
    """What one call is doing.

    Attributes
    ----------
    sides : Sides
    size : int
        In bytes.
    cpu, gpu : pointer or None
        The pointers as they are so far.
    before, after : int
        The packed state before the call and, as declared, after it.
    argument : object
        The adopted pointer or the stream.
    push : Push or None
        Set when a copy was queued.
    """

    __slots__ = ("_new", "after", "argument", "before", "cpu", "gpu", "push", "sides", "size")

    def __init__(  # noqa: PLR0913 -- one value of each kind that an action may need
        self, sides: Sides, size: int, cpu: Pointer, gpu: Pointer, before: int, after: int, argument: Any
    ) -> None:
        self.sides = sides
        self.size = size
        self.cpu = cpu
        self.gpu = gpu
        self.before = before
        self.after = after
        self.argument = argument
        self.push: Push | None = None
        self._new: tuple[tuple[DeviceAllocator, Pointer], ...] = ()

    def host(self, state: int) -> DeviceAllocator:
        """The allocator of host memory that goes with the pinned flag of a packed state."""
        return self.sides.pinned if state & _PINNED else self.sides.pageable

    def allocate(self, allocator: DeviceAllocator) -> Pointer:
        """Allocate, to be given back if the call fails."""
        try:
            ptr = allocator.allocate(self.size)
        except SyncedMemoryError:
            raise
        except MemoryError as error:
            raise AllocationError(_name(allocator), self.size, str(error)) from error
        if ptr is None:
            raise AllocationError(_name(allocator), self.size, "the allocator returned None")
        self._new += ((allocator, ptr),)
        return ptr

    def undo(self) -> None:
        """Give back what this call allocated; what cannot be given back is reported as leaked."""
        for allocator, ptr in self._new:
            try:
                allocator.release(ptr)
            except Exception as error:  # noqa: BLE001 -- the call is failing with an error of its own already
                warnings.warn(f"{self.size} bytes leaked on {_name(allocator)}: {error}", ResourceWarning, stacklevel=4)


def _allocate_cpu(change: Change) -> None:
    change.cpu = change.allocate(change.host(change.after))


def _zero_cpu(change: Change) -> None:
    change.host(change.after).memset_zero(change.cpu, change.size)


def _copy_to_cpu(change: Change) -> None:
    change.sides.device.memcpy(change.gpu, change.cpu, change.size, MemcpyKind.CUDA2CPU)


def _adopt_cpu(change: Change) -> None:
    change.cpu = change.argument


def _free_cpu(change: Change) -> None:
    _release(change.host(change.before), change.cpu)


def _allocate_gpu(change: Change) -> None:
    change.gpu = change.allocate(change.sides.device)


def _zero_gpu(change: Change) -> None:
    change.sides.device.memset_zero(change.gpu, change.size)


def _copy_to_gpu(change: Change) -> None:
    change.sides.device.memcpy(change.cpu, change.gpu, change.size, MemcpyKind.CPU2CUDA)


def _copy_to_gpu_async(change: Change) -> None:
    device, stream = change.sides.device, change.argument
    device.memcpy(change.cpu, change.gpu, change.size, MemcpyKind.CPU2CUDA, stream)
    try:
        change.push = Push(device.record(stream), (change.cpu, change.gpu))
    except BaseException:
        # The copy is queued and nobody could wait for it later, so wait now, before its memory is given back.
        stream.synchronize()
        raise


def _adopt_gpu(change: Change) -> None:
    change.gpu = change.argument


def _free_gpu(change: Change) -> None:
    _release(change.sides.device, change.gpu)


def _release(allocator: DeviceAllocator, ptr: Pointer) -> None:
    try:
        allocator.release(ptr)
    except Exception as error:
        raise ReleaseError("release", _name(allocator), error) from error


def _name(allocator: Any) -> str:
    return str(getattr(allocator, "name", type(allocator).__name__))


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


def guarded(operation: str, where: object, error: Exception) -> Exception:
    """An exception of the family for whatever a device raised."""
    return error if isinstance(error, SyncedMemoryError) else DeviceError(operation, _name(where), error)
