"""Any machine, in every format that draws or tabulates: plain, with each detail, with some calls, with a trace."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pytest
from drawings import parsed, texts
from exported import exported
from machines import DOOR, EXAMPLES, MSI, TCP
from pictured import H11, OFFLOAD, PICTURED, SHOP, TLS

from syncedmem.explorer import explorer_page
from syncedmem.model import EDITIONS, InvalidExportError
from syncedmem.model.declaration import Action, Call, Machine, Row
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.model.diagrams.drawing import Detail, Direction, drawing
from syncedmem.model.diagrams.trace import Trace, trace_of
from syncedmem.model.exports.formats import FORMATS, export
from syncedmem.model.exports.options import named_calls
from syncedmem.model.exports.tables import table_of
from syncedmem.model.states import space

ANY = (*EDITIONS.values(), *EXAMPLES, DOOR, *PICTURED)
DRAWN = {name: kind for name, kind in FORMATS.items() if kind.calls}
OF_MEMORIES = re.compile(r"\b(?:memory|memories|copy|copies|copied|fresh|sides?)\b", re.IGNORECASE)


VOTE = Machine("vote", [Row("ask", "V"), Row("count", "V", "C", when="all yes"), Row("again", "C", "V")])
NOT_ALL = Machine(
    "refuses",
    [*VOTE.rows, Row("count", "V", unless="all yes", refused="not all yet")],
    calls=["ask", Call("count", takes="all yes"), "again"],
)
"""Who counts too early is told nothing, or is refused."""


def walk_of(machine: Machine) -> Trace:
    """The first calls of a machine, as long as there are some that do something new."""
    names, state, seen = list[str](), space(machine).start, set[Any]()
    while state not in seen and len(names) < 6:
        seen.add(state)
        steps = space(machine).steps[state]
        entry = next((item for item, step in steps.items() if step.after not in seen and not step.refusal), None)
        if entry is None:
            break
        names.append(str(entry))
        state = steps[entry].after
    return trace_of(names, edition=machine)


def cases(name: str, machine: Machine) -> list[dict[str, Any]]:
    """The options of a format that are tried."""
    found: list[dict[str, Any]] = [{}, *({"detail": detail} for detail in DRAWN[name].details)]
    found.append({"calls": [next(call.name for call in machine.calls.values() if not call.ends)]})
    return [*found, {"trace": walk_of(machine)}] if DRAWN[name].trace else found


@pytest.mark.parametrize("machine", ANY, ids=str)
@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.deep(quick=30)
def test_every_machine_is_drawn_and_tabulated(name: str, machine: Machine) -> None:
    for options in cases(name, machine):
        assert export(name, edition=machine, **options)


@pytest.mark.parametrize("machine", [TCP, DOOR, SHOP], ids=str)
@pytest.mark.parametrize("name", [machine for machine in DRAWN if machine not in ("png", "pdf")])
def test_what_is_no_memory_is_not_called_one(name: str, machine: Machine) -> None:
    for options in [{}, {"trace": walk_of(machine)}] if FORMATS[name].trace else [{}]:
        assert [] == OF_MEMORIES.findall(exported(name, machine, **options))


@pytest.mark.parametrize("machine", [TCP, DOOR, SHOP, NOT_ALL], ids=str)
@pytest.mark.parametrize("name", ["c", "rust", "tla", "promela"])
def test_what_is_no_memory_is_not_called_one_in_code(name: str, machine: Machine) -> None:
    words = "faults?|fresh|sides?|contents|verb|copied|asynchronous|pointers?|newest"
    assert [] == re.findall(rf"(?i)memory|own_?buffer|\b(?:{words})\b", exported(name, machine))


@pytest.mark.parametrize("name", ["c", "rust"])
def test_the_buffer_of_a_memory_itself_is_only_where_a_call_adopts(name: str) -> None:
    assert (True, False) == tuple(
        "ownbuffer" in exported(name, item).lower().replace("_", "") for item in ("caffe", MSI)
    )


@pytest.mark.parametrize("name", ["c", "rust", "tla", "promela"])
def test_code_says_where_the_caller_decides(name: str) -> None:
    """By a bit, by an argument; in models both cases are tried."""
    sentence = re.compile(r"[^\n]*caller (?:decides|gives)[^\n]*")
    for machine, condition in ((VOTE, "all_yes"), (NOT_ALL, "all_yes"), (DOOR, "locked")):
        assert any(condition in said for said in sentence.findall(exported(name, machine)))
    assert not any("decides" in said for said in sentence.findall(exported(name, TCP)))


@pytest.mark.parametrize("detail", [None, Detail.HEADS])
@pytest.mark.parametrize("name", [machine for machine in DRAWN if machine not in ("png", "pdf", "xstate")])
def test_a_call_that_leads_to_two_heads_has_its_guards(name: str, detail: Detail | None) -> None:
    """Without them it would look as if it could go either way."""
    text = re.sub(r"\\|#\d+;|<U\+\w+>", "", exported(name, TLS, detail=detail))
    for guard in ("early data", "client auth"):
        found = re.findall(rf".?(?=\b{guard}[\]:])", text.replace("&#33;", "!"))
        assert {True, False} == {item == "!" for item in found}


@pytest.mark.parametrize("machine", [VOTE, NOT_ALL], ids=str)
@pytest.mark.parametrize("detail", [None, *Detail])
@pytest.mark.parametrize("name", [machine for machine in DRAWN if machine not in ("png", "pdf", "xstate")])
def test_a_call_that_does_nothing_otherwise_has_its_guard(name: str, detail: Detail | None, machine: Machine) -> None:
    if detail is Detail.CONFIGURATIONS and name in ("markdown", "html", "latex"):
        return  # it is in the name of the column
    text = exported(name, machine, detail=detail)
    guards = re.findall(r"(!|#33;|<U\+0021>)?\ball yes\b", text)
    assert ("" in guards, any(guards)) == (True, machine is NOT_ALL)
    assert "NULL" not in text


DECIDED = Machine(
    "decided",
    [
        Row("count", "V", "C", when=["all yes", "in, time"]),
        Row("count", "V", "D", unless="all yes"),
        Row("again", ["C", "D"], "V"),
    ],
)


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        ("count[all yes,in, time] again", ["count [all yes, in, time]: V → C", "again: C → V"]),
        ("count [in, time , all yes], again", ["count [all yes, in, time]: V → C", "again: C → V"]),
        ("count[!all yes] again", ["count [!all yes]: V → D", "again: D → V"]),
        ("count [!all yes, in, time]", ["count [!all yes]: V → D"]),
        ("count", ["count [!all yes]: V → D"]),
    ],
)
def test_a_trace_says_what_the_caller_decides(trace: str, said: list[str]) -> None:
    """What it does not state is false, and the steps say so."""
    taken = trace_of(trace, edition=DECIDED)
    assert [f"{k}. {step}, nothing" for k, step in enumerate(said, 1)] == [*taken.lines()]
    for step in said:
        assert escape(f"{step}, nothing") in exported("svg", DECIDED, trace=taken)


def test_the_argument_of_a_call_is_stated_as_a_condition() -> None:
    early, late = (trace_of(name, edition=NOT_ALL).lines() for name in ("count[!all yes]", "count"))
    assert ("1. count [!all yes] in V: refused, not all yet",) == early
    assert ("1. count [all yes]: V → C, nothing",) == late
    assert trace_of("count[all yes]", edition=NOT_ALL).lines() == late


@pytest.mark.parametrize(
    ("trace", "wrong"),
    [
        ("count[al yes]", "'al yes'"),
        ("count[!late, all yes]", "'late'"),
        ("again[all yes]", "'all yes'"),
        ("count[]", "''"),
        ("count[all yes, !all yes]", "'all yes'"),
        ("count [all yes]", "!in, time"),
        ("count [all yes", "'[all'"),
    ],
)
def test_a_condition_of_a_trace_that_cannot_be_is_named(trace: str, wrong: str) -> None:
    """The last but one has no row, because what is not stated is false."""
    with pytest.raises(InvalidExportError) as told:
        trace_of(trace, edition=DECIDED)
    assert wrong in str(told.value)


@pytest.mark.parametrize("call", ["add", "add, once"])
def test_names_with_blanks_are_quoted_where_errors_list_them(call: str) -> None:
    with pytest.raises(InvalidExportError) as told:
        export("svg", edition=SHOP, calls=[call])
    assert f"{call!r}; it has 'add, once more', 'check out', " in str(told.value)
    with pytest.raises(InvalidExportError) as told:
        trace_of([call], edition=SHOP)
    assert f"{call!r} is not a call" in str(told.value)
    assert "'add, once more', 'check out', " in str(told.value)


def test_the_columns_of_configurations_say_what_the_caller_decides() -> None:
    header = table_of(DECIDED, detail=Detail.CONFIGURATIONS).header
    assert {"count[all yes,in, time]", "count[!all yes,!in, time]", "again"} < {*header}


ILL = Row("go", "A", "B", do="slowly", when="ill"), Row("go", "A", "B", unless="ill"), Row("back", "B", "A")
VOTES = Row("count", "V", "C", when="all yes"), Row("count", "C", "V", unless="late"), Row("stop", "C", "V")
PUT = Row("put", "A", "B", when="data"), Row("put", "A", "C", unless="data"), Row("back", ["B", "C"], "A")


@pytest.mark.parametrize(
    ("rows", "calls", "detail", "labels"),
    [
        (ILL, (), Detail.HEADS, ["go / (slowly)", "back"]),  # it always leads to the same
        (VOTES, (), Detail.CONFIGURATIONS, ["count [all yes]", "count [!late]", "stop"]),  # it makes no difference
        (PUT, [Call("put", takes="data"), "back"], Detail.HEADS, ["put [data]", "put [!data]", "back", "back"]),
    ],
)
def test_a_condition_is_a_guard_where_it_decides(
    rows: list[Row], calls: list[Call | str], detail: Detail, labels: list[str]
) -> None:
    edges = drawing(Machine("m", rows, calls=calls), detail=detail).edges
    assert labels == [label for edge in edges for label in edge.labels]


def test_a_call_that_stays_and_does_nothing_has_its_guards_alone() -> None:
    rows = [
        *(Row("rain", "A", "B", do="set"), Row("walk", "A", "B"), Row("go", "B", when="wet")),
        *(Row("go", "B", "C", unless="wet"), Row("back", ["B", "C"], "A", do="dry")),
    ]
    machine = Machine("way", rows, actions=[Action("set", sets=("wet",)), Action("dry", clears=("wet",))])
    shown = texts(parsed(diagram_svg(machine)), "smd-brief")
    assert ["go [wet]"] == shown


def test_an_arrow_of_all_states_names_those_that_do_something_else() -> None:
    """Only the device copies to the host; a call that does the same everywhere names none."""
    steps = texts(parsed(diagram_svg(OFFLOAD)), "smd-step")
    assert {"from NEW, BOTH: nothing", "from GPU: copy to HOST", "from CPU: copy to DEVICE"} <= set(steps)
    assert [] == [step for step in texts(parsed(diagram_svg(H11)), "smd-step") if step.startswith("from")]


@pytest.mark.parametrize("text", ["add, once more check out cancel", "add, once more, check out,cancel"])
def test_names_with_blanks_and_commas_are_found_in_a_text(text: str) -> None:
    """The longest first: of `check out` and `check` it is the longer one."""
    machine = Machine("more", [*SHOP.rows, Row("check", "paying")])
    calls = ("add, once more", "check out", "cancel")
    assert calls == named_calls([text], machine)
    assert [*calls] == [str(step.input) for step in trace_of(text, edition=machine).steps]
    with pytest.raises(InvalidExportError, match=r"^unknown call 'add'"):
        named_calls(["add once more"], machine)


@pytest.mark.parametrize(
    ("name", "words"), [("mermaid", "direction LR"), ("dot", "rankdir=LR"), ("plantuml", "left to right direction")]
)
def test_a_drawing_that_others_lay_out_leads_to_the_right(name: str, words: str) -> None:
    assert words in exported(name, direction=Direction.RIGHT)
    assert words not in exported(name)


def test_a_page_to_play_with_begins_in_a_state() -> None:
    assert not re.search("fresh memory", explorer_page(SHOP), re.IGNORECASE)


def test_a_trace_of_a_machine_without_sides_has_no_sum() -> None:
    trace = trace_of("open close", edition=DOOR)
    assert 2 == len(trace.lines())
    assert "Copied" not in diagram_svg(DOOR, trace=trace)


def test_the_bullet_of_no_copy_is_only_where_something_is_copied() -> None:
    assert "no copy" in diagram_svg(MSI)
    assert "no copy" not in diagram_svg(EDITIONS["cpu_only"])
    assert 'd="M1 0H7"' in diagram_svg(MSI)
    assert 'd="M1 0H7"' not in diagram_svg(TCP)
