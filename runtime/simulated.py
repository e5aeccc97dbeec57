"""`SimulatedDeviceAllocator`: the simulated device behind the allocator interface, and its array."""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, cast

import numpy as np

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError

from .allocator import (
    DeviceAllocator,
    DeviceType,
    HostArray,
    LiveBlocks,
    MemcpyKind,
    adopt_host,
    check_byte_size,
    check_copy,
    no_room,
)
from .host import CPUDeviceAllocator
from .simulation import (
    Block,
    SimulatedDeviceError,
    SimulatedStream,
    Space,
    checked_ordinal,
    current_device,
    using_device,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from typing_extensions import Buffer

    from .allocator import Event

__all__ = ["SimulatedArray", "SimulatedDeviceAllocator", "SimulatedPinnedAllocator"]

_OPERATIONS = ("allocate", "release", "memcpy", "memset_zero")


class SimulatedArray:
    """Bytes on a simulated device: one-dimensional, ``uint8``, reached only through `get` and `set`.

    Like ``cupy.ndarray`` it refuses to become a NumPy array by accident.
    """

    __slots__ = ("__weakref__", "_block", "_offset", "_read_only", "_space", "size")

    dtype = np.dtype(np.uint8)
    ndim = 1

    def __init__(self, space: Space, block: Block, offset: int, size: int, *, read_only: bool = False) -> None:
        self._space = space
        self._block = block
        self._offset = offset
        self._read_only = read_only
        self.size = size

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self.size

    @property
    def shape(self) -> tuple[int]:
        """The length as a shape."""
        return (self.size,)

    @property
    def ptr(self) -> int:
        """The pretended address."""
        return self._block.address + self._offset

    @property
    def ordinal(self) -> int:
        """The device the bytes are on."""
        return self._space.ordinal

    @property
    def read_only(self) -> bool:
        """Whether `set` is refused."""
        return self._read_only

    def get(self) -> HostArray:
        """A copy of the bytes on the host, after everything the default stream holds."""
        with using_device(self._space.ordinal):
            self._space.enter()
            self._space.default_stream.synchronize()
            return self.raw(self.size).copy()

    def set(self, data: Buffer, stream: SimulatedStream | None = None) -> None:
        """Write host bytes here, at once or on a stream.

        Parameters
        ----------
        data : buffer
            Exactly as many bytes as this array has.
        stream : SimulatedStream or None

        Raises
        ------
        ValueError
            If this view is read-only, or `data` has another length.
        """
        if self._read_only:
            raise ValueError("this view is read-only; mutable_gpu_data() gives a writeable one")
        source = np.frombuffer(data, np.uint8) if self.size else np.empty(0, np.uint8)
        if source.size != self.size:
            raise ValueError(f"cannot set {self.size} bytes from {source.size}")
        with using_device(self._space.ordinal):
            self._space.enter()
            self._space.now(stream, lambda: np.copyto(self.raw(self.size), source))

    def view(self) -> Self:
        """A new array object over the same bytes."""
        return self[:]

    def as_read_only(self) -> Self:
        """A new array object over the same bytes that cannot be written through."""
        return type(self)(self._space, self._block, self._offset, self.size, read_only=True)

    def raw(self, size: int) -> HostArray:
        """The first bytes themselves; for the device, not for its users."""
        return self._block.bytes(self._offset, size)

    def shares(self, other: SimulatedArray) -> bool:
        """Whether two arrays have bytes in common."""
        return self.ptr < other.ptr + other.size and other.ptr < self.ptr + self.size

    def belongs_to(self, space: Space) -> bool:
        """Whether the bytes are in that memory space."""
        return self._space is space

    def release_to(self, space: Space) -> None:
        """Free the block this array was allocated as."""
        space.free(self._block)

    def free_with_last_view(self) -> None:
        """Count the bytes as free again when nobody looks at them any more."""
        weakref.finalize(self._block, self._space.forget, self._block.size).atexit = False

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: slice) -> Self:
        if not isinstance(key, slice):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise TypeError("a simulated array is sliced, not indexed; use .get()")
        start, stop, step = key.indices(self.size)
        if step != 1:
            raise ValueError("a simulated array is contiguous; slice it with step 1")
        return type(self)(
            self._space, self._block, self._offset + start, max(stop - start, 0), read_only=self._read_only
        )

    def __array__(self, *_: object, **__: object) -> HostArray:
        raise TypeError("memory of a simulated device is not host memory; use .get()")

    def __repr__(self) -> str:
        kind = ", read-only" if self._read_only else ""
        return f"<SimulatedArray {self.size} bytes at {self.ptr:#x} on device {self.ordinal}{kind}>"


