"""The list of planted faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..memory.reference import ReferenceMemory as Port

__all__ = ["FAULTS", "Fault", "Shows", "planted"]

Shows = Literal["device", "no device", "caffe profile"]


@dataclass(frozen=True)
class Fault:
    """A wrong memory, or a wrong blob.

    Attributes
    ----------
    name : str
    requirement : str
        What it breaks.
    source : str
        Where the fault comes from.
    bench : {"device", "no device", "caffe profile"}
        The kind of bench it shows on.
    make : type of Port or of BlobPort
        The wrong memory or blob; a `Maker` or `BlobMaker`.
    """

    name: str
    requirement: str
    source: str
    bench: Shows
    make: Any

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return (self.make.__doc__ or "").strip()


FAULTS: dict[str, Fault] = {}
"""Every planted fault by name."""


def planted(requirement: str, source: str, *, bench: Shows = "device") -> Callable[[type[Port]], type[Port]]:
    """Register a wrong memory under the name of its class."""

    def register(make: type[Port]) -> type[Port]:
        FAULTS[make.__name__] = Fault(make.__name__, requirement, source, bench, make)
        return make

    return register
