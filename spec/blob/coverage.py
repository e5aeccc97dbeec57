"""How many cells of the tables of blobs were taken, counted by what the oracle knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from .tables import rows

if TYPE_CHECKING:
    from .driver import BlobDriver
    from .tables import Cell

__all__ = ["BlobCoverage"]


@dataclass
class BlobCoverage:
    """Which cells were taken.

    Attributes
    ----------
    has_device : bool
    taken : set of Cell
    """

    unit: ClassVar[str] = "cells"

    has_device: bool
    taken: set[Cell] = field(default_factory=set["Cell"])

    def add(self, driver: BlobDriver) -> None:
        """Count what a driver did."""
        self.taken.update(driver.visited)

    @property
    def cells(self) -> int:
        """How many cells were taken."""
        return len(self.taken & cells_of(self.has_device))

    @property
    def missing(self) -> int:
        """How many were not."""
        return len(cells_of(self.has_device) - self.taken)


@cache
def cells_of(has_device: bool) -> frozenset[Cell]:
    """All of them."""
    return frozenset(row.cell for row in rows(has_device))