class SimulatedDeviceAllocator(DeviceAllocator):
    """Memory of a simulated device.

    Parameters
    ----------
    ordinal : int
        Which simulated device, from 0 to 3.
    capacity : int or None
        The most bytes that may be allocated at once; None for no limit.
    seed : int or None
        With a seed, queued copies happen at arbitrary, replayable moments; without, only when waited for.

    Raises
    ------
    NoDeviceError
        If there is no such device.
    """

    device_type = DeviceType.SIMULATED

    def __init__(self, ordinal: int = 0, *, capacity: int | None = None, seed: int | None = None) -> None:
        self.ordinal = checked_ordinal(ordinal)
        limit = None if capacity is None else check_byte_size(capacity, "capacity")
        self._space = Space(self.ordinal, limit, seed)
        self._live = LiveBlocks(self.name)
        self._pinned = SimulatedPinnedAllocator(self.name)
        self._fuse = _Fuse()

    @property
    def live_blocks(self) -> int:
        """How many blocks are allocated and not released."""
        return len(self._live)

    def fail_at(self, k: int, operation: str | None = None) -> None:
        """Make the k-th call from now fail, counting from 1.

        Parameters
        ----------
        k : int
        operation : str or None
            Count only calls of ``allocate``, ``release``, ``memcpy`` or ``memset_zero``; None counts all.
        """
        self._fuse.arm(k, operation)

    def allocate(self, byte_size: int) -> SimulatedArray | None:
        size = check_byte_size(byte_size)
        return self._live.add(self._new("allocate", size)) if size else None

    def _new(self, operation: str, size: int) -> SimulatedArray:
        with self.using():
            self._space.enter()
            if self._fuse.blows(operation):
                raise AllocationError(self.name, size, "this call was told to fail")
            try:
                return SimulatedArray(self._space, self._space.allocate(size), 0, size)
            except MemoryError as error:
                raise no_room(self.name, size, error) from error

    def release(self, ptr: SimulatedArray | None) -> None:
        if ptr is None:
            return
        if ptr not in self._live:
            raise InvalidPointerError(self.name, ptr, "it is not a live block of this allocator")
        with self.using():
            self._space.enter()
            self._fuse.check("release")
            ptr.release_to(self._space)
        self._live.remove(ptr)

    def memcpy(  # noqa: PLR0913 -- the interface's signature
        self,
        src: Any,
        dest: Any,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: SimulatedStream | None = None,
        need_sync: bool = False,
    ) -> None:
        size = check_copy(byte_size, src, dest)
        read = self._reader(src, kind in (MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA), "src")
        write = self._reader(dest, kind in (MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CUDA), "dest")
        with self.using():
            self._space.enter()
            self._fuse.check("memcpy")
            if size:
                self._space.now(stream, lambda: np.copyto(write(size), read(size)))
            if need_sync:
                self._space.synchronize()

    def memset_zero(
        self, ptr: SimulatedArray, byte_size: int, stream: SimulatedStream | None = None, need_sync: bool = False
    ) -> None:
        size = check_copy(byte_size, ptr)
        with self.using():
            self._space.enter()
            self._fuse.check("memset_zero")
            if size:
                self._space.now(stream, lambda: ptr.raw(size).fill(0))
            if need_sync:
                self._space.synchronize()

    def _reader(self, ptr: Any, on_device: bool, argument: str) -> Any:
        """How to reach the first bytes of a pointer of the kind that a copy expects."""
        if on_device:
            if not isinstance(ptr, SimulatedArray) or not ptr.belongs_to(self._space):
                raise InvalidPointerError(self.name, ptr, f"{argument} is not memory of this device")
            return ptr.raw
        if not isinstance(ptr, np.ndarray):
            raise InvalidPointerError(self.name, ptr, f"{argument} is not host memory")
        return lambda size: ptr[:size]

    def empty(self, byte_size: int) -> SimulatedArray:
        array = self._new("empty", check_byte_size(byte_size))
        array.free_with_last_view()
        return array

    def stream(self) -> SimulatedStream:
        return self._space.new_stream()

    def check_stream(self, stream: object) -> None:
        if not isinstance(stream, SimulatedStream) or stream.space is not self._space:
            raise InvalidArgumentError("stream", stream, f"a stream of {self.name}, as its stream() returns")

    def adopt(self, buffer: object, byte_size: int) -> SimulatedArray:
        if not isinstance(buffer, SimulatedArray):
            raise ValueError(f"it is not memory of {self.name}")
        if not buffer.belongs_to(self._space):
            raise ValueError(f"it is memory of another device ({buffer.ordinal}), and {self.name} is needed")
        if buffer.read_only:
            raise ValueError("it is a read-only view, and the host is copied into it")
        if buffer.size < byte_size:
            raise ValueError(f"it has {buffer.size} bytes, and {byte_size} are needed")
        return buffer[:byte_size]

    def overlaps(self, first: SimulatedArray, second: SimulatedArray) -> bool:
        return first.shares(second)

    def record(self, stream: SimulatedStream) -> Event:
        return stream.record()

    def order_after(self, event: Event) -> None:
        self._space.default_stream.wait_event(cast("Any", event))

    def synchronize(self) -> None:
        """Perform everything queued on every stream of this device."""
        with self.using():
            self._space.synchronize()

    def check(self) -> None:
        """Look for writes into freed memory.

        Raises
        ------
        SimulatedDeviceError
        """
        self._space.check()
        self._pinned.check()

    def pinned_host(self) -> SimulatedPinnedAllocator:
        return self._pinned

    def read_only(self, ptr: SimulatedArray) -> SimulatedArray:
        return ptr.as_read_only()

    def using(self) -> AbstractContextManager[None]:
        return using_device(self.ordinal)

    def current_ordinal(self) -> int:
        return current_device()


