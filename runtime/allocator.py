"""The one interface to memory: `DeviceAllocator` (``004_5979a102caedf1b7.txt`` lines 13-33).

A *pointer* here is a one-dimensional ``uint8`` array of the device's own kind: NumPy's on the host, CuPy's,
PyOpenCL's or the simulated device's elsewhere.  Unlike a bare address it knows its length, keeps its memory
alive while somebody looks at it, and can be sliced.  ``None`` is the null pointer.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Never, Protocol, cast

from syncedmem.model import InvalidArgumentError, NotCopyableError

from .pointers import End, HostArray, Pointer, check_byte_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .arithmetic import Arithmetic

__all__ = [
    "DeviceAllocator",
    "DeviceType",
    "Event",
    "HostArray",
    "MemcpyKind",
    "Pointer",
    "check_allocator",
    "check_byte_size",
    "check_event",
    "check_kind",
]


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

    @property
    def from_device(self) -> bool:
        """Whether the source is on the device."""
        return self in (MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA)

    @property
    def to_device(self) -> bool:
        """Whether the destination is on the device."""
        return self in (MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CUDA)

    @property
    def source(self) -> End:
        """Where the source has to be, as errors say it."""
        return _SOURCES[self]

    @property
    def target(self) -> End:
        """Where the destination has to be."""
        return _TARGETS[self]


# Made once, because every copy needs two of them; in the order of the numbers.
_SOURCES = tuple(End("src", it.from_device, False, f"MemcpyKind.{it.name}") for it in MemcpyKind)
_TARGETS = tuple(End("dest", it.to_device, True, f"MemcpyKind.{it.name}") for it in MemcpyKind)


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

    device_type: DeviceType = DeviceType.UNKNOWN
    ordinal: int = 0

    @property
    def name(self) -> str:
        """The device as errors and reports show it."""
        return f"{self.device_type.name.lower()}:{self.ordinal}"

    @abstractmethod
    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate memory, contents undefined; it stays allocated until `release`.

        If it raises, whatever it raises, nothing was allocated; interrupts are no exception.

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

    @abstractmethod
    def pinned_host(self) -> DeviceAllocator:
        """The allocator of host memory that this device can copy to and from without staging.

        Devices without page-locked memory of their own return that of ordinary host memory.
        """

    def arithmetic(self) -> Arithmetic:
        """Arithmetic on this memory; `arithmetic_of` asks for it.

        Raises
        ------
        InvalidArgumentError
            Unless a device says otherwise: it has none.
        """
        raise InvalidArgumentError("allocator", self, "one of a device that can compute")

    def read_only(self, ptr: Pointer) -> Pointer:
        """The pointer as readers get it.  Devices whose arrays have no read-only form return it as it is."""
        return ptr

    def viewer(self, ptr: Pointer) -> Callable[[], Pointer]:
        """A function of no arguments that makes a new array object over a pointer; it is called often."""
        maker: Callable[[], Pointer] = ptr.view
        return maker

    def using(self) -> AbstractContextManager[object]:
        """Make this device current inside a ``with`` block; nothing to do where no device is ever current."""
        return nullcontext()

    def current_ordinal(self) -> int:
        """The device that is current where this is called; devices without that notion return their own."""
        return self.ordinal

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "share it, or make another one")


def check_allocator(argument: str, allocator: object, expected: str) -> None:
    """Refuse what allocates nothing.  Structural, so that somebody else's allocator needs no base class of ours.

    Raises
    ------
    InvalidArgumentError
    """
    if isinstance(allocator, type) or not hasattr(allocator, "allocate"):
        raise InvalidArgumentError(argument, allocator, expected)


def check_event(event: object, kind: type, where: str) -> None:
    """Refuse what is no event of a device.

    Raises
    ------
    InvalidArgumentError
    """
    if not isinstance(event, kind):
        raise InvalidArgumentError("event", event, f"an event of {where}, as its record() returns")


def check_kind(kind: object) -> MemcpyKind:
    """The direction of a copy; its number will do.

    Raises
    ------
    InvalidArgumentError
    """
    try:
        return MemcpyKind(cast("Any", kind))
    except ValueError:
        raise InvalidArgumentError("kind", kind, "a MemcpyKind") from None
