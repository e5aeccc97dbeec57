"""`OpenCLDeviceAllocator`: PyOpenCL buffers and queues.  This is the only module that imports PyOpenCL.

With PoCL this is a real second memory on any processor: its buffers are reached through a driver, its queues are
asynchronous, and its errors are those of a driver.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import AllocationError, InvalidArgumentError, NoDeviceError
from syncedmem.model.interface import DeviceType, MemcpyKind
from syncedmem.model.packages import install, why

from ..allocators.base import SOURCES, TARGETS, DeviceAllocator, check_event, check_kind
from ..allocators.failures import adopting
from ..allocators.forking import Home
from ..allocators.pointers import (
    FILLED,
    LiveBlocks,
    as_flag,
    check_adoptable_size,
    check_byte_size,
    check_copy,
    check_host,
    check_ordinal,
    no_room,
)
from .compilers import compiler_of
from .host import CPUDeviceAllocator, cpu_allocator
from .opencl_arithmetic import MappedArithmetic, overlap
from .opencl_kernels import KernelArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from syncedmem.model.interface import Event

    from ..allocators.pointers import End, HostArray
    from .compilers import Compiler
    from .opencl_arithmetic import OpenCLArithmetic

__all__ = ["ALLOCATOR", "OpenCLDeviceAllocator"]

try:
    # Any: PyOpenCL's own types differ from release to release.
    cl: Any = importlib.import_module("pyopencl")
    cla: Any = importlib.import_module("pyopencl.array")
    for part in ("elementwise", "reduction"):
        importlib.import_module(f"pyopencl.{part}")
except Exception as _error:
    raise NoDeviceError(f"OpenCL needs PyOpenCL and a driver: {install('opencl')} ({why(_error)})") from _error


_PATIENCE = 0.1
"""In seconds: how long a checked memory waits for queued work, before it leaves a stale side as it is."""


class OpenCLDeviceAllocator(DeviceAllocator):
    """Memory of one OpenCL device.

    Arrays are ``pyopencl.array.Array`` on the current queue of the thread: the allocator's own, which is in order, or
    that of a ``with allocator.on(queue):`` block.  Memory, copies and fills need no compiler.  Arithmetic by kernels
    needs one, and the compiler of a driver may not work: that of PoCL 3.0, the version on PyPI, fails on every
    processor that is newer than its LLVM 14.  Then, and where the device is the processor itself, the host computes
    over mapped buffers, with the same accuracy.

    Parameters
    ----------
    ordinal : int
        The number of the device, counted over all platforms from 0.

    Attributes
    ----------
    description : str
        The names of platform and device, as their driver tells them.
    context : pyopencl.Context

    Raises
    ------
    NoDeviceError
        If there is no such device, or OpenCL cannot be used.
    InvalidArgumentError
        If `ordinal` is no integer.
    """

    device_type = DeviceType.OPENCL

    def __init__(self, ordinal: int = 0) -> None:
        try:
            devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
            elsewhere = not os.environ.keys().isdisjoint(("POCL_CACHE_DIR", "XDG_CACHE_HOME"))
            if not (devices or elsewhere or os.access(Path.home(), os.W_OK)):
                raise NoDeviceError(
                    f"there is no OpenCL device here; PoCL has none if it cannot write to {Path.home()}: set "
                    "XDG_CACHE_HOME to another folder"
                )
            self.ordinal: int = check_ordinal(ordinal, "OpenCL", len(devices))
            device = devices[self.ordinal]
            self.description: str = f"{device.platform.name}: {device.name} ({device.global_mem_size >> 20} MiB)"
            self._room = int(device.global_mem_size)
            self.context: Any = cl.Context([device])
            self._queues = _Queues(cl.CommandQueue(self.context))
        except cl.Error as error:
            raise NoDeviceError(f"PyOpenCL is installed, but OpenCL cannot be used: {error}") from error
        self._aside: Any = None
        self._home = Home(self.name)
        self._live = LiveBlocks(self.name)
        self._arithmetic: dict[bool, OpenCLArithmetic] = {}
        # When PyOpenCL drops the event of a copy from or to the host, it waits for the copy, and no other thread runs
        # meanwhile.  So these events are kept until they are done; fills and markers too, because _finish() waits for
        # their queues.
        self._queued: dict[int, Any] = {}

    @property
    def queue(self) -> Any:
        """The allocator's own queue: the current one outside of ``with allocator.on(queue):``."""
        return self._queues.own

    @property
    def compiler(self) -> Compiler:
        """Whether the device's compiler works; it is tried once in a process."""
        return compiler_of(self.queue.device, cl)

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        ptr = self._array(self._buffer(size), 0, size)
        self._live.blocks[id(ptr)] = ptr, None
        return ptr

    def _buffer(self, size: int) -> Any:
        self._home.check()
        if size > self._room:  # NVIDIA's driver takes memory when a buffer is first used, and refuses no size before
            raise AllocationError(self.name, size, f"the device has {self._room} bytes")
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)
        except (cl.Error, OverflowError) as error:
            raise no_room(self.name, size, error) from error

    def _array(self, buffer: Any, offset: int, size: int) -> Any:
        return cla.Array(self.queue, (size,), np.uint8, data=buffer, offset=offset)

    def release(self, ptr: Any) -> None:
        # The driver gets the buffer back when the last array over it is gone.
        if ptr is not None:
            del self._live[ptr]

    def _is_live(self, ptr: Any) -> bool | None:
        return ptr in self._live

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Any,
        dest: Any,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        kind = check_kind(kind)
        self._check_end(src, SOURCES[kind])
        self._check_end(dest, TARGETS[kind])
        need_sync = as_flag(need_sync, "need_sync")
        size, queue = check_copy(byte_size, src, dest), self._queue(stream)
        if size:
            self._copy(src, dest, size, kind, queue, wait=stream is None)
        if need_sync:
            self._finish(queue)

    def _copy(  # noqa: PLR0913 -- what memcpy was given
        self, src: Any, dest: Any, size: int, kind: MemcpyKind, queue: Any, *, wait: bool
    ) -> None:
        if kind is MemcpyKind.CPU2CPU:
            for other in (self.current_stream(), queue):  # a host copy cannot be queued, so it waits for the queues
                other.finish()
            np.copyto(dest[:size], src[:size])
            return
        after = self._earlier(queue)
        if kind is MemcpyKind.CUDA2CUDA:
            offsets = {"src_offset": src.offset, "dst_offset": dest.offset, "byte_count": size}
            event = cl.enqueue_copy(queue, dest.base_data, src.base_data, **offsets, wait_for=after)
        elif kind is MemcpyKind.CPU2CUDA:
            ends = dest.base_data, src[:size]
            event = cl.enqueue_copy(queue, *ends, dst_offset=dest.offset, is_blocking=wait, wait_for=after)
        else:
            ends = dest[:size], src.base_data
            event = cl.enqueue_copy(queue, *ends, src_offset=src.offset, is_blocking=wait, wait_for=after)
        self._started(event, queue, wait=wait)

    def _started(self, event: Any, queue: Any, *, wait: bool) -> None:
        """Wait for work that was queued, or keep its event, so that later waits find it."""
        if wait:
            event.wait()
        else:
            self._keep(event)
            queue.flush()

    def _earlier(self, queue: Any) -> list[Any]:
        """What work on a queue has to wait for: the current queue, which may still use the memory to be written."""
        current = self.current_stream()
        if queue == current:
            return []
        marker = cl.enqueue_marker(current)
        current.flush()
        return [marker]

    def _keep(self, event: Any) -> None:
        """Keep an event until it is done, and drop those that are done."""
        self._let_go()
        self._queued[id(event)] = event

    def _let_go(self) -> None:
        """Drop the events that are done, and with them the host memory that they keep alive."""
        # Other threads, and a finaliser that copies, may run between two steps, but not within one.  There is no lock:
        # it would be held while events are dropped, and with them host memory, whose finalisers may run any code.
        for key, event in list(self._queued.items()):
            if _is_over(event):
                self._queued.pop(key, None)

    def _queue(self, stream: Any) -> Any:
        """The queue for a call: `stream`, or the current one if it is None."""
        if stream is None:
            return self.current_stream()
        self._home.check()
        self.check_stream(stream)
        return stream

    def _finish(self, queue: Any) -> None:
        """Wait for a queue, for our own, and for those in which work or markers of ours are not done.

        OpenCL cannot wait for a device, and PyOpenCL has no list of its queues.
        """
        busy = [event.command_queue for event in list(self._queued.values())]
        for other in (queue, self.current_stream(), self.queue, *busy):
            other.finish()

    def _check_end(self, ptr: Any, end: End) -> None:
        if ptr is None or not end.on_device:
            check_host(self, ptr, end)
        elif not self._is_mine(ptr):
            raise end.misplaced(self, ptr)
        elif ptr.dtype != np.uint8 or not ptr.flags.forc or ptr.ndim != 1:
            raise end.refused(self, ptr, "not a contiguous row of bytes")

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        self._check_end(ptr, FILLED)
        need_sync = as_flag(need_sync, "need_sync")
        size, queue = check_copy(byte_size, ptr), self._queue(stream)
        if size:
            after = self._earlier(queue)
            event = cl.enqueue_fill_buffer(queue, ptr.base_data, np.uint8(0), ptr.offset, size, wait_for=after)
            self._started(event, queue, wait=stream is None)
        if need_sync:
            self._finish(queue)

    def empty(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        # OpenCL has no buffer of zero bytes; a PyOpenCL array without elements has no buffer.
        return cla.Array(self.current_stream(), (size,), np.uint8, data=self._buffer(size) if size else None)

    def stream(self) -> Any:
        self._home.check()
        return cl.CommandQueue(self.context)

    def current_stream(self) -> Any:
        """The queue of the innermost ``with allocator.on(queue):`` block of this thread, or the allocator's own."""
        self._home.check()
        return self._queues.current()

    @contextmanager
    def on(self, stream: Any) -> Generator[Any]:
        """Make a queue the current one of this thread, and that of new arrays, inside a ``with`` block."""
        self.check_stream(stream)
        entered = self._queues.entered
        before, entered.queues = entered.queues, (*entered.queues, stream)
        try:
            yield stream
        finally:
            entered.queues = before

    def check_stream(self, stream: object) -> None:
        if not isinstance(stream, cl.CommandQueue) or cast("Any", stream).context != self.context:
            raise InvalidArgumentError("stream", stream, f"a command queue of {self.name}, as its stream() returns")

    def adopt(self, buffer: object, byte_size: int) -> Any:
        with adopting(buffer, self):
            return self._adopted(buffer, byte_size)

    def _adopted(self, buffer: object, byte_size: int) -> Any:
        if not isinstance(buffer, cla.Array):
            raise ValueError(f"it is not a pyopencl.array.Array, and {self.name} is needed")  # noqa: TRY004 -- a ValueError is what adopt() promises
        array = cast("Any", buffer)
        if array.context != self.context:
            raise ValueError(f"it belongs to another OpenCL context than that of {self.name}")
        if not array.flags.c_contiguous:
            raise ValueError("it is not contiguous")
        size = check_adoptable_size(array.nbytes, byte_size)
        if size == 0:
            return self.empty(0)
        if not isinstance(array.base_data, cl.MemoryObjectHolder):
            raise ValueError("it lies in shared virtual memory, not in a buffer")  # noqa: TRY004 -- a ValueError is what adopt() promises
        return self._array(array.base_data, array.offset, size)

    def _is_mine(self, ptr: Any) -> bool:
        return isinstance(ptr, cla.Array) and bool(ptr.context == self.context)

    def overlaps(self, first: Any, second: Any) -> bool:
        return self._are_mine(first, second) and overlap(first, second, cl)

    def viewer(self, ptr: Any) -> Callable[[], Any]:
        self._check_mine("ptr", ptr)
        return partial(_again, self._home, self._queues.entered, type(ptr), vars(ptr))

    def record(self, stream: Any) -> Event:
        self._home.check()
        self.check_stream(stream)
        marker: Any = cl.enqueue_marker(stream)
        self._keep(marker)
        stream.flush()
        return _QueueEvent(marker, self._let_go)

    def settled(self) -> bool:
        # The host can hold a queue for as long as it likes, so nobody waits for ever here.
        busy = [event.command_queue for event in list(self._queued.values())]
        markers = [self.record(queue) for queue in (self.current_stream(), self.queue, *busy)]
        limit = time.monotonic() + _PATIENCE
        while not all(marker.done for marker in markers):
            if time.monotonic() > limit:
                return False
            time.sleep(_PATIENCE / 1000)
        return True

    def _references_to(self, ptr: Any) -> int:
        return sys.getrefcount(ptr.base_data)

    def peek(self, ptr: Any) -> HostArray:
        self._check_mine("ptr", ptr)
        if self._aside is None:
            self._aside = self.stream()
        content: HostArray = ptr.get(queue=self._aside)  # the current queue may wait for somebody
        return content

    def arithmetic(self) -> OpenCLArithmetic:
        """Arithmetic by kernels; by the host over mapped buffers, if the compiler fails or the device is the processor.

        On a processor the host is faster; docs/design.md has the figures.
        """
        self._home.check()
        by_kernels = not is_processor(self.queue.device) and self.compiler.works
        if by_kernels not in self._arithmetic:
            kind = KernelArithmetic if by_kernels else MappedArithmetic
            # One object for all threads: it runs one kernel after another.
            self._arithmetic.setdefault(by_kernels, kind(self.name, self._queues.current, cl))
        return self._arithmetic[by_kernels]

    def pinned_host(self) -> CPUDeviceAllocator:
        return cpu_allocator()

    def order_after(self, event: Event) -> None:
        self._home.check()
        check_event(event, _QueueEvent, self.name)
        cl.enqueue_barrier(self.current_stream(), wait_for=[cast("_QueueEvent", event).marker])


class _Entered(threading.local):
    """The queues that a thread has made current, the innermost last."""

    queues: tuple[Any, ...] = ()


class _Queues:
    """An allocator's own queue, and those that threads have made current."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.entered = _Entered()

    def current(self) -> Any:
        """The queue of this thread's work that names none."""
        return self.entered.queues[-1] if self.entered.queues else self.own


class _QueueEvent:
    """A marker in a queue; `after` is called when somebody has waited for the marker."""

    def __init__(self, marker: Any, after: Callable[[], None]) -> None:
        self.marker = marker
        self._after = after

    @property
    def done(self) -> bool:
        return _is_over(self.marker)

    def synchronize(self) -> None:
        self.marker.wait()
        self._after()


def _again(home: Home, entered: _Entered, kind: Any, attributes: dict[str, Any]) -> Any:
    """A shallow copy of an array on the current queue, as Array.with_queue() makes it, in a fifth of the time."""
    if home.lost:  # without this check, reading the array in a child process would wait for ever
        home.check()
    array: Any = kind.__new__(kind)
    array.__dict__.update(attributes)
    if entered.queues:
        array.queue = entered.queues[-1]
    return array


def is_processor(device: Any) -> bool:
    """Whether an OpenCL device is the processor of the host."""
    return bool(device.type & cl.device_type.CPU)


def _is_over(event: Any) -> bool:
    """Whether an event is done or has failed; the status of a failed event is negative."""
    return bool(event.command_execution_status <= cl.command_execution_status.COMPLETE)


ALLOCATOR = OpenCLDeviceAllocator
"""The class that the registry looks for."""