class SimulatedPinnedAllocator(CPUDeviceAllocator):
    """Page-locked host memory, as a simulated device pretends to have it.

    It is host memory between red zones, poisoned when fresh and when freed, and it knows its own blocks, so
    that freeing pageable memory here, or this memory as pageable, is refused.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        super().__init__()
        self._blocks: dict[int, Block] = {}
        self._freed: list[Block] = []

    @property
    def name(self) -> str:
        return f"pinned host memory of {self._device}"

    def allocate(self, byte_size: int) -> HostArray | None:
        size = check_byte_size(byte_size)
        if size == 0:
            return None
        try:
            block = Block(0, size)
        except (MemoryError, ValueError) as error:
            raise no_room(self.name, size, error) from error
        ptr = block.bytes(0, size)
        self._blocks[id(ptr)] = block
        return cast("HostArray", self._live.add(ptr))

    def release(self, ptr: HostArray | None) -> None:
        if ptr is None:
            return
        if ptr not in self._live:
            raise InvalidPointerError(self.name, ptr, "it is not a live block of this allocator")
        block = self._blocks[id(ptr)]
        block.check()
        super().release(ptr)
        del self._blocks[id(ptr)]
        block.retire()
        self._freed = [*self._freed[-15:], block]

    def check(self) -> None:
        """Look for writes into the last blocks that were freed.

        Raises
        ------
        SimulatedDeviceError
        """
        for block in self._freed:
            block.check()


class _Fuse:
    """Counts calls, and says when the one that must fail has come."""

    def __init__(self) -> None:
        self._left = 0
        self._operation: str | None = None

    def arm(self, k: SupportsIndex, operation: str | None) -> None:
        if operation is not None and operation not in _OPERATIONS:
            raise InvalidArgumentError("operation", operation, f"one of {', '.join(_OPERATIONS)}, or None")
        self._left = operator.index(k)
        self._operation = operation

    def blows(self, operation: str) -> bool:
        if self._left <= 0 or operation not in _OPERATIONS or self._operation not in (None, operation):
            return False
        self._left -= 1
        return self._left == 0

    def check(self, operation: str) -> None:
        if self.blows(operation):
            raise SimulatedDeviceError(f"{operation}: this call was told to fail")
