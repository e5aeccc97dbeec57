"""Machines with names of their own: declared as text, checked, explored, bound, drawn in layers and tabulated."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import jsonschema
import pytest
from drawings import head_boxes, overlap, parsed, stretches, text_boxes, within

from syncedmem.model import (
    Action,
    Declaration,
    DeclarationError,
    FileFormatError,
    IllegalCallError,
    InvalidExportError,
    Mode,
    Rule,
    configurations,
    declare,
    head_machine,
    hsi_suite,
    inputs,
    matrix,
    space,
    tour,
)
from syncedmem.model.diagrams.diamond import diamond_svg
from syncedmem.model.diagrams.drawing import Detail, drawing
from syncedmem.model.diagrams.labels import labels_of
from syncedmem.model.diagrams.layers import layered
from syncedmem.model.diagrams.trace import trace_of
from syncedmem.model.exports.declared import machine_named
from syncedmem.model.exports.formats import FORMATS, export
from syncedmem.model.exports.options import named_calls
from syncedmem.model.exports.own_document import declared_document
from syncedmem.model.exports.schema import declared_schema
from syncedmem.model.head import CAFFE_NAMES

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

FOLDER = Path(__file__).parents[2] / "examples" / "machines"
EXAMPLES = {"petsc": "OFFLOAD_MASK", "mfem": "FLAGS", "dualview": "COUNTERS", "msi": "LINE"}
SCHEMA: Any = jsonschema.Draft202012Validator(declared_schema())
ROWS = (
    Rule("push", "UP", "DOWN", "sound"),
    Rule("push", "DOWN", refusal="is_down"),
    Rule("pull", "DOWN", "UP", when="!stuck"),
    Rule("pull", "DOWN", "DOWN", when="stuck"),
    Rule("pull", "UP", "UP"),
    Rule("glue", "UP DOWN", "DOWN", "add_glue", cite="a shop"),
    Rule("sell", "UP DOWN", actions="sound"),
    Rule("lose", "UP DOWN"),
)


def lamp(rows: tuple[Rule, ...] = ROWS, **changes: Any) -> Declaration:
    given: dict[str, Any] = {
        "heads": "UP DOWN",
        "calls": "push pull glue sell lose",
        "facts": "stuck",
        "actions": {"sound": "", "add_glue": "+stuck"},
        "ends": "sell lose",
        "cite": "a drawing",
    }
    return declare("lamp", "A switch on a string", rows=rows, **given | changes)


def example(name: str) -> Declaration:
    found = machine_named(f"{FOLDER / name}.py:{EXAMPLES[name]}")
    assert isinstance(found, Declaration)
    return found


# --- the value


def test_equal_machines_are_equal_and_share_what_is_built() -> None:
    assert lamp() == lamp()
    assert head_machine(lamp()) is head_machine(lamp())
    assert lamp() != lamp(ROWS[:-1], calls="push pull glue sell", ends="sell")


def test_names_are_those_of_the_declaration() -> None:
    machine = head_machine(lamp())
    assert [call.value for call in machine.calls] == ["push", "pull", "glue", "sell", "lose"]
    assert [row.cite for row in machine.declaration.rows] == ["a drawing"] * 5 + ["a shop"] + ["a drawing"] * 2
    assert repr(space(lamp()).start) == "State(packed=0, mode=Mode.GPU, names=<names UP, DOWN...>)"
    assert repr(space().start) == "State(packed=0, mode=Mode.GPU)"


def test_a_space_has_no_modes_if_no_action_reads_the_mode() -> None:
    assert not [entry for entry in inputs(lamp()) if entry.call is None]
    assert {entry.mode for entry in inputs() if entry.call is None} == set(Mode)
    assert {(state.head.name, int(state.facts)) for state in space(lamp()).steps} == {
        ("UP", 0),
        ("DOWN", 0),
        ("DOWN", 1),
    }


def test_suites_take_every_transition() -> None:
    taken, found = set[object](), space(lamp())
    for sequence in tour(lamp()):
        state = found.start
        for entry in sequence:
            taken.add((state, entry))
            state = found.steps[state][entry].after
    assert taken == {(state, entry) for state, row in found.steps.items() for entry in row}
    assert hsi_suite(lamp())


def test_names_are_copied_as_themselves_and_only_those_of_caffe_are_pickled() -> None:
    names = lamp().edition.names
    assert copy.deepcopy(names) is names
    assert pickle.loads(pickle.dumps(CAFFE_NAMES)) is CAFFE_NAMES  # noqa: S301 -- our own
    with pytest.raises(
        TypeError, match=r"^names of somebody's own cannot be pickled: pickle the arguments of declare$"
    ):
        pickle.dumps(names)


def test_a_bound_head_runs_the_actions_and_refuses() -> None:
    actions = Mock(spec=["sound", "add_glue"])
    machine = head_machine(lamp())
    push, pull, glue, *_ = machine.calls
    bound = machine.bind(actions)

    bound.trigger(push)
    with pytest.raises(IllegalCallError, match=r"^push is not allowed in head DOWN: is down$"):
        bound.trigger(push)
    bound.trigger(glue)
    bound.trigger(pull)

    assert [call[0] for call in actions.mock_calls] == ["sound", "add_glue"]
    assert (bound.head.name, int(bound.facts)) == ("DOWN", 1)


# --- as a document


@pytest.mark.parametrize("machine", [lamp(), *map(example, EXAMPLES)], ids=str)
def test_a_document_is_by_its_schema(machine: Declaration) -> None:
    schema = json.loads(str(export("schema", edition=machine)))
    assert schema == declared_schema()
    SCHEMA.check_schema(schema)
    SCHEMA.validate(declared_document(machine))


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "syncedmem-machine"},
        {"version": "2.0"},
        {"name": "Lamp"},
        {"heads": ""},
        {"heads": "up"},
        {"calls": "Push"},
        {"actions": {"sound": "loud"}},
        {"actions": ["sound"]},
        {"rows": []},
        {"rows": [{"call": "push"}]},
        {"rows": [{"call": "push", "source": "UP", "to": "DOWN"}]},
        {"more": ""},
    ],
)
def test_the_schema_refuses_what_is_wrong(wrong: dict[str, object]) -> None:
    assert list(SCHEMA.iter_errors({**declared_document(lamp()), **wrong}))


@pytest.mark.parametrize("machine", [lamp(), *map(example, EXAMPLES)], ids=str)
def test_a_machine_is_the_same_after_a_file(machine: Declaration, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(str(export("json", edition=machine)), encoding="utf-8")
    assert machine_named(str(file)) == machine
    assert machine_named(f"{file}:{machine}") == machine
    assert file.read_text().count("\n") < 40 + len(machine.rows)  # a row is a line


def broken(**changes: Any) -> str:
    document = json.loads(str(export("json", edition=lamp()))) | changes
    return json.dumps({part: it for part, it in document.items() if it is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "2.0"}, "its version is 2.0, and this needs 1.0"),
        ({"heads": ["UP", "DOWN"]}, "heads is a text, not ['UP', 'DOWN']"),
        ({"heads": None}, "this is no machine in JSON: 'heads' is missing or unknown"),
        ({"actions": {"sound": 3}}, "action sound is a text, not 3"),
        ({"actions": 3}, "this is no machine in JSON: "),
        ({"rows": [{"call": "push", "from": "UP"}]}, "row 1 has 'from', which is none of call, source, dest"),
        ({"rows": [{"call": "push", "source": 1}]}, "row 1, source is a text, not 1"),
        ({"rows": [{"call": "push"}]}, "this is no machine in JSON: "),
        ({"rows": [{"call": "press", "source": "UP"}]}, "lamp: unknown name 'press' in the row Rule(call='press'"),
        ({"rows": []}, "lamp: "),
        ({"format": "lamp"}, "its format is 'lamp', not 'syncedmem-machine'"),
    ],
)
def test_a_document_that_is_no_machine_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(broken(**changes), encoding="utf-8")
    with pytest.raises((DeclarationError, FileFormatError)) as caught:
        machine_named(str(file))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_document_has_one_edition(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(broken(), encoding="utf-8")
    with pytest.raises(FileFormatError, match="it has no edition torch; it has lamp"):
        machine_named(f"{file}:torch")


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": "UP Down"}, "lamp: a head cannot be named 'Down': use upper-case letters, digits and _"),
        ({"heads": "UP UP"}, "lamp: the head 'UP' is there twice"),
        ({"calls": "push Pull"}, "lamp: a call cannot be named 'Pull': use lower-case letters, digits and _"),
        ({"facts": "sound"}, "lamp: the fact, action or refusal 'sound' is there twice"),
        ({"facts": " ".join(f"f{k}" for k in range(13))}, "lamp: it has 13 facts, and there can be at most 12"),
        ({"ends": "burn"}, "lamp: it ends with 'burn', which is none of its calls"),
        ({"actions": {"sound": "loud"}}, "lamp: the action sound does 'loud', which is no + or - and a fact"),
        ({"actions": {"sound": "+loud"}}, "lamp: the action sound does '+loud', which is no + or - and a fact"),
        ({"rows": (Rule("fly", "UP"),)}, "lamp: unknown name 'fly' in the row Rule(call='fly'"),
        ({"rows": (Rule("push", "MOON"),)}, "lamp: unknown name 'MOON' in the row Rule(call='push'"),
        ({"rows": (Rule("push", "UP", when="!wet"),)}, "lamp: unknown name 'wet' in the row Rule(call='push'"),
        (
            {"facts": "", "actions": {}, "rows": (Rule("push", "UP", when="wet"),)},
            "lamp: unknown name 'wet' in the row",
        ),
        ({"rows": ROWS[:-2]}, "lamp has no row for lose, sell, with which every memory ends"),
        (
            {"rows": (Rule("push", "UP", "DOWN", refusal="no"), *ROWS)},
            "lamp: a refusal changes nothing: leave out dest",
        ),
        ({"calls": "push pull glue sell lose mend"}, "lamp: no row has the call 'mend'"),
        ({"facts": "stuck wet"}, "lamp: no row has the fact 'wet'"),
        ({"actions": {"sound": "", "add_glue": "+stuck", "dry": "-stuck"}}, "lamp: no row has the action 'dry'"),
        ({"ends": "sell"}, "lamp: no head to go to in the row Rule(call='lose', source='UP DOWN', dest='',"),
        ({"ends": "glue sell lose"}, "lamp: glue is in ends, but goes to DOWN in the row Rule(call='glue'"),
    ],
)
def test_a_wrong_name_is_refused_when_it_is_declared(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        lamp(**changes)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[1:], "lamp: push in UP with no fact: no row is enabled: it has no row there"),
        (ROWS[:3] + ROWS[4:], "lamp: pull in DOWN with stuck: no row is enabled: pull@DOWN[!stuck]"),
        (
            (*ROWS, Rule("pull", "UP", "UP")),
            "lamp: pull in UP with no fact: 2 rows are enabled at once: pull@UP, pull@UP",
        ),
        (
            (Rule("push", "UP", "UP"), *ROWS[1:5], Rule("glue", "UP DOWN", "UP", "add_glue"), *ROWS[6:]),
            "lamp: cannot be reached: DOWN (no row leads there from a head that can be)",
        ),
        (
            (*ROWS[:4], Rule("pull", "UP", "UP", when="stuck"), Rule("pull", "UP", "UP", when="!stuck"), *ROWS[5:]),
            "lamp: pull@UP[stuck]: this row never fires",
        ),
    ],
)
def test_an_unsound_machine_is_refused_with_its_row(rows: tuple[Rule, ...], message: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        head_machine(lamp(rows))
    assert str(refused.value) == message


def test_all_heads_that_cannot_be_reached_are_named() -> None:
    """With all rows that would lead there."""
    pairs = (("go", "LEFT"), ("jump", "RIGHT"))
    rows = [Rule(call, "UP LEFT RIGHT", "UP", when="!stuck") for call, _ in pairs]
    rows += [Rule(call, "UP LEFT RIGHT", head, when="stuck") for call, head in pairs]
    with pytest.raises(DeclarationError) as refused:
        head_machine(lamp((*rows,), heads="UP LEFT RIGHT", calls="go jump", actions={}, ends=""))

    assert str(refused.value) == (
        "lamp: cannot be reached: LEFT, RIGHT (what leads there never fires: go@UP[stuck], jump@UP[stuck])"
    )


def test_a_machine_has_more_facts_than_caffe() -> None:
    """Their bits are where Caffe's machine keeps whether a call has data."""
    rows = (
        Rule("fill", "ON", "ON", "fill"),
        Rule("turn", "ON", "ON", "turn", when="!last"),
        Rule("turn", "ON", refusal="is_turned", when="last"),
        Rule("check", "ON", refusal="not_yet", when="!last"),
        Rule("check", "ON", "ON", when="last"),
    )
    facts = [f"fact{number}" for number in range(CAFFE_NAMES.data.bit_length() - 1)]
    actions = {"fill": " ".join(f"+{fact}" for fact in facts), "turn": "+last"}
    machine = head_machine(
        lamp(rows, heads="ON", calls="fill turn check", facts=" ".join([*facts, "last"]), actions=actions, ends="")
    )
    bound = machine.bind(Mock())
    on, (_, turn, check) = bound.head, machine.calls
    assert machine.names.facts["LAST"] == CAFFE_NAMES.data
    assert machine.row(check, on, machine.names.facts(0), data=True).refusal is not None
    with pytest.raises(IllegalCallError, match=r"not yet$"):
        bound.trigger(check, "data")

    bound.trigger(turn, "data")
    bound.trigger(check)
    with pytest.raises(IllegalCallError, match=r"is turned$"):
        bound.trigger(turn)


