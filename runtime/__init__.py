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

``blob`` holds `Blob`: ``shape`` has Caffe's rules about axes, counts and offsets and ``shaped`` asks them of an object,
``elements`` looks at a memory as numbers, ``pair`` has data and diff in one shape, ``arithmetic`` computes with them.

Blobs in messages and files: ``blob_schema`` declares Caffe's `BlobProto` and the rules by which it is read,
``blob_wire`` reads and writes it over ``wire_format``, ``blob_proto`` has it as protobuf messages.  ``caffemodel``,
``binaryproto`` and ``array_files`` are kinds of files, read through ``byte_source`` and written by ``replacement``.

CuPy is imported in ``cuda`` only, PyOpenCL in ``opencl`` only and protobuf in ``blob_proto`` only, all when asked for.
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
from .array_files import load_npy, load_npz, save_npy, save_npz
from .binaryproto import load_binaryproto, save_binaryproto
from .blob import Blob
from .blob_proto import read_proto, shape_equals, write_proto
from .blob_schema import BlobContents
from .buffer import Buffer
from .caffemodel import load_caffemodel
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
    "Vectors",
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
    "vectors_of",
    "write_proto",
]
