"""The list of planted faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FAULTS", "Fault", "planted"]

Made = TypeVar("Made", bound=type)


@dataclass(frozen=True)
class Fault:
    """A wrong allocator.

    Attributes
    ----------
    name : str
    property_id : str
        What it breaks.
    source : str
        Where such a fault was seen.
    promises : dict
        What it promises and does not keep, or what is needed to see that.
    threads : int
        From how many threads it shows.
    make : type
    """

    name: str
    property_id: str
    source: str
    promises: dict[str, str]
    threads: int
    make: type

    @property
    def target(self) -> str:
        """The target as a command line says it."""
        return f"{self.make.__module__}:{self.name}"

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return (self.make.__doc__ or "").strip()


FAULTS: dict[str, Fault] = {}
"""Every planted fault by name."""


def planted(property_id: str, source: str, threads: int = 1, **promises: str) -> Callable[[Made], Made]:
    """Register a wrong allocator under the name of its class."""

    def register(make: Made) -> Made:
        FAULTS[make.__name__] = Fault(make.__name__, property_id, source, promises, threads, make)
        return make

    return register
