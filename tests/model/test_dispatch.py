"""The compiled table is compared with the live `transitions` machine, cell by cell."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from syncedmem.model import (
    EDITIONS,
    EFFECTS,
    Action,
    Call,
    DeclarationError,
    Fact,
    HeadMachine,
    Mode,
    Refusal,
    SyncedHead,
    head_machine,
)
from syncedmem.model.compiled import dispatch
from syncedmem.model.dispatch import Cell, Dispatch, compile_dispatch, facts_of, head_of, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALL_FACTS = tuple(Fact(bits) for bits in range(32))
GUARDS = {
    "has_cpu_pointer": Fact.CPU_POINTER,
    "has_gpu_pointer": Fact.GPU_POINTER,
    "own_cpu_data": Fact.OWN_CPU_DATA,
    "own_gpu_data": Fact.OWN_GPU_DATA,
}

MUTATIONS: list[Callable[[Cell], Cell | None]] = [
    lambda cell: cell._replace(actions=cell.actions[::-1]),
    lambda cell: cell._replace(actions=cell.actions[1:]),
    lambda cell: cell._replace(next=(cell.next[0], cell.next[0])),
    lambda cell: cell._replace(next=(cell.next[1], cell.next[1])),
    lambda cell: cell._replace(next=(cell.next[0] ^ 32, cell.next[1] ^ 32)),
    lambda cell: cell._replace(refusal=Refusal.NO_GPU),
    lambda cell: cell._replace(idle=True),
    lambda _: None,
]


class Recording(SimpleNamespace):
    """A model for `transitions`: it has a head and an answer to every guard, and records the steps."""

    def __init__(self, head: SyncedHead, facts: Fact, *, data: bool) -> None:
        super().__init__(**{name: fact in facts for name, fact in GUARDS.items()}, has_data=data)
        self.head = head
        self.done: list[str] = []
        for name in (step.value for kind in (Action, Refusal) for step in kind):
            setattr(self, name, self._noting(name))

    def _noting(self, name: str) -> Callable[[], None]:
        return lambda: self.done.append(name)


def live(machine: HeadMachine, call: Call, head: SyncedHead, facts: Fact, *, data: bool) -> Cell:
    """Return a cell as the live machine computes it."""
    model = Recording(head, facts, data=data)
    assert machine.event(call).trigger(model)
    refused = [Refusal(name) for name in model.done if name in {refusal.value for refusal in Refusal}]
    if refused:
        assert (model.done, model.head) == ([refused[0].value], head)
        return Cell((), (state_of(head, facts), state_of(head, facts)), refused[0], idle=False)
    actions = tuple(Action(name) for name in model.done)
    cpu, gpu = (state_of(model.head, affected(facts, actions, mode) & machine.edition.facts) for mode in Mode)
    return Cell(actions, (cpu, gpu), None, idle=not actions and {state_of(head, facts)} == {cpu, gpu})


def affected(facts: Fact, actions: tuple[Action, ...], mode: Mode) -> Fact:
    """Return the facts after some actions, computed from the declared effects."""
    for action in actions:
        effect = EFFECTS[action]
        facts = (facts | effect.sets) & ~effect.clears
        facts = facts | effect.by_mode if mode is Mode.GPU else facts & ~effect.by_mode
    return facts


def lookups(machine: HeadMachine) -> Iterator[tuple[Call, SyncedHead, Fact, bool]]:
    """Return every call in every head with every combination of facts, with and without data."""
    return product(machine.calls, machine.edition.heads, ALL_FACTS, (False, True))


def differences(table: Dispatch, machine: HeadMachine) -> list[tuple[Call, SyncedHead, Fact, bool]]:
    """Return the cells in which a table differs from the machine."""
    return [
        (call, head, facts, data)
        for call, head, facts, data in lookups(machine)
        if table.cell(call, state_of(head, facts), data=data) != live(machine, call, head, facts, data=data)
    ]


@pytest.mark.parametrize(("edition", "cells"), [("caffe", 2048), ("early", 1536), ("cpu_only", 896)])
def test_the_table_is_what_the_machine_does(edition: str, cells: int) -> None:
    """Every cell, reachable or not, has the same ordered actions, refusal, and next state in both modes."""
    machine = head_machine(edition)
    assert cells == len(list(lookups(machine)))
    assert [] == differences(dispatch(edition), machine)


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_wrong_cell_is_found(mutate: Callable[[Cell], Cell | None]) -> None:
    """The comparison reports the one cell that was changed, and no other."""
    machine = head_machine()
    spot = (Call.CPU_DATA, SyncedHead.UNINITIALIZED, Fact.GPU_POINTER, True)
    without, column = dispatch().columns[Call.CPU_DATA]
    place = state_of(spot[1], spot[2])
    cell = column[place]
    assert cell
    mutant = (*column[:place], mutate(cell), *column[place + 1 :])
    table = Dispatch({**dispatch().columns, Call.CPU_DATA: (without, mutant)}, dispatch().start)
    assert [spot] == differences(table, machine)


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_table_is_compiled_once(edition: str) -> None:
    """The shared table equals a newly compiled one, and a second request returns the same object."""
    assert dispatch(edition) is dispatch(edition)
    assert compile_dispatch(head_machine(edition)) == dispatch(edition)


def test_states_are_packed_and_unpacked() -> None:
    """Every head with every combination of facts has its own number below 128."""
    packed = [state_of(head, facts) for head in SyncedHead for facts in ALL_FACTS]
    assert list(range(128)) == packed
    assert [(head, facts) for head in SyncedHead for facts in ALL_FACTS] == [
        (head_of(it), facts_of(it)) for it in packed
    ]


@pytest.mark.parametrize(
    ("edition", "call", "head"),
    [("early", Call.SET_GPU_DATA, SyncedHead.SYNCED), ("cpu_only", Call.CPU_DATA, SyncedHead.SYNCED)],
)
def test_there_is_no_cell_for_what_the_edition_does_not_have(edition: str, call: Call, head: SyncedHead) -> None:
    """The edition lacks the call or the head of the cell. Caffe's edition has this cell."""
    assert dispatch(edition).cell(call, state_of(head)) is None
    assert dispatch().cell(call, state_of(head))


def test_a_cell_is_looked_up_with_data_unless_told() -> None:
    """A caller has to ask for NULL data explicitly."""
    state = state_of(SyncedHead.UNINITIALIZED)
    with_data, without = (
        dispatch().cell(Call.SET_CPU_DATA, state),
        dispatch().cell(Call.SET_CPU_DATA, state, data=False),
    )
    assert with_data
    assert without
    assert ((Action.ADOPT_CPU,), None) == (with_data.actions, with_data.refusal)
    assert ((), Refusal.NULL_DATA) == (without.actions, without.refusal)


def test_an_unknown_edition_is_refused() -> None:
    """There is no table for an edition that is not declared."""
    with pytest.raises(DeclarationError, match="unknown edition 'torch'"):
        dispatch("torch")
