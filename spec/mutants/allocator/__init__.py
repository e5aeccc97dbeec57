"""Seeded bugs: wrong allocators that the fuzzer must catch, every run, within seconds.

Each is a correct pool (`Pool`, or KuiperLLama's as it should be, `CachingPool`) with one thing done wrong, labelled
with the property it breaks and with where such a bug was seen.
"""

from __future__ import annotations

from ..registry import ALLOCATOR_BUGS

# Importing a module of seeded bugs registers them.
from . import accounts, contents, kuiper, placement, refusals
from .caching import CachingPool
from .pool import Pool

__all__ = ["ALLOCATOR_BUGS", "CachingPool", "Pool", "accounts", "contents", "kuiper", "placement", "refusals"]
