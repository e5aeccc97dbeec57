"""Wrong ownership: adoption, flags, kinds of host memory, and the order and number of frees."""

from __future__ import annotations

import contextlib
from typing import Any

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R14-adopt-host", "a port that takes a const buffer")
class HostAdoptionCopies(HandmadeMemory):
    """set_cpu_data copies the bytes of the buffer instead of adopting it."""

    def adopt_host(self, data: Any) -> Any:
        pointer = super().adopt_host(data)
        return self.host.adopt(bytearray(memoryview(pointer)), self.size)


@seeded_bug("R14-adopt-host", "a forgotten assignment")
class HostAdoptionKeepsHead(HandmadeMemory):
    """set_cpu_data keeps the head at SYNCED."""

    def take_cpu(self, pointer: Any) -> None:
        head = self.head
        super().take_cpu(pointer)
        self.head = head if head is SyncedHead.SYNCED else self.head


@seeded_bug("R15-adopt-device", "Caffe before e5575cf17 had to copy")
class DeviceAdoptionCopies(HandmadeMemory):
    """set_gpu_data copies the bytes of the buffer instead of adopting it."""

    def adopt_device(self, data: Any) -> Any:
        pointer = super().adopt_device(data)
        copy = self.device.empty(self.size)
        if self.size:
            self.device.inner.memcpy(pointer, copy, self.size, 3)
        return copy


@seeded_bug("R15-adopt-device", "a forgotten assignment")
class DeviceAdoptionKeepsHead(HandmadeMemory):
    """set_gpu_data keeps the head at SYNCED."""

    def take_gpu(self, pointer: Any) -> None:
        head = self.head
        super().take_gpu(pointer)
        self.head = head if head is SyncedHead.SYNCED else self.head


@seeded_bug("R16-adopt-keeps-other", "#5822: an attempt to avoid a leak at SYNCED")
class HostAdoptionFreesDevice(HandmadeMemory):
    """set_cpu_data frees the device side too."""

    def free_before_adopting_cpu(self) -> None:
        super().free_before_adopting_cpu()
        if self.own_gpu_data:
            self.free_gpu()
            self.gpu_ptr, self.own_gpu_data = None, False


@seeded_bug("R16-adopt-keeps-other", "H8, corrected by a copy back")
class HostAdoptionSavesDevice(HandmadeMemory):
    """set_cpu_data copies the device side down before it frees its own host side."""

    def free_before_adopting_cpu(self) -> None:
        if self.head is SyncedHead.HEAD_AT_GPU and self.cpu_ptr is not None:
            self.copy_down(self.cpu_ptr)
        super().free_before_adopting_cpu()


@seeded_bug("R17-adopt-frees-owned", "KuiperLLama Buffer::allocate overwrites its pointer")
class HostAdoptionLeaks(HandmadeMemory):
    """set_cpu_data does not free its own host memory."""

    def free_before_adopting_cpu(self) -> None:
        pass


@seeded_bug("R17-adopt-frees-owned", "KuiperLLama Buffer::allocate, on the device")
class DeviceAdoptionLeaks(HandmadeMemory):
    """set_gpu_data does not free its own device memory."""

    def free_before_adopting_gpu(self) -> None:
        pass


@seeded_bug("R18-external-not-freed", "syncedmem.cpp:102 misread: 'frees the memory originally allocated'")
class FreesExternalHost(HandmadeMemory):
    """set_cpu_data frees any host memory, also adopted memory."""

    def free_before_adopting_cpu(self) -> None:
        if self.cpu_ptr is not None:
            self.free_cpu()


@seeded_bug("R18-external-not-freed", "syncedmem.cpp:125 misread: the same on the device")
class FreesExternalDevice(HandmadeMemory):
    """set_gpu_data frees any device memory, also adopted memory."""

    def free_before_adopting_gpu(self) -> None:
        if self.gpu_ptr is not None:
            self.free_gpu()


@seeded_bug("R23-own-flags", "syncedmem.hpp:85 misread: 'whether there is CPU data'")
class OwnershipAsExistence(HandmadeMemory):
    """own_cpu_data is true whenever there is host memory."""

    def take_cpu(self, pointer: Any) -> None:
        super().take_cpu(pointer)
        self.own_cpu_data = True


@seeded_bug("R23-own-flags", "syncedmem.cpp:52 misread: copying down 'sets own_cpu_data to true'")
class CopyDownTakesOwnership(HandmadeMemory):
    """After a copy down the host buffer counts as owned, also an adopted one."""

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        super().copied_down(pointer, pinned, fresh)
        self.own_cpu_data = True


@seeded_bug("R23-own-flags", "Caffe ddcdc9d71..e5575cf17: no flag for the device yet")
class PushTakesOwnership(HandmadeMemory):
    """After a push the device buffer counts as owned, also an adopted one."""

    def pushed(self) -> None:
        super().pushed()
        self.own_gpu_data = True


@seeded_bug("R18-external-not-freed", "the same mistake in the destructor")
class ReleasesExternal(HandmadeMemory):
    """Release frees every pointer, also adopted ones."""

    def release(self) -> None:
        self.own_cpu_data = self.cpu_ptr is not None
        self.own_gpu_data = self.gpu_ptr is not None
        super().release()


