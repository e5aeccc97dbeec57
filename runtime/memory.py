"""`SyncedMemory`: one buffer, mirrored on the host and on a device.

The head machine decides what each call does (`syncedmem.model.head`, through its compiled table); this module
performs it.  Around the machine it keeps four promises that Caffe does not make: a call that raises has
changed nothing, an adopted buffer is checked and kept alive, memory in flight is neither freed nor handed out
for writing, and every view is a fresh object.

The four accessors are the hot path.  After each call that changes something, every accessor that has nothing
left to do gets the bound method that makes its view, and until the next change it does nothing but call it.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any, Never, Self, cast

import numpy as np

from syncedmem.model import (
    EFFECTS,
    Action,
    BufferMismatchError,
    Call,
    ClosedMemoryError,
    Fact,
    Refusal,
    SyncedHead,
    WrongDeviceError,
    current_mode,
)
from syncedmem.model.dispatch import Cell, dispatch, facts_of, head_of, state_of
from syncedmem.model.machine import refusal_error

from .allocator import check_byte_size
from .bindings import BINDINGS, EMPTY_BINDINGS, Change, Sides, guarded
from .devices import resolve_device, resolve_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .allocator import DeviceAllocator, HostArray, Pointer
    from .bindings import Push

__all__ = ["SyncedMemory"]

Columns = dict[str, tuple[tuple[Cell, ...], tuple[Cell, ...]]]
Maker = Any  # a bound method that takes nothing and returns a new view, or None
Makers = tuple[Maker, Maker, Maker, Maker]

_NO_MAKERS: Makers = (None, None, None, None)
_NOTHING = np.frombuffer(b"", np.uint8)
_FRESH = state_of(SyncedHead.UNINITIALIZED)
_PUSH, _RELEASE = Call.ASYNC_GPU_PUSH.value, Call.RELEASE.value
_DEVICE_ACCESSORS = (Call.GPU_DATA.value, Call.MUTABLE_GPU_DATA.value)
_ACCESSORS = (Call.CPU_DATA.value, Call.MUTABLE_CPU_DATA.value, *_DEVICE_ACCESSORS)


def _columns(edition: str) -> Columns:
    # Columns hold None only for heads that the edition does not have, and no memory gets there.
    return {call.value: cast("Any", columns) for call, columns in dispatch(edition).columns.items()}


_CAFFE = _columns("caffe")
_CPU_ONLY = _columns("cpu_only")


class SyncedMemory:
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
        ``"auto"`` (CUDA where there is one, else simulated; ``SYNCEDMEM_DEVICE`` overrides), ``"simulated"``,
        ``"opencl"``, ``"cuda"``, an allocator, or None for a memory without a device.
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

    __slots__ = (
        "__weakref__",
        "_actions",
        "_check_device",
        "_closed",
        "_columns",
        "_cpu",
        "_gpu",
        "_lock",
        "_makers",
        "_push",
        "_read_cpu",
        "_read_gpu",
        "_sides",
        "_size",
        "_state",
        "_write_cpu",
        "_write_gpu",
    )

    _read_cpu: Callable[[], HostArray] | None
    _write_cpu: Callable[[], HostArray] | None
    _read_gpu: Callable[[], Any] | None
    _write_gpu: Callable[[], Any] | None

    def __init__(
        self,
        size: int,
        *,
        host: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = "auto",
        check_device: bool = False,
    ) -> None:
        self._state = _FRESH
        self._closed = True  # until everything below has succeeded, for the finaliser
        self._size = check_byte_size(size, "size")
        self._sides = Sides(resolve_host(host), resolve_device(device))
        self._columns = _CPU_ONLY if self._sides.device is None else _CAFFE
        self._actions = BINDINGS if self._size else EMPTY_BINDINGS
        self._check_device = check_device and self._sides.device is not None
        self._lock = threading.RLock()
        self._cpu: Pointer = None
        self._gpu: Pointer = None
        self._push: Push | None = None
        self._forget_views()
        self._closed = False

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
            return ready()
        view: HostArray = self._perform("cpu_data")
        return view

    def mutable_cpu_data(self) -> HostArray:
        """The host side, to write (000:229-234): as `cpu_data`, then the device side is stale.

        Waits for a push in flight, which still reads these bytes.  Take a new view for each round of writing:
        what is written through an old one after the head has moved is not noticed.
        """
        ready = self._write_cpu
        if ready is not None:
            return ready()
        view: HostArray = self._perform("mutable_cpu_data")
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
            return ready()
        return self._perform("gpu_data")

    def mutable_gpu_data(self) -> Any:
        """The device side, to write (000:236-246): as `gpu_data`, then the host side is stale."""
        ready = self._write_gpu
        if ready is not None:
            return ready()
        return self._perform("mutable_gpu_data")

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
        self._perform("set_cpu_data", data)

    def set_gpu_data(self, data: Any) -> None:
        """Use somebody else's device memory as the device side, which becomes the fresh one (000:214-227).

        Mirrors `set_cpu_data`; `data` is an array of the device's own kind, on this memory's device.
        """
        self._perform("set_gpu_data", data)

    def async_gpu_push(self, *, stream: Any) -> None:
        """Queue a copy to the device and count both sides as fresh at once (000:250-261).

        Until the copy has happened, whatever would free or overwrite its bytes waits for it.

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
        self._perform(_PUSH, stream)

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
        with self._lock:
            if self._closed and self._state == _FRESH:
                return
            self._check_current("close")
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_state", _FRESH) == _FRESH:
            return
        try:
            self._release()
        except Exception as error:  # noqa: BLE001 -- a finaliser cannot raise
            message = f"{self._size} bytes of a SyncedMemory leaked: {error}"
            warnings.warn(message, ResourceWarning, stacklevel=2)

    # --- what it is

    @property
    def size(self) -> int:
        """The size in bytes; never changes."""
        return self._size

    @property
    def head(self) -> SyncedHead:
        """Which side is fresh; moves nothing."""
        return head_of(self._open_state("head"))

    @property
    def own_cpu_data(self) -> bool:
        """Whether the host side is ours to free; not whether there is one (001:63 is mistaken)."""
        return bool(facts_of(self._open_state("own_cpu_data")) & Fact.OWN_CPU_DATA)

    @property
    def cpu_malloc_use_cuda(self) -> bool:
        """Whether our host side was allocated page-locked, in GPU mode."""
        return bool(facts_of(self._open_state("cpu_malloc_use_cuda")) & Fact.CPU_MALLOC_USE_CUDA)

    @property
    def own_gpu_data(self) -> bool:
        """Whether the device side is ours to free."""
        return bool(facts_of(self._open_state("own_gpu_data")) & Fact.OWN_GPU_DATA)

    @property
    def device(self) -> DeviceAllocator | None:
        """The allocator of the device side, or None."""
        device: DeviceAllocator | None = self._sides.device
        return device

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

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
        raise TypeError("a SyncedMemory owns memory and cannot be copied or pickled; copy cpu_data() instead")

    # --- how a call is performed

    def _perform(self, call: str, argument: Any = None) -> Any:
        with self._lock:
            self._open_state(call)
            self._check_current(call)
            cell = self._cell(call, argument)
            argument = self._checked(call, argument)
            self._await_push(call, cell)
            after = cell.next[current_mode().value]
            change = self._change(after, argument)
            makers, view = self._act(change, cell.actions, call)
            # Nothing below can fail: here the call takes effect.
            self._cpu, self._gpu, self._makers = change.cpu, change.gpu, makers
            self._push = change.push or self._push
            self._state = after
            self._make_ready()
            return view

    def _cell(self, call: str, argument: Any) -> Cell:
        """What the machine says about this call; a refusal is raised here, before anything happens."""
        if call not in self._columns:
            raise refusal_error(Refusal.NO_GPU, call, self.head, argument)
        cell = self._columns[call][argument is not None][self._state]
        if cell.refusal is not None:
            raise refusal_error(cell.refusal, call, self.head, argument)
        return cell

    def _change(self, after: int, argument: Any) -> Change:
        before = facts_of(self._state)
        return Change(self._sides, self._size, self._cpu, self._gpu, before, facts_of(after), argument)

    def _act(self, change: Change, actions: tuple[Action, ...], call: str) -> tuple[Makers, Any]:
        """Perform actions in order and make the view to return; if anything fails, undo what was done."""
        doing = ""
        try:
            for action in actions:
                doing = action.value
                self._actions[action](change)
            doing = "making a view"
            makers = self._view_makers(change)
            maker = makers[_ACCESSORS.index(call)] if call in _ACCESSORS else None
            return makers, maker() if maker else None
        except Exception as error:
            change.undo()
            wrapped = guarded(doing, self._sides.device or self._sides.pageable, error)
            if wrapped is error:
                raise
            raise wrapped from error
        except BaseException:
            change.undo()
            raise

    def _release(self) -> None:
        """Free what is ours, host side first, and let go of the rest."""
        self._await_push(_RELEASE, None)
        cell = self._columns[_RELEASE][True][self._state]
        change = self._change(self._state, None)
        for action in cell.actions:
            self._actions[action](change)
            # One side is gone for good: whatever happens to the other, this memory is closed.
            self._closed = True
            self._forget_views()
            self._state &= ~int(EFFECTS[action].clears)
        self._closed = True
        self._forget_views()
        self._cpu = self._gpu = self._push = None
        self._state = _FRESH

    def _checked(self, call: str, argument: Any) -> Any:
        """The argument as the actions need it: a pointer to adopt, a stream, or nothing."""
        if call == "set_cpu_data":
            return self._adopted(call, argument, self._sides.pageable, self._cpu, Fact.OWN_CPU_DATA)
        if call == "set_gpu_data":
            return self._adopted(call, argument, self._sides.device, self._gpu, Fact.OWN_GPU_DATA)
        if call == _PUSH:
            self._sides.device.check_stream(argument)
        return argument

    def _adopted(self, call: str, buffer: Any, allocator: DeviceAllocator, current: Pointer, own: Fact) -> Pointer:
        try:
            ptr = allocator.adopt(buffer, self._size)
        except ValueError as error:
            raise BufferMismatchError(call, buffer, str(error)) from None
        if facts_of(self._state) & own and allocator.overlaps(ptr, current):
            raise BufferMismatchError(call, buffer, "it is this memory's own buffer, which would be freed")
        return ptr

    def _check_current(self, call: str) -> None:
        if self._check_device:
            device = self._sides.device
            current = device.current_ordinal()
            if current != device.ordinal:
                raise WrongDeviceError(call, device.ordinal, current)

    def _open_state(self, call: str) -> int:
        if self._closed:
            raise ClosedMemoryError(call, self._size)
        return self._state

    # --- copies in flight

    def _await_push(self, call: str, cell: Cell | None) -> None:
        """Let a push in flight finish before its bytes are freed, overwritten or copied again.

        Reading the host needs no wait.  For a view of the device side it is enough that later work there
        comes after the copy.
        """
        push, passive = self._push, cell is not None and not cell.actions
        if push is None or (passive and call == Call.CPU_DATA.value):
            return
        try:
            if passive and call in _DEVICE_ACCESSORS and not push.event.done:
                self._sides.device.order_after(push.event)
                return
            push.event.synchronize()
        except Exception as error:
            raise guarded("waiting for the push", self._sides.device, error) from error
        self._push = None

    # --- views

    def _view_makers(self, change: Change) -> Makers:
        """For each accessor the bound method that makes its views, or None where there is no pointer."""
        read_cpu, write_cpu, read_gpu, write_gpu = self._makers
        if change.cpu is not self._cpu:
            read_cpu, write_cpu = _frozen(change.cpu).view, change.cpu.view
        if change.gpu is not self._gpu:
            read_gpu, write_gpu = self._sides.device.read_only(change.gpu).view, change.gpu.view
        return read_cpu, write_cpu, read_gpu, write_gpu

    def _make_ready(self) -> None:
        """Give each accessor that has nothing left to do its maker."""
        state, columns = self._state, self._columns
        ready = [
            maker if not self._check_device and columns[call][False][state].idle else None
            for call, maker in zip(_ACCESSORS, self._makers, strict=True)
        ]
        self._read_cpu, self._write_cpu, self._read_gpu, self._write_gpu = ready
        if self._push is not None:
            self._read_gpu = self._write_gpu = None

    def _forget_views(self) -> None:
        self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None
        self._makers = _NO_MAKERS


def _frozen(array: HostArray) -> HostArray:
    """The same bytes, read-only for good: views of it find no writeable owner to appeal to."""
    # Any: NumPy's stubs of this release do not declare that arrays have the buffer interface.
    return np.frombuffer(memoryview(cast("Any", array)).toreadonly(), np.uint8) if array.size else _NOTHING


def _shown(facts: Fact, pointer: Fact, own: Fact) -> str:
    return "none" if not facts & pointer else "owned" if facts & own else "external"
