"""CuPy: its allocators are functions from a size to a ``MemoryPointer``, which gives its memory back at its end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError, WrongDeviceError

from ..devices.cuda import cupy, is_full  # raises NoDeviceError if CuPy is not installed
from .exporter import Exporter
from .foreign import allocator_over
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["as_function_allocator", "as_pinned_resource", "as_resource", "from_resource"]


def from_resource(theirs: Any, *, device: int | None = 0) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from an allocator of CuPy.

    Parameters
    ----------
    theirs : callable or object with ``malloc``
        For example ``cupy.cuda.MemoryPool()``, its ``malloc``, or ``cupy.cuda.alloc_pinned_memory``.
    device : int or None
        The CUDA device of the memory; None for host memory, such as pinned memory.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is no such function or object.
    NoDeviceError
        If there is no such device here.
    """
    malloc = getattr(theirs, "malloc", theirs)
    if isinstance(theirs, type) or not callable(malloc):
        raise InvalidArgumentError("theirs", theirs, "an allocator of CuPy: a function of a size, or a pool")

    def take(size: int) -> tuple[int, Callable[[], object]]:
        pointers: list[Any] = [malloc(size)]
        return pointers[0].ptr, pointers.clear  # the memory goes back when the list no longer keeps the pointer

    return allocator_over(Source("CuPy's allocator", take, is_full), device)


def as_resource(allocator: object) -> Callable[[int], Any]:
    """An allocator of CuPy whose memory comes from a `DeviceAllocator`, for ``cupy.cuda.set_allocator``.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory; one of host memory works too, for tests.

    Returns
    -------
    callable
        It takes a size in bytes, and returns a ``cupy.cuda.MemoryPointer`` over ``cupy.cuda.UnownedMemory``.  It raises
        a ``WrongDeviceError`` if the current device is not the allocator's.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.

    Notes
    -----
    CuPy gives memory back while kernels may still use it.  So before anybody else gets the memory, all work must be
    over that was queued on two streams until then: the stream that was current when the memory was taken, and the one
    that is current when it is given back.  A `PoolAllocator` keeps the block until this work is over; with any other
    allocator the host waits.  Work on a third stream must be over already, as with CuPy's own pool.
    """
    exporter = Exporter(allocator)

    def allocate(size: int) -> Any:
        if exporter.on_device and (current := cupy.cuda.runtime.getDevice()) != exporter.ordinal:
            raise WrongDeviceError("allocate", exporter.ordinal, current)
        block = exporter.export(size, _after_work(exporter))
        # The device is passed, because CUDA cannot tell it from the null pointer of a block of zero bytes.
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.ptr, size, block, exporter.ordinal), 0)

    return allocate


def _after_work(exporter: Exporter) -> Callable[[int], None] | None:
    """A function that waits for the work on memory that is taken now; None for host memory.

    It is called when the memory is given back, with its address.
    """
    if not exporter.on_device:
        return None
    taken_on, taken_by = cupy.cuda.get_current_stream(exporter.ordinal), threading.current_thread()

    def wait(address: int) -> None:
        device = exporter.allocator
        if taken_on.ptr == cupy.cuda.Stream.ptds.ptr and taken_by is not threading.current_thread():
            # A per-thread stream: its name means the stream of the calling thread, and another thread took the memory.
            exporter.wait_for_device(address)
            return
        given_on = cupy.cuda.get_current_stream(exporter.ordinal)
        events = [device.record(stream) for stream in {stream.ptr: stream for stream in (taken_on, given_on)}.values()]
        hold = getattr(device, "hold", None)
        for event in events:
            if hold is None:
                event.synchronize()
            else:
                hold(exporter.array_at(address), event)

    return wait


def as_pinned_resource(allocator: object) -> Callable[[int], Any]:
    """An allocator of CuPy for ``cupy.cuda.set_pinned_memory_allocator``; its memory comes from a `DeviceAllocator`.

    Returns
    -------
    callable
        It takes a size in bytes, and returns a ``cupy.cuda.PinnedMemoryPointer``.

    Raises
    ------
    InvalidArgumentError
        If `allocator` is not an allocator of host memory.
    """
    exporter = Exporter(allocator, host_only=True)

    def allocate(size: int) -> Any:
        return cupy.cuda.PinnedMemoryPointer(exporter.export(size), 0)

    return allocate


def as_function_allocator(allocator: object) -> Any:
    """A ``cupy.cuda.PythonFunctionAllocator``, whose ``malloc`` is an allocator of CuPy.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    return cupy.cuda.PythonFunctionAllocator(*_functions(Exporter(allocator)))


def _functions(exporter: Exporter) -> tuple[Callable[[int, int], int], Callable[[int, int], None]]:
    """The ``malloc`` and ``free`` of a ``PythonFunctionAllocator``."""
    # By address: the function to call before the memory is given back.
    waits: dict[int, Callable[[int], None] | None] = {}

    def malloc(size: int, device: int) -> int:
        if exporter.on_device and device != exporter.ordinal:
            raise InvalidArgumentError("device", device, f"{exporter.ordinal}, where the memory is")
        wait, address = _after_work(exporter), exporter.allocate(size)
        waits[address] = wait
        return address

    def free(address: int, device: int) -> None:  # noqa: ARG001 -- CuPy's signature
        exporter.give_back(address, wait=waits.pop(address, None))

    return malloc, free
