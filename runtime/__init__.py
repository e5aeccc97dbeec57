"""What moves bytes: memory, allocators, devices.

``memory`` holds `SyncedMemory`, ``performer`` how its calls are performed, ``bindings`` what the declared
actions do to real memory, ``flight`` the copies that were queued, and ``failures`` what becomes of errors.
``allocator`` is the interface to memory, with the rules of ``pointers``; ``host``, ``simulated`` (over
``simulation``, ``simulated_block`` and ``simulated_array``), ``opencl`` and ``cuda`` implement it, and ``devices``
finds them by name.  ``buffer`` is memory of one allocator with an owner.

Blobs in messages and files: ``blob_schema`` declares Caffe's `BlobProto` and the rules by which it is read,
``blob_wire`` reads and writes it over ``wire_format``, ``blob_proto`` has it as protobuf messages.  ``caffemodel``,
``binaryproto`` and ``array_files`` are kinds of files, read through ``byte_source`` and written by ``replacement``.

CuPy is imported in ``cuda`` only, PyOpenCL in ``opencl`` only and protobuf in ``blob_proto`` only, all when asked for.
"""

from .allocator import DeviceAllocator, DeviceType, Event, MemcpyKind
from .array_files import load_npy, load_npz, save_npy, save_npz
from .binaryproto import load_binaryproto, save_binaryproto
from .blob_proto import read_proto, shape_equals, write_proto
from .blob_schema import BlobContents
from .buffer import Buffer
from .caffemodel import load_caffemodel
from .devices import DEVICE_NAMES, DeviceReport, named_device, probe
from .host import CPUDeviceAllocator
from .memory import SyncedMemory
from .simulated import SimulatedArray, SimulatedDeviceAllocator
from .simulated_block import SimulatedDeviceError
from .simulation import SimulatedStream, using_device

__all__ = [
    "DEVICE_NAMES",
    "BlobContents",
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
