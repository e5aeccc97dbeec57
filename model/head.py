"""`SyncedHead`: the heads of Caffe's machine as an enumeration, for memories and their users."""

from __future__ import annotations

import enum

from .spelling import Spelled

__all__ = ["SyncedHead"]


class SyncedHead(Spelled, enum.Enum):
    """Which copy of the buffer is fresh; Caffe's ``SyncedMemory::SyncedHead`` (syncedmem.hpp:68)."""

    UNINITIALIZED = 0
    HEAD_AT_CPU = 1
    HEAD_AT_GPU = 2
    SYNCED = 3
