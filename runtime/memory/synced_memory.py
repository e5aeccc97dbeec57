"""`SyncedMemory`: one buffer, mirrored on the host and on a device.

The head machine decides what each call does (`syncedmem.model.head`).  Around the machine a memory keeps four promises
that Caffe does not make: a call that raises has changed nothing, an adopted buffer is checked and kept alive, memory
in flight is neither freed nor handed out for writing, and every view is a fresh object.

A call is looked up in the compiled table, acted out as a `Transaction`, and committed when all of it has succeeded.  It
runs other people's code: allocators, buffers that are adopted, events.  Until it is over the memory is *busy*: other
threads wait, and calls of the same thread, made from inside that code, are refused, because they would find a state
that is neither before nor after.

The four accessors are the hot path.  At the end of each call every accessor that has nothing left to do gets the
bound method that makes its view; until the next call that does something, it does nothing but call it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Never, Self, cast

import numpy as np

from syncedmem.model import (
    EFFECTS,
    BufferMismatchError,
    Call,
    ClosedMemoryError,
    Fact,
    Mode,
    NotCopyableError,
    ReentrantCallError,
    Refusal,
    SyncedHead,
    SyncedMemoryError,
    WrongDeviceError,
    current_mode,
)
from syncedmem.model.dispatch import Cell, facts_of, head_of
from syncedmem.model.editions import dispatch, edition_for
from syncedmem.model.errors import said, words
from syncedmem.model.machine import refusal_error

from ..allocators.failures import reporting
from ..allocators.pointers import check_byte_size
from ..devices.registry import resolve_device, resolve_host
from .bindings import BINDINGS, EMPTY_BINDINGS
from .owned import Finaliser, Holding, finish
from .transaction import Sides, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from syncedmem.model.interface import DeviceArray, Pointer

    from ..allocators.base import DeviceAllocator
    from ..allocators.pointers import HostArray
    from .flight import Push
    from .owned import OwnedBlock

    Effect = tuple[
        Holding,
        tuple[OwnedBlock | None, OwnedBlock | None],
        tuple[Push, ...],
        Finaliser,
        Pointer,
        Pointer,
        "Makers",
        Push | None,
    ]

__all__ = ["ACCESSORS", "READ_CPU", "READ_GPU", "WRITE_CPU", "WRITE_GPU", "SyncedMemory"]

Columns = dict[str, tuple[tuple[Cell, ...], tuple[Cell, ...]]]
Maker = Any  # a function of no arguments that returns a new view, or None where there is no pointer
Makers = tuple[Maker, Maker, Maker, Maker]

READ_CPU, WRITE_CPU, READ_GPU, WRITE_GPU = range(4)
_ACCESSOR_CALLS = (Call.CPU_DATA, Call.MUTABLE_CPU_DATA, Call.GPU_DATA, Call.MUTABLE_GPU_DATA)
ACCESSORS = tuple(call.value for call in _ACCESSOR_CALLS)
"""The names of the accessors by number."""

_NONE_OWNED = (None, None)
_NO_MAKERS: Makers = (None, None, None, None)
_NOTHING = np.frombuffer(b"", np.uint8)
_VIEWING = "making a view"

_ADOPTIONS = frozenset(call.value for call in Call if call.takes_data)
"""The names of the calls that hand memory in."""


class _Table:
    """The compiled table of an edition, arranged for looking up.

    Attributes
    ----------
    columns : dict
        By the name of a call: its cells by packed state, without and with an argument.
    accessors : tuple
        For each accessor its cells by packed state.
    idle : tuple
        By packed state, for each accessor whether it has nothing to do.
    copies : tuple
        The actions of accessors that only copy.
    start : int
        The packed state of a new memory, and of one that holds nothing.
    """

    def __init__(self, edition: str) -> None:
        # Columns hold None only for heads that the edition does not have, and no memory gets there.
        table = dispatch(edition)
        self.start = table.start
        self.columns: Columns = {call.value: cast("Any", columns) for call, columns in table.columns.items()}
        self.accessors = tuple(self.columns[call.value][False] for call in _ACCESSOR_CALLS)
        cells: Any = zip(*self.accessors, strict=True)
        # What accessors do that do one thing, which changes no pointer and no flag: a copy.
        doing: set[Any] = {cell and cell.actions for column in self.accessors for cell in cast("Any", column)}
        self.copies = tuple(it for it in doing if it and len(it) == 1 and EFFECTS[it[0]].is_none)
        self.idle = tuple(tuple(cell is not None and cell.idle for cell in row) for row in cells)


_TABLES = {has_device: _Table(edition_for(has_device=has_device)) for has_device in (True, False)}


class SyncedMemory:
    """A buffer of `size` bytes with a host side and a device side, kept in step lazily.

    Nothing is allocated until somebody asks for a side; a side asked for first is zeroed.  Reading a stale
    side copies, writing a side makes the other one stale.  Sources: syncedmem.hpp:51-91, syncedmem.cpp:6-185.

    Calls on one object are serialised, so two threads never see half a transition; what threads write through
    views is theirs to order.  Copying and pickling are refused, as in Caffe (syncedmem.hpp:90).

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
        Refuse every call while another device is current, as Caffe's DEBUG build does (syncedmem.cpp:170-183).

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
        "_busy",
        "_check_device",
        "_closed",
        "_cpu",
        "_finaliser",
        "_gpu",
        "_last",
        "_lock",
        "_makers",
        "_push",
        "_read_cpu",
        "_read_gpu",
        "_sides",
        "_size",
        "_state",
        "_table",
        "_write_cpu",
        "_write_gpu",
    )

    _read_cpu: Callable[[], HostArray] | None
    _write_cpu: Callable[[], HostArray] | None
    _read_gpu: Callable[[], DeviceArray] | None
    _write_gpu: Callable[[], DeviceArray] | None
    _makers: Makers

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
        self._size = check_byte_size(size, "size")
        self._sides = sides
        self._table = _TABLES[sides.device is not None]
        self._actions = BINDINGS if self._size else EMPTY_BINDINGS
        self._check_device = check_device and sides.device is not None
        self._lock = threading.RLock()
        self._cpu: Pointer = None
        self._gpu: Pointer = None
        self._last: Any = None  # the transaction that made the two pointers what they are
        self._finaliser: Finaliser | None = None  # of what is ours; there is none before something is
        self._push: Push | None = None
        self._state = self._table.start
        self._closed = False
        self._busy = False
        self._makers = _NO_MAKERS
        self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None

    # --- the four accessors

    def cpu_data(self) -> HostArray:
        """The host side, to read (syncedmem.cpp:93-97).

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
        """The host side, to write (syncedmem.cpp:136-141): as `cpu_data`, then the device side is stale.

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

    def gpu_data(self) -> DeviceArray:
        """The device side, to read (syncedmem.cpp:110-119).

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
        view: DeviceArray = self._alone(ACCESSORS[READ_GPU], self._access, READ_GPU)
        return view

    def mutable_gpu_data(self) -> DeviceArray:
        """The device side, to write (syncedmem.cpp:143-153): as `gpu_data`, then the host side is stale."""
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

    def set_cpu_data(self, data: Any) -> None:
        """Use somebody else's host memory as the host side, which becomes the fresh one (syncedmem.cpp:99-108).

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
        """Use somebody else's device memory as the device side, which becomes the fresh one (syncedmem.cpp:121-134).

        Mirrors `set_cpu_data`; `data` is an array of the device's own kind, on this memory's device.  A view of another
        memory's side is freed with that side, and on OpenCL and CUDA is written to even if it was made to read.
        """
        self._alone(Call.SET_GPU_DATA.value, self._call, Call.SET_GPU_DATA.value, data)

    def async_gpu_push(self, *, stream: Any) -> None:
        """Queue a copy to the device and count both sides as fresh at once (syncedmem.cpp:156-167).

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
        """Free what is ours, host side first (syncedmem.cpp:26-37); external memory is let go.  Twice is harmless.

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
        """Which side is fresh; moves nothing.

        Type checkers take a property for unchanged until it is assigned.  So where it is compared twice, with a call in
        between that moves the head, compare its ``name``.
        """
        return head_of(self._open("head"))

    @property
    def own_cpu_data(self) -> bool:
        """Whether the host side is ours to free; not whether there is one (syncedmem.hpp:85)."""
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

    # --- how a call is performed

    def _alone(self, call: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do the work of a call with nobody else in here: no other thread, and no call from inside it."""
        with self._lock:
            if self._busy:
                raise ReentrantCallError(call)
            self._busy = True
            # No accessor may slip past while the state changes, so until the end none is ready.
            self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None
            try:
                return work(*arguments)
            finally:
                self._busy = False
                if not (self._check_device or self._closed):
                    self._make_ready()

    def _access(self, accessor: int) -> Any:
        """Perform an accessor that may have something to do, and make its view."""
        if self._closed or self._check_device:
            self._admit(ACCESSORS[accessor])
        cell = self._table.accessors[accessor][self._state]
        if cell.refusal is not None:
            self._refuse(cell.refusal, ACCESSORS[accessor], None)
        if self._push is not None:
            self._await_push(accessor, cell)
        if cell.actions in self._table.copies:
            return self._resynchronise(cell, accessor)
        return self._perform(cell, None, accessor)

    def _resynchronise(self, cell: Cell, accessor: int) -> Any:
        """The commonest call that has something to do: one copy between sides that are both there.

        It is `_perform` without what a copy does not need: a transaction of its own, and anything to undo.
        """
        action, after = cell.actions[0], cell.next[0]  # nothing is allocated, so the mode decides nothing
        try:
            self._actions[action](self._last)
            view = self._makers[accessor]()
        except Exception:
            with reporting(action.value, self._sides.device):
                raise
        self._state = after
        return view

    def _call(self, call: str, argument: Any, name: str = "") -> None:
        """Perform a call with an argument: an adoption or a push; errors may have another name for it."""
        name = name or call
        self._admit(name)
        if call not in self._table.columns:
            self._refuse(Refusal.NO_GPU, name, argument)
        cell = self._table.columns[call][argument is not None][self._state]
        if cell.refusal is not None:
            self._refuse(cell.refusal, name, argument)
        makers = None
        if call in _ADOPTIONS:
            argument, makers = self._adopted(call, argument, name)
        else:
            with reporting(call, self._sides.device):
                self._sides.device.check_stream(argument)
        self._land()
        self._perform(cell, argument, None, makers)

    def _perform(self, cell: Cell, argument: Any, accessor: int | None, makers: Makers | None = None) -> Any:
        """Act, make the view to return, and take effect; if anything fails before that, nothing has."""
        after = cell.next[current_mode() is Mode.GPU]
        if not cell.actions and accessor is not None:
            view = self._viewed(self._makers[accessor])
            if accessor == WRITE_CPU:
                self._push = None  # it has landed, or failed, which no longer matters
            self._state = after
            return view
        transaction = self._transaction(after, argument)
        interrupt: BaseException | None = None
        effect: Any = None  # an Effect
        view = None
        # An accessor may have come after a push without waiting; for other calls it is over, failed or not.
        pending = None if accessor is None else self._push
        try:
            transaction.act(cell.actions, self._actions)
            made: Makers = makers or self._viewed(self._view_makers, transaction.cpu, transaction.gpu)
            view = None if accessor is None else self._viewed(made[accessor])
            effect = self._effect(transaction, made, pending)
        except BaseException as error:  # noqa: BLE001 -- it is raised below
            interrupt = error
        if interrupt is not None:
            try:
                effect = self._rescue(transaction, cell, makers, interrupt)
            except BaseException as error:  # noqa: BLE001 -- an interrupt: what is being undone is undone first
                interrupt = error
                effect = self._rescue(transaction, cell, makers, interrupt)
            if effect is None:
                try:
                    raise interrupt
                finally:
                    del interrupt  # its traceback knows this frame: a cycle that would keep the memory
        # Nothing can fail or be interrupted among these: values are moved, no call is made and no object.
        held, blocks, flights, finaliser, cpu, gpu, made, push = effect
        held.blocks, held.flights = blocks, flights
        self._finaliser = finaliser
        self._cpu = cpu
        self._gpu = gpu
        self._makers = made
        self._last = transaction
        self._push = push
        self._state = after
        transaction.argument = transaction.push = None
        transaction.new = ()
        if interrupt is not None:
            try:
                raise interrupt
            finally:
                del interrupt  # as above
        return view

    def _transaction(self, after: int, argument: Any) -> Transaction:
        """A transaction on this memory as it is."""
        owned = _NONE_OWNED if self._finaliser is None else self._finaliser.held.blocks
        return Transaction(self._sides, self._size, (self._cpu, self._gpu), owned, self._state, after, argument)

    def _effect(self, transaction: Transaction, makers: Makers, pending: Push | None) -> Effect:
        """Everything that is stored when a transaction takes effect."""
        push = transaction.push or pending
        finaliser = self._finaliser or Finaliser(Holding("a SyncedMemory", self._size))
        blocks, flights = (transaction.own_cpu, transaction.own_gpu), () if push is None else (push,)
        return finaliser.held, blocks, flights, finaliser, transaction.cpu, transaction.gpu, makers, push

    def _rescue(self, transaction: Transaction, cell: Cell, makers: Any, error: BaseException) -> Effect | None:
        """End a transaction that failed or was interrupted: undo it, unless memory is gone; can be repeated.

        What is freed cannot be undone.  A call that frees comes with its views made, and nothing follows a declared
        free that could fail: then it was an interrupt, and the transaction is completed.
        """
        if transaction.freed:
            self._actions[cell.actions[-1]](transaction)
            return self._effect(transaction, makers, None)
        transaction.undo(error)
        self._push = transaction.push or self._push
        return None

    def _release(self) -> None:
        """Free what is ours, host side first, and let go of the rest."""
        self._land()
        finish(self._free)

    def _free(self) -> None:
        """Do what closing does; can be repeated."""
        cell = self._table.columns[Call.RELEASE.value][True][self._state]
        for action in cell.actions:
            transaction = self._transaction(self._table.start, None)
            left = self._state & ~int(EFFECTS[action].clears)
            self._actions[action](transaction)
            # One side is gone for good: whatever happens to the other, this memory is closed.
            self._closed = True
            self._state = left
        if self._finaliser is not None:
            held = self._finaliser.held
            held.blocks, held.flights = _NONE_OWNED, ()
        self._closed = True
        self._makers = _NO_MAKERS
        self._cpu = self._gpu = self._last = self._push = None
        self._state = self._table.start

    # --- what is refused

    def _admit(self, call: str) -> None:
        """Refuse a call on a closed memory, or while another device is current if that counts."""
        if self._closed:
            raise ClosedMemoryError(call, self._size)
        if self._check_device:
            device = self._sides.device
            with reporting("asking for the current device", device):
                current = device.current_ordinal()
            if current != device.ordinal:
                raise WrongDeviceError(call, device.ordinal, current)

    def _refuse(self, refusal: Refusal, call: str, argument: Any) -> None:
        raise refusal_error(refusal, call, head_of(self._state), argument)

    def _adopted(self, call: str, buffer: Any, name: str) -> tuple[Pointer, Makers]:
        """Somebody's buffer as a pointer, with the views there will be."""
        if call == Call.SET_CPU_DATA.value:
            ptr = self._adoptable(name, buffer, self._sides.pageable, self._cpu, Fact.OWN_CPU_DATA)
            with reporting(_VIEWING, self._sides.pageable):
                return ptr, self._view_makers(ptr, self._gpu)
        ptr = self._adoptable(name, buffer, self._sides.device, self._gpu, Fact.OWN_GPU_DATA)
        with reporting(_VIEWING, self._sides.device):
            return ptr, self._view_makers(self._cpu, ptr)

    def _adoptable(self, call: str, buffer: Any, allocator: DeviceAllocator, current: Pointer, own: Fact) -> Pointer:
        try:
            ptr = allocator.adopt(buffer, self._size)
            ours = facts_of(self._state) & own and allocator.overlaps(ptr, current)
        except SyncedMemoryError:
            raise
        except ValueError as error:
            raise BufferMismatchError(call, buffer, words(error)) from None
        except Exception as error:
            raise BufferMismatchError(call, buffer, said(error)) from error
        if ours:
            raise BufferMismatchError(call, buffer, "it is this memory's own buffer, which would be freed")
        return ptr

    def _lends(self, borrower: SyncedMemory, own: Fact) -> bool:
        """Whether another memory uses bytes that are this one's to free, on the sides that `own` names."""
        facts = facts_of(self._state) & own
        sides = (
            (Fact.OWN_CPU_DATA, self._sides.pageable, self._cpu, borrower._cpu),
            (Fact.OWN_GPU_DATA, self._sides.device, self._gpu, borrower._gpu),
        )
        return any(
            facts & fact and mine is not None and theirs is not None and _overlapping(where, theirs, mine)
            for fact, where, mine, theirs in sides
        )

    def _viewing(self) -> reporting:
        """Around what makes a view to return."""
        return reporting(_VIEWING, self._sides.where)

    def _viewed(self, make: Callable[..., Any], *pointers: Pointer) -> Any:
        """What makes a view, called."""
        try:
            return make(*pointers)
        except Exception:
            with self._viewing():
                raise

    # --- copies in flight

    def _await_push(self, accessor: int, cell: Cell) -> None:
        """Do what an accessor needs while a push is in flight.

        Reading the host needs no wait, and writing there only that the copy is over.  Everything else needs
        what was pushed: a view of the device that later work there comes after the copy, and a copy down that
        the copy up has happened, so those go on failing if it failed.
        """
        push = self._push
        if push is None or (accessor == READ_CPU and not cell.actions):
            return
        if accessor == WRITE_CPU and not cell.actions:
            self._land()
        elif accessor in (READ_CPU, WRITE_CPU) or not push.precede():
            push.wait()
            self._push = None

    def _land(self) -> None:
        """Wait until a push is over, before its bytes are freed, overwritten or copied again.

        That it failed is told once; its bytes are not needed here.  It is forgotten when the call takes effect.
        """
        if self._push is not None and not self._push.failed:
            self._push.wait()
            self._push = None

    # --- views

    def _view_makers(self, cpu: Pointer, gpu: Pointer) -> Makers:
        """For each accessor the bound method that makes its views, or None where there is no pointer."""
        read_cpu, write_cpu, read_gpu, write_gpu = self._makers
        if cpu is not self._cpu:
            read_cpu, write_cpu = _frozen(cpu).view, cpu.view
        if gpu is not self._gpu:
            device = self._sides.device
            read_gpu, write_gpu = device.viewer(device.read_only(gpu)), device.viewer(gpu)
        return read_cpu, write_cpu, read_gpu, write_gpu

    def _make_ready(self) -> None:
        """Give each accessor that has nothing left to do its maker; so far none has one."""
        read_cpu, write_cpu, read_gpu, write_gpu = self._table.idle[self._state]
        makers, landed = self._makers, self._push is None
        if read_cpu:
            self._read_cpu = makers[0]
        if write_cpu and landed:
            self._write_cpu = makers[1]
        if read_gpu and landed:
            self._read_gpu = makers[2]
        if write_gpu and landed:
            self._write_gpu = makers[3]


def _shown(facts: Fact, pointer: Fact, own: Fact) -> str:
    return "none" if not facts & pointer else "owned" if facts & own else "external"


def _overlapping(where: DeviceAllocator, first: Pointer, second: Pointer) -> bool:
    with reporting("comparing two buffers", where):
        return where.overlaps(first, second)


def _frozen(array: HostArray) -> HostArray:
    """The same bytes, read-only for good: views of it find no writeable owner to appeal to."""
    # Any: NumPy's stubs of this release do not declare that arrays have the buffer interface.
    return np.frombuffer(memoryview(cast("Any", array)).toreadonly(), np.uint8) if array.size else _NOTHING
