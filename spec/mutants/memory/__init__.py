"""Seeded bugs: wrong memories that the kit must refuse, at least one for every requirement.

Each is the reference memory with one step done wrong, labelled with the requirement it breaks and with
where the bug comes from: a line of Caffe that somebody miscopied or misread, a real issue, a state of Caffe's
own history, or a system that does it so.  They test the kit, and people who write a driver for a port can test
that with them.
"""

from __future__ import annotations

from ..registry import MEMORY_BUGS

# Importing a module of seeded bugs registers them.
from . import adoption, copies, devices, edges, failures, flights, lifetimes, ownership

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
]
