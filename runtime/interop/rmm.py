"""RAPIDS Memory Manager: ``rmm.mr.DeviceMemoryResource``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .foreign import allocator_over
from .lender import Lender
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
except ImportError as _error:
    raise missing("RMM", "rmm", _error) from _error

ALIGNMENT = 256
"""RMM's pools cut what they get into pieces of a multiple of this, and promise it."""


def from_resource(theirs: Any, *, device: int | None = 0, stream: Any = None) -> DeviceAllocator:
    """An allocator of ours whose memory comes from a resource of RMM.

    Parameters
    ----------
    theirs : rmm.mr.DeviceMemoryResource
        Or anything with its ``allocate`` and ``deallocate``.
    device : int or None
        The CUDA device of the resource.  None: the host can read its memory (pinned, managed, or over a callback).
    stream : rmm.pylibrmm.stream.Stream or None
        Where memory is taken and given back; None is RMM's default stream.

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
    """A resource of RMM whose memory comes from an allocator of ours.

    RMM's own resources take it as their upstream.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory, or of the host's where only the host looks at it.

    Returns
    -------
    rmm.mr.CallbackMemoryResource
        Out of memory is a ``MemoryError``.  A deallocation waits for its stream, and never raises: what is wrong with
        it is printed.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    lender = Lender(allocator, alignment=ALIGNMENT)

    def allocate(size: int, stream: Any) -> int:  # noqa: ARG001 -- what is allocated is ready on every stream
        return lender.allocate(size)

    def deallocate(address: int, size: int, stream: Any) -> None:
        lender.give_back(address, size, lambda _: stream.synchronize())

    # The resource keeps both, and RMM's resources keep their upstream.
    return mr.CallbackMemoryResource(allocate, deallocate)
