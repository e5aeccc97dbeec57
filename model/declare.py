"""A machine of somebody's own, with names of its own: heads, calls, facts, actions and refusals, all written as text.

Caffe's names are enumerations, because this project uses them everywhere and type checkers check them.  A machine that
is only drawn, tabulated, explored and walked needs no more than its names.  So here they are strings, and `declare`
makes the enumerations.  Every name is checked when the machine is declared.
"""

from __future__ import annotations

import enum
import re
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from .errors import DeclarationError
from .head import Edition, Effect, Transition, Vocabulary
from .machine import Declaration
from .spelling import Spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Rule", "declare"]

Name = TypeVar("Name", bound=enum.Enum)

_MOST_FACTS = 12
"""The table has an entry for each head and each set of facts, so every fact doubles it."""

_HEAD, _NAME = re.compile("[A-Z][A-Z0-9_]*"), re.compile("[a-z][a-z0-9_]*")
_FORMS = {_HEAD: "upper-case letters, digits and _", _NAME: "lower-case letters, digits and _"}


class Rule(NamedTuple):
    """One row of a machine, as text; several names are separated by blanks.

    Attributes
    ----------
    call : str
    source : str
        The heads in which it applies.
    dest : str
        The head afterwards; empty if the head stays: for a refusal, or for a call that ends.
    actions : str
        In the order in which they happen.
    when : str
        The facts that must be true; after an exclamation mark, facts that must not.
    refusal : str
    cite : str
        Where the source says so.
    """

    call: str
    source: str
    dest: str = ""
    actions: str = ""
    when: str = ""
    refusal: str = ""
    cite: str = ""


def declare(  # noqa: PLR0913 -- the parts of a machine
    name: str,
    about: str,
    *,
    heads: str,
    calls: str,
    rows: Iterable[Rule],
    facts: str = "",
    actions: Mapping[str, str] = MappingProxyType({}),
    ends: str = "",
    cite: str = "",
) -> Declaration:
    """Declare a machine with names of its own; several names in a text are separated by blanks.

    Parameters
    ----------
    name : str
        A lower-case letter and then lower-case letters, digits and underscores.
    about : str
        A description.
    heads : str
        In upper case.  The first one is the head of a new object; each must be reachable.
    calls : str
        In the order of tables.
    rows : iterable of Rule
        For each call, head and set of facts, exactly one row applies.
    facts : str
        What is true of an object besides its head, or not; at first nothing is.  At most 12.
    actions : mapping of str to str
        The effect of each action: ``+fact`` makes a fact true, ``-fact`` makes it false.  A name that begins with a
        verb of Caffe's actions and ends with a side, as in ``copy_to_gpu``, is drawn as Caffe's.
    ends : str
        The calls after which there is no object.
    cite : str
        Where the machine is described.

    Returns
    -------
    Declaration
        It can be given wherever one can be given that needs no memory of Caffe's two sides.  Equal arguments give equal
        declarations.

    Raises
    ------
    DeclarationError
        If a name is unknown, cannot be used, is used twice or never; or if a row is no row, which the error names.
        Whether the machine is sound is checked when it is used first.

    Examples
    --------
    >>> from syncedmem.model import Rule, declare, head_machine, space
    >>> rows = (Rule("push", "UP", "DOWN"), Rule("push", "DOWN", refusal="is_down"), Rule("pull", "UP DOWN", "UP"))
    >>> lamp = declare("lamp", "A switch on a string", heads="UP DOWN", calls="push pull", rows=rows)
    >>> [call.value for call in head_machine(lamp).calls], len(space(lamp).steps)
    (['push', 'pull'], 2)
    """
    given = [rule._replace(cite=rule.cite or cite) for rule in rows]
    refusals = tuple(dict.fromkeys(rule.refusal for rule in given if rule.refusal))
    names = _names(
        name, *(tuple(text.split()) for text in (heads, calls, ends, facts)), tuple(actions.items()), refusals
    )
    edition = Edition(
        name=name,
        about=about,
        heads=tuple(names.heads),
        flags=names.facts(names.data - 1),
        implied=names.facts(0),
        never=frozenset(),
        cite=cite,
        cycles=(),
        names=names,
    )
    found = Declaration(edition, tuple(_row(name, rule, names) for rule in given))
    found.check_names()
    _check_used(found)
    return found


def _check_used(machine: Declaration) -> None:
    """Refuse a name that no row uses."""
    names, rows = machine.edition.names, machine.rows
    calls = {row.call for row in rows}
    actions = {action for row in rows for action in row.actions}
    guards = {guard for row in rows for guard in (*row.conditions, *row.unless)}
    changed = names.facts(0)
    for effect in names.effects.values():
        changed |= effect.sets | effect.clears
    kept = {guard for guard in names.guards if guard.fact is not None and guard.fact in changed}
    kinds = (("call", names.calls, calls), ("action", names.actions, actions), ("fact", names.guards, guards | kept))
    for kind, there, used in kinds:
        if unused := [it.value for it in there if it not in used]:
            raise DeclarationError(f"{machine.edition.name}: no row has the {kind} {unused[0]!r}")


