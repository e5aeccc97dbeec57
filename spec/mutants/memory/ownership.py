"""Wrong ownership: adoption, flags, kinds of host memory, and the order and number of frees."""

from __future__ import annotations

import contextlib
from typing import Any

from syncedmem.model import SyncedHead

from ...memory.reference import ReferenceMemory as Port
from ..registry import planted


@planted("R14-adopt-host", "a port that takes a const buffer")
class HostAdoptionCopies(Port):
    """set_cpu_data takes the bytes instead of the buffer."""

    def adopt_host(self, data: Any) -> Any:
        pointer = super().adopt_host(data)
        return self.host.adopt(bytearray(memoryview(pointer)), self.size)


@planted("R14-adopt-host", "a forgotten assignment")
class HostAdoptionKeepsHead(Port):
    """set_cpu_data does not make the host side the fresh one."""

    def take_cpu(self, pointer: Any) -> None:
        head = self.head
        super().take_cpu(pointer)
        self.head = head if head is SyncedHead.SYNCED else self.head


@planted("R15-adopt-device", "Caffe before e5575cf17 had to copy")
class DeviceAdoptionCopies(Port):
    """set_gpu_data takes the bytes instead of the buffer."""

    def adopt_device(self, data: Any) -> Any:
        pointer = super().adopt_device(data)
        copy = self.device.empty(self.size)
        if self.size:
            self.device.inner.memcpy(pointer, copy, self.size, 3)
        return copy


@planted("R15-adopt-device", "a forgotten assignment")
class DeviceAdoptionKeepsHead(Port):
    """set_gpu_data leaves SYNCED."""

    def take_gpu(self, pointer: Any) -> None:
        head = self.head
        super().take_gpu(pointer)
        self.head = head if head is SyncedHead.SYNCED else self.head


@planted("R16-adopt-keeps-other", "#5822: fear of a leak at SYNCED")
class HostAdoptionFreesDevice(Port):
    """set_cpu_data frees the device side too."""

    def free_before_adopting_cpu(self) -> None:
        super().free_before_adopting_cpu()
        if self.own_gpu_data:
            self.free_gpu()
            self.gpu_ptr, self.own_gpu_data = None, False


@planted("R16-adopt-keeps-other", "H8, mended by copying back")
class HostAdoptionSavesDevice(Port):
    """set_cpu_data copies the device side down before it lets its own host side go."""

    def free_before_adopting_cpu(self) -> None:
        if self.head is SyncedHead.HEAD_AT_GPU and self.cpu_ptr is not None:
            self.copy_down(self.cpu_ptr)
        super().free_before_adopting_cpu()


@planted("R17-adopt-frees-owned", "KuiperLLama Buffer::allocate overwrites its pointer")
class HostAdoptionLeaks(Port):
    """set_cpu_data forgets its own host memory."""

    def free_before_adopting_cpu(self) -> None:
        pass


@planted("R17-adopt-frees-owned", "KuiperLLama Buffer::allocate, on the device")
class DeviceAdoptionLeaks(Port):
    """set_gpu_data forgets its own device memory."""

    def free_before_adopting_gpu(self) -> None:
        pass


@planted("R18-external-not-freed", "000:57: 'frees the memory originally allocated', owned or not")
class FreesExternalHost(Port):
    """set_cpu_data frees whatever host memory there was."""

    def free_before_adopting_cpu(self) -> None:
        if self.cpu_ptr is not None:
            self.free_cpu()


@planted("R18-external-not-freed", "000:59: the same on the device")
class FreesExternalDevice(Port):
    """set_gpu_data frees whatever device memory there was."""

    def free_before_adopting_gpu(self) -> None:
        if self.gpu_ptr is not None:
            self.free_gpu()


@planted("R23-own-flags", "001:63: 'whether there is CPU data'")
class OwnershipAsExistence(Port):
    """own_cpu_data is true whenever there is host memory."""

    def take_cpu(self, pointer: Any) -> None:
        super().take_cpu(pointer)
        self.own_cpu_data = True


@planted("R23-own-flags", "001:97: copying down 'sets own_cpu_data to true'")
class CopyDownTakesOwnership(Port):
    """Copying down claims the host buffer, also an adopted one."""

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        super().copied_down(pointer, pinned, fresh)
        self.own_cpu_data = True


@planted("R23-own-flags", "Caffe ddcdc9d71..e5575cf17: no flag for the device yet")
class PushTakesOwnership(Port):
    """async_gpu_push claims the device buffer, also an adopted one."""

    def pushed(self) -> None:
        super().pushed()
        self.own_gpu_data = True


@planted("R18-external-not-freed", "the same as seen by the destructor")
class ReleasesExternal(Port):
    """Release frees every pointer there is."""

    def release(self) -> None:
        self.own_cpu_data = self.cpu_ptr is not None
        self.own_gpu_data = self.gpu_ptr is not None
        super().release()


