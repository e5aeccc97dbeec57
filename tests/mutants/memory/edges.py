"""Wrong edge cases: failures, sizes and views."""

from __future__ import annotations

from typing import Any

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R30-no-gpu", "PyOP2: the device is an alias of the host", shows_on="no device")
class DeviceFallsBackToHost(HandmadeMemory):
    """Without a device, gpu_data returns the host side."""

    def gpu_data(self) -> Any:
        return self.cpu_data()


@seeded_bug("R30-no-gpu", "Caffe 3ba20549b: NO_GPU comes after the buffers were replaced", shows_on="no device")
class NoGpuTooLate(HandmadeMemory):
    """Without a device, gpu_data is refused after it has accessed the host side."""

    def need_device(self) -> None:
        self.to_cpu()
        super().need_device()


@seeded_bug("R32-strong-guarantee", "PETSc, MFEM, HOOMD: the flag is set before the copy")
class HeadBeforeCopy(HandmadeMemory):
    """The head moves before the copy down, which may fail."""

    def copy_down(self, pointer: Any) -> None:
        self.head = SyncedHead.SYNCED
        super().copy_down(pointer)


@seeded_bug("R32-strong-guarantee", "syncedmem.hpp:39 miscopied: the result of cudaFreeHost is ignored")
class HostFreeUnchecked(HandmadeMemory):
    """A failing free of host memory is not reported."""

    def free_cpu(self) -> None:
        try:
            super().free_cpu()
        except MemoryError:
            self.cpu_ptr = None


@seeded_bug("R32-strong-guarantee", "syncedmem.cpp:34 miscopied: the result of cudaFree is ignored")
class DeviceFreeUnchecked(HandmadeMemory):
    """A failing free of device memory is not reported."""

    def free_gpu(self) -> None:
        try:
            super().free_gpu()
        except MemoryError:
            self.gpu_ptr = None


@seeded_bug("R32-strong-guarantee", "KuiperLLama: CUDA errors are ignored")
class CopyUnchecked(HandmadeMemory):
    """A failing copy up is not reported."""

    def copy_up(self, pointer: Any) -> None:
        try:
            super().copy_up(pointer)
        except MemoryError:
            self.failed = True

    failed = False


@seeded_bug("R33-failure-leaks-nothing", "syncedmem.cpp:43-47: a failing memset after a successful malloc")
class FailureLeaks(HandmadeMemory):
    """A call that fails does not free what it allocated."""

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        pass


@seeded_bug("R32-strong-guarantee", "syncedmem.cpp:51-54: the new pointer is kept if the copy fails")
class FailureKeepsPointer(HandmadeMemory):
    """A failing copy down keeps the new host memory and its flag."""

    def copy_down(self, pointer: Any) -> None:
        if self.cpu_ptr is None:
            self.got_cpu(pointer, self.pinned_now())
        super().copy_down(pointer)


@seeded_bug("R34-works-after-failure", "HOOMD: a lock that is never released")
class StuckAfterFailure(HandmadeMemory):
    """After a failed call every call is refused."""

    stuck = False

    def enter(self) -> None:
        super().enter()
        if self.stuck:
            self.refuse("busy")

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        super().undo(allocator, pointer, fresh)
        self.stuck = True


@seeded_bug("R32-strong-guarantee", "Caffe 3ba20549b: the state is changed before the CHECK")
class RefusalMovesHead(HandmadeMemory):
    """set_cpu_data moves the head before it checks the buffer."""

    def adopt_host(self, data: Any) -> Any:
        try:
            return super().adopt_host(data)
        except ValueError:
            self.head = SyncedHead.HEAD_AT_CPU
            raise


@seeded_bug("R32-strong-guarantee", "the old pointer is dropped before the new one is checked")
class RefusalLosesStaleSide(HandmadeMemory):
    """A refused set_cpu_data drops the memory's own stale host side."""

    def adopt_host(self, data: Any) -> Any:
        try:
            return super().adopt_host(data)
        except ValueError:
            if self.head is SyncedHead.HEAD_AT_GPU:
                self.cpu_ptr = None
            raise


