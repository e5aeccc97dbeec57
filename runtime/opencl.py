"""`OpenCLDeviceAllocator`: PyOpenCL buffers and queues.  The only module that imports PyOpenCL.

With PoCL this is a real second memory on any processor: its buffers are reached through a driver, its queues
run asynchronously, and its errors are a driver's.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidPointerError, NoDeviceError

from .allocator import DeviceAllocator, DeviceType, LiveBlocks, MemcpyKind, check_byte_size, check_copy, no_room

if TYPE_CHECKING:
    from .allocator import Event

__all__ = ["OpenCLDeviceAllocator"]

try:
    # Any: PyOpenCL's own types differ from release to release.
    cl: Any = importlib.import_module("pyopencl")
    cla: Any = importlib.import_module("pyopencl.array")
except ImportError as error:
    raise NoDeviceError(f"OpenCL needs PyOpenCL and a driver: pip install 'syncedmem[opencl]' ({error})") from error


class OpenCLDeviceAllocator(DeviceAllocator):
    """Memory of one OpenCL device.

    Arrays are ``pyopencl.array.Array`` on the allocator's own in-order queue.

    Parameters
    ----------
    ordinal : int
        Which device, counted over all platforms.

    Attributes
    ----------
    description : str
        Platform and device, as their driver names them.
    context : pyopencl.Context
    queue : pyopencl.CommandQueue
        Plays the part of the current stream.

    Raises
    ------
    NoDeviceError
        If there is no such device.
    """

    device_type = DeviceType.OPENCL

    def __init__(self, ordinal: int = 0) -> None:
        devices = _devices()
        if ordinal not in range(len(devices)):
            raise NoDeviceError(f"there is no OpenCL device {ordinal!r}; {len(devices)} found")
        self.ordinal = ordinal
        device = devices[ordinal]
        self.description = f"{device.platform.name}: {device.name} ({device.global_mem_size >> 20} MiB)"
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self._live = LiveBlocks(self.name)
        # PyOpenCL's event of a host copy waits for it when it is dropped, so they are kept until they are done.
        self._copies: list[Any] = []

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        return self._live.add(self._array(self._buffer(size), 0, size)) if size else None

    def _buffer(self, size: int) -> Any:
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)
        except (cl.Error, OverflowError) as error:
            raise no_room(self.name, size, error) from error

    def _array(self, buffer: Any, offset: int, size: int) -> Any:
        return cla.Array(self.queue, (size,), np.uint8, data=buffer, offset=offset)

    def release(self, ptr: Any) -> None:
        # The buffer goes back to the driver when the last array over it does.
        if ptr is not None:
            self._live.remove(ptr)

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Any,
        dest: Any,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        size = check_copy(byte_size, src, dest)
        if size:
            source = self._end(src, kind in (MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA), "src", size)
            target = self._end(dest, kind in (MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CUDA), "dest", size)
            if kind == MemcpyKind.CPU2CPU:
                np.copyto(target[0], source[0])
            else:
                self._copy(source, target, size, kind, stream)
        if need_sync:
            (self.queue if stream is None else stream).finish()

    def _copy(self, source: Any, target: Any, size: int, kind: MemcpyKind, stream: Any) -> None:
        """Copy between ends that are (memory, offset) pairs."""
        (src, src_offset), (dest, dest_offset) = source, target
        queue = self.queue if stream is None else stream
        if kind == MemcpyKind.CUDA2CUDA:
            event = cl.enqueue_copy(queue, dest, src, src_offset=src_offset, dst_offset=dest_offset, byte_count=size)
        elif kind == MemcpyKind.CPU2CUDA:
            event = cl.enqueue_copy(queue, dest, src, dst_offset=dest_offset, is_blocking=stream is None)
        else:
            event = cl.enqueue_copy(queue, dest, src, src_offset=src_offset, is_blocking=stream is None)
        if stream is None:
            event.wait()
        else:
            queue.flush()
            self._copies = [copy for copy in self._copies if not _is_complete(copy)] + [event]

    def _end(self, ptr: Any, on_device: bool, argument: str, size: int) -> tuple[Any, int]:
        if on_device:
            if not isinstance(ptr, cla.Array) or ptr.context != self.context:
                raise InvalidPointerError(self.name, ptr, f"{argument} is not memory of this device")
            return ptr.base_data, ptr.offset
        if not isinstance(ptr, np.ndarray):
            raise InvalidPointerError(self.name, ptr, f"{argument} is not host memory")
        return ptr[:size], 0

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        size = check_copy(byte_size, ptr)
        queue = self.queue if stream is None else stream
        if size:
            buffer, offset = self._end(ptr, True, "ptr", size)
            event = cl.enqueue_fill_buffer(queue, buffer, np.uint8(0), offset, size)
            if stream is None:
                event.wait()
        if need_sync:
            queue.finish()

    def empty(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        # OpenCL has no buffer of zero bytes; PyOpenCL's array of none has no buffer.
        return self._array(self._buffer(size), 0, size) if size else cla.Array(self.queue, (0,), np.uint8)

    def stream(self) -> Any:
        return cl.CommandQueue(self.context)

    def check_stream(self, stream: object) -> None:
        if not isinstance(stream, cl.CommandQueue) or cast("Any", stream).context != self.context:
            raise InvalidArgumentError("stream", stream, f"a command queue of {self.name}, as its stream() returns")

    def adopt(self, buffer: object, byte_size: int) -> Any:
        if not isinstance(buffer, cla.Array):
            raise ValueError(f"it is not a pyopencl.array.Array, and {self.name} is needed")
        array = cast("Any", buffer)
        if array.context != self.context:
            raise ValueError(f"it belongs to another OpenCL context than that of {self.name}")
        if not array.flags.c_contiguous:
            raise ValueError("it is not contiguous")
        if array.nbytes < byte_size:
            raise ValueError(f"it has {array.nbytes} bytes, and {byte_size} are needed")
        return self._array(array.base_data, array.offset, byte_size) if byte_size else self.empty(0)

    def overlaps(self, first: Any, second: Any) -> bool:
        same = first.base_data is not None and first.base_data == second.base_data
        return same and first.offset < second.offset + second.nbytes and second.offset < first.offset + first.nbytes

    def record(self, stream: Any) -> Event:
        event = _QueueEvent(cl.enqueue_marker(stream))
        stream.flush()
        return event

    def order_after(self, event: Event) -> None:
        cl.enqueue_barrier(self.queue, wait_for=[cast("_QueueEvent", event).marker])


class _QueueEvent:
    """A marker in a queue."""

    def __init__(self, marker: Any) -> None:
        self.marker = marker

    @property
    def done(self) -> bool:
        return _is_complete(self.marker)

    def synchronize(self) -> None:
        self.marker.wait()


def _is_complete(event: Any) -> bool:
    return bool(event.command_execution_status == cl.command_execution_status.COMPLETE)


def _devices() -> list[Any]:
    try:
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise NoDeviceError(f"OpenCL found no platform: {error}") from error
