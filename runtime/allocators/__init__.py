"""The base of every allocator, what all of them check, and allocators over an allocator.

``base`` has `DeviceAllocator`, ``pointers`` what is checked of sizes and pointers, ``failures`` what becomes of errors,
``handover`` how a block changes hands whatever interrupts it, and ``arithmetic`` what an allocator computes.

``adaptor`` is the base of allocators over another one, to be stacked in any order: each does one thing, and passes the
rest on.  ``tracking`` knows what is out, ``limits`` how much may be, and ``counters`` how much was; ``log`` writes it
down; ``injection`` fails on request; ``guards`` finds stray writes; ``locking`` lets one thread in at a time.
``pool``, with its ``idle_blocks``, keeps what was released.
"""

from .adaptor import Adaptor
from .counters import Statistics, StatisticsAllocator
from .guards import GuardingAllocator
from .injection import FailingAllocator
from .limits import LimitingAllocator
from .locking import ThreadSafeAllocator
from .log import LoggingAllocator
from .pool import PoolAllocator
from .tracking import Allocation, TrackingAllocator

__all__ = [
    "Adaptor",
    "Allocation",
    "FailingAllocator",
    "GuardingAllocator",
    "LimitingAllocator",
    "LoggingAllocator",
    "PoolAllocator",
    "Statistics",
    "StatisticsAllocator",
    "ThreadSafeAllocator",
    "TrackingAllocator",
]
