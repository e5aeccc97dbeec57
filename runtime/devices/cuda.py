"""`CUDADeviceAllocator`: device memory and pinned host memory through CuPy.  The only module that imports CuPy."""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from contextlib import contextmanager, suppress
from ctypes import addressof, c_char
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import InvalidArgumentError, MissingPackageError, NoDeviceError
from syncedmem.model.interface import DeviceType, MemcpyKind
from syncedmem.model.packages import install, why

from ..allocators.base import SOURCES, TARGETS, DeviceAllocator, check_event, check_kind
from ..allocators.failures import adopting
from ..allocators.forking import Home
from ..allocators.pointers import (
    FILLED,
    HostArray,
    LiveBlocks,
    as_flag,
    check_adoptable_size,
    check_byte_size,
    check_copy,
    check_host,
    check_ordinal,
    no_room,
)
from .compilers import Compiler
from .cuda_arithmetic import CUDAArithmetic
from .host import CPUDeviceAllocator

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from syncedmem.model.interface import Event

    from ..allocators.pointers import End

__all__ = ["ALLOCATOR", "CUDADeviceAllocator", "CUDAPinnedAllocator", "is_full"]

try:
    # Any: CuPy has no types.
    cupy: Any = importlib.import_module("cupy")
except Exception as _error:
    absent = "which is not installed" if isinstance(_error, ImportError) else "which cannot be imported"
    raise NoDeviceError(
        f"CUDA needs CuPy, {absent}: {install('cuda12')} or {install('cuda13')} ({why(_error)})"
    ) from _error


_NO_ROOM = (1, 2)
"""CUDA's codes for a size beyond all memory (``cudaErrorInvalidValue``) and beyond the free memory
(``cudaErrorMemoryAllocation``); CuPy exports neither."""

_NOT_READY = 600
"""CUDA's code for an event that has not happened yet (``cudaErrorNotReady``)."""


_PROHIBITED = 2
"""CUDA's ``cudaComputeModeProhibited``, which CuPy does not export."""


_UNREGISTERED = 0
"""CUDA's ``cudaMemoryTypeUnregistered``, which CuPy does not export."""