def test_names_of_another_machine_are_refused() -> None:
    mine = lamp()
    mixed = replace(mine, rows=(replace(mine.rows[0], actions=(Action.FREE_CPU,)), *mine.rows[1:]))
    with pytest.raises(DeclarationError, match=r"^unknown Action Action\.FREE_CPU in the row"):
        head_machine(mixed)


@pytest.mark.parametrize("view", [configurations, matrix])
def test_there_are_no_configurations(view: Any) -> None:
    with pytest.raises(
        DeclarationError, match=r"^a machine with names of its own has no configurations of Caffe's two"
    ):
        view(lamp())


def test_a_fact_may_be_kept_only() -> None:
    """As Caffe's cpu_malloc_use_cuda, which an action changes and no row asks for."""
    rows = [row._replace(when="") for row in ROWS if row.when != "stuck"]

    assert "(+stuck)" in str(export("markdown", edition=lamp(tuple(rows))))


# --- exports


def test_every_format_shows_it_or_says_that_it_cannot() -> None:
    shown = {name for name, found in FORMATS.items() if found.own}
    assert {"mermaid", "dot", "svg", "plantuml", "markdown", "rst", "html", "csv"} < shown
    for name, found in FORMATS.items():
        if name not in shown:
            with pytest.raises(
                InvalidExportError, match=f"^the format {name} has Caffe's names, and lamp has its own: use"
            ):
                export(name, edition=lamp())
        elif name not in ("png", "pdf", "schema"):
            text = str(export(name, edition=lamp(), calls=named_calls(["push"], lamp()) if found.calls else ()))
            assert "push" in text
            assert ("pull" not in text) == found.calls
    with pytest.raises(InvalidExportError, match=r"^lamp has names of its own, and no configurations"):
        export("svg", edition=lamp(), detail=Detail.CONFIGURATIONS)
    with pytest.raises(InvalidExportError, match=r"^unknown call 'cpu_data'; there are push, pull, glue, sell, lose"):
        named_calls(["cpu_data"], lamp())


