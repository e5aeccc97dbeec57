"""The contracts of `syncedmem.runtime.Buffer` and of `syncedmem.runtime.DeviceAllocator`, as lists of checks.

``buffer`` and ``device_allocator`` have a function for each requirement, registered under its name.  They reach the
bytes of any allocator through ``place``.  The engine makes the checks and reports them (``engine.checklist``).
"""

from .buffer import buffer_requirements_for, check_buffer, check_buffers
from .device_allocator import AllocatorContract, check_allocator

__all__ = ["AllocatorContract", "buffer_requirements_for", "check_allocator", "check_buffer", "check_buffers"]
