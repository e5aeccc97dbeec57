"""The functions of a shared library that play the parts of an allocator, called through ctypes."""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_int, c_size_t, c_ssize_t, c_void_p, sizeof
from dataclasses import replace
from errno import ENOMEM
from typing import TYPE_CHECKING, Any

from .capabilities import Capabilities
from .finding import TargetError
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["C_RECORD", "Functions", "Instance", "cupy_target", "malloc_target", "nep49_target", "torch_target"]

C_RECORD = Capabilities(alignment=8, thread_safe=True, out_of_memory=("null",), host_readable=True)
"""What a function in C promises by default."""


class Functions:
    """The functions of a library, by their parts.

    Parameters
    ----------
    library : CDLL
    symbols : mapping of str to str
        The symbol for each part.
    """

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
    """An object of a library, which its own functions made and can destroy.

    Parameters
    ----------
    address : int or None
        The first argument of its functions.
    drop : callable or None
        Destroys the object at an address.
    said : str
        Why there is no address.

    Raises
    ------
    TargetError
        If there is no address.
    """

    def __init__(self, address: int | None, drop: Callable[[int], object] | None, said: str = "null") -> None:
        if address is None:
            raise TargetError(f"the library made no allocator: {said}")
        self.address: int = address
        self._drop = drop

    def close(self) -> None:
        """Destroy the object."""
        if self._drop is not None:
            self._drop(self.address)


# --- malloc and its relatives


def malloc_target(functions: Functions) -> Target:
    """C's functions: malloc and free, and those of their relatives that the library has."""
    bind = functions.bind
    take, free = bind("malloc", c_void_p, c_size_t), bind("free", None, c_void_p)
    calloc, usable_size = bind("calloc", c_void_p, c_size_t, c_size_t), bind("malloc_usable_size", c_size_t, c_void_p)
    give: Callable[[Any, int], Any] = lambda handle, _: free(handle)  # noqa: E731 -- the shortest of three ways
    resizing = _Resizing(bind("realloc", c_void_p, c_void_p, c_size_t), _reallocarray(functions))
    resize: Callable[[Any, int, int], Any] | None = resizing.resize if resizing else None
    sized = bind("free_sized", None, c_void_p, c_size_t)
    aligning = _Aligning(functions)
    if sized is not None:
        giving = _SizedFree(free, sized, bind("free_aligned_sized", None, c_void_p, c_size_t, c_size_t), aligning)
        give, resize = giving.give, None if resize is None else giving.keeping_account(resize)
    return Target(
        kind="C functions (malloc)",
        subject=None,
        capabilities=replace(C_RECORD, sized_free=sized is not None),
        take=take,
        give=give,
        take_aligned=aligning.take if aligning else None,
        take_zeroed=None if calloc is None else lambda size: calloc(1, size),
        take_many=_taking_many(calloc, resizing.of_many),
        resize=resize,
        usable_size=usable_size,
    )


def _reallocarray(functions: Functions) -> Any:
    return functions.bind("reallocarray", c_void_p, c_void_p, c_size_t, c_size_t)


def _taking_many(calloc: Any, reallocarray: Any) -> Callable[[int, int], Any] | None:
    """The requests for a count of blocks of a size.  The fuzzer makes only such that overflow, so each must refuse."""
    if reallocarray is None:
        return calloc  # type: ignore[no-any-return]  # a function of ctypes
    if calloc is None:
        return lambda count, size: reallocarray(None, count, size)
    return lambda count, size: calloc(count, size) or reallocarray(None, count, size)


