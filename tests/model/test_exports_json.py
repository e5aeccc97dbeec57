"""The JSON document follows its schema, is complete, and is enough to run the machine."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from loops import some

from syncedmem.model import EDITIONS, TRANSITIONS, Call, DeclarationError, Fact, Mode, matrix, space
from syncedmem.model.compiled import head_machine
from syncedmem.model.exports.document import machine_document, machine_json
from syncedmem.model.exports.schema import machine_schema, schema_json
from syncedmem.model.vocabulary import cited

Json = dict[str, Any]
DOCUMENT = Path(__file__).parents[2] / "docs" / "machine.json"
VALIDATOR: Any = jsonschema.Draft202012Validator(machine_schema())


def edition_of(document: Json, name: str) -> Json:
    return next(edition for edition in document["editions"] if edition["name"] == name)


def test_the_committed_document_is_the_machine() -> None:
    """Also in its texts and citations, of which nothing else depends."""
    assert machine_json() == DOCUMENT.read_text(encoding="utf-8")


class Interpreter:
    """A machine that reads the document and nothing else."""

    def __init__(self, document: Json, edition: str) -> None:
        self.edition = edition_of(document, edition)
        self.facts = {guard["name"]: guard["fact"] for guard in document["guards"]}
        self.actions = {action["name"]: action for action in document["actions"]}

    def row(self, call: str, head: str, facts: frozenset[str], *, data: bool) -> Json:
        """Return the only row whose guards are true."""

        def holds(guard: str) -> bool:
            fact = self.facts[guard]
            return data if fact is None else fact in facts

        rows = [row for row in self.edition["transitions"] if (row["call"], row["source"]) == (call, head)]
        met = [row for row in rows if all(map(holds, row["conditions"])) and not any(map(holds, row["unless"]))]
        assert len(met) == 1
        row: Json = met[0]
        return row

    def after(self, row: Json, head: str, facts: frozenset[str], mode: str) -> tuple[str, frozenset[str]]:
        """Return the head and the facts after a row."""
        found = set(facts)
        for name in row["actions"]:
            action = self.actions[name]
            found |= {*action["sets"], *(action["by_mode"] if mode == "GPU" else ())}
            found -= {*action["clears"], *(() if mode == "GPU" else action["by_mode"])}
        return row["dest"] or head, frozenset(found & set(self.edition["facts"]))


def names(facts: Fact) -> frozenset[str]:
    return frozenset(fact.name or "" for fact in Fact if fact in facts)


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_document_alone_is_the_machine(edition: str) -> None:
    """The interpreter agrees with the model about every transition between reachable states (558 for Caffe)."""
    document = machine_document(edition)
    machine = Interpreter(document, edition)
    compared = 0
    for state, steps in space(edition).steps.items():
        for asked, step in steps.items():
            compared += 1
            if asked.call is None:
                continue
            head, facts = state.head.name, names(state.facts)
            row = machine.row(asked.call.value, head, facts, data=asked.data)
            assert [action.value for action in step.actions] == row["actions"]
            assert (step.refusal.value if step.refusal else None) == row["refusal"]
            after = machine.after(row, head, facts, state.mode.name)
            assert (step.after.head.name, names(step.after.facts)) == after
    assert compared == edition_of(document, edition)["counts"]["transitions"]


@pytest.mark.parametrize("edition", EDITIONS)
def test_cells_are_those_of_the_matrix(edition: str) -> None:
    """Every configuration and call is there in order, with its row, actions, next configuration and refusal."""
    document = machine_document(edition)
    machine, found = Interpreter(document, edition), edition_of(document, edition)
    inputs = {asked["name"]: asked for asked in found["inputs"]}
    configurations = {item["name"]: item for item in found["configurations"]}
    expected = [
        (str(before), str(asked), [action.value for action in entry.actions], str(entry.after))
        for before, row in matrix(edition).items()
        for asked, entry in row.items()
    ]
    assert expected == [(it["configuration"], it["input"], it["actions"], it["after"]) for it in found["cells"]]
    for cell in found["cells"]:
        before, asked = configurations[cell["configuration"]], inputs[cell["input"]]
        row = machine.row(asked["call"], before["head"], frozenset(before["facts"]), data=asked["data"])
        assert (cell["transition"], cell["refusal"], cell["reason"]) == (row["id"], row["refusal"], row["reason"])
    assert found["counts"]["cells"] == len(expected)
    assert found["counts"]["refusals"] == sum(cell["refusal"] is not None for cell in found["cells"])


def test_counts_of_caffe_spelt_out() -> None:
    counts = edition_of(machine_document(), "caffe")["counts"]
    assert counts == {"configurations": 17, "cells": 153, "refusals": 45, "states": 62, "transitions": 558}


def test_a_refusal_says_why() -> None:
    cells = edition_of(machine_document(), "caffe")["cells"]
    cell = next(it for it in cells if (it["configuration"], it["input"]) == ("S:oo", "async_gpu_push"))
    assert cell["refusal"] == "not_head_at_cpu"
    assert cell["reason"] == "async_gpu_push is not allowed in head SYNCED; it needs HEAD_AT_CPU"
    assert all((cell["refusal"] is None) == (cell["reason"] is None) for cell in cells)


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_configuration_is_released(edition: str) -> None:
    """The row is the destructor's. It frees exactly the owned memory."""
    document = machine_document(edition)
    machine = Interpreter(document, edition)
    for item in some(edition_of(document, edition)["configurations"]):
        row = machine.row(Call.RELEASE.value, item["head"], frozenset(item["facts"]), data=True)
        assert item["release"] == {"transition": row["id"], "actions": row["actions"]}
        owned = [side for side in ("cpu", "gpu") if item[side] == "owned"]
        assert [f"free_{side}" for side in owned] == row["actions"]


