"""Coverage of the cells of the tables of blobs, by the states of the oracle."""

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
    """The cells that were taken.

    Attributes
    ----------
    has_device : bool
    taken : set of Cell
    """

    unit: ClassVar[str] = "cells"

    has_device: bool
    taken: set[Cell] = field(default_factory=set["Cell"])

    def add(self, driver: BlobDriver) -> None:
        """Add the cells that a driver took."""
        self.taken.update(driver.visited)

    @property
    def cells(self) -> int:
        """The number of cells that were taken."""
        return len(self.taken & cells_of(self.has_device))

    def unreached(self) -> list[str]:
        """The cells that were not taken, each in words."""
        return sorted(str(cell) for cell in cells_of(self.has_device) - self.taken)

    @property
    def missing(self) -> int:
        """The number of cells that were not taken."""
        return len(cells_of(self.has_device) - self.taken)


@cache
def cells_of(has_device: bool) -> frozenset[Cell]:
    """All cells."""
    return frozenset(row.cell for row in rows(has_device))
