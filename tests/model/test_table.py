"""Every cell of a table is compared with what `transitions` itself decides; and what is in no table."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pytest
from loops import some
from machines import DOOR, MACHINES

from syncedmem.model.caffe import CAFFE, CPU_ONLY, EDITIONS
from syncedmem.model.declaration import Action, Call, Machine, Row, Setting
from syncedmem.model.states import stepper
from syncedmem.model.stepper import Input, State, Stepper
from syncedmem.model.table import Cell, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from syncedmem.model.table import Column

    Columns = Mapping[str, tuple[Column, Column]]

LIGHT = Machine(
    "light",
    [Row("press", "OFF", "ON", do=["glow", "hum"]), Row("press", "ON", "OFF")],
    actions=[
        Action("glow", by_setting=(("red", "colour", "red"),)),
        Action("hum", by_setting=(("loud", "volume", "high"),)),
    ],
    settings=[Setting("colour", ("red", "white")), Setting("volume", ("low", "high"))],
)
"""Two settings decide one fact each."""


@cache
def compiled(machine: Machine) -> Table:
    return Table(stepper(machine))


def everywhere(machine: Machine) -> Iterator[tuple[int, State | None]]:
    """Every integer, with the state that it packs; None for one that the machine does not have."""
    whole = machine.numbered_as
    values = product((False, True), repeat=len(whole.facts))
    for number, (head, bits) in enumerate(product(whole.heads, values)):
        facts = frozenset(fact for fact, is_set in zip([*whole.facts][::-1], bits, strict=True) if is_set)
        yield number, State(head, facts) if head in machine.heads and facts <= set(machine.facts) else None


@cache
def numbers_of(machine: Machine) -> dict[State, int]:
    return {state: number for number, state in everywhere(machine) if state}


def live(machine: Stepper, entry: Input, state: State) -> Cell | None:
    """A cell as `transitions` decides it."""
    numbers = numbers_of(machine.machine)
    values = product(*(setting.values for setting in machine.machine.settings.values()))
    steps = [machine.trigger(state._replace(settings=it), entry) for it in values]
    taken = [step for step in steps if step]
    if not taken:
        return None
    assert len(taken) == len(steps)
    (chosen,) = {(step.actions, step.refusal) for step in taken}
    after = tuple(numbers[step.after._replace(settings=())] for step in taken)
    return Cell(chosen[0], after, chosen[1], idle=chosen == ((), "") and {*after} == {numbers[state]})


def differences(columns: Columns, machine: Machine) -> list[tuple[str, bool, int]]:
    """The call, whether it has its argument, and the packed state of each cell that is wrong."""
    wrong: list[tuple[str, bool, int]] = []
    for call, data in product(machine.calls.values(), (False, True)):
        entry = Input(call, data=data if call.takes else True)
        for number, state in everywhere(machine):
            expected = None if state is None else live(stepper(machine), entry, state)
            if columns[call.name][data][number] != expected:
                wrong.append((call.name, data, number))
    return wrong


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_a_table_is_what_transitions_decides(machine: Machine) -> None:
    """In every head, with all values of the facts, also where no calls lead: the same actions, refusal and next."""
    columns = compiled(machine).columns
    assert [*columns] == [*machine.calls]
    assert {len([*everywhere(machine)])} == {len(column) for pair in columns.values() for column in pair}
    assert [] == differences(columns, machine)


@pytest.mark.parametrize("machine", [*EDITIONS.values(), *MACHINES], ids=str)
def test_states_are_packed_and_unpacked(machine: Machine) -> None:
    """Every state has a number of its own, and a new memory starts in that of the initial head without facts."""
    table = compiled(machine)
    for number, state in some(everywhere(machine)):
        if state is not None:
            assert (number, state) == (table.packed(state), table.unpacked(number))
    assert State(machine.initial.name) == table.unpacked(table.start)


def test_one_number_means_the_same_in_all_editions() -> None:
    tables = [compiled(machine) for machine in EDITIONS.values()]
    for number in range(128):
        assert 1 == len({table.unpacked(number) for table in tables})
    assert [1, 4] == [compiled(CPU_ONLY).bits[fact] for fact in CPU_ONLY.facts]


def test_what_follows_has_an_entry_for_each_combination_of_settings() -> None:
    table = compiled(LIGHT)
    pressed = table.columns["press"][True][table.start]
    assert pressed

    assert [State("ON", frozenset(facts)) for facts in ({"red"}, {"red", "loud"}, (), {"loud"})] == [
        table.unpacked(after) for after in pressed.next
    ]
    assert {1} == {len(cell.next) for pair in compiled(DOOR).columns.values() for cell in pair[True] if cell}


def test_a_call_that_takes_no_argument_has_one_column() -> None:
    columns = compiled(CAFFE).columns

    assert ["set_cpu_data", "set_gpu_data"] == [call for call, (null, given) in columns.items() if null is not given]
    assert columns["set_cpu_data"][False][0] == Cell((), (0, 0), "null_data", idle=False)


def test_there_is_no_cell_where_no_row_is_enabled_or_two_are() -> None:
    """A step refuses both for a call that means something, and no calls lead there."""
    machine = Machine(
        "half",
        [
            Row("read", "NEW", "OLD", do="make", unless="made"),
            Row("read", "OLD", when="made", unless="kept"),
            Row("read", "OLD", do="drop", when="kept"),
            Row("read", "OLD", do="make", unless="made"),
            Row("look", "OLD"),
        ],
        calls=[Call("read", "read", "here"), Call("look")],
        actions=[
            Action("make", "allocate", "here", sets=("made",), clears=("kept",)),
            Action("drop", "free", "here", clears=("made", "kept")),
        ],
    )
    table = Table(Stepper(machine))
    new, old = (
        [table.packed(State(head, frozenset(facts))) for facts in ((), {"made"}, {"kept"}, {"made", "kept"})]
        for head in ("NEW", "OLD")
    )
    read, look = (table.columns[call][True] for call in ("read", "look"))

    assert [True, False, True, False] == [read[state] is not None for state in new]
    assert [True, True, False, True] == [read[state] is not None for state in old]
    assert [None] * 4 + [Cell((), (state,), "", idle=True) for state in old] == [look[it] for it in (*new, *old)]
