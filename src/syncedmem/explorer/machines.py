"""The machines that a page has: our editions, or one of somebody's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import EDITIONS

if TYPE_CHECKING:
    from syncedmem.model.machine import AnyEdition

__all__ = ["editions_of"]


def editions_of(edition: AnyEdition | None = None) -> tuple[AnyEdition, ...]:
    """The machines that a page has, first the one that it begins with.

    All of ours are on one page.  A machine of somebody's own has a page for itself: its name may be one of ours.

    Parameters
    ----------
    edition : str or Declaration, optional
        The name of the edition to begin with, or a machine of somebody's own.
    """
    if edition is not None and not isinstance(edition, str):
        return (edition,)
    return tuple(dict.fromkeys((edition, *EDITIONS) if edition else EDITIONS))
