"""The one list of seeded bugs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from syncedmem.model import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ALLOCATOR_BUGS",
    "BLOB_BUGS",
    "DEVICE_ALLOCATOR_BUGS",
    "MEMORY_BUGS",
    "PORT_BUGS",
    "SeededBug",
    "ShowsOn",
    "seeded_bug",
]

ShowsOn = Literal["device", "no device", "caffe profile"]
Made = TypeVar("Made", bound=type)


@dataclass(frozen=True)
class SeededBug:
    """A wrong memory, blob, allocator or port.

    Attributes
    ----------
    name : str
    requirement : str
        The requirement that it breaks: of memories (R), of blobs (B), of allocators (A, D) or of ports (P).
    source : str
        The origin of the bug.
    make : type
        The wrong memory, blob, allocator or port.
    shows_on : {"device", "no device", "caffe profile"}
        The kind of subject on which a wrong memory or blob can be seen.
    threads : int
        The least number of threads with which a wrong allocator can be seen.
    promises : dict
        Promises that a wrong allocator breaks, or that are needed to see its bug.
    out_of_reach : str
        Why the profile ``caffe`` cannot show it, although the requirement is Caffe's; empty if it can.
    """

    name: str
    requirement: str
    source: str
    make: Any
    shows_on: ShowsOn = "device"
    threads: int = 1
    promises: dict[str, str] = field(default_factory=dict[str, str])
    out_of_reach: str = ""

    @property
    def target(self) -> str:
        """The name of a wrong allocator on a command line."""
        return f"{self.make.__module__}:{self.name}"

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return (self.make.__doc__ or "").strip()


MEMORY_BUGS: dict[str, SeededBug] = {}
"""Every wrong memory by name, once `mutants.memory` is imported."""

BLOB_BUGS: dict[str, SeededBug] = {}
"""Every wrong blob by name, once `mutants.blob` is imported."""

ALLOCATOR_BUGS: dict[str, SeededBug] = {}
"""Every wrong allocator by name, once `mutants.allocator` is imported."""

DEVICE_ALLOCATOR_BUGS: dict[str, SeededBug] = {}
"""Every wrong device allocator by name, once `mutants.device_allocator` is imported."""

PORT_BUGS: dict[str, SeededBug] = {}
"""Every wrong port by name, once `mutants.port` is imported."""

_BY_LETTER = {
    "R": MEMORY_BUGS,
    "B": BLOB_BUGS,
    "A": ALLOCATOR_BUGS,
    "D": DEVICE_ALLOCATOR_BUGS,
    "P": PORT_BUGS,
}


def seeded_bug(
    requirement: str,
    source: str,
    *,
    shows_on: ShowsOn = "device",
    threads: int = 1,
    out_of_reach: str = "",
    **promises: str,
) -> Callable[[Made], Made]:
    """Register a wrong memory, blob, allocator or port under the name of its class; see `SeededBug`.

    Raises
    ------
    InvalidArgumentError
        If another seeded bug has that name: pages and reports name a bug without its kind.
    """

    def register(make: Made) -> Made:
        bug = SeededBug(make.__name__, requirement, source, make, shows_on, threads, promises, out_of_reach)
        if any(bug.name in bugs for bugs in _BY_LETTER.values()):
            raise InvalidArgumentError("the name of a seeded bug", bug.name, "a name that no other has")
        _BY_LETTER[requirement[0]][bug.name] = bug
        return make

    return register
