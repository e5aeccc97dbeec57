"""How a call is performed: looked up in the compiled table, acted out, and committed when all of it succeeded.

A call runs other people's code: allocators, buffers that are adopted, events.  Until it is over the performer is
*busy*: other threads wait, and calls of the same thread, made from inside that code, are refused, because they
would find a state that is neither before nor after.

The four accessors are the hot path.  At the end of each call every accessor that has nothing left to do gets the
bound method that makes its view; until the next call that does something, it does nothing but call it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from syncedmem.model import (
    EFFECTS,
    Action,
    BufferMismatchError,
    Call,
    ClosedMemoryError,
    Fact,
    Mode,
    ReentrantCallError,
    Refusal,
    SyncedHead,
    SyncedMemoryError,
    WrongDeviceError,
    current_mode,
)
from syncedmem.model.dispatch import Cell, facts_of, head_of, state_of
from syncedmem.model.editions import dispatch
from syncedmem.model.errors import said, words
from syncedmem.model.machine import refusal_error

from .bindings import BINDINGS, EMPTY_BINDINGS, Change, Sides
from .failures import reporting, told
from .owned import Finaliser, Holding

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

    from .allocator import DeviceAllocator
    from .flight import Push
    from .owned import OwnedBlock
    from .pointers import HostArray

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

__all__ = ["ACCESSORS", "FRESH", "READ_CPU", "READ_GPU", "WRITE_CPU", "WRITE_GPU", "Performer"]

Columns = dict[str, tuple[tuple[Cell, ...], tuple[Cell, ...]]]
Maker = Any  # a function of no arguments that returns a new view, or None where there is no pointer
Makers = tuple[Maker, Maker, Maker, Maker]

FRESH = state_of(SyncedHead.UNINITIALIZED)
"""The packed state of a memory that holds nothing."""

READ_CPU, WRITE_CPU, READ_GPU, WRITE_GPU = range(4)
_ACCESSOR_CALLS = (Call.CPU_DATA, Call.MUTABLE_CPU_DATA, Call.GPU_DATA, Call.MUTABLE_GPU_DATA)
ACCESSORS = tuple(call.value for call in _ACCESSOR_CALLS)
"""The names of the accessors by number."""

_NONE_OWNED = (None, None)
_NO_MAKERS: Makers = (None, None, None, None)
_NOTHING = np.frombuffer(b"", np.uint8)
_VIEWING = "making a view"

_COPIES = ((Action.COPY_TO_CPU,), (Action.COPY_TO_GPU,))


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
    """

    def __init__(self, edition: str) -> None:
        # Columns hold None only for heads that the edition does not have, and no memory gets there.
        calls = dispatch(edition).columns.items()
        self.columns: Columns = {call.value: cast("Any", columns) for call, columns in calls}
        self.accessors = tuple(self.columns[call.value][False] for call in _ACCESSOR_CALLS)
        cells: Any = zip(*self.accessors, strict=True)
        self.idle = tuple(tuple(cell is not None and cell.idle for cell in row) for row in cells)


_CAFFE = _Table("caffe")
_CPU_ONLY = _Table("cpu_only")


