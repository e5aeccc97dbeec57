"""Planted faults: wrong blobs that the kit must refuse, at least one for every requirement.

Each is `syncedmem.spec.BlobPort` with one step done wrong, labelled with the requirement it breaks and with where the
fault comes from: a seed text, an issue, a hazard of Caffe, or what a port is likely to get wrong.
"""

from __future__ import annotations

# Importing a module of faults registers them.
from . import arithmetic, memories, messages, shapes
from .registry import BLOB_FAULTS

__all__ = ["BLOB_FAULTS", "arithmetic", "memories", "messages", "shapes"]
