"""Wrong adoptions: buffers that should be refused, and buffers that are copied or not used as they are."""

from __future__ import annotations

from typing import Any

from syncedmem.model import SyncedHead

from ..registry import seeded_bug
from .handmade import HandmadeMemory


@seeded_bug("R35-own-buffer-refused", "H5: use after free in Caffe")
class AdoptsOwnHostBuffer(HandmadeMemory):
    """set_cpu_data accepts the memory's own host buffer."""

    def adopt_host(self, data: Any) -> Any:
        return self.host.adopt(data, self.size)


@seeded_bug("R35-own-buffer-refused", "H5, on the device")
class AdoptsOwnDeviceBuffer(HandmadeMemory):
    """set_gpu_data accepts the memory's own device buffer."""

    def adopt_device(self, data: Any) -> Any:
        return self.device.adopt(data, self.size)


@seeded_bug("R36-too-small-refused", "H6: Caffe does not know the sizes of external buffers")
class AdoptsTooSmall(HandmadeMemory):
    """set_cpu_data accepts a buffer that is too small."""

    def adopt_host(self, data: Any) -> Any:
        if isinstance(data, bytearray) and len(data) < self.size:
            return self.host.empty(self.size)
        return super().adopt_host(data)


@seeded_bug("R37-read-only-refused", "H6: const is cast away")
class AdoptsReadOnly(HandmadeMemory):
    """set_cpu_data accepts a read-only buffer."""

    def adopt_host(self, data: Any) -> Any:
        return super().adopt_host(bytearray(data) if isinstance(data, bytes) else data)


@seeded_bug("R38-not-contiguous-refused", "np.ascontiguousarray in a wrapper: writes to a temporary are lost")
class AdoptsStrided(HandmadeMemory):
    """set_cpu_data makes a copy of a buffer that is not contiguous."""

    def adopt_host(self, data: Any) -> Any:
        return super().adopt_host(data if getattr(data, "contiguous", True) else bytearray(data))


@seeded_bug("R39-wrong-kind-refused", "pyamrex#454: pinned host memory used as device memory")
class AdoptsHostAsDevice(HandmadeMemory):
    """set_gpu_data accepts host memory, and copies it."""

    def adopt_device(self, data: Any) -> Any:
        if isinstance(data, bytearray):
            return self.device.empty(self.size)
        return super().adopt_device(data)


@seeded_bug("R35-own-buffer-refused", "H5: a check that depends on the head")
class AdoptsOwnStaleHostBuffer(HandmadeMemory):
    """set_cpu_data accepts the memory's own host buffer if it is stale."""

    def adopt_host(self, data: Any) -> Any:
        stale = self.head is SyncedHead.HEAD_AT_GPU
        return self.host.adopt(data, self.size) if stale else super().adopt_host(data)


@seeded_bug("R35-own-buffer-refused", "H5: a check that depends on the head, on the device")
class AdoptsOwnStaleDeviceBuffer(HandmadeMemory):
    """set_gpu_data accepts the memory's own device buffer if it is stale."""

    def adopt_device(self, data: Any) -> Any:
        stale = self.head is SyncedHead.HEAD_AT_CPU
        return self.device.adopt(data, self.size) if stale else super().adopt_device(data)


@seeded_bug("R35-own-buffer-refused", "H5: objects are compared, not addresses")
class KnowsItsHostViewsOnly(HandmadeMemory):
    """set_cpu_data recognises the memory's own buffer only through the object of its views."""

    def adopt_host(self, data: Any) -> Any:
        own = isinstance(data, memoryview) and data.obj is self.cpu_ptr
        return super().adopt_host(data) if own else self.host.adopt(data, self.size)


@seeded_bug("R35-own-buffer-refused", "H5: objects are compared, not addresses; on the device")
class KnowsItsDeviceViewsOnly(HandmadeMemory):
    """set_gpu_data recognises the memory's own buffer only by the last view that was returned."""

    seen: Any = None

    def mutable_gpu_data(self) -> Any:
        self.seen = super().mutable_gpu_data()
        return self.seen

    def adopt_device(self, data: Any) -> Any:
        return super().adopt_device(data) if data is self.seen else self.device.adopt(data, self.size)


@seeded_bug("R36-too-small-refused", "#5822: the old buffer is measured, so only memory of our own")
class AdoptsTooSmallAgain(HandmadeMemory):
    """set_cpu_data accepts a buffer that is too small after another buffer was adopted."""

    def adopt_host(self, data: Any) -> Any:
        adopted = self.cpu_ptr is not None and not self.own_cpu_data
        if adopted and isinstance(data, bytearray) and len(data) < self.size:
            return self.host.empty(self.size)
        return super().adopt_host(data)


@seeded_bug("R36-too-small-refused", "#5822, on the device")
class AdoptsTooSmallDeviceFirst(HandmadeMemory):
    """set_gpu_data accepts a buffer that is too small as long as there is no device memory."""

    def adopt_device(self, data: Any) -> Any:
        if self.gpu_ptr is None and isinstance(getattr(data, "size", None), int) and data.size == self.size - 1:
            return self.device.empty(self.size)
        return super().adopt_device(data)


@seeded_bug("R37-read-only-refused", "H6: the buffer behind a const view")
class AdoptsBehindReadOnlyView(HandmadeMemory):
    """set_cpu_data adopts the writable buffer behind a read-only view."""

    def adopt_host(self, data: Any) -> Any:
        hidden = isinstance(data, memoryview) and data.readonly and isinstance(data.obj, bytearray)
        return super().adopt_host(data.obj if hidden else data)


