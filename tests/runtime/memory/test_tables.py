"""Every cell of the tables of memories is compared with what `transitions` itself decides."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from triggered import triggered

from syncedmem.model import Input, State, SyncedHead, caffe, space
from syncedmem.model.states import stepper
from syncedmem.runtime.memory.tables import HEADS, TABLES

FACTS = [*caffe.EVERYTHING.facts]
NUMBERS = {
    State(head, frozenset(fact for fact, is_set in zip(FACTS[::-1], bits, strict=True) if is_set)): number
    for number, (head, bits) in enumerate(
        product(caffe.EVERYTHING.heads, product((False, True), repeat=len(FACTS)))
    )
}  # fmt: skip
"""The packed state of each state without settings, also of those to which no calls lead."""

TABLE = pytest.mark.parametrize("has_device", [False, True])


@TABLE
def test_a_table_is_what_transitions_decides(has_device: bool) -> None:
    """In every state that calls lead to: the same actions and refusal; and the same facts and head, by the mode."""
    machine, table = caffe.edition_for(has_device=has_device), TABLES[has_device]
    takes = stepper(machine)
    assert [*machine.calls] == [*table.columns]
    states = {state._replace(settings=()) for state in space(machine).steps}
    for state, call, data in product(states, machine.calls.values(), (False, True)):
        cell = table.columns[call.name][data][NUMBERS[state]]
        entry = Input(call, data=data or not call.takes)
        moves = [takes.step(state._replace(settings=(mode,)), entry) for mode in caffe.MODE.values]
        after = tuple(NUMBERS[move.after._replace(settings=())] for move in moves if move)
        assert (cell.actions, cell.refusal, after[0] >> len(FACTS)) == _numbered(triggered(takes, state, entry))
        assert after == cell.next


def _numbered(found: tuple[tuple[str, ...], str, str] | None) -> tuple[tuple[str, ...], str, int] | None:
    return found and (found[0], found[1], [*caffe.EVERYTHING.heads].index(found[2]))


@TABLE
def test_there_are_no_cells_where_no_calls_lead(has_device: bool) -> None:
    known = {NUMBERS[state._replace(settings=())] for state in space(caffe.edition_for(has_device=has_device)).steps}
    table: Any = TABLES[has_device]
    for columns in table.columns.values():
        assert [known, known] == [
            {number for number, cell in enumerate(column) if cell is not None} for column in columns
        ]


@TABLE
def test_idle_is_a_call_that_does_nothing_and_stays(has_device: bool) -> None:
    table = TABLES[has_device]
    for number, idle in enumerate(table.idle):
        cells = [column[number] for column in table.accessors]
        assert [bool(cell) and cell[::2] == ((), "") and {*cell.next} == {number} for cell in cells] == [*idle]


def test_a_number_has_its_head_and_a_new_memory_has_nothing() -> None:
    assert [SyncedHead[state.head] for state in NUMBERS] == [*HEADS]
    assert {NUMBERS[State("UNINITIALIZED")]} == {table.start for table in TABLES.values()}
