"""A simulated device: a second memory space inside this process, which can be reached only through its allocator.

``allocator`` allocates memory.  ``block`` is a piece of memory, and ``array`` shows it to users.  ``simulation`` is the
device with its streams, and ``arithmetic`` computes on it.  Bytes are copied in three places: `memcpy` of the
allocator, and `get` and `set` of arrays.
"""

from .allocator import SimulatedDeviceAllocator
from .array import SimulatedArray
from .block import SimulatedDeviceError
from .simulation import SimulatedStream, using_device

ALLOCATOR = SimulatedDeviceAllocator
"""The class that the registry looks for."""

__all__ = ["SimulatedArray", "SimulatedDeviceAllocator", "SimulatedDeviceError", "SimulatedStream", "using_device"]
