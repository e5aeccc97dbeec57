"""Interpreters of XState and SCXML run the exported charts: in every state, every call does what the model says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree as ET

import pytest
from exported import exported
from loops import some
from programs import run_node
from statemachine.io.scxml.processor import SCXMLProcessor

from syncedmem.model.caffe import CAFFE, EDITIONS, MODE
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.exports.xstate import END, xstate_json, xstate_machine
from syncedmem.model.states import matrix, space, stepper
from syncedmem.model.suites import access_sequences, tour

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model.declaration import Machine
    from syncedmem.model.stepper import Input, State

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
    for (state, entry), it in zip(cases(machine), answer["found"], strict=True):
        mode = it["context"].pop("mode")
        facts = frozenset(name for name, value in it["context"].items() if value)
        assert expected(machine, state, entry) == (it["value"], facts, it["actions"], it["refusal"])
        assert mode == (entry.value or state.settings[0])


@MACHINES
def test_xstate_with_configurations_is_the_matrix(machine: Machine) -> None:
    rows = [(before, asked, entry) for before, row in matrix(machine).items() for asked, entry in row.items()]
    request = [{"value": str(before), "context": {}, "event": {"type": str(asked)}} for before, asked, _ in rows]
    chart = xstate_machine(machine, detail=Detail.CONFIGURATIONS)
    answer = run_node("run_xstate.mjs", {"machine": chart, "cases": request})
    assert answer["initial"] == "U:--"
    for (_, _, entry), it in zip(rows, answer["found"], strict=True):
        assert (str(entry.after), [*entry.actions], entry.refusal or None) == (
            it["value"],
            it["actions"],
            it["refusal"],
        )


class Chart:
    """An SCXML document in python-statemachine, without its evaluator that runs any Python."""

    def __init__(self, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        processor: Any = SCXMLProcessor(trusted=False)
        processor.parse_scxml("syncedmem", text)
        self.chart: Any = processor.start()
        self.capsys = capsys

    @property
    def states(self) -> set[str]:
        """Return the active states, without the state that contains all others."""
        return set(self.chart.configuration_values) - {"memory"}

    @property
    def data(self) -> Json:
        """Return the data model."""
        return cast("Json", vars(self.chart.model))

    def send(self, event: str) -> tuple[list[str], str | None]:
        """Send an event, and return the actions and the refusal."""
        self.capsys.readouterr()
        self.chart.send(event)
        said = [line.split(": ") for line in self.capsys.readouterr().out.splitlines()]
        done = [text.strip("'") for label, text in said if label == "perform"]
        refused = [text.strip("'") for label, text in said if label == "refuse"]
        return done, refused[0] if refused else None


def event_of(asked: Input) -> str:
    """Return the name of an input as an SCXML event."""
    if asked.call is None:
        return f"set_{asked.setting}.{asked.value}"
    return asked.call.name + ("" if asked.data else ".null")


def nulls(machine: Machine) -> list[Input]:
    return [asked for asked in stepper(machine).inputs() if not asked.data]


@MACHINES
def test_scxml_with_guards_is_the_machine(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """A tour takes every transition, and NULL data is tried after every step."""
    taken: set[tuple[State, Input]] = set()
    for word in tour(machine):
        chart, state = Chart(exported("scxml", machine.name), capsys), space(machine).start
        for asked in word:
            for entry in (asked, *nulls(machine)):
                step = stepper(machine).step(state, entry)
                head, facts, done, refused = expected(machine, state, entry)
                taken.add((state, entry))
                assert (done, refused) == chart.send(event_of(entry))
                state = step.after if step and entry is asked else state
                data = chart.data
                assert {head} == chart.states
                assert facts == {fact for fact in machine.facts if data[fact] == 1}
                assert [*state.settings] == [value for value in MODE.values if data[f"mode_{value}"] == 1]
    assert len(taken) == sum(not asked.ends for _, asked in cases(machine))


@pytest.mark.deep
@MACHINES
def test_scxml_with_configurations_is_the_matrix(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """The tour is the same. A change of mode is not an event in this document."""
    found, whole = matrix(machine), space(machine)
    taken: set[tuple[Any, Input]] = set()
    for word in tour(machine):
        chart = Chart(exported("scxml", machine.name, detail=Detail.CONFIGURATIONS), capsys)
        state = whole.start
        for asked in word:
            before, state = whole.configuration(state), whole.steps[state][asked].after
            for entry, at in ((asked, before), *((it, whole.configuration(state)) for it in nulls(machine))):
                if entry.call is not None:
                    cell = found[at][entry]
                    taken.add((at, entry))
                    assert ([*cell.actions], cell.refusal or None) == chart.send(event_of(entry))
                    assert {str(cell.after).replace(":", ".")} == chart.states
    assert len(taken) == sum(map(len, found.values()))


@MACHINES
@pytest.mark.parametrize("detail", [Detail.GUARDS, Detail.CONFIGURATIONS])
def test_scxml_ends_with_release(machine: Machine, detail: Detail, capsys: pytest.CaptureFixture[str]) -> None:
    """Release works in every configuration, and frees what it owns."""
    words: dict[Any, tuple[State, list[str]]] = {}
    for state, word in access_sequences(machine).items():
        calls = [event_of(entry) for entry in word if entry.call]
        words.setdefault(space(machine).configuration(state), (state, calls))
    (end,) = [entry for entry in stepper(machine).inputs(end=True) if entry.ends]
    for state, calls in some(words.values()):
        chart = Chart(exported("scxml", machine.name, detail=detail), capsys)
        for event in calls:
            chart.send(event)
        _, _, freed, _ = expected(machine, state, end)
        assert (freed, None) == chart.send("release")


@pytest.mark.parametrize("detail", [Detail.GUARDS, Detail.CONFIGURATIONS])
def test_charts_of_some_calls_answer_those_alone(detail: Detail) -> None:
    calls = ("cpu_data", "set_cpu_data")
    states = xstate_machine(calls=calls, detail=detail)["states"]
    named = {event.partition("(")[0] for state in states.values() for event in state.get("on", {})}
    assert named == {*calls}
    root = ET.fromstring(exported("scxml", calls=calls, detail=detail))  # noqa: S314 -- nobody's text but our own
    events = {
        node.attrib["event"].partition(".")[0] for node in root.iter("{http://www.w3.org/2005/07/scxml}transition")
    }
    assert {*calls} == events - {"set_mode"}
    released = ET.fromstring(exported("scxml", calls=("release",), detail=detail))  # noqa: S314 -- as above
    assert len([node for node in released.iter() if node.get("event") == "release"]) >= len(CAFFE.heads)


def test_xstate_text_is_the_configuration() -> None:
    assert json.loads(xstate_json()) == xstate_machine()


def test_the_default_of_xstate_runs_as_it_is() -> None:
    """It needs no guard, which XState would call not implemented."""
    assert '"guard"' not in exported("xstate")
    assert '"guard"' in exported("xstate", detail=Detail.GUARDS)
