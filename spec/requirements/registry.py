"""All requirements by their names, and which of them can be checked.

Profile ``caffe`` has Caffe's behaviour; profile ``safe`` also has the promises of this project beyond Caffe's.  Every
finding of a conformance kit has one of these requirements.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from .allocator import ALLOCATOR, ALLOCATOR_NEEDS, DEVICE_ALLOCATOR
from .blob import BLOB_CAFFE, BLOB_NEEDS, BLOB_SAFE
from .memory import MEMORY_CAFFE, MEMORY_NEEDS, MEMORY_SAFE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["PROFILES", "REQUIREMENTS", "Kind", "Profile", "Requirement", "applicable", "requirements_of"]

Profile = Literal["caffe", "safe"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
Kind = Literal["memory", "blob", "allocator", "device allocator"]
_KINDS: dict[str, Kind] = {"R": "memory", "B": "blob", "A": "allocator", "D": "device allocator"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence that can be true or false of a memory, a blob or an allocator.

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
    """

    id: str
    profile: Profile
    text: str
    source: str
    needs: str = "anything"

    @property
    def kind(self) -> Kind:
        """What it is about: memories, blobs, any allocator, or a device allocator, which has our interface."""
        return _KINDS[self.id[0]]


_BY_PROFILE: tuple[tuple[Profile, tuple[tuple[str, str, str], ...]], ...] = (
    ("caffe", MEMORY_CAFFE),
    ("safe", MEMORY_SAFE),
    ("caffe", BLOB_CAFFE),
    ("safe", BLOB_SAFE),
    ("safe", ALLOCATOR),
    ("safe", DEVICE_ALLOCATOR),
)

_NEEDS: dict[str, str] = {**MEMORY_NEEDS, **BLOB_NEEDS, **ALLOCATOR_NEEDS}


REQUIREMENTS: Mapping[str, Requirement] = MappingProxyType(
    {
        identifier: Requirement(identifier, profile, text, source, _NEEDS.get(identifier.partition("-")[0], "anything"))
        for profile, rows in _BY_PROFILE
        for identifier, text, source in rows
    }
)


def requirements_of(*kinds: Kind) -> dict[str, Requirement]:
    """The requirements of some kinds, by name."""
    return {name: it for name, it in REQUIREMENTS.items() if it.kind in kinds}


def applicable(kind: Kind, profile: Profile, offered: Collection[str]) -> list[str]:
    """The requirements of a kind that can be checked with this profile on a subject that offers these things."""
    profiles = ("caffe", "safe") if profile == "safe" else ("caffe",)
    return [
        name
        for name, it in requirements_of(kind).items()
        if it.profile in profiles and it.needs in {*offered, "anything"}
    ]
