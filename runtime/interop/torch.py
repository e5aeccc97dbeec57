"""PyTorch's pluggable allocators: two C functions of a shared library.  PyTorch itself is not needed.

.. code-block:: c

    void *alloc(ssize_t size, int device, cudaStream_t stream);
    void free(void *ptr, ssize_t size, int device, cudaStream_t stream);
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from .exporter import Exporter
from .foreign import allocator_over
from .native import CFunctions, foreign_function, name_of, or_null, shared_library
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator
    from .native import Library

__all__ = ["as_resource", "from_resource"]

_ALLOCATE = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_DEALLOCATE = (None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)


def from_resource(
    library: Library, allocate: str = "alloc", deallocate: str = "free", *, device: int | None = 0, stream: int = 0
) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from a library made for PyTorch.

    Parameters
    ----------
    library : str, path or ctypes.CDLL
    allocate, deallocate : str
        The names of its two functions.
    device : int or None
        The CUDA device of the memory.  None for memory that the host can read; then the functions get device 0.
    stream : int
        The address of the stream for allocations and releases; 0 is CUDA's default stream.

    Raises
    ------
    InvalidArgumentError
        If the library cannot be loaded, or lacks a function.
    NoDeviceError
        If there is no such device here.
    """
    loaded = shared_library(library)
    take_from, give_to = (
        foreign_function(loaded, allocate, *_ALLOCATE),
        foreign_function(loaded, deallocate, *_DEALLOCATE),
    )
    ordinal = 0 if device is None else device

    def take(size: int) -> tuple[int, Callable[[], object]]:
        address = take_from(size, ordinal, stream)
        return address, lambda: give_to(address, size, ordinal, stream)

    return allocator_over(Source(f"{allocate}() of {name_of(loaded)}", take), device)


def as_resource(allocator: object) -> CFunctions:
    """Two functions with PyTorch's signatures whose memory comes from a `DeviceAllocator`.

    The functions and the allocator are kept until the process ends.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory, or of host memory if only the host uses it.

    Returns
    -------
    CFunctions
        ``allocate`` returns a null pointer if there is no room, or if the device is not the allocator's.
        ``deallocate`` waits for the stream if it is device memory.  If a block cannot be given back, the error is
        printed.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    exporter = Exporter(allocator)

    def allocate(size: int, device: int, _stream: int | None) -> int:
        if exporter.on_device and device != exporter.ordinal:
            return 0
        return exporter.allocate(size)

    def deallocate(address: int | None, size: int, _device: int, stream: int | None) -> None:
        exporter.give_back(address or 0, size, lambda _: _wait_for(stream or 0))

    return CFunctions(ctypes.CFUNCTYPE(*_ALLOCATE)(or_null(allocate)), ctypes.CFUNCTYPE(*_DEALLOCATE)(deallocate))


def _wait_for(stream: int) -> None:
    """Wait for a stream, given by its address; only called for device memory, so CuPy is installed."""
    from ..devices.cuda import cupy  # noqa: PLC0415 -- CuPy is needed only for device memory

    cupy.cuda.runtime.streamSynchronize(stream)
