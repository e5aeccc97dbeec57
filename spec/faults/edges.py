"""Wrong edges: failures, adopted buffers, zero bytes, views, release, and other devices."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

from syncedmem.model import SyncedHead

from ..port import Port
from .registry import planted


@planted("R30-no-gpu", "PyOP2: the device is an alias of the host", bench="no device")
class DeviceFallsBackToHost(Port):
    """Without a device, gpu_data returns the host side."""

    def gpu_data(self) -> Any:
        return self.cpu_data()


@planted("R30-no-gpu", "Caffe 3ba20549b: NO_GPU comes after the buffers were replaced", bench="no device")
class NoGpuTooLate(Port):
    """Without a device, gpu_data is refused after the host side was touched."""

    def need_device(self) -> None:
        self.to_cpu()
        super().need_device()


@planted("R32-strong-guarantee", "PETSc, MFEM, HOOMD: the flag before the copy")
class HeadBeforeCopy(Port):
    """The head moves before the copy down can fail."""

    def copy_down(self, pointer: Any) -> None:
        self.head = SyncedHead.SYNCED
        super().copy_down(pointer)


@planted("R32-strong-guarantee", "000:36: the result of cudaFreeHost is dropped")
class HostFreeUnchecked(Port):
    """A failing free of host memory goes unnoticed."""

    def free_cpu(self) -> None:
        try:
            super().free_cpu()
        except MemoryError:
            self.cpu_ptr = None


@planted("R32-strong-guarantee", "000:127: the result of cudaFree is dropped")
class DeviceFreeUnchecked(Port):
    """A failing free of device memory goes unnoticed."""

    def free_gpu(self) -> None:
        try:
            super().free_gpu()
        except MemoryError:
            self.gpu_ptr = None


@planted("R32-strong-guarantee", "KuiperLLama: CUDA errors are dropped")
class CopyUnchecked(Port):
    """A failing copy up goes unnoticed."""

    def copy_up(self, pointer: Any) -> None:
        try:
            super().copy_up(pointer)
        except MemoryError:
            self.failed = True

    failed = False


@planted("R33-failure-leaks-nothing", "cpp 43-47: a failing memset after a successful malloc")
class FailureLeaks(Port):
    """What a call allocated before it failed is not given back."""

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        pass


@planted("R32-strong-guarantee", "cpp 51-54: the new pointer is kept when the copy fails")
class FailureKeepsPointer(Port):
    """A failing copy down leaves the new host memory in place, and the flag with it."""

    def copy_down(self, pointer: Any) -> None:
        if self.cpu_ptr is None:
            self.got_cpu(pointer, self.pinned_now())
        super().copy_down(pointer)


@planted("R34-works-after-failure", "HOOMD: a lock that stays taken")
class StuckAfterFailure(Port):
    """After a failed call every call is refused."""

    stuck = False

    def enter(self) -> None:
        super().enter()
        if self.stuck:
            self.refuse("busy")

    def undo(self, allocator: Any, pointer: Any, fresh: bool) -> None:
        super().undo(allocator, pointer, fresh)
        self.stuck = True


@planted("R35-own-buffer-refused", "H5: use after free in Caffe")
class AdoptsOwnHostBuffer(Port):
    """set_cpu_data takes the memory's own host buffer."""

    def adopt_host(self, data: Any) -> Any:
        return self.host.adopt(data, self.size)


@planted("R35-own-buffer-refused", "H5, on the device")
class AdoptsOwnDeviceBuffer(Port):
    """set_gpu_data takes the memory's own device buffer."""

    def adopt_device(self, data: Any) -> Any:
        return self.device.adopt(data, self.size)


@planted("R36-too-small-refused", "H6: Caffe knows no sizes of external buffers")
class AdoptsTooSmall(Port):
    """set_cpu_data takes a buffer that is too small."""

    def adopt_host(self, data: Any) -> Any:
        if isinstance(data, bytearray) and len(data) < self.size:
            return self.host.empty(self.size)
        return super().adopt_host(data)


@planted("R37-read-only-refused", "H6: const is cast away")
class AdoptsReadOnly(Port):
    """set_cpu_data takes a read-only buffer."""

    def adopt_host(self, data: Any) -> Any:
        return super().adopt_host(bytearray(data) if isinstance(data, bytes) else data)


