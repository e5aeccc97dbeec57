"""CuPy: an allocator is a function from a size to a ``MemoryPointer``, which gives its memory back when it goes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError, WrongDeviceError

from ..devices.cuda import cupy, is_full  # raises NoDeviceError where there is no CuPy
from .foreign import allocator_over
from .lender import Lender
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocators.base import DeviceAllocator

__all__ = ["as_function_allocator", "as_pinned_resource", "as_resource", "from_resource"]


def from_resource(theirs: Any, *, device: int | None = 0) -> DeviceAllocator:
    """An allocator of ours whose memory comes from an allocator of CuPy.

    Parameters
    ----------
    theirs : callable or object with ``malloc``
        ``cupy.cuda.MemoryPool()``, its ``malloc``, ``cupy.cuda.alloc_pinned_memory`` and the like.
    device : int or None
        The CUDA device of the memory; None for host memory, as pinned memory is.

    Raises
    ------
    InvalidArgumentError
        If `theirs` is nothing of the kind.
    NoDeviceError
        If there is no such device here.
    """
    malloc = getattr(theirs, "malloc", theirs)
    if isinstance(theirs, type) or not callable(malloc):
        raise InvalidArgumentError("theirs", theirs, "an allocator of CuPy: a function of a size, or a pool")

    def take(size: int) -> tuple[int, Callable[[], object]]:
        pointers: list[Any] = [malloc(size)]
        return pointers[0].ptr, pointers.clear  # it goes when nobody keeps it

    return allocator_over(Source("CuPy's allocator", take, is_full), device)


def as_resource(allocator: object) -> Callable[[int], Any]:
    """An allocator of CuPy whose memory comes from an allocator of ours, for ``cupy.cuda.set_allocator``.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory; that of the host is for tests.

    Returns
    -------
    callable
        From a size to a ``cupy.cuda.MemoryPointer`` over ``cupy.cuda.UnownedMemory``.  While another device than the
        allocator's is current it raises a ``WrongDeviceError``.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.

    Notes
    -----
    CuPy lets go of memory while kernels still use it.  What was queued until then on the stream that was current when
    the memory was taken, and on the one that is current when it goes, is over before anybody else has it: a
    `PoolAllocator` keeps the block so long, and with any other allocator the host waits.  Work on a third stream must
    be over, as with the pool of CuPy.
    """
    lender = Lender(allocator)

    def allocate(size: int) -> Any:
        if lender.on_device and (current := cupy.cuda.runtime.getDevice()) != lender.ordinal:
            raise WrongDeviceError("allocate", lender.ordinal, current)
        loan = lender.loan(size, _after_work(lender))
        # The device is said, because CUDA cannot find it from the null pointer of zero bytes.
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(loan.ptr, size, loan, lender.ordinal), 0)

    return allocate


def _after_work(lender: Lender) -> Callable[[int], None] | None:
    """What has an allocator wait for the work on memory that is taken now; None for memory of the host."""
    if not lender.on_device:
        return None
    taken_on, taken_by = cupy.cuda.get_current_stream(lender.ordinal), threading.current_thread()

    def wait(address: int) -> None:
        device = lender.allocator
        if taken_on.ptr == cupy.cuda.Stream.ptds.ptr and taken_by is not threading.current_thread():
            # The stream of the thread that took the memory; from here the same name means another one.
            lender.wait_for_device(address)
            return
        given_on = cupy.cuda.get_current_stream(lender.ordinal)
        events = [device.record(stream) for stream in {it.ptr: it for it in (taken_on, given_on)}.values()]
        hold = getattr(device, "hold", None)
        for event in events:
            if hold is None:
                event.synchronize()
            else:
                hold(lender.lent(address), event)

    return wait


def as_pinned_resource(allocator: object) -> Callable[[int], Any]:
    """The same for ``cupy.cuda.set_pinned_memory_allocator``, with host memory.

    Returns
    -------
    callable
        From a size to a ``cupy.cuda.PinnedMemoryPointer``.

    Raises
    ------
    InvalidArgumentError
        If `allocator` is not one of host memory.
    """
    lender = Lender(allocator, host_only=True)

    def allocate(size: int) -> Any:
        return cupy.cuda.PinnedMemoryPointer(lender.loan(size), 0)

    return allocate


def as_function_allocator(allocator: object) -> Any:
    """A ``cupy.cuda.PythonFunctionAllocator``, whose ``malloc`` is an allocator of CuPy.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    return cupy.cuda.PythonFunctionAllocator(*_functions(Lender(allocator)))


def _functions(lender: Lender) -> tuple[Callable[[int, int], int], Callable[[int, int], None]]:
    """What a PythonFunctionAllocator calls."""
    # By address, what has to be over before it is given back.
    waits: dict[int, Callable[[int], None] | None] = {}

    def malloc(size: int, device: int) -> int:
        if lender.on_device and device != lender.ordinal:
            raise InvalidArgumentError("device", device, f"{lender.ordinal}, where the memory is")
        wait, address = _after_work(lender), lender.allocate(size)
        waits[address] = wait
        return address

    def free(address: int, device: int) -> None:  # noqa: ARG001 -- CuPy's signature
        lender.give_back(address, wait=waits.pop(address, None))

    return malloc, free
