"""The compiled tables of memories, with a device and without one, and what is read of them once.

Packed states mean the same in both tables, so the numbers in this module are for all memories.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model import SyncedHead, caffe
from syncedmem.model.states import stepper
from syncedmem.model.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model.declaration import Machine
    from syncedmem.model.table import Cell

    Cells = tuple[Cell, ...]

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
    "MemoryTable",
]

READ_CPU, WRITE_CPU, READ_GPU, WRITE_GPU = range(4)
ACCESSORS = tuple(
    call.name for call in (caffe.CPU_DATA, caffe.MUTABLE_CPU_DATA, caffe.GPU_DATA, caffe.MUTABLE_GPU_DATA)
)
"""The names of the accessors by number."""


class MemoryTable:
    """The compiled table of an edition, in the form for quick look-ups.

    Parameters
    ----------
    table : Table

    Attributes
    ----------
    machine : Machine
    columns : dict
        By the name of a call: its cells by packed state, without an argument and with one.
    accessors : tuple
        For each accessor, its cells by packed state.
    idle : tuple
        By packed state: for each accessor, whether it has nothing to do.
    short : tuple
        The lists of actions that allocate nothing: none, or one copy.
    start : int
        The packed state of a new memory, and of a closed one.
    """

    def __init__(self, table: Table) -> None:
        self.machine: Machine = table.machine
        self.start: int = table.start
        # A column has None only where the edition has no such head or fact, and no memory is in such a state.
        self.columns: dict[str, tuple[Cells, Cells]] = cast("Any", dict(table.columns))
        self.accessors: tuple[Cells, ...] = tuple(self.columns[call][False] for call in ACCESSORS)
        cells: Any = zip(*self.accessors, strict=True)
        doing: set[Any] = {cell and cell.actions for column in self.accessors for cell in cast("Any", column)}
        copies = (it for it in doing if it and len(it) == 1 and table.machine.actions[it[0]].does == "copy")
        self.short: tuple[tuple[str, ...], ...] = ((), *copies)
        self.idle: tuple[tuple[bool, ...], ...] = tuple(
            tuple(cell is not None and cell.idle for cell in row) for row in cells
        )


_COMPILED = {has_device: Table(stepper(caffe.edition_for(has_device=has_device))) for has_device in (True, False)}

TABLES: Mapping[bool, MemoryTable] = MappingProxyType({it: MemoryTable(table) for it, table in _COMPILED.items()})
"""By whether a memory has a device."""

_EITHER = _COMPILED[True]

HEADS = tuple(SyncedHead[_EITHER.unpacked(state).head] for state in range(len(TABLES[True].idle)))
"""The head by packed state."""

# The bits of facts in packed states.
CPU_POINTER, GPU_POINTER = _EITHER.bits[caffe.HAS_CPU_POINTER.name], _EITHER.bits[caffe.HAS_GPU_POINTER.name]
OWN_CPU, OWN_GPU = _EITHER.bits[caffe.OWN_CPU_DATA.name], _EITHER.bits[caffe.OWN_GPU_DATA.name]
PINNED = _EITHER.bits[caffe.CPU_MALLOC_USE_CUDA.name]

CLEARED: Mapping[str, int] = MappingProxyType(
    {name: sum(_EITHER.bits[fact] for fact in action.clears) for name, action in _EITHER.machine.actions.items()}
)
"""The bits of the facts that each action clears."""
