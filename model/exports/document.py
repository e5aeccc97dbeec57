"""A machine, or several, as one JSON document; a port can make its tables from it, and a page can run it.

A reader needs nothing except the document.  It has the words of a machine with their meaning, the row for each call,
the refusals with their reasons, and every configuration with every call.  ``machine.schema.json`` is its JSON Schema,
and ``docs/exports.md`` says in ten lines how to interpret it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from ..caffe import EDITIONS
from ..opening import machine_of
from ..refusals import reason_of
from ..states import matrix, space, stepper

if TYPE_CHECKING:
    from ..declaration import Action, Call, Machine
    from ..moves import Effect, Input, Move, State
    from ..opening import AnyMachine
    from ..states import Configuration

__all__ = ["CONTENTS", "FORMAT", "VERSION", "machine_document", "machine_json"]

FORMAT = "syncedmem-machine"
VERSION = "1.0"
"""The version of the document's form: its first number changes when a part is removed or changes its meaning."""

CONTENTS = {
    "allocate": "undefined",
    "zero": "zero",
    "copy": "other side",
    "adopt": "argument",
    "free": "none",
}
"""What is in the side of an action afterwards, by what the action does; with any other action it is what was there."""

Json = dict[str, Any]


def machine_document(*editions: AnyMachine) -> Json:
    """Machines as plain data.

    Parameters
    ----------
    *editions : str or Machine
        Names from ``EDITIONS``, or any machines; if empty, all editions.

    Returns
    -------
    dict
        Data by ``machine.schema.json``: only strings, integers, booleans, None, lists and dicts.
    """
    machines = map(machine_of, editions or EDITIONS)
    document: Json = {"format": FORMAT, "version": VERSION, "editions": [_machine(machine) for machine in machines]}
    return document | {"digest": _digest(document)}


def machine_json(*editions: AnyMachine) -> str:
    """The document as text: a line per item, a newline at the end, and the same bytes for the same machine."""
    return _laid_out(machine_document(*editions)) + "\n"


def _digest(document: Json) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _machine(machine: Machine) -> Json:
    rows, states = matrix(machine), space(machine)
    asked = stepper(machine).inputs(settings=False)
    first = space(machine, null=True, settings=False).configurations
    return {
        "name": machine.name,
        "title": machine.title,
        "about": machine.about,
        "cite": machine.cite,
        "sides": list(machine.sides),
        "heads": [
            {"name": head.name, "fresh": list(head.fresh), "letter": head.letter} for head in machine.heads.values()
        ],
        "settings": [
            {"name": setting.name, "values": list(setting.values), "start": setting.initial}
            for setting in machine.settings.values()
        ],
        "facts": [
            {"name": fact.name, "means": fact.means, "side": fact.side or None, "flag": fact.flag}
            for fact in machine.facts.values()
        ],
        "calls": [_call(call) for call in machine.calls.values()],
        "actions": [_action(action) for action in machine.actions.values()],
        "refusals": [
            {"name": refusal.name, "error": refusal.error, "needs": refusal.needs or None, "text": refusal.text}
            for refusal in machine.refusals.values()
        ],
        "cycles": [list(cycle) for cycle in machine.cycles],
        "inputs": [_input(entry) for entry in asked],
        "transitions": [_transition(machine, effect) for effect in stepper(machine).effects],
        "configurations": [_configuration(machine, place, state) for place, state in first.items()],
        "cells": [_cell(machine, move) for row in rows.values() for move in row.values()],
        "counts": {
            "configurations": len(rows),
            "cells": sum(map(len, rows.values())),
            "refusals": sum(bool(move.refusal) for row in rows.values() for move in row.values()),
            "states": len(states.steps),
            "transitions": states.transitions,
        },
    }


def _call(call: Call) -> Json:
    return {
        "name": call.name,
        "does": call.does,
        "side": call.side or None,
        "source": call.source or None,
        "takes": call.takes or None,
    }


def _action(action: Action) -> Json:
    return {
        "name": action.name,
        "code": action.code,
        "does": action.does,
        "side": action.side or None,
        "source": action.source or None,
        "contents": CONTENTS.get(action.does),
        "queued": action.queued,
        "sets": list(action.sets),
        "clears": list(action.clears),
        "by_setting": [
            {"fact": fact, "setting": setting, "value": value} for fact, setting, value in action.by_setting
        ],
    }


def _input(entry: Input) -> Json:
    return {
        "name": str(entry),
        "call": entry.call.name if entry.call else None,
        "data": entry.data,
        "given": list(entry.given),
    }


def _transition(machine: Machine, effect: Effect) -> Json:
    row, head, dest, _ = effect
    return {
        "id": effect.identifier,
        "call": row.call,
        "source": head,
        "dest": None if row.refusal or machine.calls[row.call].ends else dest,
        "conditions": list(row.conditions),
        "unless": list(row.unless),
        "actions": list(row.actions),
        "refusal": row.refusal or None,
        "reason": reason_of(machine, row, head),
        "cite": row.cite,
        "sources": _cited(row.cite),
    }


_PLACE = re.compile(r"(?<!\w)(\w+\.\w+):(\d[\d, -]*)")  # from the start of a word only: a long one is read once
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


def _cited(cite: str) -> list[Json]:
    """The lines that a row follows, in the order of the citation."""
    return [
        {"file": file, "first": int(lines[1]), "last": int(lines[2] or lines[1])}
        for file, places in _PLACE.findall(cite)
        for lines in _LINES.finditer(places)
    ]


def _configuration(machine: Machine, configuration: Configuration, state: State) -> Json:
    ends = [entry for entry in stepper(machine).inputs(end=True) if entry.ends]
    moves = [(entry, stepper(machine).step(state, entry)) for entry in ends]
    return {
        "name": str(configuration),
        "head": configuration.head,
        "facts": [fact for fact in machine.facts if fact in configuration.facts],
        "ends": [
            {
                "input": str(entry),
                "transition": step.identifier,
                "actions": list(step.actions),
            }
            for entry, step in moves
            if step
        ],
    }


def _cell(machine: Machine, move: Move[Configuration]) -> Json:
    return {
        "configuration": str(move.before),
        "input": str(move.input),
        "transition": move.identifier,
        "actions": list(move.actions),
        "after": str(move.after),
        "refusal": move.refusal or None,
        "reason": move.row and reason_of(machine, move.row, move.before.head),
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
