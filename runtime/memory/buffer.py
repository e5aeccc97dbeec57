"""`Buffer`: bytes on one device, with an owner.

The memory is released when nobody uses the buffer any more.  This is KuiperLLama's ``base::Buffer``
(kuiper/include/base/buffer.h), with its rules of ownership and without its errors: see docs/allocators.md.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Never, Self, cast

from syncedmem.model import (
    BufferMismatchError,
    ClosedMemoryError,
    InvalidArgumentError,
    InvalidSizeError,
    NotCopyableError,
    ReentrantCallError,
    SyncedMemoryError,
)
from syncedmem.model.errors import said, words
from syncedmem.model.interface import DeviceType, MemcpyKind, is_host

from ..allocators.base import DeviceAllocator, check_allocator
from ..allocators.failures import reporting, where_of
from ..allocators.forking import fork_safe_lock
from ..allocators.late_writes import LateWrites
from ..allocators.pointers import as_flag, check_byte_size
from ..devices.host import cpu_allocator
from .flight import Flight
from .lines import line_of_caller
from .side import Side, finalise
from .watch import is_checked, is_pooled, is_settled, leave_late_writes

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from syncedmem.model.interface import DeviceArray
    from syncedmem.model.lines import Line

    from ..allocators.pointers import HostArray
    from .watch import Checked

__all__ = ["Buffer"]


_numbers = count()
_number_of = attrgetter("_number")
_ptr_of = attrgetter("_held.side.ptr")  # nobody outside gets it so, thus nobody has asked for a view


class _Held:
    """What a buffer has; the buffer has the only reference to this.

    Attributes
    ----------
    side : Side
        The memory.
    older : Side or None
        The memory before that, while it is released.  It stays here if an interrupt comes.
    taken : Line or None
        The line that asked for the memory last, if it is checked.
    flights : list of Flight
        The copies that may still be in flight.
    """

    __slots__ = ("flights", "older", "side", "taken")

    def __init__(self) -> None:
        self.flights: list[Flight] = []
        self.older: Side | None = None
        self.taken: Line | None = None
        self.side: Side = Side(0, self.flights)

    def end(self) -> None:
        """Give everything back, because the buffer is gone, when the copies in flight are over."""
        if hasattr(self, "side"):
            if self.older is not None:
                self.older.end()
            self.leave()
            self.side.end()

    def leave(self) -> None:
        """Have a pool watch the memory, which is given back next, if somebody has asked for it."""
        side, taken = self.side, self.taken
        if taken is not None and side.owner is not None and side.ptr is not None and is_settled(side.owner):
            name = "host" if is_host(side.owner) else "device"
            leave_late_writes(side, LateWrites(name, side.byte_size, taken, line_of_caller()))

    __del__ = finalise


class Buffer:
    """Bytes on one device: its own, which it allocates and releases, or external, which it never releases.

    Parameters
    ----------
    byte_size : int
        In bytes.  Zero is allowed and allocates nothing.
    allocator : DeviceAllocator or None
        The allocator of the bytes.  With it and without `ptr`, they are allocated at once; their contents are
        undefined.  Without both, the buffer has no memory.
    ptr : array or None
        Memory that exists already, at least `byte_size` bytes.
    use_external : bool
        True: `ptr` is somebody else's; it is kept alive and never released, as with `from_external`.  False:
        `allocator` has allocated `ptr`, and this buffer has to release it.
    checked : bool, "always" or None
        Whether a pool tells of writes into the memory that come after its release; None as for `SyncedMemory`.

    Raises
    ------
    InvalidSizeError, InvalidArgumentError
        If `byte_size` is not a size, `allocator` is no allocator, `use_external` or `checked` is no ``bool``, or `ptr`
        has to be released and there is no allocator.
    BufferMismatchError
        If `ptr` is too small, read-only, not contiguous, or not memory of the allocator's device.
    AllocationError
        If there is no room.
    """

    __slots__ = (
        "__weakref__",
        "_allocator",
        "_busy",
        "_byte_size",
        "_checked",
        "_closed",
        "_held",
        "_lock",
        "_number",
    )

    def __init__(
        self,
        byte_size: int = 0,
        allocator: DeviceAllocator | None = None,
        ptr: Any = None,
        *,
        use_external: bool = False,
        checked: Checked | None = None,
    ) -> None:
        self._held = _Held()
        if allocator is not None:
            check_allocator("allocator", allocator, "an allocator, or None")
        self._byte_size = check_byte_size(byte_size)
        use_external = as_flag(use_external, "use_external")
        self._checked = bool(is_checked(checked, allocator)) and is_pooled(allocator)
        self._allocator = allocator
        self._closed = False
        self._lock = fork_safe_lock()
        self._number = next(_numbers)
        self._busy = False
        if ptr is not None:
            self._take(ptr, use_external)
        elif allocator is not None:
            self.allocate()

    @classmethod
    def from_external(cls, memory: Any, byte_size: int | None = None, allocator: DeviceAllocator | None = None) -> Self:
        """A buffer over somebody else's memory, which is kept alive and never released.

        This is KuiperLLama's ``Buffer(byte_size, allocator, ptr, use_external=true)``.

        Parameters
        ----------
        memory : array
            An array; on the host, any object with the buffer protocol.
        byte_size : int or None
            The size of the buffer: so many of the first bytes of `memory`; None for all of them.
        allocator : DeviceAllocator or None
            The allocator of the device that has the memory; None for host memory.

        Raises
        ------
        InvalidSizeError, InvalidArgumentError, BufferMismatchError
            As for the class.
        """
        if memory is None:
            raise BufferMismatchError("Buffer.from_external", None, "it is no memory")
        return cls(_size_of(memory) if byte_size is None else byte_size, allocator, memory, use_external=True)

    def _take(self, ptr: Any, use_external: bool) -> None:
        if self._allocator is None and not use_external:
            raise InvalidArgumentError("allocator", None, "an allocator, which ptr came from and can go back to")
        try:
            # Adopting it checks the size, the kind and the device.
            view = (self._allocator or cpu_allocator()).adopt(ptr, self._byte_size)
        except BufferMismatchError as error:
            raise BufferMismatchError("Buffer", ptr, error.reason) from None
        except (SyncedMemoryError, MemoryError, RecursionError, TimeoutError):
            raise
        except ValueError as error:
            raise BufferMismatchError("Buffer", ptr, words(error)) from None
        except Exception as error:
            raise BufferMismatchError("Buffer", ptr, said(error)) from error
        # The array to release must be the very array that was allocated, not a view of it.
        what = (view, None) if use_external else (ptr, self._allocator)
        self._held.side = Side(self._byte_size, self._held.flights, *what)

    def allocate(self) -> bool:
        """Allocate new bytes, with undefined contents; the old memory is released if it was ours, or dropped.

        After `close` this opens the buffer again.

        Returns
        -------
        bool
            Whether there is memory now; False for a buffer of zero bytes.

        Raises
        ------
        InvalidArgumentError
            If there is no allocator.
        AllocationError
            If there is no room for the old and the new bytes at once.
        ReleaseError
            If the old memory cannot be released.  After any of these errors the buffer is unchanged.
        """
        return bool(self._alone("allocate", self._allocate))

    def _alone(self, call: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do the work of a call while no other thread is inside, and refuse calls from inside it."""
        with self._lock:
            if self._busy:
                raise ReentrantCallError(call)
            self._busy = True
            try:
                return work(*arguments)
            finally:
                self._busy = False

    def _allocate(self) -> bool:
        if self._allocator is None:
            raise InvalidArgumentError("allocator", None, "an allocator, to allocate with")
        fresh = Side(self._byte_size, self._held.flights)
        try:
            with reporting("allocate", self._allocator):
                fresh.allocate(self._allocator)
            self._end_copies()
            self._replace(fresh)
        except Exception as error:
            if self._held.side is not fresh:
                fresh.give_back(error)
            raise
        self._closed = False
        return fresh.ptr is not None

    def _replace(self, fresh: Side) -> None:
        """Have other memory, or none, and release the old one; if that is refused, the buffer has the old one again."""
        held = self._held
        if held.older is not None:  # an interrupt has left it here
            held.older.end()
        # The old memory is out of the buffer before it is released, so no interrupt leaves a pointer to a free block.
        held.leave()
        held.older, held.side = held.side, fresh
        try:
            held.older.release()
        except Exception:
            if held.older.ptr is not None:
                held.side, held.older = held.older, None
            raise
        held.older = held.taken = None

    def copy_from(self, source: Buffer, *, stream: Any = None, need_sync: bool = False) -> None:
        """Copy all bytes of another buffer to the beginning of this one, between any two devices.

        Parameters
        ----------
        source : Buffer
            It is at most as long as this buffer.
        stream : stream or None
            A stream of the device of one of the two.  With it the copy is queued, and both buffers wait for it before
            they release their memory; work on other streams does not wait for it.  Without it, the copy is done on
            return, and comes after the copies that are queued into and out of both.  If the two devices cannot reach
            each other, the bytes go through the host, and the copy is done on return in any case.
        need_sync : bool
            Wait for the whole device before returning.

        Raises
        ------
        InvalidArgumentError
            If `source` is no buffer, `need_sync` is no ``bool``, or one of the two has no memory.
        InvalidSizeError
            If `source` is longer than this buffer; KuiperLLama copies the part that fits, without an error.
        DeviceError
            If the copy fails.  Also if an earlier queued copy has to be over first and has failed; this is told once.
            A copy that was queued happens even if its event cannot be recorded.
        ReentrantCallError
            If an allocator calls this buffer while this buffer calls it; the same holds for `allocate` and `close`.
        """
        if not isinstance(source, Buffer):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers without types
            raise InvalidArgumentError("source", source, "a Buffer")
        need_sync = as_flag(need_sync, "need_sync")  # here, because a device would refuse it when the copy is queued
        size = source.byte_size
        if size > self._byte_size:
            raise InvalidSizeError(size, self._byte_size)
        for argument, buffer in (("source", source), ("destination", self)):
            if _ptr_of(buffer) is None and size:
                raise InvalidArgumentError(argument, buffer, "a buffer with memory")
        work = self._copy, source, size, stream, need_sync
        if source is self:
            self._alone("copy_from", *work)
            return
        # The newer one first, as a fork takes locks; so two threads that copy in opposite directions cannot deadlock.
        inner, outer = sorted((self, source), key=_number_of)
        outer._alone("copy_from", inner._alone, "copy_from", *work)  # noqa: SLF001 -- of this class

    def _copy(self, source: Buffer, size: int, stream: Any, need_sync: bool) -> None:
        down, up = (buffer.allocator is not None and not is_host(buffer.allocator) for buffer in (source, self))
        there: Any = self.allocator if up else source.allocator if down else cpu_allocator()
        with reporting("copy_from", there):
            indirect = up and down and size > 0 and source is not self and not self._reaches(source)
            if stream is not None and (up or down) and not indirect:
                there.check_stream(stream)
        if size == 0 or source is self:  # a device may refuse a copy whose ends overlap
            with reporting("copy_from", there):
                there.memcpy(None, None, 0, MemcpyKind.CPU2CPU, None, need_sync)
            return
        queued = stream is not None and (up or down) and not indirect
        if not queued:
            for buffer in (self, source):
                buffer._end_copies()  # noqa: SLF001 -- of this class
        if indirect:
            # These two cannot copy directly, so the bytes go through the host, which both can reach.
            host = cpu_allocator().empty(size)
            with reporting("copy_from", source.allocator):
                cast("Any", source.allocator).memcpy(_ptr_of(source), host, size, MemcpyKind.CUDA2CPU)
            with reporting("copy_from", there):
                there.memcpy(host, _ptr_of(self), size, MemcpyKind.CPU2CUDA, None, need_sync)
            return
        kind = MemcpyKind.between(from_device=down, to_device=up)
        with reporting("copy_from", there):
            if not queued:
                there.memcpy(_ptr_of(source), _ptr_of(self), size, kind, None, need_sync)
                return
            flight = Flight(there, stream, (_ptr_of(source), _ptr_of(self)))
            for flights in (self._held.flights, source._held.flights):
                flights[:] = [*(flight for flight in flights if not (flight.failed or flight.landed)), flight]
            flight.start(size, kind)
            there.memcpy(None, None, 0, kind, stream, need_sync)

    def _reaches(self, source: Buffer) -> bool:
        """Whether this buffer's device can copy from the other one's memory."""
        allocator: Any = self._allocator
        try:
            allocator.adopt(_ptr_of(source), source.byte_size)
        except ValueError:
            return False
        return True

    def close(self) -> None:
        """Release the memory if it is ours, when copies in flight have happened; external memory is dropped.

        Closing twice is harmless.

        Raises
        ------
        ReleaseError, DeviceError
            If the memory cannot be released, or a copy cannot be waited for; we still have to release it.
        """
        self._alone("close", self._close)

    def _close(self) -> None:
        self._end_copies()
        self._replace(Side(self._byte_size, self._held.flights))
        self._closed = True

    def _end_copies(self) -> None:
        """Wait for the copies in flight.  If one failed, this is told once, and the memory is released nevertheless."""
        for flight in self._held.flights:
            if not flight.failed:
                flight.wait()
        self._held.flights.clear()

    def __enter__(self) -> Self:
        if self._closed:
            raise ClosedMemoryError("with", self._byte_size, "buffer")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def ptr(self) -> HostArray | DeviceArray | None:
        """The memory itself, as an array of the device's kind; None if there is none."""
        if self._checked:
            self._held.taken = line_of_caller()
        ptr: HostArray | DeviceArray | None = _ptr_of(self)
        return ptr

    @property
    def byte_size(self) -> int:
        """The length in bytes."""
        return self._byte_size

    @property
    def nbytes(self) -> int:
        """The length in bytes, under the name that arrays use."""
        return self._byte_size

    @property
    def allocator(self) -> DeviceAllocator | None:
        """The allocator of the memory, or None."""
        return self._allocator

    @property
    def device_type(self) -> DeviceType:
        """The kind of device that has the memory; unknown if there is neither an allocator nor memory."""
        if self._allocator is not None:
            return self._allocator.device_type
        return DeviceType.UNKNOWN if self._held.side.ptr is None else DeviceType.CPU

    @property
    def is_external(self) -> bool:
        """Whether the memory is somebody else's."""
        return self._held.side.ptr is not None and self._held.side.owner is None

    def __len__(self) -> int:
        return self._byte_size

    def __repr__(self) -> str:
        kind = "no memory" if self._held.side.ptr is None else "external" if self.is_external else "owned"
        where = self.device_type.name.lower() if self._allocator is None else where_of(self._allocator)
        return f"<Buffer {self._byte_size} bytes on {where}, {kind}>"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "use copy_from()")


def _size_of(memory: Any) -> int:
    """How many bytes an object has; 0 if it is no memory, which is refused later."""
    with suppress(Exception):
        return int(memory.nbytes)
    with suppress(Exception):
        return memoryview(memory).nbytes
    return 0
