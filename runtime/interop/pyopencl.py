"""PyOpenCL: its allocators are functions from a size to a buffer, such as ``pyopencl.tools.MemoryPool``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, InvalidArgumentError
from syncedmem.model.interface import DeviceType

from ..allocators.failures import where_of
from ..allocators.pointers import no_room
from ..devices.opencl import OpenCLDeviceAllocator, cl  # raises NoDeviceError if PyOpenCL is not installed
from .exporter import Exporter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["ForeignOpenCLAllocator", "as_resource", "from_resource"]


def from_resource(theirs: Any, queue: Any) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from an allocator of PyOpenCL.

    Parameters
    ----------
    theirs : callable
        For example ``pyopencl.tools.MemoryPool`` or ``pyopencl.tools.ImmediateAllocator``.  Shared virtual memory is
        refused, but only when `theirs` returns it.
    queue : pyopencl.CommandQueue
        A queue of the context of `theirs`; it becomes the allocator's own queue.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no function or `queue` is no queue.
    """
    if isinstance(theirs, type) or not callable(theirs):
        raise InvalidArgumentError("theirs", theirs, "an allocator of PyOpenCL: a function of a size")
    if not isinstance(queue, cl.CommandQueue):
        raise InvalidArgumentError("queue", queue, "a pyopencl.CommandQueue of the allocator's context")
    return ForeignOpenCLAllocator(theirs, queue)


class ForeignOpenCLAllocator(OpenCLDeviceAllocator):
    """Memory of an OpenCL device that comes from an allocator of PyOpenCL; made by `from_resource`."""

    def __init__(self, theirs: Callable[[int], Any], queue: Any) -> None:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        super().__init__(devices.index(queue.device))
        self.context: Any = queue.context
        self._queues.own = queue
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
    """An allocator of PyOpenCL whose memory comes from a `DeviceAllocator`, for ``allocator=`` of arrays.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of OpenCL memory, or of host memory; over host memory, buffers are made that use it in place.
    queue : pyopencl.CommandQueue or None
        Only for host memory: the queue that uses the buffers.  It is waited for before a block is given back.

    Returns
    -------
    callable
        It takes a size in bytes, and returns a ``pyopencl.Buffer`` that gives its memory back when it is gone.  For
        zero bytes it returns None.

    Raises
    ------
    InvalidArgumentError
        If `allocator` is of another kind, or `queue` is missing.
    """
    if getattr(allocator, "device_type", None) is DeviceType.OPENCL:
        return _exporting(allocator, _handle, _nothing)
    exporter = Exporter(allocator, host_only=True)
    if not isinstance(queue, cl.CommandQueue):
        raise InvalidArgumentError("queue", queue, "a pyopencl.CommandQueue, for host memory")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR

    def over(block: Any) -> Any:
        return cl.Buffer(queue.context, flags, hostbuf=block)

    # When the buffer is gone, OpenCL may still write; and OpenCL keeps its handle, but not the host memory.
    return _exporting(exporter.allocator, over, queue.finish)


def _handle(block: Any) -> Any:
    """A second handle for the memory of an array; the first one belongs to the array."""
    if block.offset:
        return block.base_data.get_sub_region(block.offset, block.nbytes)
    return cl.Buffer.from_int_ptr(block.base_data.int_ptr, retain=True)


def _nothing() -> None:
    """Wait for nothing: OpenCL itself keeps the memory as long as work uses it."""


def _exporting(allocator: Any, buffer_of: Callable[[Any], Any], wait: Callable[[], object]) -> Callable[[int], Any]:
    """An allocator of PyOpenCL that exports blocks as buffers; `buffer_of` makes a buffer of a block."""

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
"""By the id of an exported buffer, what to do when it is gone; a buffer has no attributes and no weak references."""


class _ExportedBuffer(cl.Buffer):  # type: ignore[misc]  # of a library without types
    __slots__ = ()

    def __del__(self, endings: Any = _endings, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_over():
            endings.pop(id(self))()


def _tied(buffer: Any, ending: Callable[[], None]) -> Any:
    """A buffer that calls `ending` when it is gone."""
    _endings[id(buffer)] = ending
    buffer.__class__ = _ExportedBuffer
    return buffer
