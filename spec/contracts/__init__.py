"""The contract of `syncedmem.runtime.DeviceAllocator`, as a list of checks.

``device_allocator`` has a function for each requirement, registered under its name.  It reaches the bytes of any
allocator through ``place``.  The engine makes the checks and reports them (``engine.checklist``).
"""

from .device_allocator import AllocatorContract, check_allocator

__all__ = ["AllocatorContract", "check_allocator"]