def test_the_title_is_the_description() -> None:
    assert drawing(lamp()).title == "A switch on a string (lamp)"
    assert "<caption>A switch on a string (lamp)</caption>" in str(export("html", edition=lamp()))
    assert drawing().title == "Head machine of SyncedMemory, edition caffe"


def test_the_end_is_said_with_and_without_actions() -> None:
    said = [note.text for note in drawing(lamp()).notes]
    assert said == [
        "push in DOWN: refused, is_down",
        "sell in every head: sound, then the end",
        "lose in every head: the end",
    ]
    assert "state1 --> [*] : sell, lose" in str(export("plantuml", edition=lamp()))


STICKY = (
    Rule("push", "UP DOWN", refusal="is_stuck", when="stuck"),
    Rule("push", "UP DOWN", "DOWN", when="!stuck"),
    Rule("pull", "UP DOWN", refusal="is_odd", when="stuck !wet"),
    Rule("pull", "UP DOWN", refusal="is_odd", when="wet !stuck"),
    Rule("pull", "UP DOWN", "UP", when="!stuck !wet"),
    Rule("pull", "UP DOWN", "UP", when="stuck wet"),
    Rule("glue", "UP DOWN", "DOWN", "fetch"),
    Rule("soak", "UP DOWN", "UP", "copy_to_device"),
    Rule("sell", "UP DOWN", when="!stuck"),
    Rule("sell", "UP DOWN", refusal="is_stuck", when="stuck"),
    Rule("lose", "UP DOWN", actions="copy_to_host", when="wet"),
    Rule("lose", "UP DOWN", when="!wet"),
)


