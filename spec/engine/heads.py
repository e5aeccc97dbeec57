"""What Caffe's heads say: `SyncedHead` and sets of fresh sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import SyncedHead, caffe

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FRESH", "HEADS"]

FRESH: Mapping[SyncedHead, tuple[str, ...]] = {
    SyncedHead[head.name]: head.fresh for head in caffe.EVERYTHING.heads.values()
}
"""The sides that are fresh, as each head says."""
HEADS: Mapping[frozenset[str], SyncedHead] = {frozenset(fresh): head for head, fresh in FRESH.items()}
"""The head that says that these sides are fresh."""
