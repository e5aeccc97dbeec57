"""How a call is performed: looked up in the compiled table, acted out, and committed when all of it succeeded.

While other people's code runs (an allocator, a buffer that is adopted, an event) the performer is *busy*, and
refuses the same thread's calls: one inside another would find a state that is neither before nor after.

The four accessors are the hot path.  After each call that changes something, every accessor that has nothing
left to do gets the bound method that makes its view, and until the next change it does nothing but call it.
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
    WrongDeviceError,
    current_mode,
)
from syncedmem.model.dispatch import Cell, facts_of, head_of, state_of
from syncedmem.model.editions import dispatch
from syncedmem.model.machine import refusal_error

from .bindings import BINDINGS, EMPTY_BINDINGS, Change, Sides, guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from .allocator import DeviceAllocator, HostArray, Pointer
    from .bindings import Push

__all__ = ["FRESH", "READ_CPU", "READ_GPU", "WRITE_CPU", "WRITE_GPU", "Performer"]

Columns = dict[str, tuple[tuple[Cell, ...], tuple[Cell, ...]]]
Maker = Any  # a function of no arguments that returns a new view, or None where there is no pointer
Makers = tuple[Maker, Maker, Maker, Maker]

FRESH = state_of(SyncedHead.UNINITIALIZED)
"""The packed state of a memory that holds nothing."""

READ_CPU, WRITE_CPU, READ_GPU, WRITE_GPU = range(4)
_ACCESSORS = (Call.CPU_DATA, Call.MUTABLE_CPU_DATA, Call.GPU_DATA, Call.MUTABLE_GPU_DATA)

_NO_MAKERS: Makers = (None, None, None, None)
_NOTHING = np.frombuffer(b"", np.uint8)


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
        self.accessors = tuple(self.columns[call.value][False] for call in _ACCESSORS)
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
        self._push: Push | None = None
        self._state = FRESH
        self._closed = False
        self._busy = False
        self._forget_views()

    # --- calls

    def _access(self, accessor: int) -> Any:
        """Perform an accessor that has something to do, and make its view."""
        with self._lock:
            if self._closed or self._check_device or self._busy:
                self._admit(_ACCESSORS[accessor].value)
            cell = self._table.accessors[accessor][self._state]
            if cell.refusal is not None:
                self._refuse(cell.refusal, _ACCESSORS[accessor].value, None)
            if self._push is not None:
                self._order_after_push(accessor, cell)
            if cell.actions in _COPIES:
                return self._resynchronise(cell, accessor)
            return self._perform(cell, None, accessor)

    def _resynchronise(self, cell: Cell, accessor: int) -> Any:
        """The commonest call that has something to do: one copy between sides that are both there.

        It is `_perform` without what a copy does not need: a change of its own, and anything to undo.
        """
        self._busy = True
        try:
            self._actions[cell.actions[0]](self._last)
            view = self._makers[accessor]()
        except Exception as error:
            wrapped = guarded(cell.actions[0].value, self._sides.device, error)
            if wrapped is error:
                raise
            raise wrapped from error
        finally:
            self._busy = False
        self._state = cell.next[0]  # nothing is allocated, so the mode decides nothing
        if not self._check_device:
            self._make_ready(self._makers)
        return view

    def _call(self, call: str, argument: Any) -> None:
        """Perform a call with an argument: an adoption or a push."""
        with self._lock:
            self._admit(call)
            if call not in self._table.columns:
                self._refuse(Refusal.NO_GPU, call, argument)
            cell = self._table.columns[call][argument is not None][self._state]
            if cell.refusal is not None:
                self._refuse(cell.refusal, call, argument)
            self._busy = True
            try:
                argument = self._checked(call, argument)
            finally:
                self._busy = False
            self._land()
            self._perform(cell, argument, None)

    def _perform(self, cell: Cell, argument: Any, accessor: int | None) -> Any:
        """Act, make the view to return, and take effect; if anything fails before that, nothing has."""
        after = cell.next[current_mode() is Mode.GPU]
        makers, view = self._makers, None
        if not cell.actions and accessor is not None:
            view = makers[accessor]()
        else:
            change = Change(self._sides, self._size, self._cpu, self._gpu, self._state, after, argument)
            makers, view = self._act(change, cell.actions, accessor)
            # Nothing below can fail.
            self._cpu, self._gpu, self._makers, self._last = change.cpu, change.gpu, makers, change
            self._push = change.push or self._push
        self._state = after
        if not self._check_device:
            self._make_ready(makers)
        return view

    def _act(self, change: Change, actions: tuple[Action, ...], accessor: int | None) -> tuple[Makers, Any]:
        """Perform actions in order and make the view; if anything fails, undo what was done."""
        doing: Action | None = None
        self._busy = True
        try:
            for doing in actions:
                self._actions[doing](change)
            doing = None
            makers = self._view_makers(change)
            return makers, None if accessor is None else makers[accessor]()
        except Exception as error:
            change.undo()
            where = self._sides.device or self._sides.pageable
            wrapped = guarded(doing.value if doing else "making a view", where, error)
            if wrapped is error:
                raise
            raise wrapped from error
        except BaseException:
            change.undo()
            raise
        finally:
            self._busy = False

    def _release(self) -> None:
        """Free what is ours, host side first, and let go of the rest."""
        self._land()
        cell = self._table.columns[Call.RELEASE.value][True][self._state]
        for action in cell.actions:
            change = Change(self._sides, self._size, self._cpu, self._gpu, self._state, self._state, None)
            self._busy = True
            try:
                self._actions[action](change)
            finally:
                self._busy = False
            # One side is gone for good: whatever happens to the other, this memory is closed.
            self._closed = True
            self._forget_views()
            self._state &= ~int(EFFECTS[action].clears)
        self._closed = True
        self._forget_views()
        self._cpu = self._gpu = self._last = None
        self._state = FRESH

    # --- what is refused

    def _admit(self, call: str) -> None:
        """Refuse a call inside another, on a closed memory, or while another device is current if that counts."""
        if self._busy:
            raise ReentrantCallError(call)
        if self._closed:
            raise ClosedMemoryError(call, self._size)
        if self._check_device:
            device = self._sides.device
            current = device.current_ordinal()
            if current != device.ordinal:
                raise WrongDeviceError(call, device.ordinal, current)

    def _refuse(self, refusal: Refusal, call: str, argument: Any) -> None:
        raise refusal_error(refusal, call, head_of(self._state), argument)

    def _checked(self, call: str, argument: Any) -> Any:
        """The argument as the actions need it: a pointer to adopt, or a stream."""
        if call == Call.ASYNC_GPU_PUSH.value:
            self._sides.device.check_stream(argument)
            return argument
        if call == Call.SET_CPU_DATA.value:
            return self._adopted(call, argument, self._sides.pageable, self._cpu, Fact.OWN_CPU_DATA)
        return self._adopted(call, argument, self._sides.device, self._gpu, Fact.OWN_GPU_DATA)

    def _adopted(self, call: str, buffer: Any, allocator: DeviceAllocator, current: Pointer, own: Fact) -> Pointer:
        try:
            ptr = allocator.adopt(buffer, self._size)
        except ValueError as error:
            raise BufferMismatchError(call, buffer, str(error)) from None
        if facts_of(self._state) & own and allocator.overlaps(ptr, current):
            raise BufferMismatchError(call, buffer, "it is this memory's own buffer, which would be freed")
        return ptr

    # --- copies in flight

    def _land(self) -> None:
        """Wait for a push in flight, before its bytes are freed, overwritten or copied again."""
        if self._push is not None:
            self._busy = True
            try:
                self._push.event.synchronize()
            except Exception as error:
                raise guarded("waiting for the push", self._sides.device, error) from error
            finally:
                self._busy = False
            self._push = None

    def _order_after_push(self, accessor: int, cell: Cell) -> None:
        """Do what is enough while a push is in flight.

        Reading the host needs no wait.  For a view of the device it is enough that later work there comes
        after the copy.  Everything else has to wait for it.
        """
        push = self._push
        if push is None or (accessor == READ_CPU and not cell.actions):
            return
        if accessor < READ_GPU or cell.actions or push.event.done:
            self._land()
            return
        try:
            self._sides.device.order_after(push.event)
        except Exception as error:
            raise guarded("ordering after the push", self._sides.device, error) from error

    # --- views

    def _view_makers(self, change: Change) -> Makers:
        """For each accessor the bound method that makes its views, or None where there is no pointer."""
        if change.cpu is self._cpu and change.gpu is self._gpu:
            return self._makers
        read_cpu, write_cpu, read_gpu, write_gpu = self._makers
        if change.cpu is not self._cpu:
            read_cpu, write_cpu = _frozen(change.cpu).view, change.cpu.view
        if change.gpu is not self._gpu:
            device = self._sides.device
            read_gpu, write_gpu = device.viewer(device.read_only(change.gpu)), device.viewer(change.gpu)
        return read_cpu, write_cpu, read_gpu, write_gpu

    def _make_ready(self, makers: Makers) -> None:
        """Give each accessor that has nothing left to do its maker."""
        read_cpu, write_cpu, read_gpu, write_gpu = self._table.idle[self._state]
        self._read_cpu = makers[0] if read_cpu else None
        self._write_cpu = makers[1] if write_cpu else None
        landed = self._push is None
        self._read_gpu = makers[2] if read_gpu and landed else None
        self._write_gpu = makers[3] if write_gpu and landed else None

    def _forget_views(self) -> None:
        self._read_cpu = self._write_cpu = self._read_gpu = self._write_gpu = None
        self._makers = _NO_MAKERS


def _frozen(array: HostArray) -> HostArray:
    """The same bytes, read-only for good: views of it find no writeable owner to appeal to."""
    # Any: NumPy's stubs of this release do not declare that arrays have the buffer interface.
    return np.frombuffer(memoryview(cast("Any", array)).toreadonly(), np.uint8) if array.size else _NOTHING
