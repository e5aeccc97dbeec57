"""XState and SCXML, executed: in every state, every call does what the model says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from programs import run_node
from statemachine.io.scxml.processor import SCXMLProcessor

from syncedmem.model import EDITIONS, Call, Fact, Input, State, inputs, matrix, space
from syncedmem.model.drawing import Detail
from syncedmem.model.editions import dispatch, head_machine
from syncedmem.model.exports.scxml import scxml
from syncedmem.model.exports.xstate import END, xstate_json, xstate_machine
from syncedmem.model.suites import access_words

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
Did = tuple[str, frozenset[str], list[str], str | None]
"""The state afterwards, the facts that are true, the actions, and the refusal."""


def facts_of(facts: Fact) -> frozenset[str]:
    return frozenset(fact.name or "" for fact in Fact if fact in facts)


def expected(edition: str, state: State, asked: Input) -> Did:
    """What the compiled table says."""
    if asked.call is None:
        return state.head.name, facts_of(state.facts), [], None
    cell = dispatch(edition).cell(asked.call, state.packed, data=asked.data)
    assert cell is not None
    after = State(cell.next[state.mode.value], state.mode)
    head = END if asked.call is Call.RELEASE else after.head.name
    return head, facts_of(after.facts), [action.value for action in cell.actions], _name(cell.refusal)


def _name(refusal: Any) -> str | None:
    return refusal.value if refusal else None


def cases(edition: str) -> Iterator[tuple[State, Input]]:
    """Every reachable state with every input, NULL data, changes of mode and the destructor included."""
    for state in space(edition).steps:
        for asked in (*inputs(edition, null=True), Input(Call.RELEASE)):
            yield state, asked


@pytest.mark.parametrize("edition", EDITIONS)
def test_xstate_with_guards_is_the_machine(edition: str) -> None:
    tracked = facts_of(EDITIONS[edition].facts)
    asked = [
        {
            "value": state.head.name,
            "context": {**{name: name in facts_of(state.facts) for name in tracked}, "mode": state.mode.name},
            "event": {"type": entry.call.value if entry.call else str(entry), "data": entry.data},
        }
        for state, entry in cases(edition)
    ]
    answer = run_node("run_xstate.mjs", {"machine": xstate_machine(edition), "cases": asked})
    assert answer["initial"] == "UNINITIALIZED"
    for (state, entry), it in zip(cases(edition), answer["found"], strict=True):
        mode = it["context"].pop("mode")
        facts = frozenset(name for name, value in it["context"].items() if value)
        assert expected(edition, state, entry) == (it["value"], facts, it["actions"], it["refusal"])
        assert mode == (entry.mode or state.mode).name


@pytest.mark.parametrize("edition", EDITIONS)
def test_xstate_with_configurations_is_the_matrix(edition: str) -> None:
    rows = [(before, asked, entry) for before, row in matrix(edition).items() for asked, entry in row.items()]
    request = [{"value": str(before), "context": {}, "event": {"type": str(asked)}} for before, asked, _ in rows]
    machine = xstate_machine(edition, detail=Detail.CONFIGURATIONS)
    answer = run_node("run_xstate.mjs", {"machine": machine, "cases": request})
    assert answer["initial"] == "U:--"
    for (_, _, entry), it in zip(rows, answer["found"], strict=True):
        actions = [action.value for action in entry.actions]
        assert (str(entry.after), actions, _name(entry.refusal)) == (it["value"], it["actions"], it["refusal"])


def test_a_wrong_chart_is_found_out() -> None:
    """XState reads what is written: a row that copies too little, and a guard turned round, are seen."""
    case = {"value": "C:o-", "context": {}, "event": {"type": "gpu_data"}}
    machine = xstate_machine(detail=Detail.CONFIGURATIONS)
    machine["states"]["C:o-"]["on"]["gpu_data"]["actions"].pop()
    assert run_node("run_xstate.mjs", {"machine": machine, "cases": [case]})["found"][0]["actions"] == ["allocate_gpu"]
    machine = xstate_machine()
    for row in machine["states"]["HEAD_AT_CPU"]["on"]["gpu_data"]:
        row["guard"]["params"]["GPU_POINTER"] ^= True
    case = {**case, "value": "HEAD_AT_CPU", "context": {"CPU_POINTER": True, "GPU_POINTER": False, "mode": "CPU"}}
    assert run_node("run_xstate.mjs", {"machine": machine, "cases": [case]})["found"][0]["actions"] == ["copy_to_gpu"]


class Chart:
    """An SCXML document in python-statemachine, without its evaluator of arbitrary Python, started for every word."""

    def __init__(self, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.processor: Any = SCXMLProcessor(trusted=False)
        self.processor.parse_scxml("syncedmem", text)
        self.capsys = capsys

    def walk(self, events: list[str]) -> tuple[set[str], Json, list[str], str | None]:
        """The states and the data after a word; the actions and the refusal of its last event."""
        chart = self.processor.start()
        for event in events:
            self.capsys.readouterr()
            chart.send(event)
        said = [line.split(": ") for line in self.capsys.readouterr().out.splitlines()]
        done = [text.strip("'") for label, text in said if label == "perform"]
        refused = [text.strip("'") for label, text in said if label == "refuse"]
        return set(chart.configuration_values), dict(vars(chart.model)), done, *(refused or [None])


def event_of(asked: Input) -> str:
    """The name of an input as an event of SCXML."""
    if asked.call is None:
        return f"set_mode.{asked.mode.name if asked.mode else ''}"
    return asked.call.value + ("" if asked.data else ".null")


@pytest.mark.parametrize("edition", EDITIONS)
def test_scxml_with_guards_is_the_machine(edition: str, capsys: pytest.CaptureFixture[str]) -> None:
    chart, words = Chart(scxml(edition), capsys), access_words(edition)
    for state, asked in cases(edition):
        events = [event_of(entry) for entry in (*words[state], asked)]
        states, data, actions, refusal = chart.walk(events)
        head, facts, done, refused = expected(edition, state, asked)
        assert {head} == states - {"memory"}, events
        assert (done, refused) == (actions, refusal)
        if head != END:
            assert facts == {name.upper() for name, value in data.items() if value == 1 and name != "mode"}
            assert data["mode"] == (asked.mode or state.mode).value


@pytest.mark.parametrize("edition", EDITIONS)
def test_scxml_with_configurations_is_the_matrix(edition: str, capsys: pytest.CaptureFixture[str]) -> None:
    chart = Chart(scxml(edition, detail=Detail.CONFIGURATIONS), capsys)
    words: dict[Any, list[str]] = {}
    for state, word in access_words(edition).items():
        words.setdefault(state.configuration, [event_of(entry) for entry in word if entry.call])
    for before, row in matrix(edition).items():
        for asked, entry in row.items():
            states, _, actions, refusal = chart.walk([*words[before], event_of(asked)])
            assert {str(entry.after).replace(":", ".")} == states
            assert ([action.value for action in entry.actions], _name(entry.refusal)) == (actions, refusal)
        states, _, actions, _ = chart.walk([*words[before], "release"])
        freed = head_machine(edition).row(Call.RELEASE, before.head, before.facts, data=True).actions
        assert ({END}, [action.value for action in freed]) == (states, actions)


def test_a_wrong_document_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The interpreter reads what is written: another target is another state."""
    text = scxml().replace('event="cpu_data" target="HEAD_AT_CPU"', 'event="cpu_data" target="SYNCED"', 1)
    assert Chart(text, capsys).walk(["cpu_data"])[0] == {"memory", "SYNCED"}


@pytest.mark.parametrize("detail", [Detail.GUARDS, Detail.CONFIGURATIONS])
def test_charts_of_some_calls_answer_those_alone(detail: Detail) -> None:
    calls = (Call.CPU_DATA, Call.SET_CPU_DATA)
    states = xstate_machine(calls=calls, detail=detail)["states"]
    named = {event.partition("(")[0] for state in states.values() for event in state.get("on", {})}
    assert named == {call.value for call in calls}
    root = ET.fromstring(scxml(calls=calls, detail=detail))  # noqa: S314 -- nobody's text but our own
    events = {
        node.attrib["event"].partition(".")[0] for node in root.iter("{http://www.w3.org/2005/07/scxml}transition")
    }
    assert {call.value for call in calls} == events - {"set_mode"}
    released = ET.fromstring(scxml(calls=(Call.RELEASE,), detail=detail))  # noqa: S314 -- as above
    assert len([node for node in released.iter() if node.get("event") == "release"]) >= len(EDITIONS["caffe"].heads)


def test_xstate_text_is_the_configuration() -> None:
    assert json.loads(xstate_json()) == xstate_machine()
