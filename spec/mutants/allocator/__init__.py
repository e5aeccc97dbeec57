"""Planted faults: wrong allocators that the fuzzer must catch, every run, within seconds.

Each is a correct pool (`Pool`, or KuiperLLama's as it should be, `CachingPool`) with one thing done wrong, labelled
with the property it breaks and with where such a fault was seen.
"""

from __future__ import annotations

# Importing a module of faults registers them.
from . import accounts, contents, kuiper, placement, refusals
from .caching import CachingPool
from .pool import Pool
from .registry import FAULTS, Fault

__all__ = ["FAULTS", "CachingPool", "Fault", "Pool", "accounts", "contents", "kuiper", "placement", "refusals"]
