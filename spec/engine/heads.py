"""What heads are called, and what Caffe's say: `SyncedHead` and sets of fresh sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import SyncedHead, caffe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Machine

__all__ = ["FRESH", "HEADS", "head_name"]

FRESH: Mapping[SyncedHead, tuple[str, ...]] = {
    SyncedHead[head.name]: head.fresh for head in caffe.EVERYTHING.heads.values()
}
"""The sides that are fresh, as each head says."""
HEADS: Mapping[frozenset[str], SyncedHead] = {frozenset(fresh): head for head, fresh in FRESH.items()}
"""The head that says that these sides are fresh."""


def head_name(machine: Machine, shown: object) -> str:
    """The name of a head that a memory shows as a head, a member of an enumeration, a name, or the number of one."""
    name = getattr(shown, "name", shown)
    if isinstance(shown, int) and name not in machine.heads:
        return dict(enumerate(machine.heads)).get(shown, str(shown))
    return str(name)
