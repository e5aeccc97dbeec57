"""All requirements by their names, and which of them can be checked.

Profile ``caffe`` has Caffe's behaviour; profile ``safe`` also has the promises of this project beyond Caffe's.  Every
finding of a conformance kit has one of these requirements.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from .blob import BLOB_CAFFE, BLOB_NEEDS, BLOB_SAFE
from .memory import MEMORY_CAFFE, MEMORY_NEEDS, MEMORY_SAFE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["PROFILES", "REQUIREMENTS", "Kind", "Profile", "Requirement", "applicable"]

Profile = Literal["caffe", "safe"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
Kind = Literal["memory", "blob"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence that can be true or false of a memory or a blob.

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
        ``"another device"``, ``"device check"``, ``"messages"`` or ``"caffe profile"``.
    """

    id: str
    profile: Profile
    text: str
    source: str
    needs: str = "anything"

    @property
    def kind(self) -> Kind:
        """Whether the requirement is about memories or about blobs."""
        return "blob" if self.id.startswith("B") else "memory"


_BY_PROFILE: tuple[tuple[Profile, tuple[tuple[str, str, str], ...]], ...] = (
    ("caffe", MEMORY_CAFFE),
    ("safe", MEMORY_SAFE),
    ("caffe", BLOB_CAFFE),
    ("safe", BLOB_SAFE),
)

_NEEDS: dict[str, str] = {**MEMORY_NEEDS, **BLOB_NEEDS}


REQUIREMENTS: Mapping[str, Requirement] = MappingProxyType(
    {
        identifier: Requirement(identifier, profile, text, source, _NEEDS.get(identifier.partition("-")[0], "anything"))
        for profile, rows in _BY_PROFILE
        for identifier, text, source in rows
    }
)


def applicable(kind: Kind, profile: Profile, offered: Collection[str]) -> list[str]:
    """The requirements of a kind that can be checked with this profile on a subject that offers these things."""
    profiles = ("caffe", "safe") if profile == "safe" else ("caffe",)
    return [
        name
        for name, it in REQUIREMENTS.items()
        if it.kind == kind and it.profile in profiles and it.needs in {*offered, "anything"}
    ]