def sticky() -> Declaration:
    actions = {"fetch": "+stuck", "copy_to_device": "+wet", "copy_to_host": ""}
    return lamp(STICKY, calls="push pull glue soak sell lose", facts="stuck wet", actions=actions)


def test_a_note_says_when_a_call_is_refused_or_ends() -> None:
    """A call whose rows all end needs no condition."""
    said = [note.text for note in drawing(sticky()).notes]

    assert said == [
        "push in every head, if stuck: refused, is_stuck",
        "pull in every head, if stuck and not wet, or if wet and not stuck: refused, is_odd",
        "sell in every head, if not stuck: the end",
        "sell in every head, if stuck: refused, is_stuck",
        "lose in every head: (copy to host), then the end",
    ]
    assert not any(", if " in note.text for note in drawing().notes)


ROOM = (
    Rule("enter", "EMPTY FULL", "FULL", "switch_on", when="!light"),
    Rule("enter", "EMPTY FULL", "FULL", when="light"),
    Rule("leave", "EMPTY", refusal="is_empty"),
    Rule("leave", "FULL", "EMPTY", "switch_off"),
    Rule("sell", "EMPTY FULL", refusal="is_lit", when="light"),
    Rule("sell", "EMPTY FULL", when="!light"),
)


def test_what_cannot_happen_is_not_shown() -> None:
    """In an empty room there is no light, and in a full one there is: no row asks in vain."""
    actions = {"switch_on": "+light", "switch_off": "-light"}
    room = lamp(ROOM, heads="EMPTY FULL", calls="enter leave sell", facts="light", actions=actions, ends="sell")
    table = str(export("markdown", edition=room))

    assert [note.text for note in drawing(room).notes] == [
        "leave in EMPTY: refused, is_empty",
        "sell in FULL, if light: refused, is_lit",
        "sell in EMPTY, if not light: the end",
    ]
    assert "EMPTY --> FULL : enter / switch on\n" in str(export("mermaid", edition=room))
    assert "| enter | `[!light]` switch_on → FULL (+light) | `[light]` nothing → FULL |\n" in table
    assert "| sell | `[!light]` nothing → the end | `[light]` **refused: is_lit** |\n" in table


