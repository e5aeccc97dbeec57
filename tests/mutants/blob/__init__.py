"""Seeded bugs: wrong blobs that the kit must refuse, at least one for every requirement.

Each is the handmade blob with one wrong step.  It is labelled with the requirement that it breaks, and
with the origin of the bug: a line of Caffe, an issue, a hazard, or a likely mistake of a port.
"""

from __future__ import annotations

from ..registry import BLOB_BUGS

# Importing a module of seeded bugs registers them.
from . import arithmetic, memories, messages, shapes

__all__ = ["BLOB_BUGS", "arithmetic", "memories", "messages", "shapes"]
