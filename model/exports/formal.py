"""A machine over variables, with abstract facts and contents, for the formal models.

Contents are *versions*, small numbers that count modulo K.  A new memory has version 0.  Each write makes the next
version, and so does an adopted buffer; the variable `newest` is the version that was written last, which each fresh
side must have.  It is kept apart from the sides, so a write that is forgotten is found, whatever the table says of
it.  A side without a pointer has version 0.  In a head without a fresh side nothing is known of contents, and the
first side that is fresh after it says what is newest.

A *fault* is an action that must not happen: memory is allocated over a pointer, freed though it is not owned, zeroed
though it has contents, copied from or to a side without a pointer, or copied from a stale side.  It is also a fault
if a pointer that was set becomes null, if a call shows, writes or adopts a side that is not fresh afterwards, and if
a call that means something leaves no fresh side where there was one.  A machine without sides, pointers or flags has
only the variables and the faults that it has words for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..opening import machine_of
from ..states import stepper
from .code_names import code_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..declaration import Action, BySetting, Call, Machine
    from ..moves import Effect
    from ..opening import AnyMachine

__all__ = ["FormalModel", "Literal", "Update", "Version", "formal_model"]


class Version(NamedTuple):
    """Contents: the earlier contents of a variable, or 0 for zeros, and the number of writes since then."""

    origin: str
    writes: int = 0


class Literal(NamedTuple):
    """The variable of a fact, and its value."""

    name: str
    value: bool


class Update(NamedTuple):
    """The effect of a row, and what it does to contents.

    Attributes
    ----------
    name : str
        A valid identifier in every language: call, head, and a number if the call has several rows there.
    effect : Effect
    asked : tuple of Literal
        The conditions that ask for facts which actions change.
    versions : dict of str to Version
        The versions that change, each after those that are computed from it: so they can change one after the other.
    faults : tuple of Literal
        What must not hold before the actions.
    broken : bool
        Whether the row is always wrong.
    """

    name: str
    effect: Effect
    asked: tuple[Literal, ...]
    versions: dict[str, Version]
    faults: tuple[Literal, ...]
    broken: bool

    @property
    def can_fail(self) -> bool:
        """Whether the row can lead to a fault."""
        return self.broken or bool(self.faults)

    @property
    def changed(self) -> tuple[str, ...]:
        """The variables that the row changes."""
        others = {"head": self.effect.dest != self.effect.head, "fault": self.can_fail}
        return (*self.effect.changes, *self.versions, *(name for name, changed in others.items() if changed))


class FormalModel(NamedTuple):
    """A machine over variables.

    Attributes
    ----------
    machine : Machine
    facts, versions : tuple of str
        The variables.
    start : tuple of str
        If nothing is fresh in a new memory, the pointers: then there is none exactly in the first head.
    owned : tuple of (str, str)
        Each ownership flag with its pointer: while the flag is set, there must be a pointer.
    fresh : tuple of (str, str)
        Each head at which a side is fresh, with the pointer of that side.
    newest : tuple of (str, str)
        Each head at which a side is fresh, with the version of that side, which must be the newest one.
    empty : tuple of (str, str)
        Each pointer with the version of its side, which is 0 while there is no pointer.
    updates : tuple of Update
    renamed : tuple of (str, str)
        See `code_names`.
    said : tuple of str
        Sentences about what is checked, and what is not.
    """

    machine: Machine
    facts: tuple[str, ...]
    versions: tuple[str, ...]
    start: tuple[str, ...]
    owned: tuple[tuple[str, str], ...]
    fresh: tuple[tuple[str, str], ...]
    newest: tuple[tuple[str, str], ...]
    empty: tuple[tuple[str, str], ...]
    updates: tuple[Update, ...]
    renamed: tuple[tuple[str, str], ...]
    said: tuple[str, ...]


def formal_model(edition: AnyMachine) -> FormalModel:
    """The model for TLA+ and Promela, without calls that end the memory, because nothing can be observed after them."""
    machine, renamed = code_names(machine_of(edition))
    free, heads = stepper(machine).free, machine.heads.values()
    pointers, owned = _facts(machine, "pointer"), _facts(machine, "owned")
    return FormalModel(
        machine,
        facts=tuple(fact for fact in machine.facts if fact not in free),
        versions=(*map(_version_of, machine.sides), *((_NEWEST,) if _tells_fresh(machine) else ())),
        start=tuple(pointers.values()) if not machine.initial.fresh else (),
        owned=tuple((owned[side], pointers[side]) for side in owned if side in pointers),
        fresh=tuple((head.name, pointers[side]) for side in pointers for head in heads if side in head.fresh),
        newest=tuple((head.name, _version_of(side)) for head in heads for side in head.fresh),
        empty=tuple((pointer, _version_of(side)) for side, pointer in pointers.items()),
        updates=_updates(machine),
        renamed=renamed,
        said=tuple(_said(machine)),
    )


_DRAWN = ("", "prefetch", "wait")
"""What a call or an action can mean, of which nothing can be wrong."""


def _said(machine: Machine) -> Iterator[str]:
    """What is checked, and what is not; and what the caller decides, which is no variable."""
    if decided := [*stepper(machine).free, *dict.fromkeys(call.takes for call in machine.calls.values() if call.takes)]:
        yield f"The caller decides these with each call, so rows for both cases are taken: {', '.join(decided)}"
    if not machine.sides:
        yield "Nothing is checked, because no invariant follows from the words of this machine: add your own."
    else:
        yield "Checked in every state: the invariants below. A queued copy is done at once, and the end is left out."
        if not _tells_fresh(machine):
            yield "Not checked: whether a write is lost, because no head says which sides are fresh."
        words: list[Call | Action] = [*machine.calls.values(), *machine.actions.values()]
        if mute := [str(word) for word in words if word.does in _DRAWN]:
            yield f"Nobody says what these do, so only their heads are judged: {', '.join(mute)}"


def _facts(machine: Machine, meaning: str) -> dict[str, str]:
    """The facts that mean something, by their side."""
    return {fact.side: fact.name for fact in machine.facts.values() if fact.means == meaning}


_NEWEST = "newest"


def _version_of(side: str) -> str:
    return f"{side}_version"


def _tells_fresh(machine: Machine) -> bool:
    """Whether the heads say which sides are fresh."""
    return any(head.fresh for head in machine.heads.values())


def _in_order(versions: dict[str, Version]) -> dict[str, Version]:
    """The same versions, each after those that are computed from it.

    No two are computed from each other: a copy to a side leaves nothing of what was there.
    """
    ordered: dict[str, Version] = {}
    while left := versions.keys() - ordered.keys():
        read = {versions[name].origin for name in left if versions[name].origin != name}
        # A row that copies a side and then adopts it, where nothing is fresh, has no order; it is a fault anyway.
        ordered |= {name: version for name, version in versions.items() if name in (left - read or left)}
    return ordered


def _updates(machine: Machine) -> tuple[Update, ...]:
    updates: dict[str, Update] = {}
    for call in machine.calls.values():
        for head in machine.heads if not call.ends else ():
            effects = stepper(machine).effects_at.get((call.name, head), ())
            for number, effect in enumerate(effects, 1):
                name = f"{call}_{head}" + (f"_{number}" if len(effects) > 1 else "")
                while name in updates:  # a_b in c is not a in b_c
                    name = f"{name}_"
                updates[name] = _Walk(machine, effect).update(name)
    return tuple(updates.values())


class _Walk:
    """The actions of a row, taken one after the other, with what is known of the facts."""

    def __init__(self, machine: Machine, effect: Effect) -> None:
        self._machine, self._effect, self._head = machine, effect, machine.heads[effect.head]
        self._pointers, self._owned = _facts(machine, "pointer"), _facts(machine, "owned")
        free = stepper(machine).free
        guards = effect.row.guards.items()
        self._asked = {fact: value for fact, value in guards if fact in machine.facts and fact not in free}
        self._known: dict[str, bool | BySetting] = dict(self._asked)
        self._versions = {side: Version(_version_of(side)) for side in machine.sides}
        self._fresh = set(self._head.fresh)
        self._after = machine.heads[effect.dest].fresh
        self._told = _tells_fresh(machine)
        self._newest = Version(_NEWEST)
        self._adopts = False
        self._faults: list[Literal] = []
        self._broken = False

    def update(self, name: str) -> Update:
        """Take all actions."""
        row = self._effect.row
        for action in map(self._machine.actions.__getitem__, row.actions):
            self._take(action)
            self._known |= action.changes
        if not row.refusal:
            self._finish(self._machine.calls[row.call])
        for pointer in self._pointers.values():
            if self._effect.changes.get(pointer) is False:
                self._never(pointer, value=True)
        versions = {_version_of(side): version for side, version in self._versions.items()}
        if self._told:
            versions[_NEWEST] = self._newest
        return Update(
            name=name,
            effect=self._effect,
            asked=tuple(Literal(fact, value) for fact, value in self._asked.items()),
            versions=_in_order({name: version for name, version in versions.items() if version != Version(name)}),
            faults=tuple(dict.fromkeys(self._faults)),
            broken=self._broken,
        )

    def _finish(self, call: Call) -> None:
        """What the caller does with the view, and what is newest then."""
        side = call.side
        if call.writes:
            # What is written over is no matter; and without heads that say what is fresh, the side's own is counted.
            origin, writes = Version(_NEWEST) if call.does == "overwrite" and self._told else self._versions[side]
            self._versions[side] = Version(origin, writes + 1)
        if not self._told:
            return
        given = call.does == "adopt" and call.takes not in self._effect.row.unless
        if not self._head.fresh:
            first = side if call.writes else next(iter(self._after), "")
            self._newest = self._versions[first] if first else self._newest
        elif call.writes or self._adopts:
            self._newest = Version(_NEWEST, 1)
        lost = bool(call.does and self._head.fresh and not self._after)
        self._broken |= lost or ((call.shows or given) and side not in self._after)

    def _take(self, action: Action) -> None:
        side = action.side
        if action.does == "allocate":
            self._never(self._pointers.get(side), value=True)
        elif action.does == "free":
            self._never(self._owned.get(side), value=False)
            self._versions[side] = Version("0")
        elif action.does == "zero":
            self._never(self._pointers.get(side), value=False)
            self._broken |= self._head != self._machine.initial
            self._versions[side] = Version("0")
        elif action.does == "copy":
            self._never(self._pointers.get(side), value=False)
            self._never(self._pointers.get(action.source), value=False)
            self._broken |= action.source not in self._fresh
            self._fresh.add(side)  # so it can be copied further
            self._versions[side] = self._versions[action.source]
        elif action.does == "adopt":
            self._adopts = True
            self._versions[side] = Version(_NEWEST if self._told else _version_of(side), 1)

    def _never(self, fact: str | None, *, value: bool) -> None:
        """Record a fault for the case that a fact has this value now."""
        if fact is None:
            return
        if fact not in self._known:
            self._faults.append(Literal(fact, value))
        else:
            self._broken |= self._known[fact] is value
