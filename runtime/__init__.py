"""What moves bytes: memory, allocators, devices.

``memory`` holds `SyncedMemory`, ``performer`` how its calls are performed, ``bindings`` what the declared
actions do to real memory, ``flight`` the copies that were queued, and ``failures`` what becomes of errors.
``allocator`` is the interface to memory, with the rules of ``pointers``; ``host``, ``simulated`` (over
``simulation``, ``simulated_block`` and ``simulated_array``), ``opencl`` and ``cuda`` implement it, ``devices`` finds
them by name, and ``factories`` by class.  ``adaptor`` is the base of allocators over another one, which are in
``adaptors``; ``pool``, with its ``idle_blocks``, is one too.  ``buffer`` is memory of one allocator with an owner.
``interop`` adapts the allocators of other libraries.
``vectors`` is arithmetic on any of them, implemented in ``host_vectors`` (with the threads of ``workers``),
``simulated_vectors``, ``opencl_vectors`` and ``cuda_vectors``.

CuPy is imported in ``cuda`` only and PyOpenCL in ``opencl`` only, both when asked for.
"""

from .adaptor import Adaptor
from .adaptors import (
    Allocation,
    FailingAllocator,
    GuardingAllocator,
    LimitingAllocator,
    LoggingAllocator,
    Statistics,
    StatisticsAllocator,
    ThreadSafeAllocator,
    TrackingAllocator,
)
from .allocator import DeviceAllocator, DeviceType, Event, MemcpyKind
from .buffer import Buffer
from .devices import DEVICE_NAMES, DeviceReport, named_device, probe
from .factories import (
    CPUDeviceAllocatorFactory,
    CUDADeviceAllocatorFactory,
    OpenCLDeviceAllocatorFactory,
    SimulatedDeviceAllocatorFactory,
)
from .host import CPUDeviceAllocator
from .memory import SyncedMemory
from .pool import PoolAllocator
from .simulated import SimulatedArray, SimulatedDeviceAllocator
from .simulated_block import SimulatedDeviceError
from .simulation import SimulatedStream, using_device
from .vectors import Vectors, vectors_of

__all__ = [
    "DEVICE_NAMES",
    "Adaptor",
    "Allocation",
    "Buffer",
    "CPUDeviceAllocator",
    "CPUDeviceAllocatorFactory",
    "CUDADeviceAllocatorFactory",
    "DeviceAllocator",
    "DeviceReport",
    "DeviceType",
    "Event",
    "FailingAllocator",
    "GuardingAllocator",
    "LimitingAllocator",
    "LoggingAllocator",
    "MemcpyKind",
    "OpenCLDeviceAllocatorFactory",
    "PoolAllocator",
    "SimulatedArray",
    "SimulatedDeviceAllocator",
    "SimulatedDeviceAllocatorFactory",
    "SimulatedDeviceError",
    "SimulatedStream",
    "Statistics",
    "StatisticsAllocator",
    "SyncedMemory",
    "ThreadSafeAllocator",
    "TrackingAllocator",
    "Vectors",
    "named_device",
    "probe",
    "using_device",
    "vectors_of",
]
