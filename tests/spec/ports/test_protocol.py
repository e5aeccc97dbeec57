"""The protocol of ports: its schema, its names, and what is wrong with an answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from port_fixtures import BLOB_PORT, PLAIN

from syncedmem.spec.ports.protocol import CAFFE

ROOT = Path(__file__).parents[3]
Program = tuple[dict[str, Any], ...]
PROGRAM: Program = (
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
BLOB_PROGRAM: Program = (
    {"op": "hello", "version": 1, "level": "L4"},
    {"op": "new_blob", "blob": 2, "mode": "GPU", "type": "float32", "shape": [2]},
    {"op": "new_blob", "blob": 3, "mode": "CPU", "type": "float32", "shape": None},
    {"op": "blob_call", "blob": 2, "mode": "GPU", "call": "mutable_cpu_data"},
    {"op": "write_blob", "blob": 2, "part": "data", "side": "cpu", "bytes": "0000803f00000040"},
    {"op": "blob_call", "blob": 2, "mode": "GPU", "call": "gpu_data", "fail": 1, "partial": True},
    {"op": "blob_call", "blob": 2, "mode": "GPU", "call": "scale_data", "factor": "nan"},
    {"op": "blob_call", "blob": 2, "mode": "GPU", "call": "asum_data"},
    {"op": "blob_call", "blob": 3, "mode": "GPU", "call": "copy_from", "other": 2, "copy_diff": True, "reshape": True},
    {"op": "blob_call", "blob": 3, "mode": "GPU", "call": "offset", "numbers": [0, 1], "sequence": False},
    {"op": "blob_call", "blob": 3, "mode": "GPU", "call": "set_cpu_data", "buffer": None},
    {"op": "blob_state", "blob": 3},
    {"op": "drop_blob", "blob": 3, "mode": "GPU"},
)


@pytest.mark.deep
@pytest.mark.parametrize(("port", "program"), [(("-S", PLAIN), PROGRAM), ((BLOB_PORT,), BLOB_PROGRAM)])
def test_every_line_that_is_exchanged_fits_the_schema(port: tuple[str, ...], program: Program) -> None:
    """The committed schema is the one that `make generated CHECK=--check` compares."""
    made = json.loads((ROOT / "docs" / "port-protocol.schema.json").read_text(encoding="utf-8"))
    assert CAFFE.schema() == made
    lines = [json.dumps({"id": number, **request}) for number, request in enumerate(program, 1)]
    command, text = [sys.executable, *port], "\n".join(lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    for request, line, answer in zip(program, lines, done.stdout.splitlines(), strict=True):
        kind = CAFFE.requests[request["op"]].answer
        jsonschema.validate(json.loads(line), {**made, "anyOf": [{"$ref": f"#/$defs/request_{request['op']}"}]})
        jsonschema.validate(json.loads(answer), {**made, "anyOf": [{"$ref": f"#/$defs/answer_{kind}"}]})
        assert not CAFFE.wrong(kind, json.loads(answer), "L4" if program is BLOB_PROGRAM else "L3")


def test_every_request_is_in_one_of_these_programs() -> None:
    assert set(CAFFE.requests) == {request["op"] for request in (*PROGRAM, *BLOB_PROGRAM)}


@pytest.mark.parametrize(
    ("kind", "answer", "sentence"),
    [
        ("done", [], "it is not a JSON object"),
        ("done", {"id": 1, "refusd": "no"}, "it has 'refusd', which is none of its fields; did you mean 'refused'?"),
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
        ("call", {"id": 1, "actions": [{"action": "fly"}]}, "has a wrong 'action': 'fly'"),
        ("call", {"id": 1, "actions": [], "cpu": "z" * 100}, f"'cpu': '{'z' * 59}... is not pairs of"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(kind: str, answer: object, sentence: str) -> None:
    assert sentence in CAFFE.wrong(kind, answer, "L2")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("bytes", {"id": 1, "refused": "no such buffer"}),
        ("done", {"id": 1, "thread": 2, "refused": None, "refusd": "of its own"}),
        ("call", {"id": 1, "actions": ["zero_cpu", {"action": "free_cpu", "block": None}], "cpu": None}),
        ("call", {"id": 1, "actions": [], "size": 5}),
    ],
)
def test_what_is_right_is_accepted(kind: str, answer: object) -> None:
    assert not CAFFE.wrong(kind, answer, "L2")
