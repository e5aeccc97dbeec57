"""Seeded bugs: wrong blobs that the kit must refuse, at least one for every requirement.

Each is `syncedmem.spec.ReferenceBlob` with one step done wrong, labelled with the requirement it breaks and with where
the bug comes from: a line of Caffe, an issue, a hazard of it, or what a port is likely to get wrong.
"""

from __future__ import annotations

from ..registry import BLOB_BUGS

# Importing a module of seeded bugs registers them.
from . import arithmetic, memories, messages, shapes

__all__ = ["BLOB_BUGS", "arithmetic", "memories", "messages", "shapes"]
