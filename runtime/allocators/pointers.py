"""The checks of sizes and pointers that all allocators share, and the record of an allocator's blocks."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from syncedmem.model import (
    AllocationError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidSizeError,
    NoDeviceError,
)
from syncedmem.model.errors import shown, words

from .failures import is_refused, where_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model.interface import Pointer

__all__ = [
    "FILLED",
    "MASKED",
    "Adopted",
    "End",
    "HostArray",
    "LiveBlocks",
    "address_of",
    "as_flag",
    "as_integer",
    "check_adoptable_size",
    "check_byte_size",
    "check_copy",
    "check_host",
    "check_ordinal",
    "is_masked",
    "no_room",
    "size_of",
    "writing",
]

HostArray = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""A one-dimensional ``uint8`` NumPy array."""


def as_integer(value: object, argument: str, expected: str) -> int:
    """An argument as an ``int``.

    Raises
    ------
    InvalidArgumentError
        If it is not an integer (NumPy's integers are; floats, strings and bools are not).
    """
    if isinstance(value, bool):
        raise InvalidArgumentError(argument, value, expected)
    try:
        return int(operator.index(cast("Any", value)))  # int: what __index__ returns may be a bool, or a subclass
    except Exception as error:
        raise InvalidArgumentError(argument, value, expected) from error


def as_flag(value: object, argument: str, expected: str = "True or False") -> bool:
    """An argument as a ``bool``; errors show what is `expected`.

    Raises
    ------
    InvalidArgumentError
        If it is neither Python's ``bool`` nor NumPy's.
    """
    if value is True or value is False:
        return value  # the usual case, and every copy comes here
    flag: Any = value
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgumentError(argument, value, expected)
    return bool(flag)


def check_byte_size(byte_size: object, argument: str = "byte_size", limit: int = sys.maxsize) -> int:
    """A size in bytes as an ``int``.

    Raises
    ------
    InvalidArgumentError
        If it is not an integer.
    InvalidSizeError
        If it is negative or above `limit`.
    """
    if type(byte_size) is int and 0 <= byte_size <= limit:
        return byte_size  # the usual case, and every allocator comes here
    size = as_integer(byte_size, argument, "an integer number of bytes")
    if not 0 <= size <= limit:
        raise InvalidSizeError(size, limit, argument)
    return size


def check_adoptable_size(nbytes: int, byte_size: object) -> int:
    """The size in bytes that is needed of a buffer that somebody hands in, after a check that the buffer has it."""
    size = check_byte_size(byte_size)
    if nbytes < size:
        raise ValueError(f"it has {nbytes} bytes, and {size} are needed")
    return size


def check_ordinal(ordinal: object, kind: str, count: int) -> int:
    """The number of a device, after a check that there is such a device.

    Raises
    ------
    InvalidArgumentError
        If it is not an integer.
    NoDeviceError
        If there is no such device.
    """
    number = as_integer(ordinal, "ordinal", "the number of a device")
    if number not in range(count):
        raise NoDeviceError(f"there is no {kind} device {shown(number)}; there are {count}, counted from 0")
    return number


def check_copy(byte_size: object, *pointers: Pointer) -> int:
    """The size of a copy or fill in bytes, checked against the length of every array; None has no bytes."""
    if type(byte_size) is int and byte_size >= 0:
        for ptr in pointers:
            if ptr is None or len(ptr) < byte_size:
                break
        else:
            return byte_size  # the usual case, and every copy comes here
    return check_byte_size(byte_size, limit=min(0 if ptr is None else len(ptr) for ptr in pointers))


class End(NamedTuple):
    """How a call uses a pointer.

    Attributes
    ----------
    argument : str
        The name of the argument.
    on_device : bool
        Where the memory must be: True for the allocator's device, False for the host.
    written : bool
        Whether the call writes to it.
    required_by : str
        Which argument of the caller requires that place; empty if none does.
    """

    argument: str
    on_device: bool
    written: bool
    required_by: str = ""

    def misplaced(self, where: object, ptr: Pointer) -> InvalidPointerError:
        """The error of an allocator for a pointer to memory in the wrong place."""
        place = "memory of this device" if self.on_device else "host memory"
        reason = f"not {place}, as {self.required_by} requires" if self.required_by else f"not {place}"
        return self.refused(where, ptr, reason)

    def refused(self, where: object, ptr: Pointer, reason: str) -> InvalidPointerError:
        """The error of an allocator for a pointer that it cannot use, with the reason."""
        return InvalidPointerError(where_of(where), ptr, f"{self.argument} is {reason}")


MASKED = "a masked array, whose mask would be lost; use what its filled() returns"
"""Why a masked array is refused, as errors say it."""

_FROZEN = "an array that was adopted, and was made read-only since then"

FILLED = End("ptr", on_device=True, written=True)
"""The memory that a device fills with zeros."""


def check_host(where: object, ptr: Pointer, end: End) -> HostArray | None:
    """A pointer to host memory as an array, or None; errors name the allocator `where`.

    It is checked here, because drivers take the address and check nothing.  If an array had every second byte, they
    would copy the first half of the memory.  If it were read-only, they would write into it.

    Raises
    ------
    InvalidPointerError
        If it is not a NumPy array, a masked array, not a contiguous row of bytes, or read-only although the call writes
        to it.
    """
    if ptr is None:
        return None
    array: np.ndarray[Any, np.dtype[Any]] = ptr
    if not isinstance(ptr, np.ndarray):
        raise end.misplaced(where, ptr)
    if type(array) is not np.ndarray and is_masked(array):
        raise end.refused(where, array, MASKED)
    if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
        raise end.refused(where, array, "not a contiguous row of bytes")
    if end.written and not array.flags.writeable:
        raise end.refused(where, array, "read-only")
    if end.written and _is_frozen(array.base):
        raise end.refused(where, array, _FROZEN)
    return array


