"""The contract between the runtime and the spec: the interface of allocators (KuiperLLama alloc.h:14-32).

The runtime and the spec have their own allocators, and you can write yours: an object that has the calls of a protocol
here is an allocator, and needs no base class.  Numbers of devices and directions, and lists of calls, are only here.

A *pointer* is a one-dimensional ``uint8`` array of the device's own kind: NumPy's on the host, CuPy's, PyOpenCL's or
the simulated device's elsewhere.  Unlike an address, it knows its length, keeps its memory alive as long as somebody
uses it, and can be sliced.  ``None`` is the null pointer.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, Self

from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

__all__ = [
    "BLOB_CALLS",
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

BLOB_CALLS = (
    "reshape", "reshape_like", "shrink_to_fit",
    "shape_string", "canonical_axis_index", "count_axes", "legacy_shape", "num", "channels", "height", "width",
    "offset", "data_at", "diff_at", "gpu_shape",
    "cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data",
    "cpu_diff", "mutable_cpu_diff", "gpu_diff", "mutable_gpu_diff",
    "set_cpu_data", "set_gpu_data", "set_cpu_diff", "set_gpu_diff",
    "share_data", "share_diff", "copy_from",
    "update", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff", "scale_data", "scale_diff",
)  # fmt: skip
"""The calls of a blob, in the order of their numbers in the C ABI of ports."""


class DeviceType(Spelled, enum.IntEnum):
    """Where memory is: KuiperLLama's ``DeviceType``, with this project's other devices after it."""

    UNKNOWN = 0
    CPU = 1
    CUDA = 2
    OPENCL = 3
    SIMULATED = 4


class MemcpyKind(Spelled, enum.IntEnum):
    """The direction of a copy; KuiperLLama's ``MemcpyKind``, whose ``CUDA`` stands for the allocator's device.

    Each has a second name, which says so: ``MemcpyKind.HOST_TO_DEVICE is MemcpyKind.CPU2CUDA``.
    """

    CPU2CPU = 0
    CPU2CUDA = 1
    CUDA2CPU = 2
    CUDA2CUDA = 3

    HOST_TO_HOST = CPU2CPU
    HOST_TO_DEVICE = CPU2CUDA
    DEVICE_TO_HOST = CUDA2CPU
    DEVICE_TO_DEVICE = CUDA2CUDA

    @classmethod
    def between(cls, *, from_device: bool, to_device: bool) -> MemcpyKind:
        """The direction of a copy, given whether each end is on the device or on the host."""
        return cls(2 * from_device + to_device)  # the numbers have two bits: the source and the destination

    @property
    def from_device(self) -> bool:
        """Whether the source is on the device."""
        return self in (MemcpyKind.CUDA2CPU, MemcpyKind.CUDA2CUDA)

    @property
    def to_device(self) -> bool:
        """Whether the destination is on the device."""
        return self in (MemcpyKind.CPU2CUDA, MemcpyKind.CUDA2CUDA)


class Stream(Protocol):
    """A queue of work, of a device's own kind: CuPy's, PyOpenCL's or the simulated device's.

    All of them are context managers, which means something else for each; to make one the current stream of a thread,
    use ``with device.on(stream):``.
    """

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Any: ...


class DeviceArray(Protocol):
    """What the arrays of every device have in common: CuPy's, PyOpenCL's and the simulated device's."""

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
        """The number of dimensions."""
        ...

    @property
    def size(self) -> int:
        """How many elements it has."""
        ...

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
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
        """Block until everything before the point has finished."""
        ...