def test_the_legend_has_the_words_of_the_machine() -> None:
    """An action that is not named after one of Caffe's may copy or not."""
    svg = str(export("svg", edition=sticky()))

    assert ">copies to device<" in svg
    assert ">anything else<" in svg
    assert "no copy" not in svg
    assert ">no copy<" in str(export("svg"))
    assert ">copies to GPU<" in str(export("svg", edition=example("petsc")))


def test_a_side_has_a_label() -> None:
    svg = str(export("svg", edition=sticky(), labels=labels_of(["device=chip"], sticky())))

    assert ">copies to chip<" in svg
    assert "copy to chip" in svg
    assert "device" not in svg
    trace = trace_of("soak lose", edition=sticky())._replace(labels=labels_of(["device=chip"], sticky()))
    assert trace.lines() == (
        "1. soak: UP → UP, copy to chip, all bytes",
        "2. lose: UP → the end, copy to host, all bytes",
        "Copied: all bytes to chip, all bytes to host.",
    )


def test_a_table_has_flags_of_the_machine() -> None:
    text = str(export("markdown", edition=lamp()))
    assert "| glue | add_glue → DOWN (+stuck) | add_glue → DOWN (+stuck) |\n" in text
    assert "| pull | nothing → UP | `[!stuck]` nothing → UP<br>`[stuck]` nothing → DOWN |\n" in text


