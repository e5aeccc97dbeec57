"""A small correct memory, in which bugs are seeded: Caffe's ``syncedmem.cpp`` written by hand, and made safe.

It is a second implementation, independent of the table and of the runtime.  Each step is a separate method,
so a seeded bug (tests/mutants/memory) overrides one method.  You can read it as an example of a port.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NoReturn

from syncedmem.model import Mode, SyncedHead, current_mode
from syncedmem.model.interface import MemcpyKind

__all__ = ["HandmadeMemory", "Refused"]

_U, _C, _G, _S = SyncedHead
_TO_DEVICE, _TO_HOST = MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CPU


class Refused(RuntimeError):
    """A refused call: a failed CHECK in Caffe."""


class HandmadeMemory:
    """A mirrored memory; see `syncedmem.spec.engine.subject.Memory`."""

    def __init__(self, size: int, *, host: Any, device: Any, check_device: bool = False) -> None:
        self.check_size(size)
        self.size: int = size
        self.head: SyncedHead = _U
        self.cpu_ptr: Any = None
        self.gpu_ptr: Any = None
        self.own_cpu_data: bool = False
        self.own_gpu_data: bool = False
        self.cpu_malloc_use_cuda: bool = False
        self.host: Any = host
        self.device: Any = device
        self.check: bool = check_device
        self.flight: Any = None
        self.closed: bool = False
        self.set_up()

    # --- the public calls, syncedmem.cpp:93-167

    def cpu_data(self) -> Any:
        self.enter()
        self.to_cpu()
        return self.host_view()

    def mutable_cpu_data(self) -> Any:
        self.enter()
        self.to_cpu()
        self.wait_for_push()
        self.wrote_cpu()
        return memoryview(self.cpu_ptr)

    def gpu_data(self) -> Any:
        self.enter()
        self.to_gpu()
        self.follow()
        return self.gpu_ptr.view()

    def mutable_gpu_data(self) -> Any:
        self.enter()
        self.to_gpu()
        self.follow()
        self.wrote_gpu()
        return self.gpu_ptr.view()

    def set_cpu_data(self, data: Any) -> None:
        self.enter()
        self.check_data(data)
        pointer = self.adopt_host(data)
        self.wait_for_push()
        self.free_before_adopting_cpu()
        self.take_cpu(pointer)

    def set_gpu_data(self, data: Any) -> None:
        self.enter()
        self.need_device()
        self.check_data(data)
        pointer = self.adopt_device(data)
        self.wait_for_push()
        self.free_before_adopting_gpu()
        self.take_gpu(pointer)

    def async_gpu_push(self, *, stream: Any) -> None:
        self.enter()
        self.need_device()
        self.check_pushable()
        self.check_stream(stream)
        self.wait_for_push()
        fresh = self.gpu_ptr is None
        pointer = self.malloc_gpu() if fresh else self.gpu_ptr
        try:
            self.push(pointer, stream)
        except BaseException:
            self.undo(self.device, pointer, fresh)
            raise
        self.gpu_ptr = pointer
        self.own_gpu_data = self.own_gpu_data or fresh
        self.pushed()

    def close(self) -> None:
        if self.closed and not (self.own_cpu_data or self.own_gpu_data):
            return
        self.check_current()
        self.wait_for_push()
        self.release()
        self.closed = True
        self.let_go()

    def __del__(self) -> None:
        # Another device may be current, and the constructor may have failed; a finaliser can only try.
        with suppress(Exception):
            self.wait_for_push()
            self.release()

    # --- copying where needed, syncedmem.cpp:39-91

    def to_cpu(self) -> None:
        if self.head is _U:
            pointer, pinned = self.malloc_cpu()
            try:
                self.zero_cpu(pointer, pinned)
            except BaseException:
                self.undo(self.allocator(pinned), pointer, True)
                raise
            self.got_cpu(pointer, pinned)
            self.head = self.first_head(_C)
        elif self.head is _G:
            self.need_cpu()
            self.wait_for_push()
            fresh = self.cpu_ptr is None
            pointer, pinned = self.malloc_cpu() if fresh else (self.cpu_ptr, self.cpu_malloc_use_cuda)
            try:
                self.copy_down(pointer)
            except BaseException:
                self.undo(self.allocator(pinned), pointer, fresh)
                raise
            self.copied_down(pointer, pinned, fresh)

    def to_gpu(self) -> None:
        self.need_device()
        if self.head is _U:
            pointer = self.malloc_gpu()
            try:
                self.zero_gpu(pointer)
            except BaseException:
                self.undo(self.device, pointer, True)
                raise
            self.gpu_ptr, self.own_gpu_data = pointer, True
            self.head = self.first_head(_G)
        elif self.head is _C:
            self.wait_for_push()
            fresh = self.gpu_ptr is None
            pointer = self.malloc_gpu() if fresh else self.gpu_ptr
            try:
                self.copy_up(pointer)
            except BaseException:
                self.undo(self.device, pointer, fresh)
                raise
            self.copied_up(pointer, fresh)

    # --- single steps, in each of which a bug can be seeded

    def set_up(self) -> None:
        """Hook for subclasses at the end of the constructor."""

    def check_size(self, size: Any) -> None:
        if type(size) is not int or not 0 <= size < 1 << 63:
            self.refuse(f"not a size: {size!r}")

    def enter(self) -> None:
        if self.closed:
            self.refuse("closed")
        self.check_current()

    def check_current(self) -> None:
        if self.check and self.device.current_ordinal() != self.device.ordinal:
            self.refuse("another device is current")

    def need_device(self) -> None:
        if self.device is None:
            self.refuse("NO_GPU")

    def need_cpu(self) -> None:
        """Hook for subclasses: Caffe copies down only in a GPU build."""

    def check_data(self, data: Any) -> None:
        if data is None:
            self.refuse("data is null")

    def check_pushable(self) -> None:
        if self.head is not _C:
            self.refuse("head is not HEAD_AT_CPU")

    def check_stream(self, stream: Any) -> None:
        self.device.check_stream(stream)

    def refuse(self, why: str) -> NoReturn:
        raise Refused(why)

    def pinned_now(self) -> bool:
        return self.device is not None and current_mode() is Mode.GPU

    def allocator(self, pinned: bool) -> Any:
        return self.device.pinned_host() if pinned else self.host

    def bytes(self) -> int:
        return self.size

    def malloc_cpu(self) -> tuple[Any, bool]:
        pinned = self.pinned_now()
        return (self.allocator(pinned).allocate(self.bytes()) if self.size else bytearray()), pinned

    def malloc_gpu(self) -> Any:
        return self.device.allocate(self.bytes()) if self.size else self.device.empty(0)

    def zero_cpu(self, pointer: Any, pinned: bool) -> None:
        if self.size:
            self.allocator(pinned).memset_zero(pointer, self.size)

    def zero_gpu(self, pointer: Any) -> None:
        if self.size:
            self.device.memset_zero(pointer, self.size)

    def copy_down(self, pointer: Any) -> None:
        if self.size:
            self.device.memcpy(self.gpu_ptr, pointer, self.size, _TO_HOST)

    def copy_up(self, pointer: Any) -> None:
        if self.size:
            self.device.memcpy(self.cpu_ptr, pointer, self.size, _TO_DEVICE)

    def push(self, pointer: Any, stream: Any) -> None:
        if self.size:
            self.device.memcpy(self.cpu_ptr, pointer, self.size, _TO_DEVICE, stream)
            self.flight = self.take_off(stream)

    def take_off(self, stream: Any) -> Any:
        """The event of a queued copy; without an event nobody could wait for the copy later, so wait now."""
        try:
            return self.device.record(stream)
        except BaseException:
            self.device.memcpy(None, None, 0, _TO_DEVICE, stream, True)
            raise

    def first_head(self, head: SyncedHead) -> SyncedHead:
        return head

    def got_cpu(self, pointer: Any, pinned: bool) -> None:
        self.cpu_ptr, self.own_cpu_data, self.cpu_malloc_use_cuda = pointer, True, pinned

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        if fresh:
            self.got_cpu(pointer, pinned)
        self.head = _S

    def copied_up(self, pointer: Any, fresh: bool) -> None:
        self.gpu_ptr = pointer
        self.own_gpu_data = self.own_gpu_data or fresh
        self.head = _S

    def wrote_cpu(self) -> None:
        self.head = _C

    def wrote_gpu(self) -> None:
        self.head = _G

    def pushed(self) -> None:
        self.head = _S

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        if fresh and self.size:
            allocator.release(pointer)

    def adopt_host(self, data: Any) -> Any:
        pointer = self.host.adopt(data, self.size)
        if self.own_cpu_data and self.size and self.host.overlaps(pointer, self.cpu_ptr):
            self.refuse("own host buffer")
        return pointer

    def adopt_device(self, data: Any) -> Any:
        pointer = self.device.adopt(data, self.size)
        if self.own_gpu_data and self.size and self.device.overlaps(pointer, self.gpu_ptr):
            self.refuse("own device buffer")
        return pointer

    def free_before_adopting_cpu(self) -> None:
        if self.own_cpu_data:
            self.free_cpu()

    def free_before_adopting_gpu(self) -> None:
        if self.own_gpu_data:
            self.free_gpu()

    def take_cpu(self, pointer: Any) -> None:
        self.cpu_ptr, self.own_cpu_data, self.head = pointer, False, _C

    def take_gpu(self, pointer: Any) -> None:
        self.gpu_ptr, self.own_gpu_data, self.head = pointer, False, _G

    def free_cpu(self) -> None:
        if self.size:
            self.allocator(self.cpu_malloc_use_cuda).release(self.cpu_ptr)

    def free_gpu(self) -> None:
        if self.size:
            self.device.release(self.gpu_ptr)

    def release(self) -> None:
        if self.own_cpu_data:
            self.free_cpu()
            self.own_cpu_data, self.closed = False, True
        if self.own_gpu_data:
            self.free_gpu()
            self.own_gpu_data, self.closed = False, True

    def let_go(self) -> None:
        """Drop all pointers, so that the caller's buffers are not kept."""
        self.cpu_ptr = self.gpu_ptr = None

    def wait_for_push(self) -> None:
        """Wait for a push in flight."""
        if self.flight is not None:
            self.flight.synchronize()
            self.flight = None

    def follow(self) -> None:
        """Order the device's later work after a push in flight."""
        if self.flight is not None:
            self.device.order_after(self.flight)

    def host_view(self) -> Any:
        return memoryview(self.cpu_ptr).toreadonly()