@cache
def _names(  # noqa: PLR0913, PLR0917 -- as `declare`; hashable, so that equal machines have the same names
    machine: str,
    heads: Sequence[str],
    calls: Sequence[str],
    ends: Sequence[str],
    facts: Sequence[str],
    effects: Sequence[tuple[str, str]],
    refusals: Sequence[str],
) -> Vocabulary:
    actions = [name for name, _ in effects]
    _check(machine, "head", heads, _HEAD)
    _check(machine, "call", calls, _NAME)
    # A row of `transitions` has guards, actions and refusals as names of one object.
    _check(machine, "fact, action or refusal", (*facts, *actions, *refusals), _NAME)
    if len(facts) > _MOST_FACTS:
        raise DeclarationError(f"{machine}: it has {len(facts)} facts, and there can be at most {_MOST_FACTS}")
    if unknown := [call for call in ends if call not in calls]:
        raise DeclarationError(f"{machine}: it ends with {unknown[0]!r}, which is none of its calls")
    # Type checkers know only the enumerations that are written out.
    of_flags, of_steps = cast("Any", _Flag), cast("Any", _Step)
    known = of_flags("Fact", {"NONE": 0, **{fact.upper(): 1 << k for k, fact in enumerate(facts)}})

    class Asking(Spelled, enum.Enum):
        @property
        def fact(self) -> _Flag:
            found: _Flag = known[self.name]
            return found

    class Calling(Spelled, enum.Enum):
        @property
        def ends(self) -> bool:
            return self.value in ends

        @property
        def takes_data(self) -> bool:
            return False

    action = of_steps("Action", _members(actions))
    made: dict[str, Any] = {
        "heads": of_steps("Head", {head: number for number, head in enumerate(heads)}),
        "calls": cast("Any", Calling)("Call", _members(calls)),
        "facts": known,
        "guards": cast("Any", Asking)("Guard", _members(facts)),
        "actions": action,
        "refusals": of_steps("Refusal", _members(refusals)),
        "effects": MappingProxyType({action(name): _effect(machine, name, text, known) for name, text in effects}),
        "always": known(0),
    }
    return Vocabulary(**made)


class _Flag(Spelled, enum.IntFlag):
    """The base of facts."""


class _Step(Spelled, enum.Enum):
    """The base of heads, actions and refusals."""

    @property
    def needs(self) -> None:
        """No refusal is named after a head here."""
        return


def _members(names: Iterable[str]) -> dict[str, str]:
    return {name.upper(): name for name in names}


def _check(machine: str, kind: str, names: Sequence[str], form: re.Pattern[str]) -> None:
    for name in names:
        if not form.fullmatch(name):
            raise DeclarationError(f"{machine}: a {kind} cannot be named {name!r}: use {_FORMS[form]}")
        if names.count(name) > 1:
            raise DeclarationError(f"{machine}: the {kind} {name!r} is there twice")


def _effect(machine: str, action: str, text: str, facts: type[_Flag]) -> Effect:
    changes = {"+": facts(0), "-": facts(0)}
    for change in text.split():
        if change[0] not in changes or change[1:].upper() not in facts.__members__:
            raise DeclarationError(f"{machine}: the action {action} does {change!r}, which is no + or - and a fact")
        changes[change[0]] |= facts[change[1:].upper()]
    made: Any = {"sets": changes["+"], "clears": changes["-"], "by_mode": facts(0)}
    return Effect(**made)


def _row(machine: str, rule: Rule, names: Vocabulary) -> Transition:
    asked = [text.partition("!") for text in rule.when.split()]
    try:
        found = Transition(
            _named(names.calls, rule.call),
            tuple(names.heads[head] for head in rule.source.split()),
            names.heads[rule.dest] if rule.dest else None,
            tuple(_named(names.actions, action) for action in rule.actions.split()),
            conditions=tuple(_named(names.guards, fact) for fact, mark, _ in asked if not mark),
            unless=tuple(_named(names.guards, fact) for _, mark, fact in asked if mark),
            refusal=_named(names.refusals, rule.refusal) if rule.refusal else None,
            editions=(),
            cite=rule.cite,
        )
    except KeyError as error:
        raise DeclarationError(f"{machine}: unknown name {error.args[0]!r} in the row {rule}") from error
    if found.refusal is not None and (rule.dest or rule.actions):
        raise DeclarationError(f"{machine}: a refusal changes nothing: leave out dest and actions in the row {rule}")
    if found.dest is None and found.refusal is None and not found.call.ends:
        raise DeclarationError(
            f"{machine}: no head to go to in the row {rule}: give dest or refusal, or name {rule.call} in ends"
        )
    if found.dest is not None and found.call.ends:
        raise DeclarationError(f"{machine}: {rule.call} is in ends, but goes to {rule.dest} in the row {rule}")
    return found


def _named(kind: type[Name], name: str) -> Name:
    """The member with a name; KeyError if there is none, also where there are no members."""
    return {member.value: member for member in kind}[name]
