"""KuiperLLama's factories: one shared allocator for each device, whoever asks for it.

They are another way to ask for what `named_device` and the ``device`` argument of a memory find by name: the same
objects, made once, in ``devices``.
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
    """KuiperLLama's ``CPUDeviceAllocatorFactory``."""

    @staticmethod
    def get_instance() -> CPUDeviceAllocator:
        """The allocator of host memory that everything shares."""
        return cpu_allocator()


class CUDADeviceAllocatorFactory:
    """KuiperLLama's ``CUDADeviceAllocatorFactory``, with an allocator for each GPU."""

    @staticmethod
    def get_instance(ordinal: int = 0) -> CUDADeviceAllocator:
        """The shared allocator of a GPU.

        Raises
        ------
        NoDeviceError, InvalidArgumentError
            If it is not here, or `ordinal` is no integer.
        """
        return cast("CUDADeviceAllocator", shared_device("cuda", ordinal))


class OpenCLDeviceAllocatorFactory:
    """The same for OpenCL."""

    @staticmethod
    def get_instance(ordinal: int = 0) -> OpenCLDeviceAllocator:
        """The shared allocator of an OpenCL device; errors as for CUDA."""
        return cast("OpenCLDeviceAllocator", shared_device("opencl", ordinal))


class SimulatedDeviceAllocatorFactory:
    """The same for simulated devices."""

    @staticmethod
    def get_instance(ordinal: int = 0) -> SimulatedDeviceAllocator:
        """The shared allocator of a simulated device; errors as for CUDA."""
        return cast("SimulatedDeviceAllocator", shared_device("simulated", ordinal))
