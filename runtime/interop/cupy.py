"""CuPy: an allocator is a function from a size to a ``MemoryPointer``, which gives its memory back when it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError

from ..cuda import cupy  # raises NoDeviceError where there is no CuPy
from .foreign import Source, allocator_over
from .lender import Lender

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..allocator import DeviceAllocator

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

    return allocator_over(Source("CuPy's allocator", take), device)


def as_resource(allocator: object) -> Callable[[int], Any]:
    """An allocator of CuPy whose memory comes from an allocator of ours, for ``cupy.cuda.set_allocator``.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of CUDA memory; that of the host is for tests.

    Returns
    -------
    callable
        From a size to a ``cupy.cuda.MemoryPointer`` over ``cupy.cuda.UnownedMemory``.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    lender = Lender(allocator)

    def allocate(size: int) -> Any:
        loan = lender.loan(size)
        # The device is said, because CUDA cannot find it from the null pointer of zero bytes.
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(loan.ptr, size, loan, lender.ordinal), 0)

    return allocate


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

    def malloc(size: int, device: int) -> int:
        if lender.on_device and device != lender.ordinal:
            raise InvalidArgumentError("device", device, f"{lender.ordinal}, where the memory is")
        return lender.allocate(size)

    def free(address: int, device: int) -> None:  # noqa: ARG001 -- CuPy's signature
        lender.give_back(address)

    return malloc, free
