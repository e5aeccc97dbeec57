"""The whole machine as one JSON document; a port can make its tables from it, and a page can run it.

A reader needs nothing except the document.  It has the effect of each action on pointers, flags and bytes, the row for
each call, the refusals with their reasons, and every configuration with every call.  `machine_schema` describes it, and
``docs/exports.md`` says in ten lines how to interpret it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from ..compiled import head_machine
from ..dispatch import state_of
from ..exploration import configurations, inputs, matrix, space
from ..head import CAFFE_NAMES, EDITIONS, EFFECTS, Action, Call, Fact, Guard, Refusal, SyncedHead, Transition
from ..machine import refusal_error
from ..mode import Mode
from ..vocabulary import asynchronous, cited, contents_after, place_of, role_of, verb_of
from .own_document import declared_json

if TYPE_CHECKING:
    from ..exploration import Configuration, Entry, Input
    from ..machine import AnyEdition

__all__ = ["FORMAT", "VERSION", "machine_document", "machine_json", "vocabulary"]

FORMAT = "syncedmem-machine"
VERSION = "2.0"
"""The version of the document's form: its first number changes when a part is removed or changes its meaning."""

Json = dict[str, Any]


def machine_document(*editions: AnyEdition) -> Json:
    """The machine as plain data.

    Parameters
    ----------
    *editions : str or Declaration
        Names from ``EDITIONS``, or declarations; if empty, all editions.

    Returns
    -------
    dict
        Data as ``machine_schema()`` describes it: only strings, integers, booleans, None, lists and dicts.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    document: Json = {
        "format": FORMAT,
        "version": VERSION,
        **vocabulary(),
        "editions": [_edition(name) for name in editions or EDITIONS],
    }
    return document | {"digest": _digest(document)}


def vocabulary() -> dict[str, list[Json]]:
    """The parts of the document that say what its names mean; they are the same for every edition."""
    return {
        "heads": [{"name": head.name, "value": head.value} for head in SyncedHead],
        "modes": [{"name": mode.name, "value": mode.value} for mode in Mode],
        "facts": [{"name": fact.name, "bit": fact.value} for fact in Fact],
        "guards": [{"name": guard.value, "fact": guard.fact.name if guard.fact else None} for guard in Guard],
        "actions": [_action(action) for action in Action],
        "calls": [_call(call) for call in Call],
        "refusals": [_refusal(refusal) for refusal in Refusal],
    }


def machine_json(*editions: AnyEdition) -> str:
    """The document as text: a line per item, a newline at the end, and the same bytes for the same machine.

    A machine with names of its own has a document of its own, as `declared_document` describes it.
    """
    machine = head_machine(*editions) if len(editions) == 1 else None
    if machine is not None and machine.names is not CAFFE_NAMES:
        return declared_json(machine.declaration)
    return _laid_out(machine_document(*editions)) + "\n"


def _digest(document: Json) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _names(facts: Fact) -> list[str]:
    return [fact.name for fact in Fact if fact in facts and fact.name]


def _action(action: Action) -> Json:
    effect, place = EFFECTS[action], place_of(action)
    return {
        "name": action.value,
        "verb": verb_of(action).value,
        "side": place.value if place else None,
        "contents": contents_after(action),
        "asynchronous": asynchronous(action),
        "sets": _names(effect.sets),
        "clears": _names(effect.clears),
        "by_mode": _names(effect.by_mode),
    }


def _call(call: Call) -> Json:
    place = place_of(call)
    return {
        "name": call.value,
        "role": role_of(call).value,
        "side": place.value if place else None,
        "takes_data": call.takes_data,
    }


def _refusal(refusal: Refusal) -> Json:
    error = refusal_error(refusal, "", SyncedHead.UNINITIALIZED, None)
    return {"name": refusal.value, "error": type(error).__name__}


def _edition(name: AnyEdition) -> Json:
    machine, rows = head_machine(name), matrix(name)
    edition, found = machine.edition, space(name)
    return {
        "name": edition.name,
        "about": edition.about,
        "cite": edition.cite,
        "heads": [head.name for head in edition.heads],
        "facts": _names(edition.facts),
        "flags": _names(edition.flags),
        "implied": _names(edition.implied),
        "never": [guard.value for guard in Guard if guard in edition.never],
        "cycles": [[call.value for call in sequence] for sequence in edition.cycles],
        "calls": [call.value for call in machine.calls],
        "inputs": [_input(entry) for entry in inputs(name, null=True, mode=False)],
        "transitions": [_transition(row, head) for row in machine.declaration.rows for head in row.source],
        "configurations": [_configuration(name, configuration) for configuration in configurations(name)],
        "cells": [
            _cell(name, before, asked.call, asked, entry)
            for before, row in rows.items()
            for asked, entry in row.items()
            if asked.call is not None
        ],
        "counts": {
            "configurations": len(rows),
            "cells": sum(map(len, rows.values())),
            "refusals": sum(entry.refusal is not None for row in rows.values() for entry in row.values()),
            "states": len(found.steps),
            "transitions": found.transitions,
        },
    }


def _input(entry: Input) -> Json:
    return {"name": str(entry), "call": entry.call.value if entry.call else None, "data": entry.data}


def _transition(row: Transition, source: SyncedHead) -> Json:
    return {
        "id": row.identifier(source),
        "call": row.call.value,
        "source": source.name,
        "dest": row.dest.name if row.dest else None,
        "conditions": [guard.value for guard in row.conditions],
        "unless": [guard.value for guard in row.unless],
        "actions": [action.value for action in row.actions],
        "refusal": row.refusal.value if row.refusal else None,
        "reason": _reason(row.refusal, row.call, source),
        "cite": row.cite,
        "sources": [place._asdict() for place in cited(row)],
    }


class _Null:
    """No data: shown as ``NULL``, the word of Caffe and of the document's inputs, not as Python's None."""

    def __repr__(self) -> str:
        return "NULL"


def _reason(refusal: Refusal | None, call: Call, head: SyncedHead) -> str | None:
    return None if refusal is None else str(refusal_error(refusal, call.value, head, _Null()))


def _configuration(edition: AnyEdition, configuration: Configuration) -> Json:
    machine, facts = head_machine(edition), configuration.facts & head_machine(edition).edition.facts
    release = machine.row(Call.RELEASE, configuration.head, facts, data=True)
    return {
        "name": str(configuration),
        "head": configuration.head.name,
        "cpu": configuration.cpu.name.lower(),
        "gpu": configuration.gpu.name.lower(),
        "facts": _names(facts),
        "packed": state_of(configuration.head, facts),
        "release": {
            "transition": release.identifier(configuration.head),
            "actions": [action.value for action in release.actions],
        },
    }


def _cell(edition: AnyEdition, before: Configuration, call: Call, asked: Input, entry: Entry) -> Json:
    facts = before.facts & head_machine(edition).edition.facts
    row = head_machine(edition).row(call, before.head, facts, data=asked.data)
    return {
        "configuration": str(before),
        "input": str(asked),
        "transition": row.identifier(before.head),
        "actions": [action.value for action in entry.actions],
        "after": str(entry.after),
        "refusal": entry.refusal.value if entry.refusal else None,
        "reason": _reason(entry.refusal, call, before.head),
    }


_DEPTH = 4


def _laid_out(value: object, depth: int = 0) -> str:
    """JSON with a line for each item of a list, so that a change of the machine is a change of few lines."""
    if depth < _DEPTH and _is_block(value):
        lines, (opening, closing) = [f'"{key}": {_laid_out(item, depth + 1)}' for key, item in value.items()], "{}"
    elif depth < _DEPTH and _is_items(value):
        lines, (opening, closing) = [_laid_out(item, depth + 1) for item in value], "[]"
    else:
        return json.dumps(value, ensure_ascii=False)
    pad = "\n" + "  " * depth
    return f"{opening}{pad}  {f',{pad}  '.join(lines)}{pad}{closing}"


def _is_block(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict) and any(map(_is_items, cast("Json", value).values()))


def _is_items(value: object) -> TypeGuard[list[Json]]:
    return isinstance(value, list) and any(isinstance(item, dict) for item in cast("list[object]", value))