@seeded_bug("R38-not-contiguous-refused", "np.frombuffer accepts either order, PyBUF_ANY_CONTIGUOUS")
class AdoptsColumns(HandmadeMemory):
    """set_cpu_data makes a copy of a buffer that is contiguous by columns."""

    def adopt_host(self, data: Any) -> Any:
        by_columns = getattr(data, "ndim", 1) > 1 and not memoryview(data).c_contiguous
        return super().adopt_host(bytearray(memoryview(data).tobytes()) if by_columns else data)


@seeded_bug("R38-not-contiguous-refused", "a check only where memory is not allocated")
class AdoptsStridedWhenFresh(HandmadeMemory):
    """set_cpu_data makes a copy of a buffer that is not contiguous as long as there is no host memory."""

    def adopt_host(self, data: Any) -> Any:
        strided = self.cpu_ptr is None and not getattr(data, "contiguous", True)
        return super().adopt_host(bytearray(data) if strided else data)


@seeded_bug("R39-wrong-kind-refused", "unified memory: a pointer is a pointer")
class AdoptsDeviceAsHost(HandmadeMemory):
    """set_cpu_data accepts device memory, and copies it, if the host side is stale."""

    def adopt_host(self, data: Any) -> Any:
        if self.head is SyncedHead.HEAD_AT_GPU and type(data) is type(self.gpu_ptr):
            return self.host.empty(self.size)
        return super().adopt_host(data)


@seeded_bug("R39-wrong-kind-refused", "pyamrex#454, at the second adoption")
class AdoptsHostAsDeviceAgain(HandmadeMemory):
    """set_gpu_data accepts host memory, and copies it, after a device buffer was adopted."""

    def adopt_device(self, data: Any) -> Any:
        if self.gpu_ptr is not None and not self.own_gpu_data and isinstance(data, bytearray):
            return self.device.empty(self.size)
        return super().adopt_device(data)


@seeded_bug("R14-adopt-host", "a setter that compares first: if (cpu_ptr_ == data) return")
class HostReadoptionIgnored(HandmadeMemory):
    """set_cpu_data does nothing if it gets the buffer that it already has."""

    last: Any = None

    def set_cpu_data(self, data: Any) -> None:
        if data is None or self.closed or data is not self.last:
            super().set_cpu_data(data)
            self.last = data


@seeded_bug("R15-adopt-device", "H5 overdone: every overlapping buffer is refused")
class DeviceReadoptionRefused(HandmadeMemory):
    """set_gpu_data refuses the buffer that it already has, although the memory does not own it."""

    def adopt_device(self, data: Any) -> Any:
        pointer = super().adopt_device(data)
        if self.gpu_ptr is not None and self.size and self.device.overlaps(pointer, self.gpu_ptr):
            self.refuse("the same buffer")
        return pointer


@seeded_bug("R14-adopt-host", "PyBuffer_GetPointer forgotten: view.obj is the whole buffer")
class HostAdoptionIgnoresOffset(HandmadeMemory):
    """set_cpu_data adopts the beginning of a buffer when it gets another part of it."""

    def adopt_host(self, data: Any) -> Any:
        inside = isinstance(data, memoryview) and isinstance(data.obj, bytearray) and data.contiguous
        inside = inside and not data.readonly and data.nbytes >= self.size
        return super().adopt_host(data.obj if inside else data)


@seeded_bug("R14-adopt-host", "len() counts items and rows; #5822 counts elements")
class CountsItems(HandmadeMemory):
    """set_cpu_data refuses a buffer with fewer items, or rows, than the memory has bytes."""

    def adopt_host(self, data: Any) -> Any:
        if hasattr(data, "__len__") and len(data) < self.size:
            self.refuse("too small")
        return super().adopt_host(data)


@seeded_bug("R14-adopt-host", "np.asarray(data, 'uint8') converts values, and makes a copy")
class HostAdoptionConverts(HandmadeMemory):
    """set_cpu_data makes a copy of a buffer whose elements are not bytes."""

    def adopt_host(self, data: Any) -> Any:
        pointer = super().adopt_host(data)
        doubles = getattr(data, "typecode", "B") == "d"
        return self.host.adopt(bytearray(pointer), self.size) if doubles else pointer


@seeded_bug("R14-adopt-host", "ravel(), which sometimes copies")
class HostAdoptionFlattens(HandmadeMemory):
    """set_cpu_data makes a copy of a buffer of several dimensions."""

    def adopt_host(self, data: Any) -> Any:
        pointer = super().adopt_host(data)
        return self.host.adopt(bytearray(pointer), self.size) if getattr(data, "ndim", 1) > 1 else pointer


@seeded_bug("R04-exact-size", "H6: the rest of a longer buffer is not ours")
class ClearsHostTail(HandmadeMemory):
    """Copies down clear the rest of a longer adopted buffer."""

    tail: Any = None

    def set_cpu_data(self, data: Any) -> None:
        super().set_cpu_data(data)
        self.tail = memoryview(data).cast("B")[self.size :]

    def copy_down(self, pointer: Any) -> None:
        super().copy_down(pointer)
        if self.tail is not None and not self.own_cpu_data:
            self.tail[:] = bytes(len(self.tail))


@seeded_bug("R04-exact-size", "H6, on the device")
class ClearsDeviceTail(HandmadeMemory):
    """Copies up clear the rest of a longer adopted buffer."""

    tail: Any = None

    def set_gpu_data(self, data: Any) -> None:
        super().set_gpu_data(data)
        self.tail = data[self.size :]

    def copy_up(self, pointer: Any) -> None:
        super().copy_up(pointer)
        if self.tail is not None and not self.own_gpu_data:
            self.device.inner.memset_zero(self.tail, len(self.tail))
