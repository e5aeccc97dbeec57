"""NVIDIA's cuda.core: ``cuda.core.MemoryResource``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .exporter import Exporter
from .foreign import allocator_over
from .packages import missing
from .source import Source, check_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["ExportedResource", "as_resource", "from_resource"]

try:
    core: Any = importlib.import_module("cuda.core")
except Exception as _error:
    raise missing("cuda.core", "cuda-core", _error) from _error


def from_resource(theirs: Any, *, stream: Any = None) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from a resource of cuda.core.

    The resource itself says where its memory is.  Memory that both host and device can read becomes host memory.

    Parameters
    ----------
    theirs : cuda.core.MemoryResource
    stream : cuda.core.Stream or None
        The stream for allocations and releases.  Resources of device memory need one.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no resource.
    NoDeviceError
        If there is no such device here, or CuPy is missing, which reaches it.
    """
    check_calls("theirs", theirs, ("allocate", "deallocate"), "a memory resource of cuda.core")

    def take(size: int) -> tuple[int, Callable[[], object]]:
        buffer = theirs.allocate(size, stream=stream)
        return int(buffer.handle), lambda: buffer.close(stream)

    device = None if theirs.is_host_accessible else int(theirs.device_id)
    return allocator_over(Source(f"cuda.core's {type(theirs).__name__}", take, _is_full), device)


def _is_full(error: Exception) -> bool:
    """Whether it is cuda.core's ``CUDAError`` for a full device.  It has no code; its message begins with the name."""
    return str(error).startswith(("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"))


def as_resource(allocator: object) -> ExportedResource:
    """A resource of cuda.core whose memory comes from a `DeviceAllocator`.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of host or CUDA memory.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    return ExportedResource(Exporter(allocator))


if TYPE_CHECKING:
    _Base = object  # of a library without types
else:
    _Base = core.MemoryResource


class ExportedResource(_Base):
    """Memory of a `DeviceAllocator`, for cuda.core; made by `as_resource`."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def allocate(self, size: int, *, stream: Any) -> Any:
        """A buffer of `size` bytes, which gives its memory back when it is closed or collected.

        Raises
        ------
        AllocationError
            If there is no room.
        """
        order = {"stream": stream} if self._exporter.on_device else {}
        address = self._exporter.allocate(size)
        try:
            return core.Buffer.from_handle(address, size, mr=self, **order)
        except BaseException:  # an interrupt too: nobody else knows the address
            self._exporter.give_back(address)
            raise

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        """Wait for the stream, or for the device if there is none, and give the memory back; errors are printed."""

        def wait(address: int) -> None:
            self._exporter.wait_for_device(address) if stream is None else stream.sync()

        self._exporter.give_back(int(ptr), size, wait)

    @property
    def is_device_accessible(self) -> bool:
        """Whether a kernel can read the memory."""
        return self._exporter.on_device

    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can read the memory."""
        return not self._exporter.on_device

    @property
    def is_managed(self) -> bool:
        """False: the memory does not move between host and device by itself."""
        return False

    @property
    def device_id(self) -> int:
        """The number of the CUDA device, or -1 for host memory."""
        return self._exporter.ordinal if self._exporter.on_device else -1
