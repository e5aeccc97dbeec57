"""The JSON document follows its schema, is complete, and is enough to run the machine."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from loops import some
from machines import EXAMPLES, MACHINES, ODD

from syncedmem.model import ACTION_MEANINGS, CALL_MEANINGS, FACT_MEANINGS, DeclarationError
from syncedmem.model.caffe import CAFFE, EDITIONS
from syncedmem.model.exports import document as documents
from syncedmem.model.exports.document import CONTENTS, FORMAT, VERSION, machine_document, machine_json
from syncedmem.model.states import matrix, space

if TYPE_CHECKING:
    from syncedmem.model.declaration import Machine

Json = dict[str, Any]
ALL = [*EDITIONS.values(), *MACHINES]
SCHEMA: Json = json.loads(Path(documents.__file__).with_name("machine.schema.json").read_text(encoding="utf-8"))
VALIDATOR: Any = jsonschema.Draft202012Validator(SCHEMA)


def edition_of(document: Json, name: str) -> Json:
    return next(edition for edition in document["editions"] if edition["name"] == name)


class Interpreter:
    """A machine that reads the document and nothing else."""

    def __init__(self, edition: Json) -> None:
        self.edition = edition
        self.actions = {action["name"]: action for action in edition["actions"]}
        self.takes = {call["name"]: call["takes"] for call in edition["calls"]}

    def row(self, asked: Json, head: str, facts: frozenset[str]) -> Json:
        """Return the only row whose conditions are true."""
        call = asked["call"]
        holds = {*facts, *asked["given"], *([self.takes[call]] if asked["data"] else [])}
        rows = [row for row in self.edition["transitions"] if (row["call"], row["source"]) == (call, head)]
        met = [row for row in rows if holds.issuperset(row["conditions"]) and holds.isdisjoint(row["unless"])]
        assert len(met) == 1
        row: Json = met[0]
        return row

    def after(
        self, row: Json, head: str, facts: frozenset[str], settings: dict[str, str]
    ) -> tuple[str, frozenset[str]]:
        """Return the head and the facts after a row."""
        found = set(facts)
        for name in row["actions"]:
            action = self.actions[name]
            found = (found | {*action["sets"]}) - {*action["clears"]}
            for by in action["by_setting"]:
                found = found | {by["fact"]} if settings[by["setting"]] == by["value"] else found - {by["fact"]}
        return row["dest"] or head, frozenset(found)


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_the_document_alone_is_the_machine(machine: Machine) -> None:
    """The interpreter agrees with the model about every transition between reachable states (558 for Caffe)."""
    edition = machine_document(machine)["editions"][0]
    read = Interpreter(edition)
    asked = {entry["name"]: entry for entry in edition["inputs"]}
    compared = 0
    for state, steps in space(machine).steps.items():
        for entry, step in steps.items():
            compared += 1
            if entry.call is None:
                continue
            row = read.row(asked[str(entry)], state.head, state.facts)
            assert [*step.actions] == row["actions"]
            assert (step.refusal or None) == row["refusal"]
            settings = dict(zip(machine.settings, state.settings, strict=True))
            assert (step.after.head, step.after.facts) == read.after(row, state.head, state.facts, settings)
    assert compared == edition["counts"]["transitions"]


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_cells_are_those_of_the_matrix(machine: Machine) -> None:
    """Every configuration and call is there in order, with its row, actions, next configuration and refusal."""
    found = machine_document(machine)["editions"][0]
    read = Interpreter(found)
    inputs = {asked["name"]: asked for asked in found["inputs"]}
    configurations = {item["name"]: item for item in found["configurations"]}
    expected = [
        (str(before), str(asked), [*entry.actions], str(entry.after))
        for before, row in matrix(machine).items()
        for asked, entry in row.items()
    ]
    assert expected == [
        (cell["configuration"], cell["input"], cell["actions"], cell["after"]) for cell in found["cells"]
    ]
    for cell in found["cells"]:
        before, asked = configurations[cell["configuration"]], inputs[cell["input"]]
        row = read.row(asked, before["head"], frozenset(before["facts"]))
        assert (cell["transition"], cell["refusal"], cell["reason"]) == (row["id"], row["refusal"], row["reason"])
    assert found["counts"]["cells"] == len(expected)
    assert found["counts"]["refusals"] == sum(cell["refusal"] is not None for cell in found["cells"])


def test_a_refusal_says_why() -> None:
    cells = edition_of(machine_document(), "caffe")["cells"]
    cell = next(cell for cell in cells if (cell["configuration"], cell["input"]) == ("S:oo", "async_gpu_push"))
    assert cell["refusal"] == "not_head_at_cpu"
    assert cell["reason"] == "async_gpu_push is not allowed in head SYNCED; it needs HEAD_AT_CPU"
    assert all((cell["refusal"] is None) == (cell["reason"] is None) for cell in cells)
    (door,) = [cell for cell in machine_document(MACHINES[0])["editions"][0]["cells"] if cell["refusal"]]
    assert door["reason"] == "open is not allowed in head SHUT: no_key"


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_configuration_is_released(edition: str) -> None:
    """The row is the destructor's. It frees exactly the owned memory."""
    document = machine_document(edition)["editions"][0]
    flags = {fact["name"]: fact["side"] for fact in document["facts"] if fact["means"] == "owned"}
    for item in some(document["configurations"]):
        (end,) = item["ends"]
        row = Interpreter(document).row(
            {"call": "release", "data": True, "given": []}, item["head"], frozenset(item["facts"])
        )
        assert end == {"input": "release", "transition": row["id"], "actions": row["actions"]}
        assert [f"free_{side}" for flag, side in flags.items() if flag in item["facts"]] == row["actions"]


