"""The machine as a configuration of XState (version 5), as plain JSON.

With configurations, the default, it runs as it is: there is neither guard nor context, and you implement the actions
only if you want to see them.  With guards, states are the heads, and the context has the facts and the mode.  You
implement three names: the guard ``met`` and the actions ``perform`` and ``refuse``.  All that they need is in their
parameters; ``docs/exports.md`` has the fifteen lines.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..caffe import DEFAULT
from ..diagrams.drawing import Detail
from ..moves import Input
from ..opening import machine_of
from ..states import matrix, space, stepper

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..declaration import Action, Machine
    from ..moves import Effect
    from ..opening import AnyCall, AnyMachine

__all__ = ["END", "xstate_json", "xstate_machine"]

Json = dict[str, Any]

END = "RELEASED"
"""The final state, after ``release``, of a machine that has such a call."""


def xstate_machine(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.CONFIGURATIONS
) -> Json:
    """The argument of ``createMachine``.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Only these calls; if empty, all calls.
    detail : Detail
        ``GUARDS``: events are calls, with ``data: true`` if they have data.  ``CONFIGURATIONS``: events are
        calls, among them ``set_cpu_data(NULL)``.
    """
    machine, names = machine_of(edition), {*map(str, calls)}
    config = _flat(machine, names) if detail is Detail.CONFIGURATIONS else _guarded(machine, names)
    states: Json = config["states"]
    if any(call.ends and (not names or call.name in names) for call in machine.calls.values()):
        states = {**states, END: {"type": "final"}}
    return {"id": machine.name, **config, "states": states}


def xstate_json(
    edition: AnyMachine = DEFAULT, *, calls: Collection[AnyCall] = (), detail: Detail = Detail.CONFIGURATIONS
) -> str:
    """The configuration as text, with a newline at the end."""
    return json.dumps(xstate_machine(edition, calls=calls, detail=detail), indent=2) + "\n"


def _guarded(machine: Machine, calls: Collection[str]) -> Json:
    states: dict[str, Json] = {head: {"on": {}} for head in machine.heads}
    for effect in stepper(machine).effects:
        if not calls or effect.row.call in calls:
            states[effect.head]["on"].setdefault(effect.row.call, []).append(_row(machine, effect))
    free = stepper(machine).free
    settings = machine.settings.values()
    context: Json = {fact: False for fact in machine.facts if fact not in free}
    changes: Json = {
        str(Input(setting=setting.name, value=value)): {"actions": [_set(setting.name, value)]}
        for setting in settings
        for value in setting.values
    }
    context |= {setting.name: setting.initial for setting in settings}
    return {"initial": machine.initial.name, "context": context, "on": changes, "states": states}


def _set(setting: str, value: str) -> Json:
    return {"type": "perform", "params": {"action": None, "sets": {setting: value}, "by_setting": {}}}


def _row(machine: Machine, effect: Effect) -> Json:
    row = effect.row
    events: Json = {}
    if row.guards:
        argument = machine.calls[row.call].takes
        met = {("data" if fact == argument else fact): value for fact, value in row.guards.items()}
        events["guard"] = {"type": "met", "params": met}
    if row.refusal:
        events["actions"] = [_refuse(row.refusal)]
    else:
        events["target"] = END if machine.calls[row.call].ends else _target(effect.dest)
        events["actions"] = [_perform(machine.actions[action]) for action in row.actions]
    return events


def _target(state: str) -> str:
    """A state as a target, in which a dot would lead into a state and a backslash would be no letter."""
    return re.sub(r"[\\.]", r"\\\g<0>", state)


def _perform(action: Action) -> Json:
    sets = {fact: value for fact, value in action.changes.items() if isinstance(value, bool)}
    by_setting = {
        fact: {change.setting: change.value} for fact, change in action.changes.items() if not isinstance(change, bool)
    }
    return {"type": "perform", "params": {"action": action.name, "sets": sets, "by_setting": by_setting}}


def _refuse(refusal: str) -> Json:
    return {"type": "refuse", "params": {"refusal": refusal}}


def _flat(machine: Machine, calls: Collection[str]) -> Json:
    states: Json = {}
    moves, configurations = matrix(machine), space(machine, null=True, settings=False).configurations
    ends = [entry for entry in stepper(machine).inputs(end=True) if entry.ends]
    for before, row in moves.items():
        on: Json = {}
        for entry, move in row.items():
            if calls and str(entry.call) not in calls:
                continue
            actions = [_refuse(move.refusal)] if move.refusal else [_named(action) for action in move.actions]
            on[str(entry)] = (
                {"actions": actions} if move.refusal else {"target": _target(str(move.after)), "actions": actions}
            )
        for end in ends:
            step = stepper(machine).step(configurations[before], end)
            if step and (not calls or str(end) in calls):
                on[str(end)] = {"target": END, "actions": [_named(action) for action in step.actions]}
        states[str(before)] = {"on": on}
    return {"initial": str(next(iter(moves))), "states": states}


def _named(action: str) -> Json:
    return {"type": "perform", "params": {"action": action}}
