"""The tables of memories, with a device and without one: what each call does in each state, by look-up.

A state is a small integer here: the number of the head, and then a bit for each fact.  Selections of one machine have
its numbers, so they mean the same in both tables.  Settings are in no such state, because they select no row: what
follows has one entry for each value of the mode.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from syncedmem.model import SyncedHead, caffe, space

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Machine, Move, State

__all__ = [
    "ACCESSORS",
    "CLEARED",
    "CPU_POINTER",
    "GPU_POINTER",
    "HEADS",
    "OWN_CPU",
    "OWN_GPU",
    "PINNED",
    "READ_CPU",
    "READ_GPU",
    "TABLES",
    "WRITE_CPU",
    "WRITE_GPU",
    "Cell",
    "MemoryTable",
]

READ_CPU, WRITE_CPU, READ_GPU, WRITE_GPU = range(4)
ACCESSORS = tuple(
    call.name for call in (caffe.CPU_DATA, caffe.MUTABLE_CPU_DATA, caffe.GPU_DATA, caffe.MUTABLE_GPU_DATA)
)
"""The names of the accessors by number."""

_HEADS = tuple(caffe.EVERYTHING.heads)
_BITS = {fact: 1 << bit for bit, fact in enumerate(caffe.EVERYTHING.facts)}
_STATES = range(len(_HEADS) << len(_BITS))

HEADS = tuple(SyncedHead[_HEADS[state >> len(_BITS)]] for state in _STATES)
"""The head by packed state."""

# The bits of facts in packed states.
CPU_POINTER, GPU_POINTER = _BITS[caffe.HAS_CPU_POINTER.name], _BITS[caffe.HAS_GPU_POINTER.name]
OWN_CPU, OWN_GPU = _BITS[caffe.OWN_CPU_DATA.name], _BITS[caffe.OWN_GPU_DATA.name]
PINNED = _BITS[caffe.CPU_MALLOC_USE_CUDA.name]

CLEARED: Mapping[str, int] = MappingProxyType(
    {name: sum(_BITS[fact] for fact in action.clears) for name, action in caffe.EVERYTHING.actions.items()}
)
"""The bits of the facts that each action clears."""


class Cell(NamedTuple):
    """What a call does in a state: the moves for all values of the mode as one.

    It has another form than `Move` because a call of a memory may not take the time to hash a state.

    Attributes
    ----------
    actions : tuple of str
        In their order; none for a refusal, and for a call that has nothing to do.
    next : tuple of int
        The packed state afterwards, by the values of the mode in their order.
    refusal : str
        Empty unless the call is refused.
    is_short : bool
        Whether nothing is allocated or freed: there is no action, or one copy.
    """

    actions: tuple[str, ...]
    next: tuple[int, ...]
    refusal: str
    is_short: bool


Cells = tuple[Cell, ...]


class MemoryTable:
    """The moves of a selection of Caffe's machine, in the form for quick look-ups.

    Attributes
    ----------
    machine : Machine
    columns : dict
        By the name of a call: its cells by packed state, without an argument and with one; the same if it takes none.
    accessors : tuple
        For each accessor, its cells by packed state.
    idle : tuple
        By packed state: for each accessor, whether it has nothing to do.
    start : int
        The packed state of a new memory, and of a closed one.
    """

    def __init__(self, machine: Machine) -> None:
        whole = space(machine, null=True, end=True)
        self.machine: Machine = machine
        self.start: int = _packed(whole.start)
        moves: dict[tuple[str, bool], dict[int, list[Move[State]]]] = {}
        for move in whole.moves:
            if move.input.call:
                column = moves.setdefault((move.input.call.name, move.input.data), {})
                column.setdefault(_packed(move.before), []).append(move)
        columns = {place: _column(machine, column) for place, column in moves.items()}
        self.columns: dict[str, tuple[Cells, Cells]] = {
            call: (columns.get((call, False), columns[call, True]), columns[call, True]) for call in machine.calls
        }
        self.accessors: tuple[Cells, ...] = tuple(self.columns[call][True] for call in ACCESSORS)
        self.idle: tuple[tuple[bool, ...], ...] = tuple(
            tuple(_is_idle(cell, state) for cell in cells)
            for state, cells in enumerate(zip(*self.accessors, strict=True))
        )


def _packed(state: State) -> int:
    return _HEADS.index(state.head) << len(_BITS) | sum(_BITS[fact] for fact in state.facts)


def _column(machine: Machine, moves: dict[int, list[Move[State]]]) -> Cells:
    """The cells of a call, from its moves by packed state, which differ only in the mode."""
    values = machine.settings[caffe.MODE.name].values
    cells: list[Cell | None] = [None] * len(_STATES)
    for state, alike in moves.items():
        after = {move.before.settings: _packed(move.after) for move in alike}
        actions, next_ = alike[0].actions, tuple(after[value,] for value in values)
        is_short = not actions or [machine.actions[action].does for action in actions] == ["copy"]
        cells[state] = Cell(actions, next_, alike[0].refusal, is_short)
    # There is None where no calls lead, and no memory is in such a state.
    return cast("Cells", tuple(cells))


def _is_idle(cell: Cell | None, state: int) -> bool:
    return cell is not None and not (cell.actions or cell.refusal) and {*cell.next} == {state}


TABLES: Mapping[bool, MemoryTable] = MappingProxyType(
    {has_device: MemoryTable(caffe.edition_for(has_device=has_device)) for has_device in (True, False)}
)
"""By whether a memory has a device."""
