"""RAPIDS Memory Manager: ``rmm.mr.DeviceMemoryResource``."""

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

__all__ = ["as_resource", "from_resource"]

try:
    # Any: the types of RMM and of the other libraries here differ from release to release.
    mr: Any = importlib.import_module("rmm.mr")
    streams: Any = importlib.import_module("rmm.pylibrmm.stream")
except Exception as _error:
    raise missing("RMM", "rmm", _error) from _error

ALIGNMENT = 256
"""RMM's pools cut their memory into pieces of a multiple of this number of bytes, and promise that alignment."""


def from_resource(theirs: Any, *, device: int | None = 0, stream: Any = None) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from a resource of RMM.

    Parameters
    ----------
    theirs : rmm.mr.DeviceMemoryResource
        Or any object that has ``allocate`` and ``deallocate`` like it.
    device : int or None
        The CUDA device of the resource.  None: the host can read its memory (pinned, managed, or over a callback).
    stream : rmm.pylibrmm.stream.Stream or None
        The stream for allocations and releases; None is RMM's default stream.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no resource.
    NoDeviceError
        If there is no such device here.
    """
    check_calls("theirs", theirs, ("allocate", "deallocate"), "a memory resource of RMM")
    order = streams.DEFAULT_STREAM if stream is None else stream

    def take(size: int) -> tuple[int, Callable[[], object]]:
        address = theirs.allocate(size, order)
        return address, lambda: theirs.deallocate(address, size, order)

    return allocator_over(Source(f"RMM's {type(theirs).__name__}", take), device)


def as_resource(allocator: object) -> Any:
    """A resource of RMM whose memory comes from a `DeviceAllocator`.

    RMM's own resources accept it as their upstream.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory, or of host memory if only the host uses it.

    Returns
    -------
    rmm.mr.CallbackMemoryResource
        If there is no room, it raises a ``MemoryError``.  A deallocation waits for its stream and never raises: an
        error is printed.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    exporter = Exporter(allocator, alignment=ALIGNMENT)

    def allocate(size: int, stream: Any) -> int:  # noqa: ARG001 -- allocated memory is ready on every stream
        return exporter.allocate(size)

    def deallocate(address: int, size: int, stream: Any) -> None:
        exporter.give_back(address, size, lambda _: stream.synchronize())

    # The resource keeps both functions, and RMM's resources keep their upstream.
    return mr.CallbackMemoryResource(allocate, deallocate)