@planted("R19-external-is-target", "gt4py: a second buffer behind the exported one")
class ShadowBuffer(Port):
    """Copies down go to a private buffer once external memory was adopted."""

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        super().copied_down(pointer, pinned, fresh)

    def copy_down(self, pointer: Any) -> None:
        if self.cpu_ptr is not None and not self.own_cpu_data and self.size:
            self.shadow = self.host.empty(self.size)
            super().copy_down(self.shadow)
            return
        super().copy_down(pointer)

    shadow: Any = None

    def host_view(self) -> Any:
        shown = self.cpu_ptr if self.shadow is None else self.shadow
        return memoryview(shown).toreadonly()


@planted("R20-null-refused", "CHECK(data) moved below the free")
class ChecksNullTooLate(Port):
    """set_cpu_data(NULL) frees before it refuses."""

    def check_data(self, data: Any) -> None:
        if data is None and self.own_cpu_data:
            self.free_cpu()
            self.own_cpu_data = False
        super().check_data(data)


@planted("R20-null-refused", "CHECK compiled out")
class AcceptsNull(Port):
    """set_cpu_data(NULL) is ignored."""

    def set_cpu_data(self, data: Any) -> None:
        if data is not None or self.closed:
            super().set_cpu_data(data)


@planted("R24-pinned-by-mode", "Caffe b81583493: plain malloc only")
class NeverPinned(Port):
    """Host memory is always pageable."""

    def pinned_now(self) -> bool:
        return False


@planted("R24-pinned-by-mode", "Caffe 7149de51c: cudaMallocHost only")
class AlwaysPinned(Port):
    """Host memory is always page-locked."""

    def pinned_now(self) -> bool:
        return self.device is not None


@planted("R03-allocate-when-needed", "003:29: 'if GPU is used, allocates on the GPU'")
class HostMemoryOnDevice(Port):
    """In GPU mode the host side is reserved on the device as well."""

    def malloc_cpu(self) -> tuple[Any, bool]:
        if self.pinned_now() and self.size and self.gpu_ptr is None:
            self.gpu_ptr, self.own_gpu_data = self.malloc_gpu(), True
        return super().malloc_cpu()


@planted("R25-pinned-frozen", "#3053: the free looks at the mode of the moment")
class FreesByMode(Port):
    """Host memory is freed as the mode says now."""

    def free_cpu(self) -> None:
        if self.size:
            self.allocator(self.pinned_now()).release(self.cpu_ptr)


@planted("R25-pinned-frozen", "000:35: if(use_cuda) tests the pointer, which is never null")
class FlagTestedAsPointer(Port):
    """Host memory is always freed as page-locked."""

    def free_cpu(self) -> None:
        if self.size:
            self.allocator(self.device is not None).release(self.cpu_ptr)


@planted("R26-release-order", "a port with the members the other way round")
class DeviceFreedFirst(Port):
    """Release frees the device side first."""

    def release(self) -> None:
        if self.own_gpu_data:
            self.free_gpu()
            self.own_gpu_data, self.closed = False, True
        super().release()


@planted("R27-release-frees-owned", "KuiperLLama: big buffers are never freed")
class DeviceNeverFreed(Port):
    """Release forgets the device side."""

    def release(self) -> None:
        self.own_gpu_data = False
        super().release()


@planted("R27-release-frees-owned", "a destructor that was not written")
class HostNeverFreed(Port):
    """Release forgets the host side."""

    def release(self) -> None:
        self.own_cpu_data = False
        super().release()


@planted("R27-release-frees-owned", "000:125, #ifndef CPU_ONLTY: cudaFree in a build without CUDA", bench="no device")
class CudaFreeWithoutDevice(Port):
    """Release of a memory without a device reaches for the device."""

    def release(self) -> None:
        super().release()
        self.device.release(self.gpu_ptr)


@planted("R28-freed-once", "KuiperLLama: a double release is counted twice")
class FreedTwice(Port):
    """Release frees the host side twice."""

    def release(self) -> None:
        if self.own_cpu_data:
            self.free_cpu()
        with contextlib.suppress(ValueError):
            super().release()


@planted("R29-allocated-once", "dlib before 19: a new block for every transfer")
class ReallocatesOnCopyDown(Port):
    """Every copy down goes to a newly allocated host block."""

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        super().copied_down(pointer, pinned, fresh)
        if not fresh and self.own_cpu_data and self.size:
            new = self.allocator(pinned).allocate(self.size)
            memoryview(new)[:] = memoryview(self.cpu_ptr)
            self.free_cpu()
            self.cpu_ptr = new


@planted("R31-size-constant", "PR #355: size follows the buffer")
class SizeFollowsBuffer(Port):
    """Adopting a longer buffer makes the memory longer."""

    def adopt_host(self, data: Any) -> Any:
        pointer = super().adopt_host(data)
        self.size = memoryview(data).nbytes
        return pointer
