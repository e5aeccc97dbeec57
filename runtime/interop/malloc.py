"""Plain C: ``void *alloc(size_t size)`` and ``void free(void *ptr)`` of a shared library, such as libc's."""

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

_ALLOCATE = (ctypes.c_void_p, ctypes.c_size_t)
_DEALLOCATE = (None, ctypes.c_void_p)


def from_resource(
    library: Library, allocate: str = "malloc", deallocate: str = "free", *, device: int | None = None
) -> DeviceAllocator:
    """A `DeviceAllocator` whose memory comes from two C functions.

    Parameters
    ----------
    library : str, path or ctypes.CDLL
        For example ``"libc.so.6"``.
    allocate, deallocate : str
        The names of its two functions.
    device : int or None
        The CUDA device of the memory; None for memory that the host can read.

    Raises
    ------
    InvalidArgumentError
        If the library cannot be loaded, or has no such function.
    NoDeviceError
        If there is no such device here.
    """
    loaded = shared_library(library)
    take_from, give_to = (
        foreign_function(loaded, allocate, *_ALLOCATE),
        foreign_function(loaded, deallocate, *_DEALLOCATE),
    )

    def take(size: int) -> tuple[int, Callable[[], object]]:
        address = take_from(size)
        return address, lambda: give_to(address)

    return allocator_over(Source(f"{allocate}() of {name_of(loaded)}", take), device)


def as_resource(allocator: object) -> CFunctions:
    """Two C functions whose memory comes from a `DeviceAllocator`.

    The functions and the allocator are kept until the process ends.

    Parameters
    ----------
    allocator : DeviceAllocator
        Of host or CUDA memory.

    Returns
    -------
    CFunctions
        ``allocate`` returns a null pointer if there is no room, and for zero bytes.  If a block cannot be given back,
        the error is printed.

    Raises
    ------
    InvalidArgumentError
        If `allocator` has no memory with addresses.
    """
    exporter = Exporter(allocator, alignment=16)  # the alignment of the widest type of C, which malloc() must have

    def deallocate(address: int | None) -> None:
        exporter.give_back(address or 0)

    return CFunctions(
        ctypes.CFUNCTYPE(*_ALLOCATE)(or_null(exporter.allocate)), ctypes.CFUNCTYPE(*_DEALLOCATE)(deallocate)
    )
