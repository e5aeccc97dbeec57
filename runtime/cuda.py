"""`CUDADeviceAllocator`: device memory and pinned host memory through CuPy.  The only module that imports it."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, NoDeviceError
from syncedmem.model.packages import install

from .allocator import DeviceAllocator, DeviceType, MemcpyKind, check_event, check_kind
from .host import CPUDeviceAllocator
from .pointers import FILLED, HostArray, LiveBlocks, check_byte_size, check_copy, check_host, check_ordinal, no_room
from .vectors.cuda import CUDAVectors

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from .allocator import Event
    from .pointers import End

__all__ = ["CUDADeviceAllocator", "CUDAPinnedAllocator"]

try:
    # Any: CuPy ships no types.
    cupy: Any = importlib.import_module("cupy")
except ImportError as error:
    raise NoDeviceError(
        f"CUDA needs CuPy, which is not installed: {install('cuda12')} or {install('cuda13')} ({error})"
    ) from error


_NO_ROOM = (1, 2)
"""What CUDA says of a size beyond all memory, ``cudaErrorInvalidValue``, and beyond what is left,
``cudaErrorMemoryAllocation``; CuPy exports neither."""


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
        self.ordinal = check_ordinal(ordinal, "CUDA", _device_count())
        self._pool = pool
        self._live = LiveBlocks(self.name)
        self._vectors = CUDAVectors(self.name, self.ordinal, cupy)
        self._pinned = CUDAPinnedAllocator(self, pool=pool)
        properties = cupy.cuda.runtime.getDeviceProperties(self.ordinal)
        gpu = properties["name"].decode()
        self.description = f"{gpu} ({properties['totalGlobalMem'] >> 20} MiB, CuPy {cupy.__version__})"

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        ptr = self._new(size)
        self._live.add(ptr)
        return ptr

    def _new(self, size: int) -> Any:
        with self.using(), _room(self.name, size):
            if self._pool:
                memory = cupy.get_default_memory_pool().malloc(size)
            else:
                memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
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
        kind = check_kind(kind)
        source = self._address(src, kind.source)
        target = self._address(dest, kind.target)
        size = check_copy(byte_size, src, dest)
        with self.using(), self._queued(stream, need_sync) as queue:
            if size:
                # MemcpyKind has the numbers of cudaMemcpyKind.
                cupy.cuda.runtime.memcpyAsync(target, source, size, int(kind), queue.ptr)

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        target = self._address(ptr, FILLED)
        size = check_copy(byte_size, ptr)
        with self.using(), self._queued(stream, need_sync) as queue:
            if size:
                cupy.cuda.runtime.memsetAsync(target, 0, size, queue.ptr)

    @contextmanager
    def _queued(self, stream: Any, need_sync: bool) -> Generator[Any]:
        """The stream that a call works on, and afterwards the wait that goes with it."""
        if stream is not None:
            self.check_stream(stream)
        # CuPy's current stream, so that copies come after the kernels that somebody launched on it.
        queue = cupy.cuda.get_current_stream() if stream is None else stream
        yield queue
        if stream is None:
            queue.synchronize()
        if need_sync:
            cupy.cuda.runtime.deviceSynchronize()

    def _address(self, ptr: Any, end: End) -> int:
        """Where an end of a copy is, checked; 0 for null."""
        if ptr is None or not end.on_device:
            array = check_host(self.name, ptr, end)
            return 0 if array is None else array.ctypes.data
        if not isinstance(ptr, cupy.ndarray) or ptr.device.id != self.ordinal:
            raise end.misplaced(self.name, ptr)
        array = ptr
        if array.dtype != cupy.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
            raise end.refused(self.name, ptr, "not a contiguous row of bytes")
        return int(array.data.ptr)

    def empty(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        if size:
            return self._new(size)
        with self.using():
            return cupy.empty(0, cupy.uint8)

    def stream(self) -> Any:
        with self.using():
            return cupy.cuda.Stream(non_blocking=True)

    def check_stream(self, stream: object) -> None:
        kinds = (cupy.cuda.Stream, cupy.cuda.ExternalStream)
        # The null streams of CUDA belong to whatever device is current and say -1.
        if not isinstance(stream, kinds) or getattr(stream, "device_id", -1) not in (-1, self.ordinal):
            raise InvalidArgumentError("stream", stream, f"a cupy.cuda.Stream of {self.name}")

    def adopt(self, buffer: object, byte_size: int) -> Any:
        if not isinstance(buffer, cupy.ndarray):
            raise ValueError(f"it is not a cupy.ndarray, and {self.name} is needed")  # noqa: TRY004 -- a ValueError is what adopt() promises
        array, size = cast("Any", buffer), check_byte_size(byte_size)
        if array.device.id != self.ordinal:
            raise ValueError(f"it is memory of CUDA device {array.device.id}, and {self.name} is needed")
        if not array.flags.c_contiguous:
            raise ValueError("it is not contiguous")
        if array.nbytes < size:
            raise ValueError(f"it has {array.nbytes} bytes, and {size} are needed")
        with self.using():
            return cupy.ndarray((size,), cupy.uint8, memptr=array.data)

    def overlaps(self, first: Any, second: Any) -> bool:
        if first is None or second is None:
            return False
        return bool(
            first.data.ptr < second.data.ptr + second.nbytes and second.data.ptr < first.data.ptr + first.nbytes
        )

    def record(self, stream: Any) -> Event:
        self.check_stream(stream)
        with self.using():
            event = cupy.cuda.Event(block=True, disable_timing=True)
            event.record(stream)
        return cast("Event", event)

    def order_after(self, event: Event) -> None:
        check_event(event, cupy.cuda.Event, self.name)
        with self.using():
            cupy.cuda.get_current_stream().wait_event(event)

    def vectors(self) -> CUDAVectors:
        return self._vectors

    def pinned_host(self) -> CUDAPinnedAllocator:
        return self._pinned

    def using(self) -> AbstractContextManager[object]:
        # A new one each time: where it remembers in itself what to restore, threads must not share it.
        return cast("AbstractContextManager[object]", cupy.cuda.Device(self.ordinal))

    def current_ordinal(self) -> int:
        return int(cupy.cuda.runtime.getDevice())


class CUDAPinnedAllocator(CPUDeviceAllocator):
    """Page-locked host memory from ``cudaHostAlloc``."""

    def __init__(self, device: CUDADeviceAllocator, *, pool: bool) -> None:
        self._device = device
        self._pool = pool
        super().__init__()

    @property
    def name(self) -> str:
        return f"pinned host memory of {self._device.name}"

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        with self._device.using(), _room(self.name, size):
            if self._pool:
                memory = cupy.cuda.alloc_pinned_memory(size)
            else:
                memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
            ptr: HostArray = np.frombuffer(memory, np.uint8, size)
        self._live.add(ptr)
        return ptr


@contextmanager
def _room(where: str, size: int) -> Generator[None]:
    """Turn what CuPy and CUDA raise when there is no room into one error."""
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as error:  # ValueError: a pool rounded beyond what C can count
        raise no_room(where, size, error) from error
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status in _NO_ROOM:
            raise no_room(where, size, error) from error
        raise


def _device_count() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDeviceError(f"CuPy {cupy.__version__} is installed, but CUDA cannot be used: {error}") from error


def imported(array: Any) -> Any:
    """Somebody's array on a GPU as a ``cupy.ndarray`` over the same memory."""
    if isinstance(array, cupy.ndarray):
        return array
    return cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy.from_dlpack(array)
