"""A memory that performs the table of a machine: the shortest complete answer to "what must a memory do?".

Head and facts come from the declared machine; what an action does to bytes, and what the table does not say, stands
here: a call that raises changes nothing, pushes are waited for, a buffer of its own is not adopted.  The oracle judges
it as it judges any other memory, so it also shows that a table and a policy agree.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Input, Machine, SyncedHead, caffe, current_mode
from syncedmem.model.interface import MemcpyKind, is_host
from syncedmem.model.states import stepper

from ..engine.subject import Subject
from .by_table import allocated, is_pinned

if TYPE_CHECKING:
    from syncedmem.model import Action, Call, State
    from syncedmem.model.moves import Move

__all__ = ["ReferenceMemory", "Refused"]

_KINDS = {
    (True, True): MemcpyKind.CPU2CPU,
    (True, False): MemcpyKind.CPU2CUDA,
    (False, True): MemcpyKind.CUDA2CPU,
    (False, False): MemcpyKind.CUDA2CUDA,
}
"""The direction of a copy: whether its source is host memory, and whether its destination is."""


class Refused(RuntimeError):
    """A refused call: a failed CHECK in Caffe."""


class _Block(NamedTuple):
    """Memory of a side: the pointer, and the allocator that frees it; None if it is the caller's."""

    pointer: Any
    allocator: Any


