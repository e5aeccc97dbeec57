"""What is computed with the elements of blobs, and where: arithmetic follows the head, copies follow the mode.

Caffe's ``Update``, ``asum_*``, ``sumsq_*`` and ``scale_*`` work on the side where the numbers are fresh.  If both sides
are fresh, they work on the device, whatever the mode (blob.cpp:174-407).  ``CopyFrom`` works where the mode says
(blob.cpp:433-463).  The operations themselves are in the module ``arithmetic`` of the allocators.

Everything that can be refused is refused before a memory is asked for a side.  The side that is written is fresh
already, so asking for it moves its head and copies nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsFloat, cast

import numpy as np

from syncedmem.model import (
    IllegalCallError,
    InvalidPointerError,
    Mode,
    NoArithmeticError,
    SyncedHead,
    caffe,
    current_mode,
)
from syncedmem.model.interface import MemcpyKind

from ..allocators.arithmetic import Arithmetic, arithmetic_of, check_factor, check_type
from ..allocators.failures import reporting, where_of
from ..memory.copies import admit, enter, observed
from ..memory.synced_memory import SyncedMemory
from ..memory.tables import HEADS, READ_CPU, READ_GPU, WRITE_CPU, WRITE_GPU

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator
    from ..memory.side import Side
    from .elements import Elements

__all__ = ["copy", "copy_on_fresh_side", "scale", "subtract", "total"]

_AT_GPU = (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED)
"""The heads for which Caffe computes on the device."""


def subtract(call: str, diff: Elements, data: Elements) -> None:
    """``data -= diff``, on the side where the data is fresh.

    Raises
    ------
    IllegalCallError
        If nothing was ever written to the data.
    NoArithmeticError
        If the elements are no floats, or of a type that the device has no arithmetic for.
    InvalidPointerError
        If the two are adopted buffers that overlap.
    """
    sides = _settled(diff, data)
    if sides is not None:
        x, y, where = sides
        with reporting(call, where):
            arithmetic_of(where).axpy_rows(-1.0, diff.flat(x.ptr), data.flat(y.ptr))
        return
    head = _head(call, data)
    other: Any = diff.memory
    other._open(call)  # noqa: SLF001 -- the runtime may; users ask for the head
    if head is SyncedHead.UNINITIALIZED:
        raise IllegalCallError(call, head, "data that was written")
    place = _Place(call, data, head)
    place.check_apart(call, diff, data)
    x = diff.flat(place.read(diff.memory))
    with reporting(call, place.where):
        place.arithmetic.axpy(-1.0, x, data.flat(place.write(data.memory)))
    if isinstance(cast("object", place.arithmetic), Arithmetic):  # somebody else's allocator may have another kind
        come, to = diff.sides, data.sides
        data.apart = come.cpu, come.gpu, to.cpu, to.gpu, head in _AT_GPU


def _settled(diff: Elements, data: Elements) -> tuple[Side, Side, DeviceAllocator] | None:
    """The two sides and the allocator of a subtraction that is as the last one; None if it has to be checked.

    As the last one means: on the same side of the same memory, and neither memory has anything to do first.
    """
    if data.apart is None:
        return None
    x_cpu, x_gpu, y_cpu, y_gpu, on_device = data.apart
    x, y = diff.sides, data.sides
    if x.cpu is not x_cpu or x.gpu is not x_gpu or y.cpu is not y_cpu or y.gpu is not y_gpu:
        return None
    read, write = (READ_GPU, WRITE_GPU) if on_device else (READ_CPU, WRITE_CPU)
    if not (diff.is_idle(read) and data.is_idle(write)):
        return None
    if on_device:
        return x.gpu, y.gpu, y.device
    return None if y.cpu.owner is None else (x.cpu, y.cpu, y.pageable)  # an adopted array may be read-only now


def total(call: str, operation: str, elements: Elements) -> float:
    """A sum over all elements, on the side where they are fresh; zero if nothing was ever written.

    Parameters
    ----------
    call : str
        The name of the call in errors.
    operation : str
        The method of `Arithmetic`: ``"asum"`` or ``"sumsq"``.
    elements : Elements
    """
    head = _head(call, elements)
    if head is SyncedHead.UNINITIALIZED:
        return 0.0
    place = _Place(call, elements, head)
    with reporting(call, place.where):
        result: float = getattr(place.arithmetic, operation)(elements.flat(place.read(elements.memory)))
        return result


def scale(call: str, factor: SupportsFloat, elements: Elements) -> None:
    """Multiply all elements, on the side where they are fresh; nothing happens if nothing was ever written."""
    head = _head(call, elements)
    number = check_factor(factor, "factor")
    if head is SyncedHead.UNINITIALIZED:
        return
    place = _Place(call, elements, head)
    with reporting(call, place.where):
        place.arithmetic.scal(number, elements.flat(place.write(elements.memory)))


def copy(source: Elements, target: Elements) -> None:
    """Copy elements of the same type and number, on the side that the mode says; on the host if there is no device."""
    if current_mode() is Mode.GPU and target.memory.device is not None:
        _copy_on_device(source, target)
    else:
        _copy_on_host(source, target)


def copy_on_fresh_side(source: Elements, target: Elements) -> None:
    """Copy elements on the side where they are fresh, or nothing if nowhere; the head of the source does not move."""
    head = source.memory.head
    if head in _AT_GPU:
        _copy_on_device(source, target)
    elif head is SyncedHead.HEAD_AT_CPU:
        _copy_on_host(source, target)


def _copy_on_host(source: Elements, target: Elements) -> None:
    to, come = target.flat(target.memory.mutable_cpu_data()), source.flat(source.memory.cpu_data())
    if source.memory is target.memory:
        return  # as Caffe: both calls above have moved the head, and nothing is copied onto itself
    if np.may_share_memory(to, come):
        np.copyto(to, come)  # both are adopted buffers; NumPy allows an overlap
    else:
        arithmetic_of(target.sides.pageable).copy(come, to)


def _copy_on_device(source: Elements, target: Elements) -> None:
    device: Any = target.memory.device
    come: Any
    logs, coming = observed.get(), []
    if source.memory.device is not device:
        come, kind = source.memory.cpu_data(), MemcpyKind.CPU2CUDA
        if logs:
            coming = admit(logs, "copy_from", (caffe.COPY_TO_GPU.name,), target.nbytes)
        to = target.memory.mutable_gpu_data()
    else:
        to, kind = target.memory.mutable_gpu_data(), MemcpyKind.CUDA2CUDA
        come = source.memory.gpu_data()
        if source.memory is target.memory:
            return  # the heads have moved, as on the host
    with reporting("copy_from", device):
        if kind is MemcpyKind.CUDA2CUDA and device.overlaps(come, to):
            to[: target.nbytes].set(come[: target.nbytes].get())  # overlapping adopted buffers
        else:
            device.memcpy(come, to, target.nbytes, kind)
    if coming:
        enter(logs, coming, target.sides)


class _Place:
    """Where a computation with elements runs: on which side, and with which arithmetic."""

    def __init__(self, call: str, elements: Elements, head: SyncedHead) -> None:
        sides = elements.sides
        on_device = head in _AT_GPU
        self.where: Any = sides.device if on_device else sides.pageable
        self.arithmetic: Arithmetic = arithmetic_of(self.where)
        check_type(call, elements.dtype, self.arithmetic.types)
        # The accessors of this side, as functions of a memory.
        self.read: Callable[[SyncedMemory], Any] = SyncedMemory.gpu_data if on_device else SyncedMemory.cpu_data
        self.write: Callable[[SyncedMemory], Any] = (
            SyncedMemory.mutable_gpu_data if on_device else SyncedMemory.mutable_cpu_data
        )

    def check_apart(self, call: str, first: Elements, second: Elements) -> None:
        """Refuse two adopted buffers that overlap, before any byte is copied into one and so into the other.

        If they are the same, the result is zeros, and the first is not left as it is.  On the side that does not
        compute they do harm too: the result is copied there later, which would overwrite both, and only one memory
        would know.
        """
        # The pointers themselves, because a call for a side would copy to it.
        x, y = first.sides, second.sides
        for where, theirs, mine in ((y.pageable, x.cpu, y.cpu), (y.device, x.gpu, y.gpu)):
            if theirs.ptr is None or mine.ptr is None:
                continue
            if theirs is not mine and theirs.owner is not None and mine.owner is not None:
                continue  # two blocks of allocators are never the same
            source, target = first.flat(theirs.ptr), second.flat(mine.ptr)
            if where.overlaps(source, target):
                reason = f"{call} needs data and diff that do not overlap"
                raise InvalidPointerError(where_of(where), target, reason)


def _head(call: str, elements: Elements) -> SyncedHead:
    """The head of a memory whose elements have arithmetic, for a call that errors name.

    Raises
    ------
    NoArithmeticError
        If the elements are integers or booleans; this is the first check, as in Caffe.
    ClosedMemoryError
        If the memory is closed.
    """
    if elements.dtype.kind in "iub":
        raise NoArithmeticError(call, elements.dtype, Arithmetic.types)
    memory: Any = elements.memory
    state: int = memory._open(call)  # noqa: SLF001 -- as above
    return HEADS[state]
