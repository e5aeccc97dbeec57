"""What the formal models say alike: their names, and the invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..editions import head_machine
from ..head import Fact, SyncedHead
from .vocabulary import Host

if TYPE_CHECKING:
    from .contents import Version

__all__ = ["Invariant", "Notation", "invariants", "name_of", "version_name"]


class Notation(NamedTuple):
    """How a language writes logic."""

    no: str
    both: str
    either: str
    same: str
    equal: str
    head: str

    def is_head(self, head: SyncedHead) -> str:
        """That the head is this one."""
        return f"head {self.equal} {self.head.format(head.name)}"

    def literal(self, fact: Fact, *, value: bool) -> str:
        """That a fact has this value."""
        return name_of(fact) if value else f"{self.no}{name_of(fact)}"

    def version(self, version: Version) -> str:
        """Contents."""
        start = version_name(version.origin) if version.origin else "0"
        return f"({start} + {version.writes}) % K" if version.writes else start


class Invariant(NamedTuple):
    """A sentence that holds in every state.

    Attributes
    ----------
    name : str
    text : str
        In the notation that was asked for.
    about : str
    """

    name: str
    text: str
    about: str


def name_of(fact: Fact) -> str:
    """The variable of a fact."""
    return (fact.name or "").lower()


def version_name(place: Host) -> str:
    """The variable of the contents of a side."""
    return f"{place.value}_version"


def invariants(edition: str, say: Notation) -> tuple[Invariant, ...]:
    """What holds in every state of an edition, written in a language."""
    heads = head_machine(edition).edition.heads
    tracked = head_machine(edition).edition.facts
    null = f" {say.both} ".join(say.literal(place.pointer, value=False) for place in Host)
    start = say.is_head(SyncedHead.UNINITIALIZED)
    owned = [
        f"({say.literal(place.owned, value=False)} {say.either} {name_of(place.pointer)})"
        for place in Host
        if place.owned in tracked
    ]
    fresh = [
        f"({say.no}({say.is_head(head)}) {say.either} {name_of(place.pointer)})"
        for place in Host
        for head in (place.head, SyncedHead.SYNCED)
        if head in heads
    ]
    synced = f"{say.no}({say.is_head(SyncedHead.SYNCED)}) {say.either} cpu_version {say.equal} gpu_version"
    unset = [f"({name_of(place.pointer)} {say.either} {version_name(place)} {say.equal} 0)" for place in Host]
    both = f" {say.both} "
    return (
        Invariant("FreshStart", f"({start}) {say.same} ({null})", "uninitialised exactly when both pointers are null"),
        Invariant("OwnedExists", both.join(owned), "an owned side has a pointer"),
        Invariant("FreshExists", both.join(fresh), "a fresh side has a pointer"),
        *([Invariant("SyncedIsEqual", synced, "synced means equal contents")] if SyncedHead.SYNCED in heads else []),
        Invariant("NothingWithout", both.join(unset), "a side without a pointer has no contents"),
        Invariant(
            "NoFault", f"{say.no}fault", "nothing leaks, is freed twice, zeroed late, or copied from a stale side"
        ),
    )
