"""The functions of a shared library that play the parts of an allocator, called through ctypes."""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_int, c_size_t, c_void_p, sizeof
from dataclasses import replace
from errno import ENOMEM
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .capabilities import Capabilities
from .finding import TargetError
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CALLS", "C_RECORD", "Functions", "Instance", "malloc_target", "plain_target"]

C_RECORD = Capabilities(alignment=8, thread_safe=True, out_of_memory=("null",), host_readable=True)
"""What a function in C promises by default."""

CALLS: dict[str, dict[str, str]] = {
    "malloc": {"malloc": "s", "free": "p", "calloc": "1s", "realloc": "ps"},
    "nep49": {"malloc": "cs", "free": "cps", "calloc": "cs1", "realloc": "cps"},
    "torch": {"malloc": "s00", "free": "ps00"},
    "cupy": {"malloc": "cs0", "free": "cp0"},
}
"""The arguments of each function of a convention: s is a size, p a pointer, c a context or null, 0 and 1 are numbers.

The native driver calls the functions by this table too.
"""


class _Plain(NamedTuple):
    """What else there is to say about a convention in `CALLS`."""

    kind: str
    record: Capabilities
    most: int = 2 * sys.maxsize + 1


_PLAIN = {
    "nep49": _Plain("C functions (NumPy, NEP 49)", replace(C_RECORD, sized_free=True)),
    # PyTorch's sizes have a sign.
    "torch": _Plain("C functions (PyTorch)", replace(C_RECORD, sized_free=True, host_readable=None), sys.maxsize),
    "cupy": _Plain("C functions (CuPy)", replace(C_RECORD, host_readable=None)),
}


class Functions:
    """The functions of a library, by their parts."""

    def __init__(self, library: ctypes.CDLL, symbols: Mapping[str, str]) -> None:
        self._library = library
        self.symbols = symbols

    def bind(self, part: str, result: Any, *arguments: Any) -> Any:
        """The function for a part, with the types of its result and its arguments; None if the library has none."""
        return self.bind_symbol(self.symbols[part], result, *arguments) if part in self.symbols else None

    def bind_symbol(self, symbol: str, result: Any, *arguments: Any) -> Any:
        """The function with a symbol; None if the library has none."""
        if not hasattr(self._library, symbol):
            return None
        function = self._library[symbol]  # a new function object; an attribute would be shared
        function.restype, function.argtypes = result, arguments
        return function


class Instance:
    """An object of a library, which its own functions made and can destroy; what it stands on is closed after it."""

    def __init__(
        self, address: int | None, drop: Callable[[int], object] | None, reason: str = "null", base: Any = None
    ) -> None:
        if address is None:
            raise TargetError(f"the library made no allocator: {reason}")
        self.address: int = address
        self._drop, self._base = drop, base

    def close(self) -> None:
        """Destroy the object."""
        if self._drop is not None:
            self._drop(self.address)
        if self._base is not None:
            self._base.close()


def plain_target(abi: str, functions: Functions) -> Target:
    """NumPy's ``PyDataMem_Handler``, PyTorch's pluggable allocator, or CuPy's ``CFunctionAllocator``.

    The context is null, or what the function for ``make`` returns.
    """
    bind = functions.bind
    make = bind("make", c_void_p)
    context = None if make is None else Instance(make(), bind("drop", None, c_void_p))
    numbers = {"c": context and context.address, "0": None, "1": 1}

    def call(part: str, values: str) -> Any:
        """The function for a part, of these values of `CALLS` in this order."""
        wanted = CALLS[abi].get(part, "")
        result = None if part == "free" else c_void_p
        function = bind(part, result, *(c_size_t if it in "s1" else c_void_p for it in wanted))
        if function is None or not wanted:
            return None

        def called(*arguments: int) -> Any:
            named = numbers | dict(zip(values, arguments, strict=False))
            return function(*(named[letter] for letter in wanted))

        return called

    kind, record, most = _PLAIN[abi]
    return Target(
        kind=kind,
        subject=context,
        capabilities=record,
        take=call("malloc", "s"),
        give=call("free", "ps"),
        take_zeroed=call("calloc", "s"),
        take_many=call("calloc", "s1"),
        resize=call("realloc", "ps"),
        most=most,
        owned=context is not None,
    )


