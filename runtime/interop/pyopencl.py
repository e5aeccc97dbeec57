"""PyOpenCL: its allocators are functions from a size to a buffer, such as ``pyopencl.tools.MemoryPool``."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from syncedmem.model import AllocationError, InvalidArgumentError
from syncedmem.model.interface import DeviceType

from ..allocators.failures import is_refused, take_back, told, warn_of_leak, where_of
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
        self._home.check()
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

    Notes
    -----
    PyOpenCL drops a buffer while work may still use it.  OpenCL then keeps the memory of an `OpenCLDeviceAllocator`.
    Of any other allocator of OpenCL memory, nobody else gets it before all work is over that was queued on two queues:
    the one that was current when the memory was taken, and the one that is current when it is given back.  A
    `PoolAllocator` keeps the block until then; with any other allocator the host waits.  Work on a third queue must be
    over already.
    """
    if getattr(allocator, "device_type", None) is DeviceType.OPENCL:
        return _exporting(allocator, _handle, partial(_after_work, allocator))
    exporter = Exporter(allocator, host_only=True)
    if not isinstance(queue, cl.CommandQueue):
        raise InvalidArgumentError("queue", queue, "a pyopencl.CommandQueue, for host memory")
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR

    def over(block: Any) -> Any:
        return cl.Buffer(queue.context, flags, hostbuf=block)

    # When the buffer is gone, OpenCL may still write; and OpenCL keeps its handle, but not the host memory.
    return _exporting(exporter.allocator, over, lambda: lambda _block: queue.finish())


def _handle(block: Any) -> Any:
    """A second handle for the memory of an array; the first one belongs to the array."""
    if block.offset:
        return block.base_data.get_sub_region(block.offset, block.nbytes)
    return cl.Buffer.from_int_ptr(block.base_data.int_ptr, retain=True)


def _after_work(allocator: Any) -> Callable[[Any], object]:
    """A function that makes a block, which is taken now, wait for the work on it."""
    if type(allocator) is OpenCLDeviceAllocator:  # it lends nothing again, and OpenCL keeps what work still uses
        return _nothing
    taken_on = allocator.current_stream()

    def wait(block: Any) -> None:
        hold = getattr(allocator, "hold", None)
        for queue in {taken_on, allocator.current_stream()}:
            event = allocator.record(queue)
            if hold is None:
                event.synchronize()
            else:
                hold(block, event)

    return wait


def _nothing(_block: Any) -> None:
    """Wait for nothing."""


def _exporting(
    allocator: Any, buffer_of: Callable[[Any], Any], after_work: Callable[[], Callable[[Any], object]]
) -> Callable[[int], Any]:
    """An allocator of PyOpenCL that exports blocks as buffers; `after_work` returns how a block waits for its work."""

    def allocate(size: int) -> Any:
        wait, block = after_work(), allocator.allocate(size)
        if block is None:
            return None

        def give_back() -> None:
            try:
                wait(block)
                allocator.release(block)
            except BaseException as error:
                if is_refused(allocator, block, error):
                    warn_of_leak(f"{size} bytes leaked on {where_of(allocator)}: {told(error)}", error)
                raise  # Python prints it, as that of a finaliser

        try:
            return _tied(buffer_of(block), give_back)
        except BaseException as error:
            take_back(allocator, block, error)
            if isinstance(error, cl.Error):
                raise no_room(where_of(allocator), size, error) from error
            raise

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
