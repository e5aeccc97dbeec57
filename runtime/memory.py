"""`SyncedMemory`: one buffer, mirrored on the host and on a device.

The head machine decides what each call does (`syncedmem.model.head`); `performer` does it.  Around the machine
it keeps four promises that Caffe does not make: a call that raises has changed nothing, an adopted buffer is
checked and kept alive, memory in flight is neither freed nor handed out for writing, and every view is a fresh
object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Self

from syncedmem.model import Call, ClosedMemoryError, Fact, NotCopyableError, SyncedHead
from syncedmem.model.dispatch import facts_of, head_of

from .allocator import check_byte_size
from .bindings import Sides
from .devices import resolve_device, resolve_host
from .performer import ACCESSORS, READ_CPU, READ_GPU, WRITE_CPU, WRITE_GPU, Performer

if TYPE_CHECKING:
    from types import TracebackType

    from .allocator import DeviceAllocator, HostArray

__all__ = ["SyncedMemory"]


class SyncedMemory(Performer):
    """A buffer of `size` bytes with a host side and a device side, kept in step lazily.

    Nothing is allocated until somebody asks for a side; a side asked for first is zeroed.  Reading a stale
    side copies, writing a side makes the other one stale.  Sources: 000:47-88, 000:100-280.

    Calls on one object are serialised, so two threads never see half a transition; what threads write through
    views is theirs to order.  Copying and pickling are refused, as in Caffe (000:87).

    Parameters
    ----------
    size : int
        In bytes; zero is legal and allocates nothing.
    host : DeviceAllocator or None
        Where pageable host memory comes from; None for the shared `CPUDeviceAllocator`.  Pinned host memory
        comes from the device (``device.pinned_host()``).
    device : DeviceAllocator, str or None
        ``"auto"`` (CUDA where there is one, else simulated; ``SYNCEDMEM_DEVICE`` overrides, with ``cpu`` for None),
        ``"simulated"``, ``"opencl"``, ``"cuda"``, an allocator, or None for a memory without a device.
    check_device : bool
        Refuse every call while another device is current, as Caffe's DEBUG build does (000:264-277).

    Raises
    ------
    InvalidSizeError, InvalidArgumentError
        If `size` is negative, beyond the address space or not an integer, or `host` or `device` is nothing
        that can be used.
    NoDeviceError
        If `device` names one that is unknown or not here.
    """

    __slots__ = ()

    def __init__(
        self,
        size: int,
        *,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
        check_device: bool = False,
    ) -> None:
        if hasattr(self, "_sides"):
            raise TypeError("a SyncedMemory is initialised once; make another one")
        sides = Sides(resolve_host(host), resolve_device(device))
        super().__init__(check_byte_size(size, "size"), sides, check_device=check_device)

    # --- the four accessors

    def cpu_data(self) -> HostArray:
        """The host side, to read (000:186-190).

        Allocates and zeroes it if nothing was ever written, copies from the device if that is fresher.

        Returns
        -------
        numpy.ndarray
            One-dimensional, ``uint8``, `size` elements, over the memory itself; a fresh view that is and
            stays read-only.  It shows what this memory holds on the host until the head moves.

        Raises
        ------
        AllocationError, DeviceError
            If host memory or the copy fails.
        ClosedMemoryError, WrongDeviceError
        """
        ready = self._read_cpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        view: HostArray = self._alone(ACCESSORS[READ_CPU], self._access, READ_CPU)
        return view

    def mutable_cpu_data(self) -> HostArray:
        """The host side, to write (000:229-234): as `cpu_data`, then the device side is stale.

        Waits for a push in flight, which still reads these bytes.  Take a new view for each round of writing:
        what is written through an old one after the head has moved is not noticed.
        """
        ready = self._write_cpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        view: HostArray = self._alone(ACCESSORS[WRITE_CPU], self._access, WRITE_CPU)
        return view

    def gpu_data(self) -> Any:
        """The device side, to read (000:203-212).

        Allocates and zeroes it if nothing was ever written, copies from the host if that is fresher.  After
        `async_gpu_push` the device's current stream waits for the copy; the host does not.

        Returns
        -------
        array
            One-dimensional, ``uint8``, `size` elements, of the device's own kind (``cupy.ndarray``,
            ``pyopencl.array.Array``, `SimulatedArray`); a fresh view over the memory itself.

        Raises
        ------
        NoDeviceError
            If this memory has no device.
        AllocationError, DeviceError
        ClosedMemoryError, WrongDeviceError
        """
        ready = self._read_gpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        return self._alone(ACCESSORS[READ_GPU], self._access, READ_GPU)

    def mutable_gpu_data(self) -> Any:
        """The device side, to write (000:236-246): as `gpu_data`, then the host side is stale."""
        ready = self._write_gpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        return self._alone(ACCESSORS[WRITE_GPU], self._access, WRITE_GPU)

    # --- adoption, push, release

    def set_cpu_data(self, data: Any) -> None:
        """Use somebody else's host memory as the host side, which becomes the fresh one (000:192-201).

        Our own host memory, if any, is freed.  The device side is kept and is stale: what only it held is
        lost.  Later copies from the device are written into `data`.

        Parameters
        ----------
        data : buffer
            Writeable and contiguous, at least `size` bytes; kept alive, never freed by us.

        Raises
        ------
        BufferMismatchError
            If `data` is None, too small, read-only, not contiguous, not host memory, or our own host side.
        ReleaseError
            If our own host memory cannot be freed.
        """
        self._alone(Call.SET_CPU_DATA.value, self._call, Call.SET_CPU_DATA.value, data)

    def set_gpu_data(self, data: Any) -> None:
        """Use somebody else's device memory as the device side, which becomes the fresh one (000:214-227).

        Mirrors `set_cpu_data`; `data` is an array of the device's own kind, on this memory's device.  A view of another
        memory's side is freed with that side, and on OpenCL and CUDA is written to even if it was made to read.
        """
        self._alone(Call.SET_GPU_DATA.value, self._call, Call.SET_GPU_DATA.value, data)

    def async_gpu_push(self, *, stream: Any) -> None:
        """Queue a copy to the device and count both sides as fresh at once (000:250-261).

        Until the copy has happened, whatever would free or overwrite its bytes waits for it.  On CUDA the copy comes
        after what the device's current stream holds, which may still read the old bytes; while `stream` itself is the
        current one (``with stream:``), that order is yours to make.

        Parameters
        ----------
        stream : stream
            Of this memory's device; there is no default, because who pushes must know whom to wait for.

        Raises
        ------
        IllegalCallError
            Unless the head is ``HEAD_AT_CPU``.
        InvalidArgumentError
            If `stream` is no stream of the device.
        NoDeviceError
            If this memory has no device.
        AllocationError, DeviceError
        """
        self._alone(Call.ASYNC_GPU_PUSH.value, self._call, Call.ASYNC_GPU_PUSH.value, stream)

    def close(self) -> None:
        """Free what is ours, host side first (000:120-130); external memory is let go.  Twice is harmless.

        Waits for a push in flight.

        Raises
        ------
        ReleaseError
            If memory cannot be freed.  When it was the first side nothing has changed; when it was the
            second, the memory is closed.  Either way calling again frees what is left.
        DeviceError
            If waiting for the push failed; nothing has changed.
        """
        self._alone("close", self._close)

    def _close(self) -> None:
        if not self._closed:
            self._admit("close")
        self._release()

    def __enter__(self) -> Self:
        self._open("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- what it is

    @property
    def size(self) -> int:
        """The size in bytes; never changes."""
        return self._size

    @property
    def head(self) -> SyncedHead:
        """Which side is fresh; moves nothing."""
        return head_of(self._open("head"))

    @property
    def own_cpu_data(self) -> bool:
        """Whether the host side is ours to free; not whether there is one (001:63 is mistaken)."""
        return bool(facts_of(self._open("own_cpu_data")) & Fact.OWN_CPU_DATA)

    @property
    def cpu_malloc_use_cuda(self) -> bool:
        """Whether our host side was allocated page-locked, in GPU mode."""
        return bool(facts_of(self._open("cpu_malloc_use_cuda")) & Fact.CPU_MALLOC_USE_CUDA)

    @property
    def own_gpu_data(self) -> bool:
        """Whether the device side is ours to free."""
        return bool(facts_of(self._open("own_gpu_data")) & Fact.OWN_GPU_DATA)

    @property
    def device(self) -> DeviceAllocator | None:
        """The allocator of the device side, or None."""
        device: DeviceAllocator | None = self._sides.device
        return device

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _open(self, call: str) -> int:
        """The packed state, if this memory is not closed."""
        if self._closed:
            raise ClosedMemoryError(call, self._size)
        return self._state

    def __repr__(self) -> str:
        if self._closed:
            return f"<SyncedMemory {self._size} bytes, closed>"
        facts = facts_of(self._state)
        pinned = " pinned" if facts & Fact.OWN_CPU_DATA and facts & Fact.CPU_MALLOC_USE_CUDA else ""
        cpu = _shown(facts, Fact.CPU_POINTER, Fact.OWN_CPU_DATA) + pinned
        gpu = _shown(facts, Fact.GPU_POINTER, Fact.OWN_GPU_DATA)
        where = "no device" if self._sides.device is None else f"{self._sides.device.name} {gpu}"
        return f"<SyncedMemory {self._size} bytes, {self.head.name}, host {cpu}, {where}>"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "copy cpu_data() instead")


def _shown(facts: Fact, pointer: Fact, own: Fact) -> str:
    return "none" if not facts & pointer else "owned" if facts & own else "external"