class CUDADeviceAllocator(DeviceAllocator):
    """Memory of one NVIDIA GPU; arrays are ``cupy.ndarray``.

    Parameters
    ----------
    ordinal : int
        The number of the CUDA device.
    pool : bool
        Take memory from CuPy's pools, which keep released memory for later, instead of directly from ``cudaMalloc`` and
        ``cudaMallocHost``.

    Attributes
    ----------
    description : str
        The name of the GPU, as its driver tells it.
    prohibited : bool
        Whether its compute mode is "prohibited" (``nvidia-smi --compute-mode``).  Then ``device="auto"`` does not use
        it.

    Raises
    ------
    NoDeviceError
        If there is no driver or no such GPU.
    InvalidArgumentError
        If `ordinal` is no integer.
    """

    device_type = DeviceType.CUDA

    def __init__(self, ordinal: int = 0, *, pool: bool = False) -> None:
        self.ordinal: int = check_ordinal(ordinal, "CUDA", _device_count())
        self._pool = as_flag(pool, "pool")
        self._home = Home(self.name)
        self._live = LiveBlocks(self.name)
        self._marks = threading.local()
        self._pinned = CUDAPinnedAllocator(self, pool=pool)
        properties = cupy.cuda.runtime.getDeviceProperties(self.ordinal)
        self._arithmetic = CUDAArithmetic(self.name, self.ordinal, properties["multiProcessorCount"], cupy)
        gpu = properties["name"].decode()
        mode = cupy.cuda.runtime.deviceGetAttribute(cupy.cuda.runtime.cudaDevAttrComputeMode, self.ordinal)
        self.prohibited: Any = mode == _PROHIBITED
        self.description: str = f"{gpu} ({properties['totalGlobalMem'] >> 20} MiB, CuPy {cupy.__version__})"

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def allocate(self, byte_size: int) -> Any:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        ptr = self._new(size)
        self._live.blocks[id(ptr)] = ptr, ptr.data.ptr
        return ptr

    def _new(self, size: int) -> Any:
        with self.using(), _room(self.name, size):
            if self._pool:
                memory = cupy.get_default_memory_pool().malloc(size)
            else:
                memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0)
            return cupy.ndarray((size,), cupy.uint8, memptr=memory)

    def release(self, ptr: Any) -> None:
        # cudaFree is called when the last array over the memory is gone, so a late reader never dangles.
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
        source = self._address(src, SOURCES[kind])
        target = self._address(dest, TARGETS[kind])
        size = check_copy(byte_size, src, dest)
        # The numbers of MemcpyKind are those of cudaMemcpyKind.
        self._perform(cupy.cuda.runtime.memcpyAsync, (target, source, size, int(kind)), size, stream, need_sync)

    def memset_zero(self, ptr: Any, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        target = self._address(ptr, FILLED)
        size = check_copy(byte_size, ptr)
        self._perform(cupy.cuda.runtime.memsetAsync, (target, 0, size), size, stream, need_sync)

    def _perform(
        self, operation: Callable[..., object], arguments: tuple[int, ...], size: int, stream: Any, need_sync: bool
    ) -> None:
        """Queue an operation after all work on the current stream, and wait as the caller wants."""
        self._home.check()
        need_sync = as_flag(need_sync, "need_sync")
        if stream is not None:
            self.check_stream(stream)
        queue = None
        try:
            # What `_Current` does, written out: every copy comes here, and its object takes as long as a driver call.
            before = cupy.cuda.runtime.getDevice()
            if before != self.ordinal:
                cupy.cuda.runtime.setDevice(self.ordinal)
            try:
                current = cupy.cuda.get_current_stream(self.ordinal)
                if size:
                    queue = current if stream is None else stream
                    if stream is not None:
                        self._order(stream, current)
                    operation(*arguments, queue.ptr)
                if stream is None:
                    current.synchronize()
                if need_sync:
                    cupy.cuda.runtime.deviceSynchronize()
            finally:
                if before != self.ordinal:
                    cupy.cuda.runtime.setDevice(before)
        except BaseException:
            # The operation may be queued already, but the caller assumes that a call that raises has queued nothing.
            if queue is not None:
                with suppress(Exception), self.using():
                    queue.synchronize()
            raise

    def _order(self, stream: Any, current: Any) -> None:
        """Make a stream wait for the work on the current stream, which may still use the memory to be written."""
        if stream.ptr == current.ptr:
            return
        if not hasattr(self._marks, "event"):  # one event for each thread; CUDA lets it be recorded again at any time
            self._marks.event = cupy.cuda.Event(disable_timing=True)
        self._marks.event.record(current)
        stream.wait_event(self._marks.event)

    def _address(self, ptr: Any, end: End) -> int:
        """The address of one end of a copy, after a check; 0 for None."""
        # What this has allocated itself needs no other check; and the address of an array takes a microsecond.
        known = (self._live.blocks if end.on_device else self._pinned.blocks).get(id(ptr))
        if known is not None and (end.on_device or not end.written or ptr.flags.writeable):
            return int(known[1])
        if ptr is None or not end.on_device:
            array = check_host(self, ptr, end)
            return 0 if array is None else _start_of(array)
        if not self._is_mine(ptr):
            raise end.misplaced(self, ptr)
        array = ptr
        if array.dtype != cupy.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
            raise end.refused(self, ptr, "not a contiguous row of bytes")
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

    def current_stream(self) -> Any:
        """CuPy's current stream."""
        self._home.check()
        return cupy.cuda.get_current_stream(self.ordinal)

    @contextmanager
    def on(self, stream: Any) -> Generator[Any]:
        """Make a stream CuPy's current one, and this GPU the current one, inside a ``with`` block."""
        self.check_stream(stream)
        with self.using(), stream:
            yield stream

    def check_stream(self, stream: object) -> None:
        kinds = (cupy.cuda.Stream, cupy.cuda.ExternalStream)
        # CUDA's null streams belong to the current device, whichever it is; their device_id is -1.
        if not isinstance(stream, kinds) or getattr(stream, "device_id", -1) not in (-1, self.ordinal):
            raise InvalidArgumentError("stream", stream, f"a cupy.cuda.Stream of {self.name}")

    def adopt(self, buffer: object, byte_size: int) -> Any:
        with adopting(buffer, self):
            return self._adopted(buffer, byte_size)

    def _adopted(self, buffer: object, byte_size: int) -> Any:
        with self.using():
            array = _adoptable(buffer)
        if array.device.id != self.ordinal:
            raise ValueError(f"it is memory of CUDA device {array.device.id}, and {self.name} is needed")
        if not array.flags.c_contiguous:
            raise ValueError("it is not contiguous")
        size = check_adoptable_size(array.nbytes, byte_size)
        with self.using():
            return cupy.ndarray((size,), cupy.uint8, memptr=array.data)

    def _is_mine(self, ptr: Any) -> bool:
        return isinstance(ptr, cupy.ndarray) and bool(ptr.device.id == self.ordinal)

    def overlaps(self, first: Any, second: Any) -> bool:
        if not self._are_mine(first, second):
            return False
        return bool(
            first.data.ptr < second.data.ptr + second.nbytes and second.data.ptr < first.data.ptr + first.nbytes
        )

    def record(self, stream: Any) -> Event:
        self._home.check()
        self.check_stream(stream)
        with _Current(self.ordinal):
            event = _Event(block=True, disable_timing=True)
            event.ordinal = self.ordinal
            event.record(stream)
        return cast("Event", event)

    def order_after(self, event: Event) -> None:
        check_event(event, cupy.cuda.Event, self.name)
        with self.using():
            cupy.cuda.get_current_stream().wait_event(event)

    @property
    def compiler(self) -> Compiler:
        """Whether CuPy finds NVRTC, CUDA's compiler.  Without it memory and copies work, and arithmetic does not."""
        error = _without_compiler()
        return Compiler(error is None, str(error or "").partition("\n")[0])

    def arithmetic(self) -> CUDAArithmetic:
        """Arithmetic by kernels, which CuPy compiles when they are first used.

        Raises
        ------
        MissingPackageError
            If CuPy finds no NVRTC, CUDA's compiler.
        """
        self._home.check()
        if error := _without_compiler():
            major = cupy.cuda.runtime.runtimeGetVersion() // 1000
            package = f"cupy-cuda{major}x[ctk], or NVRTC of CUDA {major}"
            raise MissingPackageError(f"arithmetic on {self.name}", package, f"cuda{major}") from error
        return self._arithmetic

    def pinned_host(self) -> CUDAPinnedAllocator:
        return self._pinned

    def _references_to(self, ptr: Any) -> int:
        # Views share the pointer, and slices what is behind it.
        return sys.getrefcount(ptr.data) + sys.getrefcount(ptr.data.mem)

    def is_pageable(self, ptr: Any) -> bool:
        """Whether CUDA does not know the memory, neither as page-locked nor as its own.

        Raises
        ------
        InvalidArgumentError
            If it is no array of the host.
        """
        if not isinstance(ptr, np.ndarray):
            raise InvalidArgumentError("ptr", ptr, "memory of the host")
        with self.using():
            kind = cupy.cuda.runtime.pointerGetAttributes(ptr.ctypes.data).type
        return bool(kind == _UNREGISTERED)

    def using(self) -> AbstractContextManager[object]:
        self._home.check()
        # A new object each time: it stores which device to restore, so threads must not share it.
        return cast("AbstractContextManager[object]", cupy.cuda.Device(self.ordinal))

    def current_ordinal(self) -> int:
        return int(cupy.cuda.runtime.getDevice())


class CUDAPinnedAllocator(CPUDeviceAllocator):
    """Page-locked host memory from ``cudaHostAlloc``.

    Attributes
    ----------
    blocks : dict
        By the ``id`` of the array: the array, and its address.
    """

    def __init__(self, device: CUDADeviceAllocator, *, pool: bool) -> None:
        self._device = device
        self._pool = pool
        super().__init__()
        self.blocks: dict[int, tuple[HostArray, Any]] = self._live.blocks

    @property
    def name(self) -> str:
        return f"pinned host memory of {self._device.name}"

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        with self._device.using(), _room(self.name, size):
            if self._pool:
                # The default pool, not the current allocator of CuPy: that one may take its memory from this class.
                memory = cupy.get_default_pinned_memory_pool().malloc(size)
            else:
                memory = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
            ptr: HostArray = np.frombuffer(memory, np.uint8, size)
        self._live.blocks[id(ptr)] = ptr, memory.ptr
        return ptr


class _Current:
    """Makes a GPU current inside a ``with`` block that does not make another one current itself.

    ``cupy.cuda.Device`` sets the device twice even if the GPU is current already.
    """

    __slots__ = ("_before", "_ordinal")

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    def __enter__(self) -> None:
        self._before = cupy.cuda.runtime.getDevice()
        if self._before != self._ordinal:
            cupy.cuda.runtime.setDevice(self._ordinal)

    def __exit__(self, *_: object) -> None:
        if self._before != self._ordinal:
            cupy.cuda.runtime.setDevice(self._before)


class _Event(cupy.cuda.Event):  # type: ignore[misc]  # of a library without types
    """An event that is also done when the work before it has failed; CuPy's event is never done in that case.

    CuPy destroys an event in its finaliser.  In a cycle that is dropped, a memory that waits for the event may be
    finalised after it.  Such an event waits for its whole device.
    """

    ordinal = 0

    @property
    def done(self) -> bool:
        """Whether the event has happened, or never will because the work before it has failed."""
        if gc.is_finalized(self):
            self.synchronize()
            return True
        return bool(cupy.cuda.runtime.eventQuery(self.ptr) != _NOT_READY)

    def synchronize(self) -> None:
        """Wait until the event has happened."""
        if gc.is_finalized(self):
            with _Current(self.ordinal):
                cupy.cuda.runtime.deviceSynchronize()
        else:
            base: Any = super()
            base.synchronize()


@contextmanager
def _room(where: str, size: int) -> Generator[None]:
    """Turn the different errors of CuPy and CUDA for a full device into an `AllocationError`."""
    try:
        yield
    except Exception as error:
        if is_full(error):
            raise no_room(where, size, error) from error
        raise


def _start_of(array: HostArray) -> int:
    """The address of an array; NumPy's own attribute takes five times as long."""
    if len(array) and array.flags.writeable:
        return addressof(c_char.from_buffer(cast("Any", array)))
    return array.ctypes.data


def is_full(error: Exception) -> bool:
    """Whether an error of CuPy or of CUDA means that there is no room."""
    if isinstance(error, cupy.cuda.runtime.CUDARuntimeError):
        return cast("Any", error).status in _NO_ROOM
    return isinstance(error, MemoryError | OverflowError | ValueError)  # ValueError: rounded up, the size is too large


def _device_count() -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDeviceError(f"CuPy {cupy.__version__} is installed, but CUDA cannot be used: {error}") from error


@cache
def _without_compiler() -> Exception | None:
    """The error that says why there is no NVRTC; None if there is.  Its type differs between versions of CuPy."""
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # noqa: BLE001 -- as above
        return error
    return None


def _adoptable(buffer: Any) -> Any:
    """Somebody's array on a GPU, if it may be written, as a ``cupy.ndarray`` over the same memory."""
    if isinstance(buffer, cupy.ndarray):
        return buffer
    if not hasattr(buffer, "__cuda_array_interface__"):
        raise ValueError("it is not memory of a GPU (no __cuda_array_interface__)")
    if buffer.__cuda_array_interface__["data"][1]:
        raise ValueError("it is read-only, and the host is copied into it")
    return imported(buffer)


def imported(array: Any) -> Any:
    """Somebody's array on a GPU as a ``cupy.ndarray`` over the same memory."""
    if isinstance(array, cupy.ndarray):
        return array
    return cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy.from_dlpack(array)


ALLOCATOR = CUDADeviceAllocator
"""The class that the registry looks for."""