@seeded_bug("R19-external-is-target", "gt4py: a second buffer behind the exported one")
class ShadowBuffer(HandmadeMemory):
    """After external memory was adopted, copies down go to a private buffer."""

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


@seeded_bug("R20-null-refused", "CHECK(data) moved after the free")
class ChecksNullTooLate(HandmadeMemory):
    """set_cpu_data(NULL) frees before it refuses."""

    def check_data(self, data: Any) -> None:
        if data is None and self.own_cpu_data:
            self.free_cpu()
            self.own_cpu_data = False
        super().check_data(data)


@seeded_bug("R20-null-refused", "CHECK compiled out")
class AcceptsNull(HandmadeMemory):
    """set_cpu_data(NULL) is ignored."""

    def set_cpu_data(self, data: Any) -> None:
        if data is not None or self.closed:
            super().set_cpu_data(data)


@seeded_bug("R24-pinned-by-mode", "Caffe b81583493: plain malloc only")
class NeverPinned(HandmadeMemory):
    """Host memory is always pageable."""

    def pinned_now(self) -> bool:
        return False


@seeded_bug("R24-pinned-by-mode", "Caffe 7149de51c: cudaMallocHost only")
class AlwaysPinned(HandmadeMemory):
    """Host memory is always page-locked."""

    def pinned_now(self) -> bool:
        return self.device is not None


@seeded_bug("R03-allocate-when-needed", "syncedmem.hpp:21-25 misread: 'if GPU is used, allocates on the GPU'")
class HostMemoryOnDevice(HandmadeMemory):
    """In GPU mode the device side is allocated together with the host side."""

    def malloc_cpu(self) -> tuple[Any, bool]:
        if self.pinned_now() and self.size and self.gpu_ptr is None:
            self.gpu_ptr, self.own_gpu_data = self.malloc_gpu(), True
        return super().malloc_cpu()


@seeded_bug("R25-pinned-frozen", "#3053: the free depends on the current mode")
class FreesByMode(HandmadeMemory):
    """Host memory is freed as the current mode says."""

    def free_cpu(self) -> None:
        if self.size:
            self.allocator(self.pinned_now()).release(self.cpu_ptr)


@seeded_bug("R25-pinned-frozen", "syncedmem.hpp:38 miscopied: if(use_cuda) tests a pointer, which is never null")
class FlagTestedAsPointer(HandmadeMemory):
    """Host memory is always freed as page-locked."""

    def free_cpu(self) -> None:
        if self.size:
            self.allocator(self.device is not None).release(self.cpu_ptr)


@seeded_bug("R26-release-order", "a port with the members in reverse order")
class DeviceFreedFirst(HandmadeMemory):
    """Release frees the device side first."""

    def release(self) -> None:
        if self.own_gpu_data:
            self.free_gpu()
            self.own_gpu_data, self.closed = False, True
        super().release()


@seeded_bug("R27-release-frees-owned", "KuiperLLama: big buffers are never freed")
class DeviceNeverFreed(HandmadeMemory):
    """Release does not free the device side."""

    def release(self) -> None:
        self.own_gpu_data = False
        super().release()


@seeded_bug("R27-release-frees-owned", "a destructor that was not written")
class HostNeverFreed(HandmadeMemory):
    """Release does not free the host side."""

    def release(self) -> None:
        self.own_cpu_data = False
        super().release()


@seeded_bug(
    "R27-release-frees-owned",
    "syncedmem.cpp:32 miscopied, #ifndef CPU_ONLTY: cudaFree in a build without CUDA",
    shows_on="no device",
)
class CudaFreeWithoutDevice(HandmadeMemory):
    """Release of a memory without a device calls the device."""

    def release(self) -> None:
        super().release()
        self.device.release(self.gpu_ptr)


@seeded_bug("R28-freed-once", "KuiperLLama: a double release is counted twice")
class FreedTwice(HandmadeMemory):
    """Release frees the host side twice."""

    def release(self) -> None:
        if self.own_cpu_data:
            self.free_cpu()
        with contextlib.suppress(ValueError):
            super().release()


@seeded_bug("R29-allocated-once", "dlib before 19: a new block for every transfer")
class ReallocatesOnCopyDown(HandmadeMemory):
    """Every copy down goes to a newly allocated host block."""

    def copied_down(self, pointer: Any, pinned: bool, fresh: bool) -> None:
        super().copied_down(pointer, pinned, fresh)
        if not fresh and self.own_cpu_data and self.size:
            new = self.allocator(pinned).allocate(self.size)
            memoryview(new)[:] = memoryview(self.cpu_ptr)
            self.free_cpu()
            self.cpu_ptr = new


@seeded_bug("R31-size-constant", "PR #355: size follows the buffer")
class SizeFollowsBuffer(HandmadeMemory):
    """Adopting a longer buffer makes the memory longer."""

    def adopt_host(self, data: Any) -> Any:
        pointer = super().adopt_host(data)
        self.size = memoryview(data).nbytes
        return pointer
