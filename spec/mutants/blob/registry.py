"""The list of planted faults of blobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...blob.reference import ReferenceBlob as BlobPort
    from ..registry import Shows

__all__ = ["BLOB_FAULTS", "planted"]

BLOB_FAULTS: dict[str, Fault] = {}
"""Every planted fault by name."""


def planted(requirement: str, source: str, *, bench: Shows = "device") -> Callable[[type[BlobPort]], type[BlobPort]]:
    """Register a wrong blob under the name of its class."""

    def register(make: type[BlobPort]) -> type[BlobPort]:
        BLOB_FAULTS[make.__name__] = Fault(make.__name__, requirement, source, bench, make)
        return make

    return register