@seeded_bug("R32-strong-guarantee", "the flag is set before the argument is checked")
class RefusalDisowns(HandmadeMemory):
    """A refused set_gpu_data says that device memory, of which there is none, is the memory's own."""

    def set_gpu_data(self, data: Any) -> None:
        try:
            super().set_gpu_data(data)
        except RuntimeError:
            self.own_gpu_data = self.own_gpu_data or self.gpu_ptr is None
            raise

    def free_gpu(self) -> None:
        if self.gpu_ptr is not None:
            super().free_gpu()


@seeded_bug("R32-strong-guarantee", "the bytes of the old buffer are cleared before the new one is checked")
class RefusalClears(HandmadeMemory):
    """A refused set_cpu_data fills the memory's own fresh host side with zeros."""

    def set_cpu_data(self, data: Any) -> None:
        try:
            super().set_cpu_data(data)
        except RuntimeError:
            if self.own_cpu_data and self.flight is None:
                memoryview(self.cpu_ptr)[:] = bytes(self.size)
            raise


@seeded_bug("R44-size-zero", "cudaMalloc(0), syncedmem.cpp:71")
class AllocatesNothing(HandmadeMemory):
    """A memory of zero bytes requests zero bytes from its allocators."""

    def malloc_gpu(self) -> Any:
        return self.device.allocate(self.size) if self.size else self.device.allocate(0) or self.device.empty(0)


@seeded_bug("R44-size-zero", "OpenCL Caffe: 'Trying to access memory of size 0.'")
class RefusesSizeZero(HandmadeMemory):
    """A memory of zero bytes refuses reads."""

    def host_view(self) -> Any:
        if not self.size:
            self.refuse("Trying to access memory of size 0.")
        return super().host_view()


@seeded_bug("R45-bad-size-refused", "#2474: host allocation of size -1655996416 failed")
class AnySize(HandmadeMemory):
    """A negative size is refused only at the first allocation."""

    def check_size(self, size: Any) -> None:
        super().check_size(abs(size) if isinstance(size, int) else size)


@seeded_bug("R45-bad-size-refused", "int(size) for any number")
class SizeFromFloat(HandmadeMemory):
    """A float that is a whole number is accepted as a size."""

    def check_size(self, size: Any) -> None:
        super().check_size(int(size) if isinstance(size, float) and size.is_integer() else size)


@seeded_bug("R45-bad-size-refused", "bool is an int")
class SizeOfTrue(HandmadeMemory):
    """True is accepted as one byte."""

    def check_size(self, size: Any) -> None:
        super().check_size(int(size) if isinstance(size, bool) else size)


@seeded_bug("R45-bad-size-refused", "size_t, not ptrdiff_t; syncedmem.hpp:70")
class UnsignedSize(HandmadeMemory):
    """A size beyond the address space is accepted if it is less than two to the 64th."""

    def check_size(self, size: Any) -> None:
        super().check_size(size % (1 << 63) if isinstance(size, int) and 0 < size < 1 << 64 else size)


@seeded_bug("R46-fresh-view", "pycaffe: one array, reshaped by everybody")
class CachedView(HandmadeMemory):
    """cpu_data always returns the same view object."""

    cached: Any = None

    def host_view(self) -> Any:
        if self.cached is None or self.cached[0] is not self.cpu_ptr:
            self.cached = (self.cpu_ptr, super().host_view())
        return self.cached[1]


@seeded_bug("R47-read-only-view", "H10: pycaffe's .data is mutable_cpu_data")
class WriteableReadView(HandmadeMemory):
    """The view of cpu_data is writable."""

    def host_view(self) -> Any:
        return memoryview(self.cpu_ptr)


@seeded_bug("R47-read-only-view", "a flag that anybody can change back")
class UnfreezableView(HandmadeMemory):
    """The view of cpu_data is read-only, but can be made writable."""

    def host_view(self) -> Any:
        view = self.host.adopt(self.cpu_ptr, self.size).view()
        view.setflags(write=False)
        return view