def test_words_say_what_they_mean() -> None:
    document = machine_document("caffe")["editions"][0]
    calls = {call["name"]: (call["does"], call["side"], call["source"]) for call in document["calls"]}
    assert calls == {
        "cpu_data": ("read", "cpu", None),
        "mutable_cpu_data": ("write", "cpu", None),
        "gpu_data": ("read", "gpu", None),
        "mutable_gpu_data": ("write", "gpu", None),
        "set_cpu_data": ("adopt", "cpu", None),
        "set_gpu_data": ("adopt", "gpu", None),
        "async_gpu_push": ("push", "gpu", "cpu"),
        "release": ("release", None, None),
    }
    actions = {action["name"]: action for action in document["actions"]}
    push = actions["copy_to_gpu_async"]
    assert (push["does"], push["side"], push["source"], push["contents"]) == ("copy", "gpu", "cpu", "other side")
    assert {name for name, action in actions.items() if action["queued"]} == {"copy_to_gpu_async"}
    assert actions["allocate_cpu"]["by_setting"] == [{"fact": "cpu_malloc_use_cuda", "setting": "mode", "value": "GPU"}]
    assert document["settings"] == [{"name": "mode", "values": ["CPU", "GPU"], "start": "GPU"}]
    assert [*document["heads"][3]["fresh"]] == ["cpu", "gpu"]


def test_identifiers_are_unique_and_every_row_cites_its_lines() -> None:
    for machine in some(EDITIONS.values()):
        rows = edition_of(machine_document(), machine.name)["transitions"]
        assert len({row["id"] for row in rows}) == len(rows) == sum(len(row.source) for row in machine.rows)
        assert all(row["sources"] for row in rows)


def test_citations_are_read_completely() -> None:
    """Every number of a citation is read."""
    for row in some(edition_of(machine_document(), "caffe")["transitions"]):
        said = re.findall(r"\d+", row["cite"])
        read = [str(line) for item in row["sources"] for line in dict.fromkeys((item["first"], item["last"]))]
        assert read == said


@pytest.mark.parametrize("machine", dict.fromkeys((*ALL, *EXAMPLES, ODD)), ids=str)
def test_a_document_is_by_its_schema(machine: Machine) -> None:
    VALIDATOR.validate(machine_document(machine))


def test_the_schema_has_every_meaning() -> None:
    VALIDATOR.check_schema(SCHEMA)
    parts = SCHEMA["properties"]["editions"]["items"]["properties"]
    words = {name: parts[name]["items"]["properties"] for name in ("facts", "calls", "actions")}
    assert [*FACT_MEANINGS] == words["facts"]["means"]["enum"]
    assert [*CALL_MEANINGS] == words["calls"]["does"]["enum"]
    assert [*ACTION_MEANINGS] == words["actions"]["does"]["enum"]
    assert {*CONTENTS.values()} == {*words["actions"]["contents"]["anyOf"][0]["enum"]}
    assert SCHEMA["title"] == f"{FORMAT} {VERSION}"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), "2.0"),
        (("digest",), "sha256:0"),
        (("editions", 0, "transitions", 0, "actions"), [""]),
        (("editions", 0, "cells", 0, "extra"), 1),
        (("editions", 0, "counts", "cells"), -1),
        (("editions", 0, "calls", 0, "does"), "look"),
        (("editions", 0, "facts", 0, "flag"), 0),
    ],
)
def test_the_schema_refuses_what_is_wrong(path: tuple[str | int, ...], value: object) -> None:
    document = copy.deepcopy(machine_document())
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not VALIDATOR.is_valid(document)


def test_text_is_the_document_a_line_per_item() -> None:
    text = machine_json()
    assert machine_document() == json.loads(text)
    assert text == machine_json()
    assert len(text.splitlines()) > len(CAFFE.rows)
    assert max(map(len, text.splitlines())) < 1000


def test_digest_is_of_everything_else() -> None:
    document = machine_document("early")
    digest = document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert digest == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert digest != machine_document()["digest"]


def test_editions_are_chosen_by_name() -> None:
    assert [edition["name"] for edition in machine_document()["editions"]] == list(EDITIONS)
    assert [edition["name"] for edition in machine_document("cpu_only")["editions"]] == ["cpu_only"]
    with pytest.raises(DeclarationError, match="unknown machine 'late'"):
        machine_document("late")
