"""Host/device mirrored memory as Caffe defined it, declared once and checked against an independent spec.

General layout: ``syncedmem.model`` declares the head machine and computes everything from it,
``syncedmem.runtime`` binds it to real memory, ``syncedmem.spec`` checks any implementation against
requirements that read neither.  This front door loads none of them until a name is used.
"""

from __future__ import annotations

from importlib import import_module
from os.path import dirname, isdir
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import (
        AllocationError,
        BufferMismatchError,
        ClosedAllocatorError,
        ClosedMemoryError,
        DeviceError,
        FileAccessError,
        FileFormatError,
        IllegalCallError,
        InvalidArgumentError,
        InvalidExportError,
        InvalidIndexError,
        InvalidPointerError,
        InvalidShapeError,
        InvalidSizeError,
        InvalidValueError,
        MemoryCorruptionError,
        MissingPackageError,
        MissingProgramError,
        Mode,
        NoArithmeticError,
        NoDeviceError,
        NoScopeError,
        NotCopyableError,
        ReentrantCallError,
        ReleaseError,
        SyncedHead,
        SyncedMemoryError,
        WrongDeviceError,
        current_mode,
        set_mode,
        using_mode,
    )
    from .runtime import (
        Adaptor,
        Blob,
        Buffer,
        CPUDeviceAllocator,
        CPUDeviceAllocatorFactory,
        CUDADeviceAllocatorFactory,
        DeviceAllocator,
        DeviceType,
        FailingAllocator,
        GuardingAllocator,
        LimitingAllocator,
        LoggingAllocator,
        MemcpyKind,
        OpenCLDeviceAllocatorFactory,
        PoolAllocator,
        SimulatedArray,
        SimulatedDeviceAllocator,
        SimulatedDeviceAllocatorFactory,
        SimulatedDeviceError,
        StatisticsAllocator,
        SyncedMemory,
        ThreadSafeAllocator,
        TrackingAllocator,
        load_binaryproto,
        load_caffemodel,
        load_npy,
        load_npz,
        named_device,
        save_binaryproto,
        save_npy,
        save_npz,
    )
    from .spec import (
        Subject,
        check_blobs,
        check_conformance,
    )

__version__ = "0.1.0"

__all__ = [
    "Adaptor",
    "AllocationError",
    "Blob",
    "Buffer",
    "BufferMismatchError",
    "CPUDeviceAllocator",
    "CPUDeviceAllocatorFactory",
    "CUDADeviceAllocatorFactory",
    "ClosedAllocatorError",
    "ClosedMemoryError",
    "DeviceAllocator",
    "DeviceError",
    "DeviceType",
    "FailingAllocator",
    "FileAccessError",
    "FileFormatError",
    "GuardingAllocator",
    "IllegalCallError",
    "InvalidArgumentError",
    "InvalidExportError",
    "InvalidIndexError",
    "InvalidPointerError",
    "InvalidShapeError",
    "InvalidSizeError",
    "InvalidValueError",
    "LimitingAllocator",
    "LoggingAllocator",
    "MemcpyKind",
    "MemoryCorruptionError",
    "MissingPackageError",
    "MissingProgramError",
    "Mode",
    "NoArithmeticError",
    "NoDeviceError",
    "NoScopeError",
    "NotCopyableError",
    "OpenCLDeviceAllocatorFactory",
    "PoolAllocator",
    "ReentrantCallError",
    "ReleaseError",
    "SimulatedArray",
    "SimulatedDeviceAllocator",
    "SimulatedDeviceAllocatorFactory",
    "SimulatedDeviceError",
    "StatisticsAllocator",
    "Subject",
    "SyncedHead",
    "SyncedMemory",
    "SyncedMemoryError",
    "ThreadSafeAllocator",
    "TrackingAllocator",
    "WrongDeviceError",
    "__version__",
    "check_blobs",
    "check_conformance",
    "current_mode",
    "load_binaryproto",
    "load_caffemodel",
    "load_npy",
    "load_npz",
    "named_device",
    "save_binaryproto",
    "save_npy",
    "save_npz",
    "set_mode",
    "using_mode",
]

_ROOMS = {
    "Adaptor": "runtime",
    "AllocationError": "model",
    "Subject": "spec",
    "Blob": "runtime",
    "Buffer": "runtime",
    "BufferMismatchError": "model",
    "CPUDeviceAllocator": "runtime",
    "CPUDeviceAllocatorFactory": "runtime",
    "CUDADeviceAllocatorFactory": "runtime",
    "ClosedAllocatorError": "model",
    "ClosedMemoryError": "model",
    "DeviceAllocator": "runtime",
    "DeviceError": "model",
    "DeviceType": "runtime",
    "FailingAllocator": "runtime",
    "FileAccessError": "model",
    "FileFormatError": "model",
    "GuardingAllocator": "runtime",
    "IllegalCallError": "model",
    "InvalidArgumentError": "model",
    "InvalidExportError": "model",
    "InvalidIndexError": "model",
    "InvalidPointerError": "model",
    "InvalidShapeError": "model",
    "InvalidSizeError": "model",
    "InvalidValueError": "model",
    "LimitingAllocator": "runtime",
    "LoggingAllocator": "runtime",
    "MemcpyKind": "runtime",
    "MemoryCorruptionError": "model",
    "MissingPackageError": "model",
    "MissingProgramError": "model",
    "Mode": "model",
    "NoArithmeticError": "model",
    "NoDeviceError": "model",
    "NoScopeError": "model",
    "NotCopyableError": "model",
    "OpenCLDeviceAllocatorFactory": "runtime",
    "PoolAllocator": "runtime",
    "ReentrantCallError": "model",
    "ReleaseError": "model",
    "SimulatedArray": "runtime",
    "SimulatedDeviceAllocator": "runtime",
    "SimulatedDeviceAllocatorFactory": "runtime",
    "SimulatedDeviceError": "runtime",
    "StatisticsAllocator": "runtime",
    "SyncedHead": "model",
    "SyncedMemory": "runtime",
    "SyncedMemoryError": "model",
    "ThreadSafeAllocator": "runtime",
    "TrackingAllocator": "runtime",
    "WrongDeviceError": "model",
    "check_blobs": "spec",
    "check_conformance": "spec",
    "current_mode": "model",
    "load_binaryproto": "runtime",
    "load_caffemodel": "runtime",
    "load_npy": "runtime",
    "load_npz": "runtime",
    "named_device": "runtime",
    "save_binaryproto": "runtime",
    "save_npy": "runtime",
    "save_npz": "runtime",
    "set_mode": "model",
    "using_mode": "model",
}


def _require_rooms(package: str) -> None:
    """Stop where a checkout without links has text files in place of the rooms."""
    for room in ("model", "runtime", "spec"):
        folder = f"{package}/{room}"
        if not isdir(folder):  # noqa: PTH112 -- pathlib takes longer to import than all the rest here
            raise ImportError(
                f"{folder} should be a link to the folder {room} at the top of the checkout, which was made "
                "without links: run 'git config core.symlinks true' and 'git checkout -- src/syncedmem'"
            )


_require_rooms(dirname(__file__))  # noqa: PTH120 -- as above


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
