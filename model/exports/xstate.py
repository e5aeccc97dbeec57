"""The machine as a configuration of XState (version 5), as plain JSON.

With configurations, the default, it runs as it is: there is neither guard nor context, and you implement the actions
only if you want to see them.  With guards, states are the heads, and the context has the facts and the mode.  You
implement three names: the guard ``met`` and the actions ``perform`` and ``refuse``.  All that they need is in their
parameters; ``docs/exports.md`` has the fifteen lines.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..compiled import head_machine
from ..diagrams.drawing import Detail
from ..exploration import matrix
from ..head import DEFAULT_EDITION, EFFECTS, Action, Call, Fact, Guard
from ..mode import Mode

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..head import Edition, Refusal, Transition
    from ..machine import AnyEdition

__all__ = ["END", "xstate_json", "xstate_machine"]

Json = dict[str, Any]

END = "RELEASED"
"""The final state, after ``release``."""


def xstate_machine(
    edition: AnyEdition = DEFAULT_EDITION, *, calls: Collection[Call] = (), detail: Detail = Detail.CONFIGURATIONS
) -> Json:
    """The argument of ``createMachine``.

    Parameters
    ----------
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.
    calls : collection of Call
        Only these calls; if empty, all calls.
    detail : Detail
        ``GUARDS``: events are calls, with ``data: true`` if they have data.  ``CONFIGURATIONS``: events are
        calls, among them ``set_cpu_data(NULL)``.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    made = _flat(edition, calls) if detail is Detail.CONFIGURATIONS else _guarded(edition, calls)
    states: Json = made["states"]
    return {"id": "syncedmem", **made, "states": {**states, END: {"type": "final"}}}


def xstate_json(
    edition: AnyEdition = DEFAULT_EDITION, *, calls: Collection[Call] = (), detail: Detail = Detail.CONFIGURATIONS
) -> str:
    """The configuration as text, with a newline at the end."""
    return json.dumps(xstate_machine(edition, calls=calls, detail=detail), indent=2) + "\n"


def _guarded(edition: AnyEdition, calls: Collection[Call]) -> Json:
    machine = head_machine(edition)
    states: dict[str, Json] = {head.name: {"on": {}} for head in machine.edition.heads}
    for row in machine.declaration.rows:
        if not calls or row.call in calls:
            for head in row.source:
                states[head.name]["on"].setdefault(row.call.value, []).append(_row(row, machine.edition))
    facts = {fact.name: False for fact in Fact if fact in machine.edition.facts}
    modes: Json = {f"set_mode({mode.name})": {"actions": [_set_mode(mode)]} for mode in Mode}
    initial = machine.edition.initial.name
    return {"initial": initial, "context": {**facts, "mode": Mode.GPU.name}, "on": modes, "states": states}


def _set_mode(mode: Mode) -> Json:
    return {"type": "perform", "params": {"action": None, "sets": {"mode": mode.name}, "by_mode": []}}


def _row(row: Transition, edition: Edition) -> Json:
    found: Json = {}
    if row.conditions or row.unless:
        asked = {_asked(guard): True for guard in row.conditions} | {_asked(guard): False for guard in row.unless}
        found["guard"] = {"type": "met", "params": asked}
    if row.refusal is None:
        found["target"] = row.dest.name if row.dest else END
        found["actions"] = [_perform(action, edition) for action in row.actions]
    else:
        found["actions"] = [_refuse(row.refusal)]
    return found


def _asked(guard: Guard) -> str:
    return guard.fact.name or "" if guard.fact else "data"


def _perform(action: Action, edition: Edition) -> Json:
    effect = EFFECTS[action]
    sets = dict.fromkeys(_names(effect.sets & edition.facts), True)
    sets |= dict.fromkeys(_names(effect.clears & edition.facts), False)
    by_mode = _names(effect.by_mode & edition.facts)
    return {"type": "perform", "params": {"action": action.value, "sets": sets, "by_mode": by_mode}}


def _refuse(refusal: Refusal) -> Json:
    return {"type": "refuse", "params": {"refusal": refusal.value}}


def _names(facts: Fact) -> list[str]:
    return [fact.name for fact in Fact if fact in facts and fact.name]


def _flat(edition: AnyEdition, calls: Collection[Call]) -> Json:
    states: Json = {}
    machine, found = head_machine(edition), matrix(edition)
    for before, row in found.items():
        on: Json = {}
        for asked, entry in row.items():
            if entry.refusal is not None:
                on[str(asked)] = {"actions": [_refuse(entry.refusal)]}
            else:
                actions = [{"type": "perform", "params": {"action": action.value}} for action in entry.actions]
                on[str(asked)] = {"target": str(entry.after), "actions": actions}
        end = machine.row(Call.RELEASE, before.head, before.facts, data=True)
        freed = [{"type": "perform", "params": {"action": action.value}} for action in end.actions]
        on[Call.RELEASE.value] = {"target": END, "actions": freed}
        wanted = {call.value for call in calls or Call}
        states[str(before)] = {"on": {name: it for name, it in on.items() if name.partition("(")[0] in wanted}}
    return {"initial": str(next(iter(found))), "states": states}
