"""The report of a run, the same for ``verify``, ``conform`` and ``fuzz``: as data with a schema, and as one page."""

from __future__ import annotations

from syncedmem.model import MissingPackageError

from .document import Document, Failure, Figure, Judged, Numbers, Unchecked, Verdict
from .provenance import Provenance

__all__ = ["Document", "Failure", "Figure", "Judged", "Numbers", "Provenance", "Unchecked", "Verdict", "page"]


def page(document: Document) -> str:
    """The report as a page: one file, no script, readable on a phone and in the dark.

    Parameters
    ----------
    document : Document

    Raises
    ------
    MissingPackageError
        If Jinja2 is not installed.
    """
    try:
        from .rendering import rendered  # noqa: PLC0415 -- it needs Jinja2, which the data does not need
    except ModuleNotFoundError as error:
        raise MissingPackageError("the page of a report", "jinja2", "cli") from error
    return rendered(document)
