"""KuiperLLama's factories: each returns the one allocator of a device that everybody shares.

`named_device` and the ``device`` argument of a memory find the same objects by name.  Each is made once, in
``registry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .host import cpu_allocator
from .registry import shared_device

if TYPE_CHECKING:
    from .cuda import CUDADeviceAllocator
    from .host import CPUDeviceAllocator
    from .opencl import OpenCLDeviceAllocator
    from .simulated.allocator import SimulatedDeviceAllocator

__all__ = [
    "CPUDeviceAllocatorFactory",
    "CUDADeviceAllocatorFactory",
    "OpenCLDeviceAllocatorFactory",
    "SimulatedDeviceAllocatorFactory",
]


class CPUDeviceAllocatorFactory:
    """KuiperLLama's ``CPUDeviceAllocatorFactory`` (kuiper/include/base/alloc.h)."""

    @staticmethod
    def get_instance() -> CPUDeviceAllocator:
        """The shared allocator of host memory."""
        return cpu_allocator()


class CUDADeviceAllocatorFactory:
    """KuiperLLama's ``CUDADeviceAllocatorFactory``, with one allocator for each GPU."""

    @staticmethod
    def get_instance(ordinal: int = 0) -> CUDADeviceAllocator:
        """The shared allocator of a GPU.

        Raises
        ------
        NoDeviceError, InvalidArgumentError
            If there is no such GPU here, or `ordinal` is no integer.
        """
        return cast("CUDADeviceAllocator", shared_device("cuda", ordinal))


class OpenCLDeviceAllocatorFactory:
    """The same as the factory for CUDA, for OpenCL."""

    @staticmethod
    def get_instance(ordinal: int = 0) -> OpenCLDeviceAllocator:
        """The shared allocator of an OpenCL device; the errors are those of the factory for CUDA."""
        return cast("OpenCLDeviceAllocator", shared_device("opencl", ordinal))


class SimulatedDeviceAllocatorFactory:
    """The same as the factory for CUDA, for simulated devices."""

    @staticmethod
    def get_instance(ordinal: int = 0) -> SimulatedDeviceAllocator:
        """The shared allocator of a simulated device; the errors are those of the factory for CUDA."""
        return cast("SimulatedDeviceAllocator", shared_device("simulated", ordinal))
