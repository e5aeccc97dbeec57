"""The protocol of ports: its schema, its names, and what is wrong with an answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from wrong_port import PORT

from syncedmem.spec.ports import protocol
from syncedmem.spec.ports.protocol import BLOB_REQUESTS, CAFFE
from syncedmem.spec.requirements import LEVELS

ROOT = Path(__file__).parents[3]
PROGRAM: tuple[dict[str, Any], ...] = (
    {"op": "hello", "version": 1, "level": "L4"},
    {"op": "new", "memory": 2, "size": 5},
    {"op": "mutable_cpu_data", "memory": 2, "mode": "GPU", "fail": 1, "partial": True},
    {"op": "mutable_cpu_data", "memory": 2, "mode": "GPU"},
    {"op": "write_view", "memory": 2, "side": "cpu", "bytes": "0102030405"},
    {"op": "async_gpu_push", "memory": 2, "mode": "CPU", "stream": 1},
    {"op": "synchronize"},
    {"op": "buffer", "buffer": "host1", "side": "cpu", "bytes": "0000000000"},
    {"op": "write_buffer", "buffer": "host1", "bytes": "01"},
    {"op": "read_buffer", "buffer": "host1"},
    {"op": "set_cpu_data", "memory": 2, "mode": "GPU", "buffer": "host1"},
    {"op": "set_gpu_data", "memory": 2, "mode": "GPU", "buffer": None},
    {"op": "cpu_data", "memory": 2, "mode": "GPU"},
    {"op": "gpu_data", "memory": 2, "mode": "GPU"},
    {"op": "mutable_gpu_data", "memory": 2, "mode": "GPU"},
    {"op": "state", "memory": 2},
    {"op": "own_buffer", "memory": 2, "side": "gpu", "buffer": "own"},
    {"op": "release", "memory": 2, "mode": "GPU"},
    {"op": "drop", "memory": 2},
)


def test_the_names_are_those_of_the_model() -> None:
    assert (*LEVELS,) == (*protocol.LEVELS,)


@pytest.mark.deep
def test_every_line_that_is_exchanged_fits_the_schema() -> None:
    """The committed schema is the one that `make check-generated` compares."""
    made = json.loads((ROOT / "docs" / "port-protocol.schema.json").read_text(encoding="utf-8"))
    assert CAFFE.schema() == made
    lines = [json.dumps({"id": number, **request}) for number, request in enumerate(PROGRAM, 1)]
    assert set(CAFFE.requests) - set(BLOB_REQUESTS) == {request["op"] for request in PROGRAM}
    done = subprocess.run(
        [sys.executable, "-S", str(PORT)], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    for request, line, answer in zip(PROGRAM, lines, done.stdout.splitlines(), strict=True):
        kind = CAFFE.requests[request["op"]].answer
        jsonschema.validate(json.loads(line), {**made, "anyOf": [{"$ref": f"#/$defs/request_{request['op']}"}]})
        jsonschema.validate(json.loads(answer), {**made, "anyOf": [{"$ref": f"#/$defs/answer_{kind}"}]})
        assert not CAFFE.wrong(kind, json.loads(answer), "L3")


@pytest.mark.parametrize(
    ("kind", "answer", "sentence"),
    [
        ("done", [], "it is not a JSON object"),
        ("done", {"id": 1, "more": 2}, "it has 'more', which is none of its fields"),
        ("done", {}, "it has no 'id'"),
        ("done", {"id": True}, "it has a wrong 'id': True is not of type integer"),
        ("done", {"id": -1}, "'id': -1 is less than 0"),
        ("hello", {"id": 1, "version": 1, "level": "L3", "name": ""}, "'name': '' is an empty string"),
        ("bytes", {"id": 1, "bytes": "0"}, "'bytes': '0' is not pairs of lower-case hexadecimal digits"),
        ("call", {"id": 1}, "it has no 'actions'"),
        ("call", {"id": 1, "actions": {}}, "'actions': {} is not of type array"),
        ("call", {"id": 1, "actions": [3]}, "where 3 is not of type string and is not of type object"),
        ("call", {"id": 1, "actions": [{"size": 1}]}, "where {'size': 1} has no 'action'"),
        ("call", {"id": 1, "actions": [{"act": 1}]}, "where {'act': 1} has 'act', which is none of its fields"),
        (
            "call",
            {"id": 1, "actions": [{"action": "fly"}]},
            "where {'action': 'fly'} has a wrong 'action': 'fly' is not one of",
        ),
        ("call", {"id": 1, "actions": [], "cpu": "z" * 100}, f"'cpu': '{'z' * 59}... is not pairs of"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(kind: str, answer: object, sentence: str) -> None:
    assert sentence in CAFFE.wrong(kind, answer, "L2")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("bytes", {"id": 1, "refused": "no such buffer"}),
        ("call", {"id": 1, "actions": ["zero_cpu", {"action": "free_cpu", "block": None}], "cpu": None}),
        ("call", {"id": 1, "actions": [], "size": 5}),
    ],
)
def test_what_is_right_is_accepted(kind: str, answer: object) -> None:
    assert not CAFFE.wrong(kind, answer, "L2")
