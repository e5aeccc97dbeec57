"""The machine of an edition over variables, with abstract flags and contents, for the formal models.

Contents are *versions*, small numbers that count modulo K.  A new memory has version 0.  Each write makes the next
version, and so does an adopted buffer.  A side without a pointer has version 0.  A *fault* is an action that must not
happen: memory is allocated over a pointer, freed though it is not owned, zeroed though it has contents, copied from or
to a side without a pointer, or copied from a stale side.  It is also a fault if a pointer that was set becomes null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..compiled import head_machine
from ..head import EFFECTS, Action, Fact
from ..vocabulary import Host, Role, Verb, place_of, role_of, verb_of

if TYPE_CHECKING:
    from ..head import Edition, SyncedHead, Transition
    from ..machine import AnyEdition

__all__ = ["BY_MODE", "FormalModel", "Literal", "Update", "Version", "formal_model"]

BY_MODE = None
"""The value of a fact that is set in GPU mode and cleared in CPU mode."""


class Version(NamedTuple):
    """Contents: the earlier contents of a side (a variable), or 0 for zeros, and the number of writes since then."""

    origin: str
    writes: int = 0


class Literal(NamedTuple):
    """The variable of a fact, and its value."""

    name: str
    value: bool


class Update(NamedTuple):
    """A row in one of its heads.

    Attributes
    ----------
    name : str
        A valid identifier in every language: call, head, and a number if the call has several rows there.
    identifier : str
        The identifier of the transition.
    head, dest : str
        The same head if the call does not move it.
    asked : tuple of Literal
        The guards that ask for facts.
    facts : dict of str to bool or None
        The facts that change, with their new values; None is `BY_MODE`.
    versions : dict of str to Version
        The versions that change.
    faults : tuple of Literal
        What must not hold before the actions.
    broken : bool
        Whether the row is always wrong.
    """

    name: str
    identifier: str
    head: str
    dest: str
    asked: tuple[Literal, ...]
    facts: dict[str, bool | None]
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
        changes = {"head": self.dest != self.head, "fault": self.can_fail}
        return (*self.facts, *self.versions, *(name for name, changed in changes.items() if changed))


class FormalModel(NamedTuple):
    """The machine of an edition over variables.

    Attributes
    ----------
    heads : tuple of str
    facts, versions : tuple of str
        The variables.
    owned : tuple of (str, str)
        Each ownership flag with its pointer: while the flag is set, there must be a pointer.
    fresh : tuple of (str, str)
        Each head at which a side is fresh, with the pointer of that side.
    updates : tuple of Update
    """

    heads: tuple[str, ...]
    facts: tuple[str, ...]
    versions: tuple[str, ...]
    owned: tuple[tuple[str, str], ...]
    fresh: tuple[tuple[str, str], ...]
    updates: tuple[Update, ...]


def formal_model(edition: AnyEdition) -> FormalModel:
    """The model for TLA+ and Promela, without the destructor, because nothing can be observed after it.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    found = head_machine(edition).edition
    owned = ((_name(place.owned), _name(place.pointer)) for place in Host if place.owned in found.facts)
    fresh = ((head.name, _name(place.pointer)) for place in Host for head in found.heads if place.is_fresh(head))
    return FormalModel(
        heads=tuple(head.name for head in found.heads),
        facts=tuple(_name(fact) for fact in Fact if fact in found.facts),
        versions=tuple(map(_version_of, Host)),
        owned=tuple(owned),
        fresh=tuple(fresh),
        updates=_updates(edition),
    )


def _name(fact: Fact) -> str:
    return (fact.name or "").lower()


def _version_of(place: Host) -> str:
    return f"{place.value}_version"


def _updates(edition: AnyEdition) -> tuple[Update, ...]:
    machine, found = head_machine(edition), list[Update]()
    for call in machine.calls:
        for head in machine.edition.heads if not call.ends else ():
            rows = [row for row in machine.declaration.rows if row.call is call and head in row.source]
            for number, row in enumerate(rows, 1):
                name = f"{call.value}_{head.name}" + (f"_{number}" if len(rows) > 1 else "")
                found.append(_Walk(row, head, machine.edition).update(name))
    return tuple(found)


class _Walk:
    """The actions of a row, taken one after the other, with what is known of the facts."""

    def __init__(self, row: Transition, head: SyncedHead, edition: Edition) -> None:
        self.row, self.head, self.tracked, self.initial = row, head, edition.facts, edition.initial
        self.asked = {
            guard.fact: value
            for guards, value in ((row.conditions, True), (row.unless, False))
            for guard in guards
            if guard.fact is not None
        }
        self.known: dict[Fact, bool | None] = dict(self.asked)
        self.facts: dict[Fact, bool | None] = {}
        self.versions = {place: Version(_version_of(place)) for place in Host}
        self.faults: list[Literal] = []
        self.broken = False

    def update(self, name: str) -> Update:
        """Take all actions."""
        for action in self.row.actions:
            self._take(action)
        place = place_of(self.row.call)
        if role_of(self.row.call) is Role.WRITE and self.row.refusal is None and place is not None:
            self.versions[place] = self._next(place)
        for place in Host:
            if self.facts.get(place.pointer) is False:
                self._never(place.pointer, value=True)
        versions = {_version_of(place): version for place, version in self.versions.items()}
        return Update(
            name=name,
            identifier=self.row.identifier(self.head),
            head=self.head.name,
            dest=(self.row.dest or self.head).name,
            asked=tuple(Literal(_name(fact), value) for fact, value in self.asked.items()),
            facts={_name(fact): value for fact, value in self.facts.items()},
            versions={side: version for side, version in versions.items() if version != Version(side)},
            faults=tuple(dict.fromkeys(self.faults)),
            broken=self.broken,
        )

    def _take(self, action: Action) -> None:
        place, verb = place_of(action) or Host.CPU, verb_of(action)
        if verb is Verb.ALLOCATE:
            self._never(place.pointer, value=True)
        elif verb is Verb.FREE:
            self._never(place.owned, value=False)
        elif verb is Verb.ZERO:
            self._never(place.pointer, value=False)
            self.broken |= self.head is not self.initial
            self.versions[place] = Version("0")
        elif verb is Verb.COPY:
            self._never(place.pointer, value=False)
            self._never(place.other.pointer, value=False)
            self.broken |= not place.other.is_fresh(self.head)
            self.versions[place] = self.versions[place.other]
        else:
            fresh = (_version_of(it) for it in Host if it.is_fresh(self.head))
            self.versions[place] = Version(next(fresh, "0"), 1)
        self._apply(action)

    def _next(self, place: Host) -> Version:
        origin, writes = self.versions[place]
        return Version(origin, writes + 1)

    def _never(self, fact: Fact, *, value: bool) -> None:
        """Record a fault for the case that a fact has this value now."""
        if fact not in self.known:
            self.faults.append(Literal(_name(fact), value))
        else:
            self.broken |= self.known[fact] is value

    def _apply(self, action: Action) -> None:
        effect = EFFECTS[action]
        changes: tuple[tuple[Fact, bool | None], ...] = (
            (effect.sets, True),
            (effect.clears, False),
            (effect.by_mode, BY_MODE),
        )
        for facts, value in changes:
            for fact in Fact:
                if fact in facts & self.tracked:
                    self.facts[fact] = self.known[fact] = value
