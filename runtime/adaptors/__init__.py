"""Allocators over an allocator, to be stacked in any order: each does one thing, and passes the rest on.

``tracking`` knows what is out, ``limits`` how much may be, and ``counters`` how much was; ``log`` writes it down;
``injection`` fails on request; ``guards`` finds stray writes; ``locking`` lets one thread in at a time.
"""

from .counters import Statistics, StatisticsAllocator
from .guards import GuardingAllocator
from .injection import FailingAllocator
from .limits import LimitingAllocator
from .locking import ThreadSafeAllocator
from .log import LoggingAllocator
from .tracking import Allocation, TrackingAllocator

__all__ = [
    "Allocation",
    "FailingAllocator",
    "GuardingAllocator",
    "LimitingAllocator",
    "LoggingAllocator",
    "Statistics",
    "StatisticsAllocator",
    "ThreadSafeAllocator",
    "TrackingAllocator",
]