class _Resizing:
    """realloc for odd sizes, reallocarray for even sizes; or the one that there is.

    So a step always makes the same call, and both are tried.
    """

    def __init__(self, realloc: Any, reallocarray: Any) -> None:
        self._realloc = realloc
        self.of_many = reallocarray

    def __bool__(self) -> bool:
        return self._realloc is not None or self.of_many is not None

    def resize(self, handle: int, size: int, _: int) -> int | None:
        """Change the size of a block."""
        if self.of_many is None or (size % 2 and self._realloc is not None):
            found: int | None = self._realloc(handle, size)
        else:
            count = 1 if size % 2 else 2
            found = self.of_many(handle, count, size // count)
        return found


class _Aligning:
    """aligned_alloc for even sizes, posix_memalign for odd sizes; or the one that there is."""

    def __init__(self, functions: Functions) -> None:
        self._aligned = functions.bind("aligned_alloc", c_void_p, c_size_t, c_size_t)
        self._posix = functions.bind("posix_memalign", c_int, POINTER(c_void_p), c_size_t, c_size_t)
        self.asked: dict[int, tuple[int, int]] | None = None
        """If set, the alignment and the size that were requested, by address; alignment 0 for posix_memalign."""

    def __bool__(self) -> bool:
        return self._aligned is not None or self._posix is not None

    def take(self, size: int, alignment: int) -> int | None:
        """Allocate with an alignment."""
        if self._aligned is None or (size % 2 and self._posix is not None):
            found, noted = self._take_posix(size, alignment), (0, size)
        else:
            whole = -(-size // alignment) * alignment  # C11 wants a multiple of the alignment
            found, noted = self._aligned(alignment, whole), (alignment, whole)
        if found and self.asked is not None:
            self.asked[found] = noted
        return found

    def _take_posix(self, size: int, alignment: int) -> int | None:
        place = c_void_p()
        status: int = self._posix(byref(place), max(alignment, sizeof(c_void_p)), size)
        if status == ENOMEM:
            return None
        if status or (size and not place.value):
            raise OSError(f"posix_memalign returned {status}, and the pointer {place.value}")
        return place.value


class _SizedFree:
    """free_sized for even sizes and free for odd sizes; for aligned memory free_aligned_sized or free, as C23 wants."""

    def __init__(self, free: Any, sized: Any, aligned_sized: Any, aligning: _Aligning) -> None:
        self._free, self._sized, self._aligned_sized = free, sized, aligned_sized
        self._aligned: dict[int, tuple[int, int]] = {}
        aligning.asked = self._aligned

    def give(self, handle: int, size: int) -> None:
        """Free a block."""
        alignment, asked = self._aligned.pop(handle, (-1, size))
        if alignment > 0 and self._aligned_sized is not None:
            self._aligned_sized(handle, alignment, asked)
        elif alignment < 0 and not size % 2:
            self._sized(handle, size)
        else:
            self._free(handle)

    def keeping_account(self, resize: Callable[[int, int, int], Any]) -> Callable[[int, int, int], Any]:
        """A resize after which a block counts as allocated plainly, if it was not refused."""

        def kept(handle: int, size: int, old: int) -> Any:
            noted = self._aligned.pop(handle, None)
            found = resize(handle, size, old)
            if not found and noted is not None:
                self._aligned[handle] = noted
            return found

        return kept


# --- the conventions of libraries


def nep49_target(functions: Functions) -> Target:
    """NumPy's ``PyDataMem_Handler``: the first argument is a context, and a free takes the size.

    The context is null, or what the function for ``make`` returns.

    Raises
    ------
    TargetError
        If the context cannot be made.
    """
    bind = functions.bind
    make = bind("make", c_void_p)
    made = None if make is None else Instance(make(), bind("drop", None, c_void_p))
    context = None if made is None else made.address
    take, free = bind("malloc", c_void_p, c_void_p, c_size_t), bind("free", None, c_void_p, c_void_p, c_size_t)
    calloc = bind("calloc", c_void_p, c_void_p, c_size_t, c_size_t)
    resize = bind("realloc", c_void_p, c_void_p, c_void_p, c_size_t)
    return Target(
        kind="C functions (NumPy, NEP 49)",
        subject=made,
        capabilities=replace(C_RECORD, sized_free=True),
        take=lambda size: take(context, size),
        give=lambda handle, size: free(context, handle, size),
        take_zeroed=None if calloc is None else lambda size: calloc(context, size, 1),
        take_many=None if calloc is None else lambda count, size: calloc(context, count, size),
        resize=None if resize is None else lambda handle, size, _: resize(context, handle, size),
        owned=made is not None,
    )


def torch_target(functions: Functions) -> Target:
    """PyTorch's pluggable allocator, with size, device and stream."""
    take = functions.bind("malloc", c_void_p, c_ssize_t, c_int, c_void_p)
    free = functions.bind("free", None, c_void_p, c_ssize_t, c_int, c_void_p)
    return Target(
        kind="C functions (PyTorch)",
        subject=None,
        capabilities=replace(C_RECORD, sized_free=True, host_readable=None),
        take=lambda size: take(size, 0, None),
        give=lambda handle, size: free(handle, size, 0, None),
        most=sys.maxsize,  # its sizes have a sign
    )


def cupy_target(functions: Functions) -> Target:
    """CuPy's ``CFunctionAllocator``: the first argument is a parameter, the last is the device."""
    take = functions.bind("malloc", c_void_p, c_void_p, c_size_t, c_int)
    free = functions.bind("free", None, c_void_p, c_void_p, c_int)
    return Target(
        kind="C functions (CuPy)",
        subject=None,
        capabilities=replace(C_RECORD, host_readable=None),
        take=lambda size: take(None, size, 0),
        give=lambda handle, _: free(None, handle, 0),
    )
