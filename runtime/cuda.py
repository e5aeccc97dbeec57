"""`CUDADeviceAllocator`: device memory and pinned host memory through CuPy.  The only module that imports it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, InvalidPointerError, NoDeviceError

from .allocator import (
    DeviceAllocator,
    DeviceType,
    HostArray,
    LiveBlocks,
    MemcpyKind,
    check_byte_size,
    check_copy,
    no_room,
)
from .host import CPUDeviceAllocator

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .allocator import Event

__all__ = ["CUDADeviceAllocator", "CUDAPinnedAllocator"]

try:
    # Any: CuPy ships no types.
    cupy: Any = importlib.import_module("cupy")
except ImportError as error:
    raise NoDeviceError(
        f"CUDA needs CuPy, which is not installed: pip install 'syncedmem[cuda12]' or 'syncedmem[cuda13]' ({error})"
    ) from error


class CUDADeviceAllocator(DeviceAllocator):
    """Memory of one NVIDIA GPU; arrays are ``cupy.ndarray``.

    Parameters
    ----------
    ordinal : int
        The CUDA device.
    pool : bool
        Take memory from CuPy's pools, which keep what is released for later, instead of from ``cudaMalloc``
        and ``cudaMallocHost`` directly.

    Attributes
    ----------
    description : str
        The GPU, as its driver names it.

    Raises
    ------
    NoDeviceError
        If there is no driver or no such GPU.
    """

    device_type = DeviceType.CUDA

    def __init__(self, ordinal: int = 0, *, pool: bool = False) -> None:
        count = _device_count()
        if ordinal not in range(count):
            raise NoDeviceError(f"there is no CUDA device {ordinal!r}; {count} found")
        self.ordinal = ordinal
        self._device = cupy.cuda.Device(ordinal)
        self._pool = pool
        self._live = LiveBlocks(self.name)
        self._pinned = CUDAPinnedAllocator(self._device, self.name, pool=pool)
        properties = cupy.cuda.runtime.getDeviceProperties(ordinal)
        gpu = properties["name"].decode()
        self.description = f"{gpu} ({properties['totalGlobalMem'] >> 20} MiB, CuPy {cupy.__version__})"

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        return self._live.add(self._new(size)) if size else None

    def _new(self, size: int) -> Any:
        with self._device:
            try:
                if self._pool:
                    memory = cupy.get_default_memory_pool().malloc(size)
                else:
                    memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
            except (MemoryError, OverflowError) as error:
                raise no_room(self.name, size, error) from error
            except cupy.cuda.runtime.CUDARuntimeError as error:
                if error.status == cupy.cuda.runtime.errorMemoryAllocation:
                    raise no_room(self.name, size, error) from error
                raise
            return cupy.ndarray((size,), cupy.uint8, memptr=memory)

    def release(self, ptr: Any) -> None:
        # cudaFree happens when the last array over the memory goes, so a late reader never dangles.
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
        with self._device:
            if size:
                source = self._address(src, kind in (MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA), "src")
                target = self._address(dest, kind in (MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CUDA), "dest")
                queue = self._current() if stream is None else stream
                # MemcpyKind has the numbers of cudaMemcpyKind.
                cupy.cuda.runtime.memcpyAsync(target, source, size, int(kind), queue.ptr)
                if stream is None:
                    queue.synchronize()
            if need_sync:
                self._device.synchronize()

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        size = check_copy(byte_size, ptr)
        with self._device:
            if size:
                queue = self._current() if stream is None else stream
                cupy.cuda.runtime.memsetAsync(self._address(ptr, True, "ptr"), 0, size, queue.ptr)
                if stream is None:
                    queue.synchronize()
            if need_sync:
                self._device.synchronize()

    def _address(self, ptr: Any, on_device: bool, argument: str) -> int:
        if on_device:
            if not isinstance(ptr, cupy.ndarray) or ptr.device.id != self.ordinal:
                raise InvalidPointerError(self.name, ptr, f"{argument} is not memory of this device")
            return int(ptr.data.ptr)
        if not isinstance(ptr, np.ndarray):
            raise InvalidPointerError(self.name, ptr, f"{argument} is not host memory")
        return cast("int", ptr.__array_interface__["data"][0])

    def _current(self) -> Any:
        """CuPy's current stream, so that copies come after the kernels that somebody launched on it."""
        return cupy.cuda.get_current_stream()

    def empty(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        if size:
            return self._new(size)
        with self._device:
            return cupy.empty(0, cupy.uint8)

    def stream(self) -> Any:
        with self._device:
            return cupy.cuda.Stream(non_blocking=True)

    def check_stream(self, stream: object) -> None:
        kinds = (cupy.cuda.Stream, cupy.cuda.ExternalStream)
        # The null streams of CUDA belong to whatever device is current and say -1.
        if not isinstance(stream, kinds) or getattr(stream, "device_id", -1) not in (-1, self.ordinal):
            raise InvalidArgumentError("stream", stream, f"a cupy.cuda.Stream of {self.name}")

    def adopt(self, buffer: object, byte_size: int) -> Any:
        if not isinstance(buffer, cupy.ndarray):
            raise ValueError(f"it is not a cupy.ndarray, and {self.name} is needed")
        array = cast("Any", buffer)
        if array.device.id != self.ordinal:
            raise ValueError(f"it is memory of CUDA device {array.device.id}, and {self.name} is needed")
        if not array.flags.c_contiguous:
            raise ValueError("it is not contiguous")
        if array.nbytes < byte_size:
            raise ValueError(f"it has {array.nbytes} bytes, and {byte_size} are needed")
        with self._device:
            return cupy.ndarray((byte_size,), cupy.uint8, memptr=array.data)

    def overlaps(self, first: Any, second: Any) -> bool:
        return bool(
            first.data.ptr < second.data.ptr + second.nbytes and second.data.ptr < first.data.ptr + first.nbytes
        )

    def record(self, stream: Any) -> Event:
        with self._device:
            event = cupy.cuda.Event(block=True, disable_timing=True)
            event.record(stream)
        return cast("Event", event)

    def order_after(self, event: Event) -> None:
        with self._device:
            self._current().wait_event(event)

    def pinned_host(self) -> CUDAPinnedAllocator:
        return self._pinned

    def using(self) -> AbstractContextManager[object]:
        return cast("AbstractContextManager[object]", self._device)

    def current_ordinal(self) -> int:
        return int(cupy.cuda.runtime.getDevice())


class CUDAPinnedAllocator(CPUDeviceAllocator):
    """Page-locked host memory from ``cudaMallocHost``."""

    def __init__(self, device: Any, where: str, *, pool: bool) -> None:
        self._where = where
        self._device = device
        self._pool = pool
        super().__init__()

    @property
    def name(self) -> str:
        return f"pinned host memory of {self._where}"

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        with self._device:
            try:
                if self._pool:
                    memory = cupy.cuda.alloc_pinned_memory(size)
                else:
                    memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
            except (MemoryError, OverflowError) as error:
                raise no_room(self.name, size, error) from error
            except cupy.cuda.runtime.CUDARuntimeError as error:
                if error.status == cupy.cuda.runtime.errorMemoryAllocation:
                    raise no_room(self.name, size, error) from error
                raise
        return cast("HostArray", self._live.add(np.frombuffer(memory, np.uint8, size)))


def _device_count() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDeviceError(f"CuPy {cupy.__version__} is installed, but CUDA cannot be used: {error}") from error
