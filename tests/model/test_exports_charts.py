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

from syncedmem.model import EDITIONS, Call, Fact, Input, State, inputs, matrix, space
from syncedmem.model.compiled import dispatch, head_machine
from syncedmem.model.diagrams.drawing import Detail
from syncedmem.model.exports.xstate import END, xstate_json, xstate_machine
from syncedmem.model.suites import access_sequences, tour

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
Did = tuple[str, frozenset[str], list[str], str | None]
"""The state afterwards, the facts that are true, the actions, and the refusal."""


def facts_of(facts: Fact) -> frozenset[str]:
    return frozenset(fact.name or "" for fact in Fact if fact in facts)


def expected(edition: str, state: State, asked: Input) -> Did:
    """Return what the compiled table says."""
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
    """Return every reachable state with every input, also NULL data, changes of mode and the destructor."""
    for state in space(edition).steps:
        for asked in (*inputs(edition, null=True), Input(Call.RELEASE)):
            yield state, asked


def _context(fact: str) -> str:
    """Return the name of a fact in the context."""
    return f"has_{fact.lower()}" if fact.endswith("POINTER") else fact.lower()


@pytest.mark.parametrize("edition", EDITIONS)
def test_xstate_with_guards_is_the_machine(edition: str) -> None:
    tracked = facts_of(EDITIONS[edition].facts)
    asked = [
        {
            "value": state.head.name,
            "context": {**{_context(name): name in facts_of(state.facts) for name in tracked}, "mode": state.mode.name},
            "event": {"type": entry.call.value if entry.call else str(entry), "data": entry.data},
        }
        for state, entry in cases(edition)
    ]
    answer = run_node("run_xstate.mjs", {"machine": xstate_machine(edition, detail=Detail.GUARDS), "cases": asked})
    assert answer["initial"] == "UNINITIALIZED"
    for (state, entry), it in zip(cases(edition), answer["found"], strict=True):
        mode = it["context"].pop("mode")
        facts = frozenset(name for name in tracked if it["context"][_context(name)])
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
    """XState runs the text that is written: the test finds a row that copies too little, and a guard turned round."""
    case = {"value": "C:o-", "context": {}, "event": {"type": "gpu_data"}}
    machine = xstate_machine(detail=Detail.CONFIGURATIONS)
    machine["states"]["C:o-"]["on"]["gpu_data"]["actions"].pop()
    assert run_node("run_xstate.mjs", {"machine": machine, "cases": [case]})["found"][0]["actions"] == ["allocate_gpu"]
    machine = xstate_machine(detail=Detail.GUARDS)
    for row in machine["states"]["HEAD_AT_CPU"]["on"]["gpu_data"]:
        row["guard"]["params"]["has_gpu_pointer"] ^= True
    case = {
        **case,
        "value": "HEAD_AT_CPU",
        "context": {"has_cpu_pointer": True, "has_gpu_pointer": False, "mode": "CPU"},
    }
    assert run_node("run_xstate.mjs", {"machine": machine, "cases": [case]})["found"][0]["actions"] == ["copy_to_gpu"]


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
        return f"set_mode.{asked.mode.name if asked.mode else ''}"
    return asked.call.value + ("" if asked.data else ".null")


def nulls(edition: str) -> list[Input]:
    return [asked for asked in inputs(edition, null=True) if not asked.data]


