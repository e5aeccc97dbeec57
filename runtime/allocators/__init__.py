"""The base class of all allocators, the checks that they share, and allocators over another allocator.

``base`` has `DeviceAllocator`.  ``pointers`` checks sizes and pointers, ``failures`` translates errors,
and ``arithmetic`` has what an allocator can compute.

``adaptor`` is the base class of allocators over another allocator.  They can be stacked in any order: each does one
thing and passes everything else on.  ``tracking`` knows which blocks are allocated, ``limits`` limits their bytes,
and ``counters`` counts them.  ``injection`` fails on request, ``guards`` finds stray writes, and
``locking`` lets one thread in at a time.  ``pool`` keeps released blocks for later requests; ``idle_blocks`` are the
blocks that it keeps.
"""

from .adaptor import Adaptor
from .counters import Statistics, StatisticsAllocator
from .guards import GuardingAllocator
from .injection import FailingAllocator
from .limits import LimitingAllocator
from .locking import ThreadSafeAllocator
from .pool import PoolAllocator
from .tracking import Allocation, TrackingAllocator

__all__ = [
    "Adaptor",
    "Allocation",
    "FailingAllocator",
    "GuardingAllocator",
    "LimitingAllocator",
    "PoolAllocator",
    "Statistics",
    "StatisticsAllocator",
    "ThreadSafeAllocator",
    "TrackingAllocator",
]