def malloc_target(functions: Functions) -> Target:
    """C's functions: malloc and free, and those of their relatives that the library has."""
    bind = functions.bind
    take, free = bind("malloc", c_void_p, c_size_t), bind("free", None, c_void_p)
    calloc = bind("calloc", c_void_p, c_size_t, c_size_t)
    relatives = _Relatives(functions, free)
    give: Callable[[Any, int], Any] = lambda handle, _: free(handle)  # noqa: E731 -- the shortest of three ways
    return Target(
        kind="C functions (malloc)",
        subject=None,
        capabilities=replace(C_RECORD, sized_free=relatives.free_sized is not None),
        take=take,
        give=give if relatives.free_sized is None else relatives.give,
        take_aligned=relatives.take_aligned if relatives.aligned_alloc or relatives.posix_memalign else None,
        take_zeroed=None if calloc is None else partial(calloc, 1),
        take_many=_taking_many(calloc, relatives.reallocarray),
        resize=relatives.resize if relatives.realloc or relatives.reallocarray else None,
        usable_size=bind("malloc_usable_size", c_size_t, c_void_p),
    )


def _taking_many(calloc: Any, reallocarray: Any) -> Callable[[int, int], Any] | None:
    """The requests for a count of blocks of a size.  The fuzzer makes only such that overflow, so each must refuse."""
    if reallocarray is None:
        return calloc  # type: ignore[no-any-return]  # a function of ctypes
    if calloc is None:
        return partial(reallocarray, None)
    return lambda count, size: calloc(count, size) or reallocarray(None, count, size)


class _Relatives:
    """Where two functions do the same, one gets even sizes and the other odd ones: a step always makes the same call.

    So reallocarray, aligned_alloc and free_sized get even sizes; realloc, posix_memalign and free get odd ones.
    Aligned memory is freed with free_aligned_sized or with free, as C23 wants; resized memory counts as plain.
    """

    def __init__(self, functions: Functions, free: Any) -> None:
        bind, place, size = functions.bind, c_void_p, c_size_t
        self._free = free
        self.realloc = bind("realloc", place, place, size)
        self.reallocarray = bind("reallocarray", place, place, size, size)
        self.aligned_alloc = bind("aligned_alloc", place, size, size)
        self.posix_memalign = bind("posix_memalign", c_int, POINTER(place), size, size)
        self.free_sized = bind("free_sized", None, place, size)
        self._free_aligned_sized = bind("free_aligned_sized", None, place, size, size)
        self._requests: dict[int, tuple[int, int]] = {}
        """The alignment and the size that were requested, by address; alignment 0 for posix_memalign."""

    def take_aligned(self, size: int, alignment: int) -> int | None:
        """Allocate with an alignment."""
        if self.aligned_alloc is None or (size % 2 and self.posix_memalign is not None):
            request, address = (0, size), self._take_posix(size, alignment)
        else:
            whole = -(-size // alignment) * alignment  # C11 wants a multiple of the alignment
            request, address = (alignment, whole), self.aligned_alloc(alignment, whole)
        if address and self.free_sized is not None:
            self._requests[address] = request
        return address

    def _take_posix(self, size: int, alignment: int) -> int | None:
        place = c_void_p()
        status: int = self.posix_memalign(byref(place), max(alignment, sizeof(c_void_p)), size)
        if status == ENOMEM:
            return None
        if status or (size and not place.value):
            raise OSError(f"posix_memalign returned {status}, and the pointer {place.value}")
        return place.value

    def resize(self, handle: int, size: int, _: int) -> int | None:
        """Change the size of a block."""
        request = self._requests.pop(handle, None)
        if self.reallocarray is None or (size % 2 and self.realloc is not None):
            address: int | None = self.realloc(handle, size)
        else:
            count = 1 if size % 2 else 2
            address = self.reallocarray(handle, count, size // count)
        if not address and request is not None:
            self._requests[handle] = request
        return address

    def give(self, handle: int, size: int) -> None:
        """Free a block."""
        alignment, whole = self._requests.pop(handle, (-1, size))
        if alignment > 0 and self._free_aligned_sized is not None:
            self._free_aligned_sized(handle, alignment, whole)
        elif alignment < 0 and not size % 2:
            self.free_sized(handle, size)
        else:
            self._free(handle)