def test_calls_have_roles_and_actions_have_verbs() -> None:
    """They are computed from the table, and they are correct."""
    document = machine_document()
    roles = {call["name"]: (call["role"], call["side"]) for call in document["calls"]}
    assert roles == {
        "cpu_data": ("read", "cpu"),
        "mutable_cpu_data": ("write", "cpu"),
        "gpu_data": ("read", "gpu"),
        "mutable_gpu_data": ("write", "gpu"),
        "set_cpu_data": ("adopt", "cpu"),
        "set_gpu_data": ("adopt", "gpu"),
        "async_gpu_push": ("push", "gpu"),
        "release": ("release", None),
    }
    actions = {action["name"]: action for action in document["actions"]}
    push = actions["copy_to_gpu_async"]
    assert (push["verb"], push["side"], push["contents"], push["asynchronous"]) == ("copy", "gpu", "other side", True)
    assert {name for name, action in actions.items() if action["asynchronous"]} == {"copy_to_gpu_async"}
    assert actions["allocate_cpu"]["by_mode"] == ["CPU_MALLOC_USE_CUDA"]
    assert [mode["value"] for mode in document["modes"]] == [mode.value for mode in Mode]


def test_identifiers_are_unique_and_every_row_cites_its_lines() -> None:
    for name in EDITIONS:
        rows = edition_of(machine_document(), name)["transitions"]
        assert len({row["id"] for row in rows}) == len(rows)
        assert len(rows) == sum(len(row.source) for row in head_machine(name).declaration.rows)
        assert all(row["sources"] for row in rows)


def test_citations_are_read_completely() -> None:
    """Every number of a citation is read."""
    for row in TRANSITIONS:
        said = re.findall(r"\d+", row.cite)
        read = [str(line) for it in cited(row) for line in dict.fromkeys((it.first, it.last))]
        assert read == said


def test_document_is_by_its_schema() -> None:
    VALIDATOR.check_schema(machine_schema())
    VALIDATOR.validate(machine_document())
    assert json.loads(schema_json()) == machine_schema()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), "1.0"),
        (("digest",), "sha256:0"),
        (("editions", 0, "transitions", 0, "actions"), ["allocate"]),
        (("editions", 0, "cells", 0, "extra"), 1),
        (("editions", 0, "counts", "cells"), -1),
        (("calls", 0, "role"), "look"),
        (("facts", 0, "bit"), 0),
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
    assert len(text.splitlines()) > len(TRANSITIONS)
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
    with pytest.raises(DeclarationError, match="unknown edition 'late'"):
        machine_document("late")