class ReferenceMemory:
    """A mirrored memory, made of a machine's table; see `syncedmem.spec.engine.subject.Memory`.

    It has the machine's calls as methods, its flags as attributes, and `close`.  Its state is a state of the machine.

    Parameters
    ----------
    size : int
        In bytes.
    machine : Machine, optional
        If there is none, the first edition of Caffe with a device, or without one.
    check_device : bool
        Whether calls are refused while another device is current.
    **allocators : Allocator or None
        One for each side, by the side's name; those of Caffe's sides are `host` and `device`.

    Raises
    ------
    Refused
        If the size is not a number of bytes, and by every call that the table refuses.  Then nothing has changed.
    """

    def __init__(
        self, size: int, machine: Machine | None = None, *, check_device: bool = False, **allocators: Any
    ) -> None:
        if type(size) is not int or not 0 <= size < 1 << 63:
            raise Refused(f"not a size: {size!r}")
        self.size: int = size
        self.machine: Machine = machine or caffe.edition_for(has_device=allocators.get("device") is not None)
        self.state: State = stepper(self.machine).start
        self.closed: bool = False
        self._check_device = check_device
        self._places: dict[str, Any] = {side: allocators.get(Subject.keyword(side)) for side in self.machine.sides}
        self._hosts = {side for side, place in self._places.items() if side == caffe.CPU or is_host(place)}
        self._blocks: dict[str, _Block] = {}
        self._flights: list[tuple[Any, Any]] = []
        self._make_the_rest()

    def _make_the_rest(self) -> None:
        """The sides that no action allocates, which are there from the beginning."""
        for side in self.machine.sides:
            if side not in allocated(self.machine) and self._places[side] is not None:
                self._blocks[side] = block = self.allocate(side, self.state)
                if side in self.machine.initial.fresh and self.size:
                    block.allocator.memset_zero(block.pointer, self.size)

    @property
    def head(self) -> Any:
        """The head: a `SyncedHead` of Caffe's machines, a `Head` of others."""
        name = self.state.head
        return SyncedHead.__members__.get(name) or self.machine.heads[name]

    def owns_bytes_of(self, other: ReferenceMemory, side: str) -> bool:
        """Whether this memory must free bytes that the same side of another memory uses."""
        mine, theirs = self._blocks.get(side), other._blocks.get(side)
        if mine is None or theirs is None or mine.allocator is None:
            return False
        return bool(self._places[side].overlaps(theirs.pointer, mine.pointer))

    def __getattr__(self, name: str) -> Any:
        machine = self.__dict__.get("machine")
        if machine and name in machine.calls:
            return partial(self.perform, name)
        if machine and name in machine.facts:
            return name in self.state.facts
        raise AttributeError(name)

    # --- Caffe's calls, as methods that a subclass can replace

    def cpu_data(self) -> Any:
        return self.perform("cpu_data")

    def mutable_cpu_data(self) -> Any:
        return self.perform("mutable_cpu_data")

    def gpu_data(self) -> Any:
        return self.perform("gpu_data")

    def mutable_gpu_data(self) -> Any:
        return self.perform("mutable_gpu_data")

    def set_cpu_data(self, data: Any) -> None:
        self.perform("set_cpu_data", data)

    def set_gpu_data(self, data: Any) -> None:
        self.perform("set_gpu_data", data)

    def async_gpu_push(self, *, stream: Any) -> None:
        self.perform("async_gpu_push", stream=stream)

    # --- calls of any machine

    def perform(self, name: str, argument: Any = None, *, stream: Any = None) -> Any:
        """Make a call; return the view, if it is a call for one.

        Raises
        ------
        Refused
        """
        call = self.machine.calls.get(name)
        if call is None:
            raise Refused(f"the machine {self.machine.name} has no call {name}")
        if call.ends:
            return self._release()
        step = self.look_up(Input(call, data=not call.takes or argument is not None))
        blocks = dict(self._blocks)
        with ExitStack() as undo:
            if call.does == "adopt":
                blocks[call.side] = _Block(self.adopt(call.side, argument), None)
            if call.queues:
                self._device(call.side, call.source).check_stream(stream)
            if step.actions or (call.does != "read" and call.side in self._hosts):
                self.wait_for_push()
            for action in map(self.machine.actions.__getitem__, step.actions):
                self.act(action, blocks, step, stream, undo)
            view = self.view(blocks[call.side], call) if call.shows else None
            undo.pop_all()
        self.state, self._blocks = step.after, blocks
        return view

    def look_up(self, entry: Input) -> Move[State]:
        """What the table says of a call in this state.

        Raises
        ------
        Refused
        """
        if self.closed:
            raise Refused("released")
        self._check_current()
        settings = (current_mode().name,) if caffe.MODE.name in self.machine.settings else self.state.settings
        step = stepper(self.machine).step(self.state._replace(settings=settings), entry)
        if step is None or step.refusal:
            raise Refused(step.refusal if step else f"{entry} is no call of {self.state.head}")
        return step

    def close(self) -> None:
        """Release the memory, unless the machine has a call of this name, which is made then.

        Side by side is freed what the memory owns; after an error, the rest can still be freed.

        Raises
        ------
        Refused
        """
        if "close" in self.machine.calls:
            self.perform("close")
        else:
            self._release()

    def _release(self) -> None:
        if self.closed and not self._blocks:
            return
        self._check_current()
        self.free_all()
        self.closed = True

    def _check_current(self) -> None:
        device = self._places.get(caffe.GPU)
        if self._check_device and device is not None and device.current_ordinal() != device.ordinal:
            raise Refused("another device is current")

    def free_all(self) -> None:
        """Free what there is; from the first side that is freed, the memory is released."""
        self.wait_for_push()
        for side in self.machine.sides:
            if side in self._blocks:
                self.free(self._blocks[side])
                self.closed = True
                del self._blocks[side]

    def __del__(self) -> None:
        with suppress(Exception):  # another device may be current, and the constructor may have failed
            self.free_all()

    # --- what actions do

    def act(self, action: Action, blocks: dict[str, _Block], step: Move[State], stream: Any, undo: ExitStack) -> None:
        """Do what an action means with the blocks of a call that is under way."""
        match action.does:
            case "allocate":
                blocks[action.side] = block = self.allocate(action.side, step.after)
                undo.callback(self.free, block)
            case "zero" if self.size:
                allocator = blocks[action.side].allocator or self._places[action.side]
                allocator.memset_zero(blocks[action.side].pointer, self.size)
            case "copy" if self.size:
                self.copy(action, blocks, stream if action.queued else None)
            case "free":
                self.free(self._blocks[action.side])
            case _:
                pass

    def allocate(self, side: str, after: State) -> _Block:
        """Memory for a side, page-locked if the state after the call says so."""
        pinned = is_pinned(self.machine, after, side)
        place = self._device(*self._places).pinned_host() if pinned else self._places[side]
        return _Block(place.allocate(self.size) if self.size else place.empty(0), place)

    def free(self, block: _Block) -> None:
        """Free a block, unless it is the caller's."""
        if block.allocator is not None and self.size:
            block.allocator.release(block.pointer)

    def copy(self, action: Action, blocks: dict[str, _Block], stream: Any) -> None:
        """Copy from one side to another, or queue a copy."""
        ends = blocks[action.source].pointer, blocks[action.side].pointer
        kind = _KINDS[action.source in self._hosts, action.side in self._hosts]
        place = self._device(action.side, action.source)
        if stream is None:
            place.memcpy(*ends, self.size, kind)
            return
        place.memcpy(*ends, self.size, kind, stream)
        try:
            event = place.record(stream)
        except BaseException:  # without an event nobody could wait for the copy later
            place.memcpy(None, None, 0, kind, stream, True)
            raise
        self._flights.append((place, event))

    def adopt(self, side: str, buffer: Any) -> Any:
        """The pointer to a caller's buffer.

        Raises
        ------
        Refused
            If it is the memory's own.
        """
        place, own = self._places[side], self._blocks.get(side)
        pointer = place.adopt(buffer, self.size)
        if own and own.allocator is not None and self.size and place.overlaps(pointer, own.pointer):
            raise Refused(f"the memory's own buffer on {side}")
        return pointer

    def wait_for_push(self) -> None:
        """Wait for pushes."""
        while self._flights:
            self._flights[-1][1].synchronize()
            self._flights.pop()

    def view(self, block: _Block, call: Call) -> Any:
        """What a call returns; of host memory, a view for reading is read-only."""
        if call.side in self._hosts:
            return memoryview(block.pointer).toreadonly() if call.does == "read" else memoryview(block.pointer)
        for place, event in self._flights:
            place.order_after(event)
        return block.pointer.view()

    def _device(self, *sides: str) -> Any:
        """The allocator of the first of these sides that is on a device, or else of the first."""
        return self._places[next((side for side in sides if side not in self._hosts), sides[0])]
