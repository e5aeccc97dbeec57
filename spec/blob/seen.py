"""What is seen of blobs after a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.heads import FRESH
from ..record.observation import NOTHING, Observation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .steps import Part

__all__ = ["SIDES", "BlobSeen", "BlobsSeen", "MemorySeen"]

SIDES: Mapping[str, tuple[str, ...]] = {head.name: sides for head, sides in FRESH.items()}
"""The sides that a head says are fresh, by its name."""


class MemorySeen(NamedTuple):
    """A memory of blobs.

    Attributes
    ----------
    head : str
    size : object
        In bytes.
    sides : mapping of str to bytes
        What the sides hold that the head says are fresh.
    touched : bool
        Whether looking there called an allocator.
    """

    head: str
    size: Any
    sides: Mapping[str, bytes]
    touched: bool = False


class BlobSeen(NamedTuple):
    """A blob: its shape, and two memories, each by something that all blobs have which share it.

    Attributes
    ----------
    shape : tuple of int
    count : int
    capacity : int or None
        None if it was not asked for.
    data, diff : object
    """

    shape: tuple[int, ...]
    count: Any
    capacity: Any
    data: Any
    diff: Any

    def memory(self, part: Part) -> Any:
        """What the memory of a part is known by."""
        return self.data if part == "data" else self.diff


@dataclass(slots=True)
class BlobsSeen:
    """What is seen after a step; it is filled while somebody looks, who may have to stop.

    Attributes
    ----------
    called : Observation
        What the call did: whether it was refused, its actions, what its view shows, and what is allocated then.
    value : object
        What it returned.
    shape : tuple of int or None
        Of a view on the host.
    twice : bool
        Whether another call returned the same view object.
    blobs : dict of int to BlobSeen
    memories : dict of object to MemorySeen
        By what each is known by.
    broken : str
        The error that looking raised.
    """

    called: Observation = NOTHING
    value: Any = None
    shape: tuple[int, ...] | None = None
    twice: bool = False
    blobs: dict[int, BlobSeen] = field(default_factory=dict[int, BlobSeen])
    memories: dict[Any, MemorySeen] = field(default_factory=dict[Any, MemorySeen])
    broken: str = ""