@planted("R38-not-contiguous-refused", "np.ascontiguousarray in a wrapper: writes to a temporary are lost")
class AdoptsStrided(Port):
    """set_cpu_data takes a copy of a buffer that is not contiguous."""

    def adopt_host(self, data: Any) -> Any:
        return super().adopt_host(data if getattr(data, "contiguous", True) else bytearray(data))


@planted("R39-wrong-kind-refused", "pyamrex#454: pinned host memory taken for device memory")
class AdoptsHostAsDevice(Port):
    """set_gpu_data takes host memory, and copies it."""

    def adopt_device(self, data: Any) -> Any:
        if isinstance(data, bytearray):
            return self.device.empty(self.size)
        return super().adopt_device(data)


@planted("R40-kept-alive", "javacpp-presets#360: a temporary is collected")
class ForgetsAdoptedBuffer(Port):
    """set_cpu_data remembers the buffer weakly."""

    remembered: Any = None

    def set_cpu_data(self, data: Any) -> None:
        super().set_cpu_data(data)
        try:
            self.remembered = weakref.ref(data)
        except TypeError:
            return
        self.cpu_ptr = None

    def host_view(self) -> Any:
        if self.remembered is not None and self.cpu_ptr is None:
            self.cpu_ptr = self.host.adopt(self.remembered(), self.size)
        return super().host_view()


@planted("R44-size-zero", "cudaMalloc(0), cpp 71")
class AllocatesNothing(Port):
    """A memory of zero bytes asks its allocators for zero bytes."""

    def malloc_gpu(self) -> Any:
        return self.device.allocate(self.size) if self.size else self.device.allocate(0) or self.device.empty(0)


@planted("R44-size-zero", "OpenCL Caffe: 'Trying to access memory of size 0.'")
class RefusesSizeZero(Port):
    """A memory of zero bytes refuses to be read."""

    def host_view(self) -> Any:
        if not self.size:
            self.refuse("Trying to access memory of size 0.")
        return super().host_view()


@planted("R45-bad-size-refused", "#2474: host allocation of size -1655996416 failed")
class AnySize(Port):
    """A negative size is found out at the first allocation only."""

    def check_size(self, size: Any) -> None:
        super().check_size(abs(size) if isinstance(size, int) else size)


@planted("R46-fresh-view", "pycaffe: one array, reshaped by everybody")
class CachedView(Port):
    """cpu_data returns one view object again and again."""

    cached: Any = None

    def host_view(self) -> Any:
        if self.cached is None or self.cached[0] is not self.cpu_ptr:
            self.cached = (self.cpu_ptr, super().host_view())
        return self.cached[1]


@planted("R47-read-only-view", "H10: pycaffe's .data is mutable_cpu_data")
class WriteableReadView(Port):
    """The view of cpu_data can be written through."""

    def host_view(self) -> Any:
        return memoryview(self.cpu_ptr)


@planted("R47-read-only-view", "a flag that anybody may set again")
class UnfreezableView(Port):
    """The view of cpu_data is read-only until somebody says otherwise."""

    def host_view(self) -> Any:
        view = self.host.adopt(self.cpu_ptr, self.size).view()
        view.setflags(write=False)
        return view


@planted("R48-released-refuses", "cuda-python before Buffer.close was final")
class WorksAfterRelease(Port):
    """A released memory starts again."""

    def enter(self) -> None:
        if self.closed:
            self.closed = False
            self.head, self.cpu_ptr, self.gpu_ptr = SyncedHead.UNINITIALIZED, None, None


@planted("R49-release-twice", "pyopencl: MemoryObject.free failed: trying to double-unref")
class SecondReleaseFails(Port):
    """Releasing twice raises."""

    def close(self) -> None:
        if self.closed:
            self.refuse("released already")
        super().close()


@planted("R50-device-restored", "KuiperLLama: the current device is left changed")
class LeavesDeviceChanged(Port):
    """gpu_data makes the memory's device current and leaves it so."""

    def to_gpu(self) -> None:
        super().to_gpu()
        entered = self.device.using()
        entered.__enter__()
        self.left.append(entered)  # for good: a collected context manager would be left after all

    left: ClassVar[list[Any]] = []


@planted("R51-device-check", "Caffe release builds: the check is compiled out")
class IgnoresDeviceCheck(Port):
    """The device check is asked for and not made."""

    def check_current(self) -> None:
        pass
