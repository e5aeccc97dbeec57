"""The JSON Schema of the reports of ``verify``, ``conform`` and ``fuzz``; docs/report.schema.json is made of it."""

from __future__ import annotations

from typing import Any, get_args

from syncedmem.spec.engine.report import Status

from .document import FORMAT, Verdict

__all__ = ["schema"]

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}
_TEXTS = {"type": "array", "items": _TEXT}
_VERSIONS = {"type": "object", "additionalProperties": _TEXT}


def _said(text: str, kind: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, **kind}


def _all_of(**fields: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list_of(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}


_PARTS: dict[str, dict[str, Any]] = {
    "not_checked": _all_of(what=_TEXT, why=_said("The reason, and how to have it checked, if that is known.", _TEXT)),
    "failure": _all_of(
        subject=_said("What was tested.", _TEXT),
        requirement=_said("The requirement that is broken; model or coverage if it is none.", _TEXT),
        message=_said("What was seen, and what was expected.", _TEXT),
        required=_said("The sentence of the requirement; empty if it is none.", _TEXT),
        source=_said("Where that sentence comes from.", _TEXT),
        program=_said("A program that shows it and runs as it is; empty if there is none.", _TEXT),
        language=_said("What runs the program.", {"enum": ["python", "sh"]}),
        notes=_TEXTS,
    ),
    "provenance": _all_of(
        seeds=_said("The same seeds and settings test the same.", {"type": "array", "items": {"type": "integer"}}),
        settings=_said("What else the run was told.", _VERSIONS),
        again=_said("The command that makes the run again; empty if there is none.", _TEXT),
        seconds=_SECONDS,
        date=_said("In UTC.", {"type": "string", "format": "date-time"}),
        host=_TEXT,
        processor=_TEXT,
        platform=_TEXT,
        python=_TEXT,
        libraries=_said("The versions of those that are installed.", _VERSIONS),
        commit=_said("Of the checkout; empty if the package was installed.", _TEXT),
        syncedmem=_said("The version of this package.", _TEXT),
    ),
    "numbers": _all_of(
        title=_TEXT,
        of=_said("What the rows are.", _TEXT),
        terms=_said("The columns; the glossary has each.", _TEXTS),
        rows={
            "type": "array",
            "items": _all_of(
                name=_TEXT,
                numbers={"type": "object", "additionalProperties": {"type": ["integer", "number", "string"]}},
                note=_TEXT,
            ),
        },
    ),
    "requirements": _all_of(
        title=_TEXT,
        rows={
            "type": "array",
            "items": _all_of(
                id=_TEXT,
                text=_TEXT,
                profile={"enum": ["caffe", "safe"]},
                source=_TEXT,
                statuses=_said(
                    "By what was tested.",
                    {"type": "object", "additionalProperties": {"enum": list(get_args(Status))}},
                ),
                detail=_said("What is wrong, or why it was not checked.", _TEXT),
                times=_said("How often it was checked; 0 if that is not counted.", _COUNT),
            ),
        },
    ),
}

_REPORT = _all_of(
    format={"const": FORMAT},
    command={"enum": ["verify", "conform", "fuzz"]},
    subject=_said("What was tested.", _TEXT),
    verdict=_said(
        "failed: something is wrong. incomplete: nothing is wrong, but something that was asked for was not checked.",
        {"enum": list(get_args(Verdict))},
    ),
    headline=_said("The verdict in a sentence or two.", _TEXT),
    checked=_said("What was checked, with the result.", _TEXTS),
    not_checked=_list_of("not_checked"),
    failures=_list_of("failure"),
    provenance={"$ref": "#/$defs/provenance"},
    numbers=_list_of("numbers"),
    requirements=_list_of("requirements"),
    glossary=_said("What the words and the numbers of this report mean.", _VERSIONS),
)

_SPREAD = _said(
    "Of a run with several seeds: where they ran.",
    _all_of(
        seeds=_said("All seeds that were asked for.", {"type": "array", "items": {"type": "integer"}}),
        done=_said("How many have a result.", _COUNT),
        again=_said("How often a seed was taken again, because its worker or its process was lost.", _COUNT),
        lost=_said("How many will have none.", _COUNT),
        without_result=_said("Those seeds, with the reason.", _TEXTS),
        line=_said("The numbers in a line.", _TEXT),
        machines={
            "type": "array",
            "items": _all_of(machine=_TEXT, processes=_COUNT, seeds=_COUNT, operations=_COUNT),
        },
    ),
)

_COMMANDS: dict[str, dict[str, dict[str, Any]]] = {
    "verify": {
        "format": {"const": 1},
        "passed": {"type": "boolean"},
        "seed": {"type": "integer"},
        "seconds": _SECONDS,
        "model": {"type": "object"},
        "unchecked": _TEXT,
        "devices": {"type": "array", "items": {"type": "object", "required": ["name", "status"]}},
        "requirements": {"type": "array", "items": {"type": "object", "required": ["id", "status"]}},
    },
    "conform": {
        "name": _said("What the port calls itself.", _TEXT),
        "profile": {"enum": ["caffe", "safe"]},
        "edition": _TEXT,
        "steps": _COUNT,
        "seed": {"type": "integer"},
        "excepted": _TEXTS,
        "verdict": _said("The verdict in a line.", _TEXT),
        "passed": {"type": "boolean"},
        "reached": {"type": ["string", "null"]},
        "named": {"type": ["string", "null"]},
        "levels": {"type": "array", "items": {"type": "object", "required": ["level", "passed"]}},
        "unfinished": {"type": "array"},
    },
    "fuzz": {
        "format": {"const": 3},
        "target": _TEXT,
        "kind": _TEXT,
        "passed": {"type": "boolean"},
        "interrupted": _TEXT,
        "errors": _TEXTS,
        "seed": {"type": "integer"},
        "steps": _COUNT,
        "threads": _COUNT,
        "generators": {"type": "array"},
        "requirements": {"type": "array", "items": {"type": "object", "required": ["requirement", "status"]}},
        "findings": {"type": "array", "items": {"type": "object", "required": ["requirement", "message", "python"]}},
    },
}
"""What each command has beside the report, by its own name; it may have more."""


def schema() -> dict[str, Any]:
    """The schema: what all three have is ``report``, and the other keys are those of the command."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A report of syncedmem verify, conform or fuzz, format {FORMAT}",
        "type": "object",
        "properties": {"report": _REPORT},
        "required": ["report"],
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in _COMMANDS],
        "$defs": {**_PARTS, **{name: _of_command(name, fields) for name, fields in _COMMANDS.items()}},
    }


def _of_command(name: str, fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    command = {"properties": {"command": {"const": name}}}
    return {"properties": {"report": command, **fields, "spread": _SPREAD}, "required": list(fields)}