def is_masked(array: object) -> bool:
    """Whether an array has a mask, even one that masks nothing; memory has none, so that it would be lost."""
    return type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray)


class Adopted:
    """Somebody's NumPy array, whose bytes a pointer shows: the base of the pointer.

    A view does not become read-only when its array does.  So the array itself has to be asked before it is written.

    Parameters
    ----------
    original : numpy.ndarray
        The array as it was handed in.
    flat : numpy.ndarray
        Its bytes, in a row.
    """

    __slots__ = ("__array_interface__", "original")

    def __init__(self, original: np.ndarray[Any, np.dtype[Any]], flat: HostArray) -> None:
        self.original: np.ndarray[Any, np.dtype[Any]] = original
        self.__array_interface__: dict[str, Any] = flat.__array_interface__

    def writing(self, make: Callable[[], HostArray]) -> Callable[[], HostArray]:
        """The function `make`, which makes views to write, with a check that the array may be written still."""
        original = self.original

        def view() -> HostArray:
            if original.flags.writeable:
                return make()
            raise InvalidPointerError("the host", original, f"it is {_FROZEN}")

        return view


def _is_frozen(base: object) -> bool:
    """Whether the base of a pointer is an adopted array that was made read-only since then."""
    return type(base) is Adopted and not base.original.flags.writeable


def writing(ptr: Pointer, make: Callable[[], HostArray]) -> Callable[[], HostArray]:
    """A function that makes views to write over host memory; it refuses an adopted array that was made read-only."""
    base: Any = getattr(ptr, "base", None)
    return base.writing(make) if type(base) is Adopted else make


class LiveBlocks:
    """The blocks that an allocator has allocated, so that it releases no block twice and no foreign block.

    A block is known by the array that `allocate` returned, not by its address.  A view of that array, or another array
    at an address that was used before, is not that block.

    Parameters
    ----------
    where : str
        The allocator, as errors show it.

    Attributes
    ----------
    blocks : dict
        By the ``id`` of the array: the array, and what the allocator stores about the block.  In order of allocation.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        # The array is kept, so that no other array gets its id.
        self.blocks: dict[int, tuple[Pointer, Any]] = {}

    def __len__(self) -> int:
        return len(self.blocks)

    def __contains__(self, ptr: object) -> bool:
        return id(ptr) in self.blocks

    def __delitem__(self, ptr: Pointer) -> None:
        """Forget a block, in one step, so that of two threads that release it only one succeeds."""
        try:
            del self.blocks[id(ptr)]
        except KeyError:
            raise self.unknown(ptr) from None

    def release(
        self, ptr: Pointer, upstream: Any, whole: Pointer = None, gone: Callable[[Any], object] | None = None
    ) -> Any:
        """Have the allocator below release a block, and return what is stored about it; if it is refused, it is live.

        Parameters
        ----------
        ptr : pointer
        upstream : DeviceAllocator
        whole : pointer or None
            The block of the upstream; None if that is `ptr`.
        gone : callable or None
            Gets what is stored about the block if an interrupt came after the release.
        """
        blocks, key = self.blocks, id(ptr)
        try:
            # No call between these two lines, so only one of two threads succeeds, and no interrupt loses the block.
            entry = blocks[key]
            del blocks[key]
        except KeyError:
            raise self.unknown(ptr) from None
        below = ptr if whole is None else whole
        try:
            upstream.release(below)
        except BaseException as error:
            blocks[key] = entry  # first, because asking may fail
            if not is_refused(upstream, below, error):
                del blocks[key]
                if gone is not None:
                    gone(entry[1])
            raise
        return entry[1]

    def all_behind(self) -> list[Any]:
        """What the allocator stores about each block, in order of allocation."""
        return [behind for _, behind in self.entries()]

    def behind(self, ptr: Pointer) -> Any:
        """What the allocator stores about a block."""
        try:
            return self.blocks[id(ptr)][1]
        except KeyError:
            raise self.unknown(ptr) from None

    def entries(self) -> list[tuple[Pointer, Any]]:
        """Each block with what the allocator stores about it, in order of allocation."""
        return list(self.blocks.values())

    def unknown(self, ptr: Pointer) -> InvalidPointerError:
        """The error for a pointer that is not a live block."""
        return InvalidPointerError(self._where, ptr, "it is not a live block of this allocator")


def address_of(ptr: Pointer) -> int:
    """The address of an array on its device, or 0 if it is no array.  For reports, not for access to the memory."""
    if isinstance(ptr, np.ndarray):
        return cast("HostArray", ptr).ctypes.data
    if hasattr(ptr, "base_data"):  # a PyOpenCL array; it has no base_data if it has no bytes
        if ptr.base_data is None:
            return 0
        return int(ptr.base_data.int_ptr) + int(ptr.offset)
    if hasattr(ptr, "__cuda_array_interface__"):
        return int(ptr.__cuda_array_interface__["data"][0])
    return int(getattr(ptr, "ptr", 0))


def size_of(ptr: Pointer) -> int:
    """How many bytes an array has, or 0 if it is no array.  For reports."""
    return len(ptr) if hasattr(ptr, "__len__") else 0


def no_room(where: str, byte_size: int, cause: BaseException) -> AllocationError:
    """The error for a device that has no room, with the message of the device itself."""
    return AllocationError(where, byte_size, words(cause))