@pytest.mark.parametrize("edition", EDITIONS)
def test_scxml_with_guards_is_the_machine(edition: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A tour takes every transition, and NULL data is tried after every step."""
    steps, taken = space(edition).steps, set[tuple[State, Input]]()
    for word in tour(edition):
        chart, state = Chart(exported("scxml", edition), capsys), space(edition).start
        for asked in word:
            for entry in (asked, *nulls(edition)):
                head, facts, done, refused = expected(edition, state, entry)
                taken.add((state, entry))
                assert (done, refused) == chart.send(event_of(entry))
                state = steps[state][entry].after if entry is asked else state
                data = chart.data
                assert {head} == chart.states
                assert facts == {name.upper() for name, value in data.items() if value == 1 and name != "mode"}
                assert data["mode"] == state.mode.value
    assert len(taken) == sum(asked.call is not Call.RELEASE for _, asked in cases(edition))


@pytest.mark.deep
@pytest.mark.parametrize("edition", EDITIONS)
def test_scxml_with_configurations_is_the_matrix(edition: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The tour is the same. A change of mode is not an event in this document."""
    found, steps, taken = matrix(edition), space(edition).steps, set[tuple[Any, Input]]()
    for word in tour(edition):
        chart = Chart(exported("scxml", edition, detail=Detail.CONFIGURATIONS), capsys)
        state = space(edition).start
        for asked in word:
            before, state = state.configuration, steps[state][asked].after
            for entry, at in ((asked, before), *((it, state.configuration) for it in nulls(edition))):
                if entry.call is not None:
                    cell = found[at][entry]
                    taken.add((at, entry))
                    actions = [action.value for action in cell.actions]
                    assert (actions, _name(cell.refusal)) == chart.send(event_of(entry))
                    assert {str(cell.after).replace(":", ".")} == chart.states
    assert len(taken) == sum(map(len, found.values()))


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("detail", [Detail.GUARDS, Detail.CONFIGURATIONS])
def test_scxml_ends_with_release(edition: str, detail: Detail, capsys: pytest.CaptureFixture[str]) -> None:
    """Release works in every configuration, and frees what it owns."""
    words: dict[Any, Any] = {}
    for state, word in access_sequences(edition).items():
        words.setdefault(state.configuration, [event_of(entry) for entry in word if entry.call])
    for before, word in some(words.items()):
        chart = Chart(exported("scxml", edition, detail=detail), capsys)
        for event in word:
            chart.send(event)
        freed = head_machine(edition).row(Call.RELEASE, before.head, before.facts, data=True).actions
        assert ([action.value for action in freed], None) == chart.send("release")
        assert {END} == chart.states


def test_a_wrong_document_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The interpreter runs the document that is written: a changed target leads to another state."""
    text = exported("scxml").replace('event="cpu_data" target="HEAD_AT_CPU"', 'event="cpu_data" target="SYNCED"', 1)
    chart = Chart(text, capsys)
    chart.send("cpu_data")
    assert chart.states == {"SYNCED"}


@pytest.mark.parametrize("detail", [Detail.GUARDS, Detail.CONFIGURATIONS])
def test_charts_of_some_calls_answer_those_alone(detail: Detail) -> None:
    calls = (Call.CPU_DATA, Call.SET_CPU_DATA)
    states = xstate_machine(calls=calls, detail=detail)["states"]
    named = {event.partition("(")[0] for state in states.values() for event in state.get("on", {})}
    assert named == {call.value for call in calls}
    root = ET.fromstring(exported("scxml", calls=calls, detail=detail))  # noqa: S314 -- nobody's text but our own
    events = {
        node.attrib["event"].partition(".")[0] for node in root.iter("{http://www.w3.org/2005/07/scxml}transition")
    }
    assert {call.value for call in calls} == events - {"set_mode"}
    released = ET.fromstring(exported("scxml", calls=(Call.RELEASE,), detail=detail))  # noqa: S314 -- as above
    assert len([node for node in released.iter() if node.get("event") == "release"]) >= len(EDITIONS["caffe"].heads)


def test_xstate_text_is_the_configuration() -> None:
    assert json.loads(xstate_json()) == xstate_machine()


def test_the_default_of_xstate_runs_as_it_is() -> None:
    """It needs no guard, which XState would call not implemented."""
    assert '"guard"' not in exported("xstate")
    assert '"guard"' in exported("xstate", detail=Detail.GUARDS)
