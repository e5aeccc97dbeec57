"""The one interface to memory: `DeviceAllocator` (``004_5979a102caedf1b7.txt`` lines 13-33).

A *pointer* here is a one-dimensional ``uint8`` array of the device's own kind: NumPy's on the host, CuPy's,
PyOpenCL's or the simulated device's elsewhere.  Unlike a bare address it knows its length, keeps its memory
alive while somebody looks at it, and can be sliced.  ``None`` is the null pointer.
"""

from __future__ import annotations

import enum
import sys
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from syncedmem.model import AllocationError, InvalidArgumentError, InvalidPointerError, InvalidSizeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from typing_extensions import Buffer

__all__ = ["DeviceAllocator", "DeviceType", "Event", "HostArray", "MemcpyKind", "Pointer", "check_byte_size"]

HostArray = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""A one-dimensional ``uint8`` NumPy array."""

Pointer = Any
"""A one-dimensional ``uint8`` array of a device's own kind; which kind depends on the allocator."""


class DeviceType(enum.IntEnum):
    """Where memory is; KuiperLLama's ``DeviceType`` with this project's devices behind it."""

    UNKNOWN = 0
    CPU = 1
    CUDA = 2
    OPENCL = 3
    SIMULATED = 4


class MemcpyKind(enum.IntEnum):
    """The direction of a copy; KuiperLLama's ``MemcpyKind``.  ``CUDA`` stands for the allocator's device."""

    CPU2CPU = 0
    CPU2CUDA = 1
    CUDA2CPU = 2
    CUDA2CUDA = 3


class Event(Protocol):
    """A point in a stream."""

    @property
    def done(self) -> bool:
        """Whether everything before the point has finished; never blocks."""
        ...

    def synchronize(self) -> None:
        """Block until it has."""
        ...


class DeviceAllocator(ABC):
    """Memory on one device: allocate, release, copy, zero.

    Every method works on the allocator's own device, whatever device is current, and leaves the current
    device as it was.  A method that raises has done nothing, except where it says so.

    Attributes
    ----------
    device_type : DeviceType
    ordinal : int
        Which device of its type.
    """

    device_type: ClassVar[DeviceType] = DeviceType.UNKNOWN
    ordinal: int = 0

    @property
    def name(self) -> str:
        """The device as errors and reports show it."""
        return f"{self.device_type.name.lower()}:{self.ordinal}"

    @abstractmethod
    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate memory, contents undefined; it stays allocated until `release`.

        Parameters
        ----------
        byte_size : int
            In bytes.  Zero allocates nothing and returns None (004:58-60).

        Raises
        ------
        AllocationError
            If there is no room; nothing was allocated.  Also a ``MemoryError``.
        InvalidSizeError, InvalidArgumentError
            If `byte_size` is negative, beyond the address space, or not an integer.
        """

    @abstractmethod
    def release(self, ptr: Pointer | None) -> None:
        """Give back what `allocate` returned; None is ignored.

        Arrays over the memory that are still in use keep its bytes readable: a late reader finds old bytes,
        never somebody else's.

        Raises
        ------
        InvalidPointerError
            If `ptr` is not a live block of this allocator: foreign, of another kind, or released already.
        """

    @abstractmethod
    def memcpy(  # noqa: PLR0913 -- the seed's signature, 004:25-27
        self,
        src: Pointer,
        dest: Pointer,
        byte_size: int,
        kind: MemcpyKind = MemcpyKind.CPU2CPU,
        stream: Any = None,
        need_sync: bool = False,
    ) -> None:
        """Copy bytes from `src` to `dest`.

        Parameters
        ----------
        src, dest : array or None
            May be null only if `byte_size` is zero.
        byte_size : int
            In bytes, at most the length of either array.
        kind : MemcpyKind
        stream : stream or None
            None: ordered after what the device's current stream holds, and finished on return.  A stream:
            queued there, finished when that stream has been synchronised; until then `src` must not change.
        need_sync : bool
            Wait for the whole device before returning.

        Raises
        ------
        InvalidSizeError
            If `byte_size` exceeds an array.
        """

    @abstractmethod
    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        """Set the first `byte_size` bytes to zero; `stream` and `need_sync` as for `memcpy`."""

    @abstractmethod
    def empty(self, byte_size: int) -> Pointer:
        """A new array that owns its memory, freed when nobody uses it; contents undefined, zero bytes allowed."""

    @abstractmethod
    def stream(self) -> Any:
        """A new stream of this device, for `memcpy` and ``async_gpu_push``."""

    @abstractmethod
    def check_stream(self, stream: object) -> None:
        """Refuse what is no stream of this device.

        Raises
        ------
        InvalidArgumentError
        """

    @abstractmethod
    def adopt(self, buffer: object, byte_size: int) -> Pointer:
        """Look at somebody else's memory as a pointer: no copy, and the memory stays theirs.

        Returns
        -------
        array
            One-dimensional, ``uint8``, of exactly `byte_size` elements; it keeps `buffer` alive.

        Raises
        ------
        ValueError
            With the reason, if `buffer` is of another kind or device, too small, read-only or not contiguous.
        """

    @abstractmethod
    def overlaps(self, first: Pointer, second: Pointer) -> bool:
        """Whether two pointers of this device share bytes."""

    @abstractmethod
    def record(self, stream: Any) -> Event:
        """An event after everything queued on a stream so far."""

    @abstractmethod
    def order_after(self, event: Event) -> None:
        """Make later work of the device's current stream wait for an event, without blocking the host."""

    def pinned_host(self) -> DeviceAllocator:
        """The allocator of host memory that this device can copy to and from without staging.

        Devices without page-locked memory of their own use ordinary host memory.
        """
        from .host import cpu_allocator  # noqa: PLC0415 -- host memory is an allocator, so it imports this module

        return cpu_allocator()

    def read_only(self, ptr: Pointer) -> Pointer:
        """The pointer as readers get it.  Devices whose arrays have no read-only form return it as it is."""
        return ptr

    def using(self) -> AbstractContextManager[object]:
        """Make this device current inside a ``with`` block; nothing to do where no device is ever current."""
        return nullcontext()

    def current_ordinal(self) -> int:
        """The device that is current where this is called; devices without that notion return their own."""
        return self.ordinal

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def check_byte_size(byte_size: object, argument: str = "byte_size", limit: int = sys.maxsize) -> int:
    """A size as an ``int``.

    Raises
    ------
    InvalidArgumentError
        If it is not an integer (NumPy's integers are; floats, strings and bools are not).
    InvalidSizeError
        If it is negative or above `limit`.
    """
    if type(byte_size) is not int:
        if isinstance(byte_size, bool) or not hasattr(byte_size, "__index__"):
            raise InvalidArgumentError(argument, byte_size, "an integer number of bytes")
        byte_size = int(byte_size.__index__())
    if not 0 <= byte_size <= limit:
        raise InvalidSizeError(byte_size, limit)
    return byte_size