def test_a_trace_is_drawn_and_said() -> None:
    trace = trace_of("push glue pull sell", edition=lamp())
    assert trace.lines()[:-1] == (
        "1. push: UP → DOWN, sound",
        "2. glue: DOWN → DOWN, add glue",
        "3. pull: DOWN → DOWN, nothing",
        "4. sell: DOWN → the end, sound",
    )
    assert ">1: push<" in str(export("svg", edition=lamp(), trace=trace))
    with pytest.raises(InvalidExportError, match=r"^sell is the end, and push follows it$"):
        trace_of("sell push", edition=lamp())


def test_a_trace_goes_on_after_an_end_that_is_refused() -> None:
    trace = trace_of("glue sell soak lose", edition=sticky())

    assert trace.lines()[1] == "2. sell in DOWN: refused, is_stuck"
    assert trace.lines()[3].startswith("4. lose: UP → the end")


# --- layers


def overlaps(root: ET.Element) -> list[tuple[object, object]]:
    """Pairs of labels, boxes and arrows that lie on each other; two arrows may cross."""
    heads, lines = list(head_boxes(root).items()), stretches(root)
    written = [it for it in text_boxes(root) if not any(within(it[1], box) for _, box in heads)]
    inside = [it for it in text_boxes(root) if it not in written]
    pairs = [*combinations(written + heads, 2), *combinations(inside, 2)]
    pairs += [(one, line) for one in written + heads for line in lines]
    return [(one, other) for one, other in pairs if overlap(one[1], other[1])]


@pytest.mark.parametrize("detail", [Detail.HEADS, Detail.GUARDS])
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_lies_on_anything_in_layers(name: str, detail: Detail) -> None:
    assert not overlaps(parsed(diamond_svg(example(name), detail=detail)))


def test_everybody_leads_to_everybody() -> None:
    """All arrows that there can be among six heads: shared lanes have no common stretch."""
    heads = [f"H{k}" for k in range(6)]
    rows = [Rule(f"to_{dest.lower()}", " ".join(heads), dest) for dest in heads]
    full = declare("full", "All arrows", heads=" ".join(heads), calls=" ".join(row.call for row in rows), rows=rows)
    plan = layered(drawing(full), Detail.HEADS)
    root = parsed(diamond_svg(full))
    assert len(plan.arrows) == 30
    assert len({arrow.points[1][0] for arrow in plan.arrows}) < 30
    assert not overlaps(root)
    upright = [(min(a[1], b[1]), max(a[1], b[1]), a[0]) for _, a, b, _ in (arrow.points for arrow in plan.arrows)]
    assert not [pair for pair in combinations(upright, 2) if pair[0][2] == pair[1][2] and overlapping(*pair)]


def overlapping(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def test_a_label_on_a_box_is_found() -> None:
    """The check above is no tautology."""
    root = parsed(diamond_svg(example("msi")))
    label = next(node for node in root.iter("{http://www.w3.org/2000/svg}text") if node.text == "write miss")
    box = head_boxes(root)["SHARED"]
    label.set("x", str(box[0] - 20))
    label.set("y", str(box[1] + 20))
    assert overlaps(root)
    assert overlapping((0, 2, 0), (1, 3, 0))
    assert not overlapping((0, 2, 0), (2, 3, 0))


# --- the examples


@pytest.mark.parametrize(
    ("name", "states", "refused"), [("petsc", 6, 0), ("mfem", 4, 0), ("dualview", 3, 2), ("msi", 3, 0)]
)
def test_an_example_is_sound_and_short(name: str, states: int, refused: int) -> None:
    found = space(example(name))
    steps = [step for row in found.steps.values() for step in row.values()]
    assert (states, refused) == (len(found.steps), sum(step.refusal is not None for step in steps))
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 80
