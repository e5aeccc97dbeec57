"""Seeded bugs: wrong allocators that the fuzzer must catch in every run, within seconds.

Each is a correct pool (`Pool`, or `CachingPool`, a corrected pool of KuiperLLama's) with one mistake.  It is labelled
with the property that it breaks, and with the origin of the bug.
"""

from __future__ import annotations

from ..registry import ALLOCATOR_BUGS

# Importing a module of seeded bugs registers them.
from . import accounts, contents, envelope, kuiper, placement, refusals
from .caching import CachingPool
from .pool import Pool

__all__ = [
    "ALLOCATOR_BUGS",
    "CachingPool",
    "Pool",
    "accounts",
    "contents",
    "envelope",
    "kuiper",
    "placement",
    "refusals",
]
