"""What moves bytes: memory, allocators, devices.

``memory`` holds `SyncedMemory`, ``performer`` how its calls are performed, ``bindings`` what the declared
actions do to real memory, ``flight`` the copies that were queued, and ``failures`` what becomes of errors.
``allocator`` is the interface to memory, with the rules of ``pointers``; ``host``, ``simulated`` (over
``simulation``, ``simulated_block`` and ``simulated_array``), ``opencl`` and ``cuda`` implement it, and ``devices``
finds them by name.  ``buffer`` is memory of one allocator with an owner.  ``vectors`` is arithmetic on any of them,
implemented in ``host_vectors`` (with the threads of ``workers``), ``simulated_vectors``, ``opencl_vectors`` and
``cuda_vectors``.

CuPy is imported in ``cuda`` only and PyOpenCL in ``opencl`` only, both when asked for.
"""

from .allocator import DeviceAllocator, DeviceType, Event, MemcpyKind
from .buffer import Buffer
from .devices import DEVICE_NAMES, DeviceReport, named_device, probe
from .host import CPUDeviceAllocator
from .memory import SyncedMemory
from .simulated import SimulatedArray, SimulatedDeviceAllocator
from .simulated_block import SimulatedDeviceError
from .simulation import SimulatedStream, using_device
from .vectors import Vectors, vectors_of

__all__ = [
    "DEVICE_NAMES",
    "Buffer",
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
    "Vectors",
    "named_device",
    "probe",
    "using_device",
    "vectors_of",
]
