"""XState runs the exported chart: in every state, every call does what the model says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from exported import exported
from programs import run_node

from syncedmem.model.caffe import EDITIONS
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.exports.xstate import END, xstate_json, xstate_machine
from syncedmem.model.states import matrix, space, stepper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model.declaration import Machine
    from syncedmem.model.moves import Input, State

Json = dict[str, Any]
Did = tuple[str, frozenset[str], list[str], str | None]
"""The head afterwards, the facts that are true, the actions, and the refusal."""

MACHINES = pytest.mark.parametrize("machine", EDITIONS.values(), ids=str)


def expected(machine: Machine, state: State, asked: Input) -> Did:
    """Return what the machine says."""
    step = stepper(machine).step(state, asked)
    assert step is not None
    return END if asked.ends else step.after.head, step.after.facts, [*step.actions], step.refusal or None


def cases(machine: Machine) -> Iterator[tuple[State, Input]]:
    """Return every reachable state with every input, also NULL data, changes of mode and the destructor."""
    for state in space(machine).steps:
        for asked in stepper(machine).inputs(end=True):
            yield state, asked


@MACHINES
def test_xstate_with_guards_is_the_machine(machine: Machine) -> None:
    asked = [
        {
            "value": state.head,
            "context": {**{fact: fact in state.facts for fact in machine.facts}, "mode": state.settings[0]},
            "event": {"type": entry.call.name if entry.call else str(entry), "data": entry.data},
        }
        for state, entry in cases(machine)
    ]
    answer = run_node("run_xstate.mjs", {"machine": xstate_machine(machine, detail=Detail.GUARDS), "cases": asked})
    assert answer["initial"] == "UNINITIALIZED"
    for (state, entry), pair in zip(cases(machine), answer["found"], strict=True):
        mode = pair["context"].pop("mode")
        facts = frozenset(name for name, value in pair["context"].items() if value)
        assert expected(machine, state, entry) == (pair["value"], facts, pair["actions"], pair["refusal"])
        assert mode == (entry.value or state.settings[0])


@MACHINES
def test_xstate_with_configurations_is_the_matrix(machine: Machine) -> None:
    rows = [(before, asked, entry) for before, row in matrix(machine).items() for asked, entry in row.items()]
    request = [{"value": str(before), "context": {}, "event": {"type": str(asked)}} for before, asked, _ in rows]
    chart = xstate_machine(machine, detail=Detail.CONFIGURATIONS)
    answer = run_node("run_xstate.mjs", {"machine": chart, "cases": request})
    assert answer["initial"] == "U:--"
    for (_, _, entry), pair in zip(rows, answer["found"], strict=True):
        assert (str(entry.after), [*entry.actions], entry.refusal or None) == (
            pair["value"],
            pair["actions"],
            pair["refusal"],
        )


@pytest.mark.parametrize("detail", [Detail.GUARDS, Detail.CONFIGURATIONS])
def test_charts_of_some_calls_answer_those_alone(detail: Detail) -> None:
    calls = ("cpu_data", "set_cpu_data")
    states = xstate_machine(calls=calls, detail=detail)["states"]
    named = {event.partition("(")[0] for state in states.values() for event in state.get("on", {})}
    assert named == {*calls}


def test_xstate_text_is_the_configuration() -> None:
    assert json.loads(xstate_json()) == xstate_machine()


def test_the_default_of_xstate_runs_as_it_is() -> None:
    """It needs no guard, which XState would call not implemented."""
    assert '"guard"' not in exported("xstate")
    assert '"guard"' in exported("xstate", detail=Detail.GUARDS)
