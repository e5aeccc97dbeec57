"""What moves bytes: memory, allocators, devices.

``memory`` holds `SyncedMemory`, ``performer`` how its calls are performed, ``bindings`` what the declared
actions do to real memory, ``owned`` the blocks behind it, ``flight`` the copies that were queued, and ``failures``
what becomes of errors.
``allocator`` is the interface to memory, with the rules of ``pointers``; ``host``, ``simulated`` (over
``simulation``, ``simulated_block`` and ``simulated_array``), ``opencl`` and ``cuda`` implement it, ``devices`` finds
them by name, and ``factories`` by class.  ``adaptor`` is the base of allocators over another one, which are in
``adaptors``; ``pool``, with its ``idle_blocks``, is one too.  ``buffer`` is memory of one allocator with an owner.

Four rooms stand on these.  ``blobs`` has `Blob`, and the messages and files blobs are kept in.
``arithmetic`` computes with the memory of any device.  ``adaptors`` do one thing each over an allocator, and
``interop`` adapts the allocators of other libraries.

CuPy is imported in ``cuda`` only, PyOpenCL in ``opencl`` only and protobuf in ``blobs.messages`` only, all when asked
for.
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
from .arithmetic import Arithmetic, arithmetic_of
from .blobs.array_files import load_npy, load_npz, save_npy, save_npz
from .blobs.binaryproto import load_binaryproto, save_binaryproto
from .blobs.blob import Blob
from .blobs.caffemodel import load_caffemodel
from .blobs.contents import BlobContents
from .blobs.messages import read_proto, shape_equals, write_proto
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

__all__ = [
    "DEVICE_NAMES",
    "Adaptor",
    "Allocation",
    "Arithmetic",
    "Blob",
    "BlobContents",
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
    "arithmetic_of",
    "load_binaryproto",
    "load_caffemodel",
    "load_npy",
    "load_npz",
    "named_device",
    "probe",
    "read_proto",
    "save_binaryproto",
    "save_npy",
    "save_npz",
    "shape_equals",
    "using_device",
    "write_proto",
]
