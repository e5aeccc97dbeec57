"""Names in code: a machine whose words are letters without accents, digits and ``_``, for formats that are programs.

A word that is such a name keeps it.  Others get one that is like them, and no two words get names that some language
takes for one.  The file says which name stands for which word.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

from ..declaration import Machine, Row
from ..spelling import identifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..declaration import Action, Call

__all__ = ["CodeNames", "code_names"]

_OF_LANGUAGES = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while

active assert atomic bit bool byte chan d_step empty enabled eval false fi full hidden init len mtype never np
nempty nfull od of pc_value pid printf priority proctype provided run show skip timeout trace true unless xr xs

self assume assumption axiom choose constant constants domain except extends instance in lambda let local module
other subset theorem unchanged variable variables with
"""
"""Of C, which SPIN writes too; of SPIN; of Rust, whose enumerations cannot have `Self`, and of TLA+."""

_OF_TEMPLATES = """
action actions argument call check contents effect effects end_of_calls facts fault find head k machine memory newest
next none refusal row rows side side_none spec table vars verb
"""
_RESERVED = frozenset(f"{_OF_LANGUAGES}{_OF_TEMPLATES}".split())
_PREFIXES = ("contents_", "refused_", "verb_")
"""With which the templates begin names of their own."""


class CodeNames(NamedTuple):
    """A machine whose words are names in code.

    Attributes
    ----------
    machine : Machine
    renamed : tuple of (str, str)
        Each name that stands for a word that is spelt otherwise, and that word.
    """

    machine: Machine
    renamed: tuple[tuple[str, str], ...]


def code_names(machine: Machine) -> CodeNames:
    """A machine with names in code; the same machine if all of its words are such names."""
    names = _named(machine.numbered_as)
    renamed = {name: word for kind in names.values() for word, name in kind.items() if name != word}
    if not renamed:
        return CodeNames(machine, ())
    every = _with_names(machine.numbered_as, names, None)
    mine = every if machine.numbered_as is machine else _with_names(machine, names, every)
    return CodeNames(mine, tuple(renamed.items()))


Names = dict[str, dict[str, str]]
"""For each kind of words, the names by the words."""


def _named(machine: Machine) -> Names:
    arguments = dict.fromkeys(call.takes for call in machine.calls.values() if call.takes)
    apart = _kinds_apart(
        {
            "head": machine.heads,
            "call": machine.calls,
            "action": machine.actions,
            "fact": (*machine.facts, *arguments),
            "side": machine.sides,
        }
    )
    values = dict.fromkeys(value for setting in machine.settings.values() for value in setting.values)
    return {
        **apart,
        # These have a prefix, or a type, of their own.
        **_kinds_apart({"refusal": machine.refusals}),
        **_kinds_apart({"setting": machine.settings}),
        **_kinds_apart({"value": values}, reserved=frozenset()),
    }


def _kinds_apart(kinds: Mapping[str, Iterable[str]], reserved: frozenset[str] = _RESERVED) -> Names:
    """Names for the words of some kinds, no two of which are alike."""
    words = [(kind, word) for kind, some in kinds.items() for word in some]
    used = set(reserved)
    names: Names = {kind: {} for kind in kinds}
    for kind, word in words:
        if word.isascii() and word.isidentifier() and _is_free(word, used):
            names[kind][word] = word
            used.add(_alike(word))
    for kind, word in words:
        if word not in names[kind]:
            names[kind][word] = name = _free_name(identifier(word), kind, used)
            used.add(_alike(name))
    return names


def _free_name(name: str, kind: str, reserved: set[str]) -> str:
    tries = chain((name, f"{name}_{kind}"), (f"{name}_{kind}_{number}" for number in count(2)))
    return next(attempt for attempt in tries if _is_free(attempt, reserved))


def _is_free(name: str, reserved: set[str]) -> bool:
    alike = _alike(name)
    return bool(alike) and alike not in reserved and not alike.startswith(_PREFIXES)


def _alike(name: str) -> str:
    """What is one for names that become one in capitals, or with a capital in place of each ``_``."""
    return re.sub("_+", "_", name).strip("_").lower()


def _with_names(machine: Machine, names: Names, numbered_as: Machine | None) -> Machine:
    heads, calls, actions, facts, sides = (names[kind] for kind in ("head", "call", "action", "fact", "side"))
    refusals, settings, values = (names[kind] for kind in ("refusal", "setting", "value"))

    def several(words: Iterable[str], of: dict[str, str]) -> tuple[str, ...]:
        return tuple(of[word] for word in words)

    side_of: dict[str, str] = {"": "", **sides}

    def placed(word: Call | Action) -> dict[str, Any]:
        return {"side": side_of[word.side], "source": side_of[word.source]}

    rows = [
        Row(
            calls[row.call],
            several(row.source, heads),
            None if row.dest is None else heads[row.dest],
            do=several(row.actions, actions),
            when=several(row.conditions, facts),
            unless=several(row.unless, facts),
            refused=row.refusal and refusals[row.refusal],
            cite=row.cite,
            only=row.only,
        )
        for row in machine.rows
    ]
    return Machine(
        machine.name,
        rows,
        title=machine.title,
        about=machine.about,
        sides=several(machine.sides, sides),
        heads=[
            replace(head, name=heads[head.name], fresh=several(head.fresh, sides)) for head in machine.heads.values()
        ],
        calls=[
            replace(call, name=calls[call.name], takes=call.takes and facts[call.takes], **placed(call))
            for call in machine.calls.values()
        ],
        facts=[replace(fact, name=facts[fact.name], side=side_of[fact.side]) for fact in machine.facts.values()],
        actions=[
            replace(
                action,
                name=actions[action.name],
                sets=several(action.sets, facts),
                clears=several(action.clears, facts),
                by_setting=tuple((facts[fact], settings[by], values[value]) for fact, by, value in action.by_setting),
                **placed(action),
            )
            for action in machine.actions.values()
        ],
        refusals=[replace(refusal, name=refusals[refusal.name]) for refusal in machine.refusals.values()],
        settings=[
            replace(
                setting,
                name=settings[setting.name],
                values=several(setting.values, values),
                start=setting.start and values[setting.start],
            )
            for setting in machine.settings.values()
        ],
        cycles=[several(cycle, calls) for cycle in machine.cycles],
        cite=machine.cite,
        numbered_as=numbered_as,
    )