def check_copy(byte_size: object, *pointers: Pointer) -> int:
    """The size of a copy or fill, checked against every array it touches."""
    return check_byte_size(byte_size, limit=min(0 if ptr is None else len(ptr) for ptr in pointers))


class LiveBlocks:
    """The blocks an allocator has out: so that nothing is released twice, and nothing foreign.

    A block is known by the array that `allocate` returned, not by its address: a view of it, or another
    array at an address used before, is not that block.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._blocks: dict[int, Pointer] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def __contains__(self, ptr: object) -> bool:
        return self._blocks.get(id(ptr)) is ptr

    @property
    def byte_size(self) -> int:
        """The bytes of all live blocks together."""
        return sum(len(ptr) for ptr in list(self._blocks.values()))

    def add(self, ptr: Pointer) -> Pointer:
        """Note a new block, and hand it back."""
        self._blocks[id(ptr)] = ptr
        return ptr

    def remove(self, ptr: Pointer) -> None:
        """Forget a block, in one step, so that of two threads that release it only one succeeds."""
        found = self._blocks.pop(id(ptr), None)
        if found is None:
            raise InvalidPointerError(self._where, ptr, "it is not a live block of this allocator")


def adopt_host(buffer: Buffer, byte_size: int) -> HostArray:
    """Somebody's host memory as a ``uint8`` array of `byte_size` elements; see `DeviceAllocator.adopt`."""
    if isinstance(buffer, np.ndarray):
        array: np.ndarray[Any, Any] = buffer
        if not array.flags.c_contiguous:
            raise ValueError("it is not contiguous")
        if not array.flags.writeable:
            raise ValueError("it is read-only, and the device is copied back into it")
        if array.dtype.hasobject:
            raise ValueError("it holds Python objects")
        flat = array.reshape(-1).view(np.uint8)
    else:
        try:
            view = memoryview(buffer)
        except TypeError:
            raise ValueError("it is not host memory (no buffer interface)") from None
        if not view.c_contiguous:
            raise ValueError("it is not contiguous")
        if view.readonly:
            raise ValueError("it is read-only, and the device is copied back into it")
        flat = np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
    if flat.size < byte_size:
        raise ValueError(f"it has {flat.size} bytes, and {byte_size} are needed")
    return flat[:byte_size]


def no_room(where: str, byte_size: int, cause: BaseException) -> AllocationError:
    """The error for a device that has no room, with what the device itself said."""
    return AllocationError(where, byte_size, str(cause))
