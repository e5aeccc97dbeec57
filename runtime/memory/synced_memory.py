"""`SyncedMemory`: one buffer, mirrored on the host and on a device.

The head machine decides what each call does (`syncedmem.model.caffe`).  In addition a memory keeps four promises that
Caffe does not make: a call that raises has changed nothing; an adopted buffer is checked and kept alive; memory in
flight is neither freed nor returned for writing; and every view is an object that nobody else has.

A call is looked up in the compiled table, and its actions are performed on the two sides.  If one fails, what the call
has allocated is given back.  The last step, which cannot fail, stores the next state.  A call runs code of others:
allocators, adopted buffers, events.  Until the call is over, the memory is *busy*.  Other threads wait.  A call from
inside that code, by the same thread, is refused, because it would find a state between before and after.

The four accessors are the hot path.  At the end of each call, every accessor that has nothing left to do gets the bound
method that makes its view.  Until the next call that does something, the accessor only calls that method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Self
from weakref import ref

import numpy as np

from syncedmem.model import (
    BufferMismatchError,
    ClosedMemoryError,
    Mode,
    NotCopyableError,
    ReentrantCallError,
    SyncedHead,
    SyncedMemoryError,
    WrongDeviceError,
    caffe,
    current_mode,
)
from syncedmem.model.errors import said, words
from syncedmem.model.refusals import error_of

from ..allocators.failures import reporting
from ..allocators.forking import fork_safe_lock
from ..allocators.pointers import as_flag, check_byte_size
from ..devices.registry import AUTOMATIC, resolve_sides
from . import dlpack
from .copies import Copies, admit, enter, observed
from .side import Side
from .sides import ACTIONS, EMPTY_ACTIONS, Sides
from .tables import (
    ACCESSORS,
    CPU_POINTER,
    GPU_POINTER,
    HEADS,
    OWN_CPU,
    OWN_GPU,
    PINNED,
    READ_CPU,
    READ_GPU,
    TABLES,
    WRITE_CPU,
    WRITE_GPU,
)
from .watch import ALWAYS, Watch, is_checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from syncedmem.model.interface import DeviceArray, Pointer, Stream

    from ..allocators.arguments import DeviceMemory, HostMemory, ReadOnlyArray
    from ..allocators.base import DeviceAllocator
    from ..allocators.pointers import HostArray
    from ..devices.registry import Resolved
    from .tables import Cell
    from .watch import Checked

__all__ = ["SyncedMemory", "memory_over"]

_VIEWING = "making a view"

_SET_CPU, _SET_GPU = caffe.SET_CPU_DATA.name, caffe.SET_GPU_DATA.name
_PUSH, _RELEASE = caffe.ASYNC_GPU_PUSH.name, caffe.RELEASE.name


class SyncedMemory:
    """A buffer of `size` bytes with a host side and a device side, kept in step lazily.

    Nothing is allocated until a call asks for a side.  If nothing was ever written, that side is zeroed.  Reading a
    stale side copies to it; writing a side makes the other one stale.  Sources: syncedmem.hpp:51-91,
    syncedmem.cpp:6-185.

    Calls on one object are serialised, so two threads never see half a transition.  Writes through views are not;
    threads have to order these themselves.  Copying and pickling are refused, as in Caffe (syncedmem.hpp:90).

    Parameters
    ----------
    size : int
        In bytes.  Zero is allowed and allocates nothing.
    host : DeviceAllocator or None
        The allocator of pageable host memory: for a memory without a device, and for any memory in CPU mode.  None for
        the shared `CPUDeviceAllocator`.
    pinned : DeviceAllocator or None
        The allocator of host memory in GPU mode.  This is the default mode if there is a device; Caffe takes
        page-locked memory in it (CaffeMallocHost, syncedmem.hpp:19-34).  None for ``device.pinned_host()``, or for
        `host` if that returns ordinary memory, as on OpenCL.  If you give a `host` of your own and the device has
        page-locked memory, you have to give this argument too: ``pinned=host`` for one allocator in both modes, or
        ``pinned=device.pinned_host()``.  A limit of the device's allocator does not count this memory.
    device : DeviceAllocator, str or None
        ``"auto"`` (CUDA if there is a GPU, otherwise simulated; ``SYNCEDMEM_DEVICE`` overrides this), ``"simulated"``,
        ``"opencl"``, ``"cuda"``, one of these three with a number (``"cuda:1"``), or an allocator.  None or ``"cpu"``
        makes a memory without a device.
    check_device : bool
        Refuse every call while another device is current, as Caffe's DEBUG build does (syncedmem.cpp:170-183).
    checked : bool, "always" or None
        Tell of views that are kept too long: each call compares the bytes that must not have changed since the last
        one, and raises `StaleWriteError` if they have; a side that becomes stale is filled with 0xFF, which is NaN for
        floats.  Bytes are looked at only if somebody has a view of them, as far as this is known; with ``"always"``
        at every call.  None: what the environment variable ``SYNCEDMEM_CHECKED`` says, 0, 1 or always; without it,
        True if the device is the simulated one.

    Raises
    ------
    InvalidSizeError, InvalidArgumentError
        If `size` is negative, beyond the address space or not an integer; if `host`, `pinned` or `device` cannot be
        used; or if `pinned` is needed and missing.
    NoDeviceError
        If `device` is an unknown name, or names a device that is not here.
    """

    __slots__ = (
        "__weakref__",
        "_actions",
        "_busy",
        "_check_device",
        "_closed",
        "_lock",
        "_read_cpu",
        "_read_gpu",
        "_shared",
        "_sides",
        "_size",
        "_state",
        "_table",
        "_write_cpu",
        "_write_gpu",
    )

    _read_cpu: Callable[[], ReadOnlyArray[tuple[int], np.dtype[np.uint8]]] | None
    _write_cpu: Callable[[], HostArray] | None
    _read_gpu: Callable[[], DeviceArray] | None
    _write_gpu: Callable[[], DeviceArray] | None

    def __init__(  # noqa: PLR0913 -- where the two sides are, and two kinds of checks
        self,
        size: int,
        *,
        host: DeviceAllocator | None = None,
        pinned: DeviceAllocator | None = None,
        device: DeviceAllocator | str | None = AUTOMATIC,
        check_device: bool = False,
        checked: Checked | None = None,
    ) -> None:
        allocators = resolve_sides(host, pinned, device)
        size = check_byte_size(size, "size")
        self._prepare(size, allocators, as_flag(check_device, "check_device"), is_checked(checked, allocators[2]))

    def _prepare(self, size: int, allocators: Resolved, check_device: bool, checked: Checked) -> None:
        self._size = size
        self._sides = sides = Sides(size, *allocators)
        self._table = TABLES[sides.device is not None]
        self._actions = ACTIONS if size else EMPTY_ACTIONS
        self._check_device = check_device and sides.device is not None
        if checked:
            sides.watch = Watch(sides, self, always=checked == ALWAYS)
        self._lock = fork_safe_lock()
        self._state = self._table.start
        self._closed = False
        self._shared = False  # whether several blobs have used it: then none of them may close it
        self._busy = False
        self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None

    # --- the four accessors

    def cpu_data(self) -> ReadOnlyArray[tuple[int], np.dtype[np.uint8]]:
        """The host side, to read (syncedmem.cpp:93-97).

        If nothing was ever written, this allocates and zeroes the host side.  If the device side is fresher, it copies
        from there.

        Returns
        -------
        numpy.ndarray
            One-dimensional, ``uint8``, `size` elements: a new view over the memory itself, which stays read-only.  It
            shows the bytes of the host side until the head moves.

        Raises
        ------
        AllocationError, DeviceError
            If host memory cannot be allocated, or the copy fails.
        ClosedMemoryError
            If this memory is closed.
        WrongDeviceError
            If another device is current and `check_device` is on.
        """
        ready = self._read_cpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        view: ReadOnlyArray[tuple[int], np.dtype[np.uint8]]
        view = self._alone(ACCESSORS[READ_CPU], self._access, READ_CPU)
        return view

    def mutable_cpu_data(self) -> HostArray:
        """The host side, to write (syncedmem.cpp:136-141): as `cpu_data`, and then the device side is stale.

        It waits for a push in flight, which still reads these bytes.  Take a new view each time you write: when another
        call moves the head on, what an old view writes would be lost.  So the view that this call returned when it
        moved the head becomes read-only then.  Parts of it that were taken before, as ``view[2:]``, do not.

        Returns
        -------
        numpy.ndarray
            As `cpu_data`, but writeable.

        Raises
        ------
        AllocationError, DeviceError, ClosedMemoryError, WrongDeviceError
            As `cpu_data`.
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

    def gpu_data(self) -> DeviceArray:
        """The device side, to read (syncedmem.cpp:110-119).

        If nothing was ever written, this allocates and zeroes the device side.  If the host side is fresher, it copies
        from there.  After `async_gpu_push` the device's current stream waits for the copy; the host does not.

        Returns
        -------
        array
            One-dimensional, ``uint8``, `size` elements, of the device's own kind (``cupy.ndarray``,
            ``pyopencl.array.Array``, `SimulatedArray`): a new view over the memory itself.

        Raises
        ------
        NoDeviceError
            If this memory has no device.
        AllocationError, DeviceError
            If device memory cannot be allocated, or the copy fails.
        ClosedMemoryError, WrongDeviceError
            As `cpu_data`.
        """
        ready = self._read_gpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        view: DeviceArray = self._alone(ACCESSORS[READ_GPU], self._access, READ_GPU)
        return view

    def mutable_gpu_data(self) -> DeviceArray:
        """The device side, to write (syncedmem.cpp:143-153): as `gpu_data`, and then the host side is stale."""
        ready = self._write_gpu
        if ready is not None:
            try:
                return ready()
            except Exception:
                with self._viewing():
                    raise
        view: DeviceArray = self._alone(ACCESSORS[WRITE_GPU], self._access, WRITE_GPU)
        return view

    # --- adoption, push, release

    def set_cpu_data(self, data: HostMemory) -> None:
        """Use somebody else's host memory as the host side, which becomes the fresh one (syncedmem.cpp:99-108).

        If the memory owns its host side, that is freed.  The device side is kept and becomes stale, so newer bytes
        there are lost.  Later copies from the device are written into `data`.

        Parameters
        ----------
        data : buffer
            Writeable and contiguous, at least `size` bytes.  It is kept alive, and never freed by this memory.  If it
            is a NumPy array that you make read-only later, calls that would write to it raise `InvalidPointerError`
            until it is writeable again.  If another memory uses the same bytes, in whole or in part, neither knows what
            the other writes: you have to order them, and to tell the second one by `mutable_cpu_data`.

        Raises
        ------
        BufferMismatchError
            If `data` is None, too small, read-only, not contiguous, not host memory, a masked array, or the host side
            that this memory owns.
        ReleaseError
            If the host side that this memory owns cannot be freed.
        ClosedMemoryError, WrongDeviceError
            As `cpu_data`.
        """
        self._alone(_SET_CPU, self._adopt, _SET_CPU, data, _SET_CPU)

    def set_gpu_data(self, data: DeviceMemory) -> None:
        """Use somebody else's device memory as the device side, which becomes the fresh one (syncedmem.cpp:121-134).

        As `set_cpu_data`; `data` is an array of the device's own kind, on this memory's device.  A view of another
        memory's side is freed with that side.  On OpenCL and CUDA it is written to even if it was made for reading.
        """
        self._alone(_SET_GPU, self._adopt, _SET_GPU, data, _SET_GPU)

    def async_gpu_push(self, *, stream: Stream) -> None:
        """Queue a copy to the device and count both sides as fresh at once (syncedmem.cpp:156-167).

        Until the copy has happened, every call that would free or overwrite its bytes waits for it.  The copy itself
        comes after the work that is on the device's current stream now, which may still read the old bytes; the host
        does not wait.  If `stream` itself is the current one (``with device.on(stream):``), you have to order the copy
        yourself.

        Parameters
        ----------
        stream : stream
            A stream of this memory's device.  There is no default, because whoever pushes must know what to wait for.

        Raises
        ------
        IllegalCallError
            Unless the head is ``HEAD_AT_CPU``.
        InvalidArgumentError
            If `stream` is no stream of the device.
        NoDeviceError
            If this memory has no device.
        AllocationError, DeviceError
            If device memory cannot be allocated, or the copy cannot be queued.
        ClosedMemoryError, WrongDeviceError
            As `cpu_data`.
        """
        self._alone(_PUSH, self._push, stream)

    def wait(self) -> None:
        """Wait on the host until a push in flight has happened; returns at once if there is none.

        Raises
        ------
        DeviceError
            If the push failed.  The device side then has to be written again.
        ClosedMemoryError, WrongDeviceError
            As `cpu_data`.
        """
        self._alone("wait", self._wait)

    def close(self) -> None:
        """Free the sides that this memory owns, the host side first (syncedmem.cpp:26-37); adopted buffers are dropped.

        It waits for a push in flight.  Closing twice is harmless.

        Raises
        ------
        ReleaseError
            If a side cannot be freed.  If it was the first one, nothing has changed; if it was the second one, the
            memory is closed.  In both cases, call again to free what is left.
        DeviceError
            If waiting for the push failed; nothing has changed.
        """
        self._alone("close", self._close)

    def __enter__(self) -> Self:
        self._open("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._sides.watch is not None:
            self._sides.watch.warn(self._sides, "at the end of the with block")  # an error would hide the other one
        self.close()

    # --- for other libraries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        """What `cpu_data` returns, for ``np.asarray``."""
        np.array(dlpack.nothing(np.uint8), dtype, copy=copy)  # raises, before the head moves, what the next line would
        return np.array(self.cpu_data(), dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the fresh side is, the device first if both are; the host if DLPack cannot describe the device.

        PyOpenCL's arrays and those of the simulated device cannot be exported.
        """
        on_device = self.head in (SyncedHead.HEAD_AT_GPU, SyncedHead.SYNCED)
        return dlpack.device_of(self._sides.device) if on_device else dlpack.HOST

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        """A capsule over the fresh side, to read, as `cpu_data` and `gpu_data` return it; see `__dlpack_device__`.

        The capsule of the host side is read-only, so the consumer has to support versions (``max_version=(1, 0)``).
        CuPy's capsules cannot say so.

        Parameters
        ----------
        dl_device : tuple of int, optional
            As in the array API standard: the memory's own device, or the host.
        **options
            ``stream``, ``max_version`` and ``copy``, for NumPy or the library of the device.

        Raises
        ------
        InvalidArgumentError
            If `dl_device` is no pair of integers.
        BufferError
            If there is no side on that device, or it cannot be exported in that way; the head has not moved.
        ClosedMemoryError
            If this memory is closed.
        """
        self._open("__dlpack__")
        there = self.__dlpack_device__() if dl_device is None else dl_device
        return dlpack.capsule(np.dtype(np.uint8), self._sides.device, there, options, (self.cpu_data, self.gpu_data))

    # --- what a memory has

    @property
    def size(self) -> int:
        """The size in bytes; it never changes."""
        return self._size

    @property
    def nbytes(self) -> int:
        """The size in bytes, under the name that arrays use."""
        return self._size

    @property
    def head(self) -> SyncedHead:
        """Which side is fresh; asking moves no bytes.

        Type checkers assume that a property keeps its value.  If you compare the head twice, with a call between
        that moves it, compare its ``name``.
        """
        return HEADS[self._open("head")]

    @property
    def own_cpu_data(self) -> bool:
        """Whether this memory owns its host side; False if that is external, or there is none (syncedmem.hpp:85)."""
        return bool(self._open("own_cpu_data") & OWN_CPU)

    @property
    def cpu_malloc_use_cuda(self) -> bool:
        """Whether the host side that this memory owns was allocated page-locked, in GPU mode."""
        return bool(self._open("cpu_malloc_use_cuda") & PINNED)

    @property
    def own_gpu_data(self) -> bool:
        """Whether this memory owns its device side; False if that is external, or there is none."""
        return bool(self._open("own_gpu_data") & OWN_GPU)

    @property
    def device(self) -> DeviceAllocator | None:
        """The allocator of the device side, or None."""
        device: DeviceAllocator | None = self._sides.device
        return device

    @property
    def copies(self) -> Copies:
        """How often this memory has copied bytes up and down, and how many bytes that were; a queued push counts."""
        up, down = self._sides.up, self._sides.down
        return Copies(up, down, (up + down) * self._size)

    @property
    def checked(self) -> bool:
        """Whether views that are kept too long are told."""
        return self._sides.watch is not None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _open(self, call: str) -> int:
        """The packed state, after a check that this memory is not closed."""
        if self._closed:
            raise ClosedMemoryError(call, self._size)
        return self._state

    def __repr__(self) -> str:
        if self._closed:
            return f"<SyncedMemory {self._size} bytes, closed>"
        pinned = " pinned" if self._state & OWN_CPU and self._state & PINNED else ""
        cpu = _shown(self._state, CPU_POINTER, OWN_CPU) + pinned
        gpu = _shown(self._state, GPU_POINTER, OWN_GPU)
        where = "no device" if self._sides.device is None else f"{self._sides.device.name} {gpu}"
        return f"<SyncedMemory {self._size} bytes, {self.head.name}, host {cpu}, {where}>"

    def _repr_svg_(self) -> str | None:
        """The diagram with the present head marked, in a notebook; a closed memory shows its repr only."""
        if self._closed:
            return None
        from syncedmem.model.diagrams.diagram import diagram_svg  # noqa: PLC0415 -- only a notebook needs what draws

        return diagram_svg(self._table.machine, at=self.head.name)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise NotCopyableError(type(self).__name__, "copy cpu_data() instead")

    # --- how a call is performed

    def _alone(self, call: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do the work of a call alone: other threads wait, and a call from inside it is refused."""
        with self._lock:
            if self._busy:
                raise ReentrantCallError(call)
            self._busy = True
            # No accessor may take the fast path while the state changes, so none is ready until the end.
            self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None
            try:
                if self._sides.watch is not None:
                    return self._watched(self._sides.watch, call, work, arguments)
                return work(*arguments)
            finally:
                self._busy = False
                if not (self._check_device or self._closed):
                    self._make_ready()

    def _watched(self, watch: Watch, call: str, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Do the work of a call of a checked memory: a stale write is told before it, or after it if it closes."""
        sides, before = self._sides, self._state
        error = watch.compare(sides, call)
        if error is not None and call != "close":
            raise error
        known = watch.forget()  # a call that fails may have written to a stale side, and be interrupted anywhere
        try:
            result = work(*arguments)
        except Exception:
            if before == self._state and HEADS[before] is SyncedHead.SYNCED:
                watch.expect(known)  # no side was stale, and they need not be the same any more
            else:
                watch.record(sides, HEADS[before], HEADS[self._state])
            raise
        if self._closed:
            pass
        elif before == self._state:
            watch.expect(known)
        else:
            watch.record(sides, HEADS[before], HEADS[self._state])
        watch.take(sides, call)
        if error is not None:
            raise error
        return result

    def _make_ready(self) -> None:
        """Make each accessor ready that has nothing left to do; before this call none is ready."""
        sides = self._sides
        if sides.watch is not None:
            self._make_ready_to_read(sides.watch)
            return
        read_cpu, write_cpu, read_gpu, write_gpu = self._table.idle[self._state]
        cpu, gpu, landed = sides.cpu.views, sides.gpu.views, not sides.flights
        if read_cpu and cpu is not None:
            self._read_cpu = cpu.reader.make
        if write_cpu and landed and cpu is not None:
            self._write_cpu = cpu.writer.make
        if read_gpu and landed and gpu is not None:
            self._read_gpu = gpu.reader.make
        if write_gpu and landed and gpu is not None:
            self._write_gpu = gpu.writer.make

    def _make_ready_to_read(self, watch: Watch) -> None:
        """As `_make_ready`, in a checked memory: only while nothing has to be compared.

        An accessor to write is never ready, because the watch remembers the last line that asked for it.
        """
        sides = self._sides
        if sides.flights or not watch.has_nothing_to_compare():
            return
        read_cpu, _, read_gpu, _ = self._table.idle[self._state]
        cpu, gpu = sides.cpu.views, sides.gpu.views
        if read_cpu and cpu is not None:
            self._read_cpu = cpu.reader.make
        if read_gpu and gpu is not None:
            self._read_gpu = gpu.reader.make
        if not watch.has_nothing_to_compare():  # another thread has just freed memory of which somebody has a view
            self._withdraw()

    def _withdraw(self) -> None:
        """Have the accessors ask the watch again."""
        self._read_cpu = self._read_gpu = None

    def _access(self, accessor: int) -> Any:
        """Perform an accessor that may have something to do, and make its view."""
        if self._closed or self._check_device:
            self._admit(ACCESSORS[accessor])
        cell, sides = self._table.accessors[accessor][self._state], self._sides
        if cell.refusal:
            self._refuse(cell.refusal, ACCESSORS[accessor], None)
        if sides.flights:
            self._await_push(accessor, cell)
        if cell.is_short:
            return self._move_head(cell, accessor)
        return self._perform(cell, None, accessor)

    def _move_head(self, cell: Cell, accessor: int) -> Any:
        """The most frequent calls that have something to do: nothing is allocated, and at most one copy is made.

        It is `_perform` without what these do not need: the mode, and a way to undo.
        """
        sides, doing = self._sides, _VIEWING
        logs = observed.get()
        coming = admit(logs, ACCESSORS[accessor], cell.actions, self._size) if logs else None
        try:
            for doing in cell.actions:
                self._actions[doing](sides, False, None)
            view = sides.view(accessor)
        except Exception:
            with reporting(doing, sides.where):
                raise
        if coming:
            enter(logs, coming, sides)
        self._become(cell.next[0], view, accessor)  # nothing is allocated, so the mode does not matter
        if accessor == WRITE_CPU and sides.flights:
            sides.flights.clear()  # the push has happened, or has failed, which does not matter any more
        return view

    def _perform(self, cell: Cell, argument: Any, accessor: int | None) -> Any:
        """Perform actions, make the view to return, and take effect; if anything fails before that, nothing changes."""
        sides, state, view = self._sides, self._state, None
        after = cell.next[current_mode() is Mode.GPU]  # by the values of the only setting
        logs, call = observed.get(), _PUSH if accessor is None else ACCESSORS[accessor]
        coming = admit(logs, call, cell.actions, self._size) if logs else None
        flights, doing = sides.flights.copy(), reporting(_VIEWING, sides.where)
        try:
            with doing:
                for doing.operation in cell.actions:
                    self._actions[doing.operation](sides, bool(after & PINNED), argument)
                if accessor is not None:
                    doing.operation = _VIEWING
                    view = sides.view(accessor)
        except BaseException as error:
            sides.undo(state & CPU_POINTER, state & GPU_POINTER, flights, error)
            raise
        if coming:
            enter(logs, coming, sides)
        self._become(after, view, accessor)
        return view

    def _become(self, after: int, view: Any, accessor: int | None) -> None:
        """Take effect.  If the head moves, the host view that was lent last loses its right, and a new one gets it."""
        before, self._state = self._state, after
        if before != after:
            sides = self._sides
            if sides.lent is not None:
                sides.end_right()
            if accessor == WRITE_CPU:
                sides.lent = ref(view)

    def _lend_instead(self, lent: HostArray, view: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Remember another view in place of the one that the last call returned, if that one has the right to write."""
        sides = self._sides
        if sides.lent is not None and sides.lent() is lent:
            sides.lent = ref(view)

    def _push(self, stream: Any) -> None:
        """Queue a copy to the device."""
        cell = self._looked_up(_PUSH, _PUSH, stream)
        with reporting(_PUSH, self._sides.device):
            self._sides.device.check_stream(stream)
        self._end_push()
        self._perform(cell, stream, None)

    def _adopt(self, call: str, buffer: Any, name: str) -> None:
        """Adopt a buffer: first all that can fail, and then what the side owned is freed.  Errors show `name`."""
        cell, sides = self._looked_up(call, name, buffer), self._sides
        after = cell.next[0]  # nothing is allocated, so the mode does not matter
        side, where = (sides.cpu, sides.pageable) if call == _SET_CPU else (sides.gpu, sides.device)
        ptr = self._adoptable(name, buffer, where, side)
        fresh = Side(self._size, sides.flights, ptr)
        with reporting(_VIEWING, where):
            sides.show(fresh, on_device=call == _SET_GPU)
        self._end_push()
        if sides.watch is not None:
            sides.watch.leave(sides, (side,))
        try:
            for action in cell.actions:
                self._actions[action](sides, False, None)
            side.release()  # forgets somebody else's buffer
        finally:
            if side.ptr is None:  # also after an interrupt: what is freed does not come back
                # No call comes between the side and the state: an interrupt finds both new, or neither.
                if call == _SET_CPU:
                    sides.cpu, self._state = fresh, after
                else:
                    sides.gpu, self._state = fresh, after
                sides.end_right(buffer)
                sides.flights.clear()

    def _looked_up(self, call: str, name: str, argument: Any) -> Cell:
        """What a call with an argument does, unless it is refused."""
        self._admit(name)
        if call not in self._table.columns:
            self._refuse(caffe.NO_GPU.name, name, argument)
        cell = self._table.columns[call][argument is not None][self._state]
        if cell.refusal:
            self._refuse(cell.refusal, name, argument)
        return cell

    def _close(self) -> None:
        if not self._closed:
            self._admit("close")
        self._end_push()
        sides = self._sides
        if sides.watch is not None:
            sides.watch.leave(sides, (sides.cpu, sides.gpu))
        for action in self._table.columns[_RELEASE][True][self._state].actions:
            side = sides.cpu if caffe.EVERYTHING.actions[action].side == caffe.CPU else sides.gpu
            try:
                self._actions[action](sides, False, None)
            finally:
                # One side is freed and does not come back.  Whatever happens to the other, this memory is closed.
                self._closed = self._closed or side.ptr is None
        self._closed = True
        sides.end_right()
        sides.flights.clear()
        for side in (sides.cpu, sides.gpu):
            if side.ptr is not None or side.owner is not None:
                side.release()  # what is adopted, and what an interrupt has left here

    # --- what is refused

    def _admit(self, call: str) -> None:
        """Refuse a call on a closed memory; with `check_device`, also while another device is current."""
        if self._closed:
            raise ClosedMemoryError(call, self._size)
        if self._check_device:
            device = self._sides.device
            with reporting("asking for the current device", device):
                current = device.current_ordinal()
            if current != device.ordinal:
                raise WrongDeviceError(call, device.ordinal, current)

    def _refuse(self, refusal: str, call: str, argument: Any) -> None:
        raise error_of(caffe.EVERYTHING.refusals[refusal], call, HEADS[self._state], argument)

    def _adoptable(self, call: str, buffer: Any, allocator: DeviceAllocator, side: Side) -> Pointer:
        """Somebody's buffer as a pointer."""
        try:
            ptr = allocator.adopt(buffer, self._size)
            ours = side.owner is not None and allocator.overlaps(ptr, side.ptr)
        except BufferMismatchError as error:
            raise BufferMismatchError(call, buffer, error.reason) from None
        except (SyncedMemoryError, MemoryError, RecursionError, TimeoutError):
            raise
        except ValueError as error:
            raise BufferMismatchError(call, buffer, words(error)) from None
        except Exception as error:
            raise BufferMismatchError(call, buffer, said(error)) from error
        if ours:
            raise BufferMismatchError(call, buffer, "it is this memory's own buffer, which would be freed")
        return ptr

    def _owns_bytes_of(self, other: SyncedMemory, own: int) -> bool:
        """Whether another memory uses bytes that this one would free, on the sides whose bits are in `own`."""
        mine, theirs = self._sides, other._sides
        sides = (OWN_CPU, mine.pageable, mine.cpu, theirs.cpu), (OWN_GPU, mine.device, mine.gpu, theirs.gpu)
        return any(
            own & fact and side.owner is not None and used.ptr is not None and _overlapping(where, used.ptr, side.ptr)
            for fact, where, side, used in sides
        )

    def _viewing(self) -> reporting:
        """A ``with`` block around the code that makes a view to return."""
        return reporting(_VIEWING, self._sides.where)

    # --- copies in flight

    def _await_push(self, accessor: int, cell: Cell) -> None:
        """Wait for a push in flight, as far as an accessor needs it.

        Reading on the host needs no wait.  Writing on the host needs only that the copy is over.  Everything else needs
        the pushed bytes: for a view of the device, later work there has to come after the copy; a copy to the host has
        to wait until the push has happened.  So if the push failed, these calls fail too, each time.
        """
        flights = self._sides.flights
        if accessor == READ_CPU and not cell.actions:
            return
        if accessor == WRITE_CPU and not cell.actions:
            self._end_push()
        elif accessor in (READ_CPU, WRITE_CPU) or not flights[0].precede():
            self._land()

    def _wait(self) -> None:
        self._admit("wait")
        if self._sides.flights:
            self._land()

    def _end_push(self) -> None:
        """Wait until a push is over, before its bytes are freed, overwritten or copied again.

        If it failed, one caller is told so; its bytes are not needed here.  The push is dropped when the call takes
        effect.
        """
        flights = self._sides.flights
        if flights and not flights[0].failed:
            self._land()

    def _land(self) -> None:
        """Wait for the push, which is in flight, and drop it."""
        flights = self._sides.flights
        flights[0].wait()
        flights.clear()


def memory_over(size: int, allocators: Resolved, checked: Checked) -> SyncedMemory:
    """A new memory over allocators that are known to be usable, for blobs, which make two at once."""
    memory = SyncedMemory.__new__(SyncedMemory)
    anything: Any = memory
    anything._prepare(size, allocators, False, checked)  # noqa: SLF001 -- a second way to make one
    return memory


def _shown(state: int, pointer: int, own: int) -> str:
    return "none" if not state & pointer else "owned" if state & own else "external"


def _overlapping(where: DeviceAllocator, first: Pointer, second: Pointer) -> bool:
    with reporting("comparing two buffers", where):
        return where.overlaps(first, second)
