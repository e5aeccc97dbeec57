"""The calls of a memory by their role, and the side of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model import Call, SyncedHead, caffe

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ADOPTIONS", "FRESH", "HEADS", "PUSHES", "READS", "SIDES", "WRITES", "Side"]

Side = str
"""The name of a side."""

READS = (Call.CPU_DATA, Call.GPU_DATA)
WRITES = (Call.MUTABLE_CPU_DATA, Call.MUTABLE_GPU_DATA)
ADOPTIONS = (Call.SET_CPU_DATA, Call.SET_GPU_DATA)
PUSHES: dict[Call, Side] = {Call.ASYNC_GPU_PUSH: "gpu"}
"""The calls that queue a copy, and where it goes; they take a stream."""
SIDES: dict[Call, Side] = {
    **dict.fromkeys((Call.CPU_DATA, Call.MUTABLE_CPU_DATA, Call.SET_CPU_DATA), "cpu"),
    **dict.fromkeys((Call.GPU_DATA, Call.MUTABLE_GPU_DATA, Call.SET_GPU_DATA), "gpu"),
}
"""The side of a call; a push and a release concern both sides."""
FRESH: Mapping[SyncedHead, tuple[str, ...]] = {
    SyncedHead[head.name]: head.fresh for head in caffe.EVERYTHING.heads.values()
}
"""The sides that are fresh, as each head says."""
HEADS: Mapping[frozenset[str], SyncedHead] = {frozenset(fresh): head for head, fresh in FRESH.items()}
"""The head that says that these sides are fresh."""
