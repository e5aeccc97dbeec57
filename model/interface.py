"""What the runtime and the spec agree on: the interface to memory (KuiperLLama alloc.h:14-32).

Each side has allocators of its own, and so may you: whatever has the calls of a protocol here is an allocator, without
a base class.  Numbers of devices and directions, and lists of calls, stand in this module and nowhere else.

A *pointer* is a one-dimensional ``uint8`` array of the device's own kind: NumPy's on the host, CuPy's, PyOpenCL's or
the simulated device's elsewhere.  Unlike a bare address it knows its length, keeps its memory alive while somebody
looks at it, and can be sliced.  ``None`` is the null pointer.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = [
    "DEVICE_CALLS",
    "HOST_CALLS",
    "OPERATIONS",
    "Allocator",
    "DeviceArray",
    "DeviceType",
    "Event",
    "HostAllocator",
    "MemcpyKind",
    "Pointer",
    "Stream",
    "calls_of",
    "is_host",
]

Pointer = Any
"""A one-dimensional ``uint8`` array of a device's own kind; which kind depends on the allocator."""

Stream = object
"""A queue of work, of a device's own kind; None where nothing is queued.  Devices have no call of it in common."""


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

    @classmethod
    def between(cls, *, from_device: bool, to_device: bool) -> MemcpyKind:
        """The direction between two ends, each of which is on the device or on the host."""
        return cls(2 * from_device + to_device)  # the numbers are two bits: where from, and where to

    @property
    def from_device(self) -> bool:
        """Whether the source is on the device."""
        return self in (MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA)

    @property
    def to_device(self) -> bool:
        """Whether the destination is on the device."""
        return self in (MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CUDA)


class DeviceArray(Protocol):
    """What arrays of every device have in common: CuPy's, PyOpenCL's and the simulated device's."""

    @property
    def dtype(self) -> Any:
        """The type of an element, as NumPy describes it."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements it has along each dimension."""
        ...

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        ...

    @property
    def size(self) -> int:
        """How many elements it has."""
        ...

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: slice, /) -> Self: ...

    def view(self, dtype: Any = ..., /) -> Self:
        """Another array over the same bytes."""
        ...

    def reshape(self, *shape: Any) -> Self:
        """Another array over the same elements, in another shape."""
        ...

    def get(self) -> Any:
        """The elements, copied to the host: a NumPy array."""
        ...

    def set(self, ary: Any, /) -> None:
        """Copy the elements of a NumPy array to the device."""
        ...


class Event(Protocol):
    """A point in a stream."""

    @property
    def done(self) -> bool:
        """Whether everything before the point has finished; never blocks."""
        ...

    def synchronize(self) -> None:
        """Block until it has."""
        ...


class HostAllocator(Protocol):
    """What a memory needs of an allocator of host memory."""

    @property
    @abstractmethod
    def device_type(self) -> DeviceType:
        """Where the memory is; `DeviceType.CPU` for memory that the host can read and write."""

    @abstractmethod
    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate memory, contents undefined; it stays allocated until `release`.

        If it raises, whatever it raises, nothing was allocated; interrupts are no exception.

        Parameters
        ----------
        byte_size : int
            In bytes.  Zero allocates nothing and returns None (KuiperLLama alloc_cpu.cpp:14-16).

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

        If it raises, whatever it raises, the block was not released: not here, and not in any allocator below.  So an
        interrupted release can be made again.

        Arrays over the memory that are still in use keep its bytes readable: a late reader finds old bytes,
        never somebody else's.

        Raises
        ------
        InvalidPointerError
            If `ptr` is not a live block of this allocator: foreign, of another kind, or released already.
        """

    @abstractmethod
    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        """Set the first `byte_size` bytes to zero; `stream` and `need_sync` as for `memcpy`."""

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


class Allocator(HostAllocator, Protocol):
    """Memory on one device: allocate, release, copy, zero.

    Every method works on the allocator's own device, whatever device is current, and leaves the current
    device as it was.  A method that raises has done nothing, except where it says so.
    """

    @property
    @abstractmethod
    def ordinal(self) -> int:
        """Which device of its type."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The device as errors and reports show it."""

    @abstractmethod
    def memcpy(  # noqa: PLR0913 -- KuiperLLama's signature, alloc.h:24-26
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
            On CUDA it comes after what the current stream holds then too.
        need_sync : bool
            Wait for the whole device before returning.

        Raises
        ------
        InvalidSizeError
            If `byte_size` exceeds an array.
        InvalidPointerError
            If an array is not where `kind` says, not a row of bytes, or `dest` is read-only.
        InvalidArgumentError
            If `kind` or `stream` is none.
        """

    @abstractmethod
    def empty(self, byte_size: int) -> Pointer:
        """A new array that owns its memory, freed when nobody uses it; contents undefined, zero bytes allowed."""

    @abstractmethod
    def stream(self) -> Stream:
        """A new stream of this device, for `memcpy` and ``async_gpu_push``."""

    @abstractmethod
    def check_stream(self, stream: object) -> None:
        """Refuse what is no stream of this device.

        Raises
        ------
        InvalidArgumentError
        """

    @abstractmethod
    def record(self, stream: Any) -> Event:
        """An event after everything queued on a stream so far."""

    @abstractmethod
    def order_after(self, event: Event) -> None:
        """Make later work of the device's current stream wait for an event, without blocking the host."""

    @abstractmethod
    def pinned_host(self) -> Allocator:
        """The allocator of host memory that this device can copy to and from without staging.

        Devices without page-locked memory of their own return that of ordinary host memory.
        """

    @abstractmethod
    def read_only(self, ptr: Pointer) -> Pointer:
        """The pointer as readers get it.  Devices whose arrays have no read-only form return it as it is."""

    @abstractmethod
    def viewer(self, ptr: Pointer) -> Callable[[], Pointer]:
        """A function of no arguments that makes a new array object over a pointer; it is called often."""

    @abstractmethod
    def using(self) -> AbstractContextManager[object]:
        """Make this device current inside a ``with`` block; nothing to do where no device is ever current."""

    @abstractmethod
    def current_ordinal(self) -> int:
        """The device that is current where this is called; devices without that notion return their own."""


def calls_of(protocol: type) -> frozenset[str]:
    """The public names of a protocol, with those of the protocols it extends."""
    # Protocols have this mark; typing.get_protocol_members, which tells the same, is of Python 3.13.
    declared = (base for base in protocol.__mro__ if getattr(base, "_is_protocol", False))
    return frozenset(name for base in declared for name in vars(base) if not name.startswith("_"))


HOST_CALLS = calls_of(HostAllocator)
"""What a memory needs of its host memory."""

DEVICE_CALLS = calls_of(Allocator)
"""What a memory needs of its device.  It computes nothing, so the device may have no arithmetic."""

OPERATIONS = ("allocate", "release", "memcpy", "memset_zero")
"""The calls that touch memory: all that KuiperLLama's allocators have."""


def is_host(allocator: object) -> bool:
    """Whether the host can read and write an allocator's memory.

    An allocator has to say so of itself: of one without a ``device_type``, or of an unknown one, nobody knows.
    """
    return getattr(allocator, "device_type", DeviceType.UNKNOWN) == DeviceType.CPU