class HostAllocator(Protocol):
    """What a memory needs of an allocator of host memory."""

    @property
    @abstractmethod
    def device_type(self) -> DeviceType:
        """Where the memory is; `DeviceType.CPU` for memory that the host can read and write."""

    @abstractmethod
    def allocate(self, byte_size: int) -> Pointer | None:
        """Allocate memory with undefined contents; it stays allocated until `release`.

        If it raises an ``Exception``, nothing was allocated.

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
        """Free memory that `allocate` returned; None is ignored.

        If it raises an ``Exception``, the block was not released, neither here nor in an allocator below.

        Arrays over the memory that are still in use keep its bytes readable: a late reader finds old bytes,
        never those of another owner.

        Raises
        ------
        InvalidPointerError
            If `ptr` is not a live block of this allocator: foreign, of another kind, or already released.
        """

    @abstractmethod
    def memset_zero(self, ptr: Pointer, byte_size: int, stream: Any = None, need_sync: bool = False) -> None:
        """Set the first `byte_size` bytes to zero; `stream` and `need_sync` as for `memcpy`."""

    @abstractmethod
    def adopt(self, buffer: object, byte_size: int) -> Pointer:
        """Make a pointer to somebody else's memory, without a copy; the memory stays theirs.

        Returns
        -------
        array
            One-dimensional, ``uint8``, of exactly `byte_size` elements; it keeps `buffer` alive.

        Raises
        ------
        ValueError
            With the reason, if `buffer` is of another kind or device, too small, read-only, masked or not contiguous.
            Ours raise a `BufferMismatchError`, which is one.
        """

    @abstractmethod
    def overlaps(self, first: Pointer, second: Pointer) -> bool:
        """Whether two pointers of this device share bytes; None shares none.

        Raises
        ------
        InvalidArgumentError
            If one of them is neither None nor memory of this device.
        """


class Allocator(HostAllocator, Protocol):
    """Memory on one device: allocate, release, copy, zero.

    Every method works on the allocator's own device, whichever device is current, and leaves the current
    device as it was.  A method that raises has done nothing, unless it says otherwise.
    """

    @property
    @abstractmethod
    def ordinal(self) -> int:
        """The number of the device among those of its type."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the device in errors and reports."""

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
            None: the copy comes after the work on the device's current stream, and has finished on return.  A
            stream: the copy is queued there, and has finished when that stream has been synchronised; until then
            `src` must not change.  It too comes after the work that the current stream has when it is queued.
        need_sync : bool
            Wait for the whole device before returning.

        Raises
        ------
        InvalidSizeError
            If `byte_size` exceeds an array.
        InvalidPointerError
            If an array is not where `kind` says, is not a row of bytes, or if `dest` is read-only.
        InvalidArgumentError
            If `kind` is not a direction, `stream` is not a stream, or `need_sync` is no ``bool``.
        DeviceError
            If the copy fails; the contents of `dest` are undefined then.  With `need_sync` also if other work on the
            device has failed; the copy may have been made nevertheless.
        """

    @abstractmethod
    def empty(self, byte_size: int) -> Pointer:
        """A new array that owns its memory and frees it when unused; contents undefined, zero bytes allowed."""

    @abstractmethod
    def stream(self) -> Stream:
        """A new stream of this device, for `memcpy` and ``async_gpu_push``."""

    @abstractmethod
    def check_stream(self, stream: object) -> None:
        """Refuse an object that is not a stream of this device.

        Raises
        ------
        InvalidArgumentError
        """

    @abstractmethod
    def record(self, stream: Any) -> Event:
        """An event after everything that has been queued on a stream."""

    @abstractmethod
    def order_after(self, event: Event) -> None:
        """Make later work on the device's current stream wait for an event, without blocking the host.

        Raises
        ------
        InvalidArgumentError
            If `event` is no event of this device.
        """

    @abstractmethod
    def pinned_host(self) -> Allocator:
        """The allocator of host memory from which and to which this device can copy without staging.

        A device without page-locked memory of its own returns the allocator of ordinary host memory.
        """

    @abstractmethod
    def read_only(self, ptr: Pointer) -> Pointer:
        """The pointer that readers get; if the device's arrays have no read-only form, the pointer itself.

        Raises
        ------
        InvalidArgumentError
            If `ptr` is no memory of this device.
        """

    @abstractmethod
    def viewer(self, ptr: Pointer) -> Callable[[], Pointer]:
        """A function of no arguments that makes a new array object over a pointer; it is called often.

        Raises
        ------
        InvalidArgumentError
            If `ptr` is no memory of this device.
        """

    @abstractmethod
    def using(self) -> AbstractContextManager[object]:
        """Make this device current inside a ``with`` block; does nothing if the device cannot be current."""

    @abstractmethod
    def current_ordinal(self) -> int:
        """The current device here; a device that cannot be current returns its own."""


def calls_of(protocol: type) -> frozenset[str]:
    """The public names of a protocol, and of the protocols that it extends."""
    # Protocols have this mark; typing.get_protocol_members, which does the same, needs Python 3.13.
    declared = (base for base in protocol.__mro__ if getattr(base, "_is_protocol", False))
    return frozenset(name for base in declared for name in vars(base) if not name.startswith("_"))


HOST_CALLS = calls_of(HostAllocator)
"""The calls that a memory needs of its host allocator."""

DEVICE_CALLS = calls_of(Allocator)
"""The calls that a memory needs of its device allocator.  It needs no arithmetic."""

OPERATIONS = ("allocate", "release", "memcpy", "memset_zero")
"""The calls that touch memory: those of KuiperLLama's allocators."""


def is_host(allocator: object) -> bool:
    """Whether the host can read and write an allocator's memory.

    The allocator's ``device_type`` must say so.  Without one, or with an unknown one, it is not known.
    """
    return getattr(allocator, "device_type", DeviceType.UNKNOWN) == DeviceType.CPU
