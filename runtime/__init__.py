"""The code that moves bytes, in rooms; each room imports only those after it in this list.

``blobs`` has `Blob`, and its messages and files.  ``buffer`` has `Buffer`, which is memory of one allocator with an
owner.  ``memory`` has `SyncedMemory`.  ``interop`` connects allocators of other libraries with ours.  ``devices`` has
the memory and the arithmetic of each device.  ``allocators`` has their base class, the adaptors and the pool.

CuPy is imported only in ``devices.cuda``, PyOpenCL only in ``devices.opencl``, and protobuf only in ``blobs.messages``;
each only when it is needed.
"""

from syncedmem.model.interface import DeviceType, Event, MemcpyKind

from . import allocators
from .allocators import *  # noqa: F403 -- every adaptor is public, and their room lists them
from .allocators.arithmetic import Arithmetic, arithmetic_of
from .allocators.base import DeviceAllocator
from .blobs.array_files import load_npy, load_npz, save_npy, save_npz
from .blobs.binaryproto import load_binaryproto, save_binaryproto
from .blobs.blob import Blob
from .blobs.caffemodel import load_caffemodel
from .blobs.contents import BlobContents
from .blobs.messages import read_proto, shape_equals, write_proto
from .devices.host import CPUDeviceAllocator
from .devices.registry import DEVICE_NAMES, DeviceReport, named_device, probe
from .devices.simulated.allocator import SimulatedArray, SimulatedDeviceAllocator
from .devices.simulated.block import SimulatedDeviceError
from .devices.simulated.simulation import SimulatedStream, using_device
from .memory.buffer import Buffer
from .memory.copies import Copies, Copy, CopyLog, copies, no_copies
from .memory.synced_memory import SyncedMemory

__all__: list[str] = [
    "DEVICE_NAMES",
    "Arithmetic",
    "Blob",
    "BlobContents",
    "Buffer",
    "CPUDeviceAllocator",
    "Copies",
    "Copy",
    "CopyLog",
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
    "arithmetic_of",
    "copies",
    "load_binaryproto",
    "load_caffemodel",
    "load_npy",
    "load_npz",
    "named_device",
    "no_copies",
    "probe",
    "read_proto",
    "save_binaryproto",
    "save_npy",
    "save_npz",
    "shape_equals",
    "using_device",
    "write_proto",
]
__all__ += allocators.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
