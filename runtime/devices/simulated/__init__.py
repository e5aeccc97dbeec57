"""A simulated device: a second memory space inside this process, reached only through its allocator.

``allocator`` hands out memory, ``block`` and ``array`` are what is handed out, ``simulation`` is the device behind it
with its streams, and ``arithmetic`` computes with it.
"""

from .allocator import SimulatedDeviceAllocator
from .array import SimulatedArray
from .block import SimulatedDeviceError
from .simulation import SimulatedStream, using_device

ALLOCATOR = SimulatedDeviceAllocator
"""What the registry makes."""

__all__ = ["SimulatedArray", "SimulatedDeviceAllocator", "SimulatedDeviceError", "SimulatedStream", "using_device"]
