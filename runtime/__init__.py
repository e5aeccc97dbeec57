"""What moves bytes: memory, allocators, devices.

``memory`` holds `SyncedMemory`, ``performer`` how its calls are performed, ``bindings`` what the declared
actions do to real memory.  ``allocator`` is the interface to memory, with the rules of ``pointers``; ``host``,
``simulated`` (over ``simulation`` and ``simulated_array``), ``opencl`` and ``cuda`` implement it, and ``devices``
finds them by name.  CuPy is imported in ``cuda`` only and PyOpenCL in ``opencl`` only, both when asked for.
"""

from .allocator import DeviceAllocator, DeviceType, Event, MemcpyKind
from .devices import DEVICE_NAMES, DeviceReport, named_device, probe
from .host import CPUDeviceAllocator
from .memory import SyncedMemory
from .simulated import SimulatedArray, SimulatedDeviceAllocator
from .simulation import SimulatedDeviceError, SimulatedStream, using_device

__all__ = [
    "DEVICE_NAMES",
    "CPUDeviceAllocator",
    "DeviceAllocator",
    "DeviceReport",
    "DeviceType",
    "Event",
    "MemcpyKind",
    "SimulatedArray",
    "SimulatedDeviceAllocator",
    "SimulatedDeviceError",
    "SimulatedStream",
    "SyncedMemory",
    "named_device",
    "probe",
    "using_device",
]
