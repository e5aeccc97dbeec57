"""All requirements by their names, and which of them can be checked.

Profile ``caffe`` has Caffe's behaviour; profile ``safe`` also has the promises of this project beyond Caffe's.  Every
finding of a conformance kit has one of these requirements.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from .allocator import ALLOCATOR, ALLOCATOR_NEEDS, DEVICE_ALLOCATOR
from .blob import BLOB_CAFFE, BLOB_LEVELS, BLOB_NEEDS, BLOB_SAFE
from .levels import LEVELS, Level
from .memory import MEMORY_CAFFE, MEMORY_LEVELS, MEMORY_NEEDS, MEMORY_SAFE
from .port import PORT, PORT_LEVELS, PORT_NEEDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["HARMLESS", "PROFILES", "REQUIREMENTS", "Kind", "Profile", "Requirement", "applicable", "lacking"]
__all__ += ["requirements_of", "seen_as"]

Profile = Literal["caffe", "safe"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
Kind = Literal["memory", "blob", "allocator", "device allocator", "port"]
_KINDS: dict[str, Kind] = {
    "R": "memory",
    "B": "blob",
    "A": "allocator",
    "D": "device allocator",
    "P": "port",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence that can be true or false of a memory, a blob, an allocator or a port.

    Attributes
    ----------
    id : str
        A number that is never reused, and a name.
    profile : {"caffe", "safe"}
    text : str
    source : str
        The origin of the sentence.
    needs : str
        What a subject must offer for the requirement to be testable: ``"anything"``, ``"device"``, ``"no device"``,
        ``"another device"``, ``"device check"``, ``"messages"`` or ``"caffe profile"``.  For an allocator, the entry
        of its capability record that has to promise something.
    level : {"L0", "L1", "L2", "L3", "L4"}
        The lowest level of observation at which it is judged; see `syncedmem.spec.requirements.levels`.  It is
        ``"L4"`` for allocators, which have no levels.
    """

    id: str
    profile: Profile
    text: str
    source: str
    needs: str = "anything"
    level: Level = "L4"

    @property
    def kind(self) -> Kind:
        """What it is about: memories, blobs, any allocator, one that has our interface, or a program."""
        return _KINDS[self.id[0]]


_BY_PROFILE: tuple[tuple[Profile, tuple[tuple[str, str, str], ...]], ...] = (
    ("caffe", MEMORY_CAFFE),
    ("safe", MEMORY_SAFE),
    ("caffe", BLOB_CAFFE),
    ("safe", BLOB_SAFE),
    ("safe", ALLOCATOR),
    ("safe", DEVICE_ALLOCATOR),
    ("caffe", PORT),
)

_NEEDS: dict[str, str] = {**MEMORY_NEEDS, **BLOB_NEEDS, **ALLOCATOR_NEEDS, **PORT_NEEDS}
_LEVELS: dict[str, Level] = {**MEMORY_LEVELS, **BLOB_LEVELS, **PORT_LEVELS}


def _requirement(profile: Profile, identifier: str, text: str, source: str) -> Requirement:
    number = identifier.partition("-")[0]
    return Requirement(
        identifier, profile, text, source, _NEEDS.get(number, "anything"), _LEVELS.get(number, LEVELS[-1])
    )


REQUIREMENTS: Mapping[str, Requirement] = MappingProxyType(
    {row[0]: _requirement(profile, *row) for profile, rows in _BY_PROFILE for row in rows}
)


HARMLESS = frozenset(
    {"R09-no-needless-copy", "R26-release-order", "R46-fresh-view", "R47-read-only-view", "R58-push-on-its-stream"}
    | {"B67-shape-lazy", "B69-fresh-view"}
)
"""The requirements whose violation leaves everything else that a kit knows as it is."""

_BYTES = {"R": "R10-same-bytes", "B": "B22-elements"}
_HEADS = {"R": "R11-head", "B": "B21-accessors"}


def seen_as(name: str, level: str) -> str:
    """The requirement that is broken as far as a level shows it: wrong bytes, or else a wrong head, if not this one."""
    if REQUIREMENTS[name].level <= level:
        return name
    return (_BYTES if level >= "L1" else _HEADS).get(name[0], name)


def requirements_of(*kinds: Kind) -> dict[str, Requirement]:
    """The requirements of some kinds, by name."""
    return {name: requirement for name, requirement in REQUIREMENTS.items() if requirement.kind in kinds}


def lacking(requirement: Requirement, offered: Collection[str], level: Level = "L4") -> str:
    """Why a requirement is not judged at this level, on a subject that offers these; empty if it is."""
    if requirement.level > level:  # a level below may not even say what is offered
        return f"judged from {requirement.level} on"
    return (
        ""
        if requirement.needs in {*offered, "anything"}
        else _LACKS.get(requirement.needs, f"needs {requirement.needs}")
    )


_LACKS = {
    "device": "there is no device",
    "no device": "about a memory without a device",
    "another device": "there is only one device",
    "device check": "there is no device check",
    "current stream": "the device has no current stream",
    "streams": "the port does not say on which stream an action is",
    "messages": "there are no messages",
    "caffe profile": "the profile safe promises something else",
    "drop": "the program does not answer the request drop",
}
"""What it means that a subject does not offer something."""


def applicable(kind: Kind, profile: Profile, offered: Collection[str], level: Level = "L4") -> list[str]:
    """The requirements of a kind that are judged with this profile, at this level, on a subject that offers these."""
    profiles = ("caffe", "safe") if profile == "safe" else ("caffe",)
    requirements = requirements_of(kind).items()
    return [
        name
        for name, requirement in requirements
        if requirement.profile in profiles and not lacking(requirement, offered, level)
    ]
