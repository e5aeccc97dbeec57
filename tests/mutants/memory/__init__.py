"""Seeded bugs: wrong memories that the kit must refuse, at least one for every requirement.

Each is the handmade memory with one wrong step.  It is labelled with the requirement that it breaks, and with
the origin of the bug: a line of Caffe that somebody miscopied or misread, a real issue, an old version of Caffe,
or another system that does it so.  They test the kit.
"""

from __future__ import annotations

from ..registry import MEMORY_BUGS

# Importing a module of seeded bugs registers them.
from . import adoption, copies, devices, edges, failures, flights, lifetimes, ownership, streams

__all__ = [
    "MEMORY_BUGS",
    "adoption",
    "copies",
    "devices",
    "edges",
    "failures",
    "flights",
    "lifetimes",
    "ownership",
    "streams",
]