class Performer:
    """Two sides of one buffer, and the calls that the head machine declares for them.

    Parameters
    ----------
    size : int
        In bytes.
    sides : Sides
    check_device : bool
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
    _read_gpu: Callable[[], Any] | None
    _write_gpu: Callable[[], Any] | None
    _makers: Makers

    def __init__(self, size: int, sides: Sides, *, check_device: bool) -> None:
        self._size = size
        self._sides = sides
        self._table = _CPU_ONLY if sides.device is None else _CAFFE
        self._actions = BINDINGS if size else EMPTY_BINDINGS
        self._check_device = check_device and sides.device is not None
        self._lock = threading.RLock()
        self._cpu: Pointer = None
        self._gpu: Pointer = None
        self._last: Any = None  # the change that made the two pointers what they are
        self._finaliser: Finaliser | None = None  # of what is ours; there is none before something is
        self._push: Push | None = None
        self._state = FRESH
        self._closed = False
        self._busy = False
        self._makers = _NO_MAKERS
        self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None

    # --- calls

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
        if cell.actions in _COPIES:
            return self._resynchronise(cell, accessor)
        return self._perform(cell, None, accessor)

    def _resynchronise(self, cell: Cell, accessor: int) -> Any:
        """The commonest call that has something to do: one copy between sides that are both there.

        It is `_perform` without what a copy does not need: a change of its own, and anything to undo.
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
        if call == Call.ASYNC_GPU_PUSH.value:
            with reporting(call, self._sides.device):
                self._sides.device.check_stream(argument)
            makers = None
        else:
            argument, makers = self._adopted(call, argument, name)
        self._land()
        self._perform(cell, argument, None, makers)

    def _perform(self, cell: Cell, argument: Any, accessor: int | None, makers: Makers | None = None) -> Any:
        """Act, make the view to return, and take effect; if anything fails before that, nothing has."""
        after = cell.next[current_mode() is Mode.GPU]
        if not cell.actions and accessor is not None:
            with self._viewing():
                view = self._makers[accessor]()
            if accessor == WRITE_CPU:
                self._push = None  # it has landed, or failed, which no longer matters
            self._state = after
            return view
        change = self._change(after, argument)
        interrupt: BaseException | None = None
        effect: Any = None  # an Effect
        view = None
        # An accessor may have come after a push without waiting; for other calls it is over, failed or not.
        pending = None if accessor is None else self._push
        try:
            self._act(change, cell.actions)
            with self._viewing():
                makers = makers or self._view_makers(change.cpu, change.gpu)
                view = None if accessor is None else makers[accessor]()
            effect = self._effect(change, makers, pending)
        except BaseException as error:  # noqa: BLE001 -- it is raised below
            interrupt = error
        if interrupt is not None:
            try:
                effect = self._rescue(change, cell, makers, interrupt)
            except BaseException as error:  # noqa: BLE001 -- an interrupt: what is being undone is undone first
                interrupt = error
                effect = self._rescue(change, cell, makers, interrupt)
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
        self._last = change
        self._push = push
        self._state = after
        change.argument = change.push = None
        change.new = ()
        if interrupt is not None:
            try:
                raise interrupt
            finally:
                del interrupt  # as above
        return view

    def _change(self, after: int, argument: Any) -> Change:
        """A change of this memory as it is."""
        owned = _NONE_OWNED if self._finaliser is None else self._finaliser.held.blocks
        return Change(self._sides, self._size, (self._cpu, self._gpu), owned, self._state, after, argument)

    def _effect(self, change: Change, makers: Makers, pending: Push | None) -> Effect:
        """Everything that is stored when a change takes effect."""
        push = change.push or pending
        finaliser = self._finaliser or Finaliser(Holding("a SyncedMemory", self._size))
        blocks, flights = (change.own_cpu, change.own_gpu), () if push is None else (push,)
        return finaliser.held, blocks, flights, finaliser, change.cpu, change.gpu, makers, push

    def _rescue(self, change: Change, cell: Cell, makers: Any, error: BaseException) -> Effect | None:
        """Bring a change to an end that failed or was interrupted: undo it, unless memory is gone; can be repeated.

        What is freed cannot be undone.  A call that frees comes with its views made, and nothing follows a declared
        free that could fail: then it was an interrupt, and the change is completed.
        """
        if change.freed:
            self._actions[cell.actions[-1]](change)
            return self._effect(change, makers, None)
        change.undo(error)
        self._push = change.push or self._push
        return None

    def _act(self, change: Change, actions: tuple[Action, ...]) -> None:
        """Perform actions in order."""
        for doing in actions:
            with reporting(doing.value, self._where):
                self._actions[doing](change)

    def _release(self) -> None:
        """Free what is ours, host side first, and let go of the rest."""
        self._land()
        try:
            self._free()
        except SyncedMemoryError:
            raise
        except BaseException as interrupt:
            try:
                self._free()  # what is being freed is freed first
            except SyncedMemoryError as error:
                interrupt.add_note(told(error))
            raise

    def _free(self) -> None:
        """Do what closing does; after an interrupt it can be called again, and goes on."""
        cell = self._table.columns[Call.RELEASE.value][True][self._state]
        for action in cell.actions:
            change = self._change(FRESH, None)
            left = self._state & ~int(EFFECTS[action].clears)
            self._actions[action](change)
            # One side is gone for good: whatever happens to the other, this memory is closed.
            self._closed = True
            self._state = left
        if self._finaliser is not None:
            held = self._finaliser.held
            held.blocks, held.flights = _NONE_OWNED, ()
        self._closed = True
        self._makers = _NO_MAKERS
        self._cpu = self._gpu = self._last = self._push = None
        self._state = FRESH

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

    def _lends(self, borrower: Performer, own: Fact) -> bool:
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

    @property
    def _where(self) -> DeviceAllocator:
        """The allocator that errors name."""
        where: DeviceAllocator = self._sides.device or self._sides.pageable
        return where

    def _viewing(self) -> reporting:
        """Around what makes a view to return."""
        return reporting(_VIEWING, self._where)

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


def _overlapping(where: DeviceAllocator, first: Pointer, second: Pointer) -> bool:
    with reporting("comparing two buffers", where):
        return where.overlaps(first, second)


def _frozen(array: HostArray) -> HostArray:
    """The same bytes, read-only for good: views of it find no writeable owner to appeal to."""
    # Any: NumPy's stubs of this release do not declare that arrays have the buffer interface.
    return np.frombuffer(memoryview(cast("Any", array)).toreadonly(), np.uint8) if array.size else _NOTHING
