"""PyOpenCL: allocators are functions from a size to a buffer: ``pyopencl.tools.MemoryPool``, ``ImmediateAllocator``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, InvalidArgumentError
from syncedmem.model.interface import DeviceType

from ..allocators.failures import where_of
from ..allocators.pointers import no_room
from ..devices.opencl import OpenCLDeviceAllocator, cl  # raises NoDeviceError where there is no PyOpenCL
from .lender import Lender

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["ForeignOpenCLAllocator", "as_resource", "from_resource"]


def from_resource(theirs: Any, queue: Any) -> DeviceAllocator:
    """An allocator of ours whose memory comes from an allocator of PyOpenCL.

    Parameters
    ----------
    theirs : callable
        ``pyopencl.tools.MemoryPool``, ``pyopencl.tools.ImmediateAllocator`` and the like.  Shared virtual memory is
        refused when it is handed out.
    queue : pyopencl.CommandQueue
        Of the context of `theirs`; it becomes the allocator's own queue.

    Raises
    ------
    InvalidArgumentError
        If `theirs` or `queue` is something else.
    """
    if isinstance(theirs, type) or not callable(theirs):
        raise InvalidArgumentError("theirs", theirs, "an allocator of PyOpenCL: a function of a size")
    if not isinstance(queue, cl.CommandQueue):
        raise InvalidArgumentError("queue", queue, "a pyopencl.CommandQueue of the allocator's context")
    return ForeignOpenCLAllocator(theirs, queue)


class ForeignOpenCLAllocator(OpenCLDeviceAllocator):
    """Memory of an OpenCL device that comes from somebody else; made by `from_resource`."""

    def __init__(self, theirs: Callable[[int], Any], queue: Any) -> None:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        super().__init__(devices.index(queue.device))
        self.context: Any = queue.context
        self.queue: Any = queue
        self._theirs = theirs

    def _buffer(self, size: int) -> Any:
        try:
            buffer = self._theirs(size)
        except (cl.Error, MemoryError, OverflowError) as error:
            raise no_room(self.name, size, error) from error
        if buffer is None:
            raise AllocationError(self.name, size, "the allocator returned None")
        if not isinstance(buffer, cl.MemoryObjectHolder):
            raise InvalidArgumentError("what the allocator returns", buffer, "a buffer of OpenCL")
        return buffer


def as_resource(allocator: Any, queue: Any = None) -> Callable[[int], Any]:
    """An allocator of PyOpenCL whose memory comes from an allocator of ours, for ``allocator=`` of arrays.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of OpenCL memory; or of host memory, over which buffers are made that use it.
    queue : pyopencl.CommandQueue or None
        For host memory: where it is used.  It is waited for before a block is given back.

    Returns
    -------
    callable
        From a size to a ``pyopencl.Buffer``, which gives its memory back when it goes; from zero to None.

    Raises
    ------
    InvalidArgumentError
        If `allocator` is of another kind, or `queue` is missing.
    """
    if getattr(allocator, "device_type", None) is DeviceType.OPENCL:
        return _lending(allocator, _handle, _nothing)
    lender = Lender(allocator, host_only=True)
    if not isinstance(queue, cl.CommandQueue):
        raise InvalidArgumentError("queue", queue, "a pyopencl.CommandQueue, for host memory")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR

    def over(block: Any) -> Any:
        return cl.Buffer(queue.context, flags, hostbuf=block)

    # OpenCL may still write when a buffer goes, and keeps its handle and not the memory.
    return _lending(lender.allocator, over, queue.finish)


def _handle(block: Any) -> Any:
    """A second handle of the memory of an array: the first one belongs to the array."""
    if block.offset:
        return block.base_data.get_sub_region(block.offset, block.nbytes)
    return cl.Buffer.from_int_ptr(block.base_data.int_ptr, retain=True)


def _nothing() -> None:
    """What there is to wait for where OpenCL itself keeps the memory as long as it is used."""


def _lending(allocator: Any, buffer_of: Callable[[Any], Any], wait: Callable[[], object]) -> Callable[[int], Any]:
    """Lend blocks as the buffers that a function makes of them."""

    def allocate(size: int) -> Any:
        block = allocator.allocate(size)
        if block is None:
            return None
        try:
            buffer = buffer_of(block)
        except cl.Error as error:
            allocator.release(block)
            raise no_room(where_of(allocator), size, error) from error

        def give_back() -> None:
            wait()
            allocator.release(block)

        return _tied(buffer, give_back)

    return allocate


_endings: dict[int, Callable[[], None]] = {}
"""What to do when a lent buffer goes, by its identity: a buffer has neither room for it nor weak references."""


class _LentBuffer(cl.Buffer):  # type: ignore[misc]  # of a library without types
    __slots__ = ()

    def __del__(self, endings: Any = _endings, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_over():
            endings.pop(id(self))()


def _tied(buffer: Any, ending: Callable[[], None]) -> Any:
    """A buffer with something to do when it goes."""
    _endings[id(buffer)] = ending
    buffer.__class__ = _LentBuffer
    return buffer
