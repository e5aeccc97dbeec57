"""The functions of a shared library that play the parts of an allocator, called through ctypes."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p, sizeof
from dataclasses import replace
from errno import EINVAL, ENOMEM
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .capabilities import Capabilities
from .finding import TargetError
from .targets import SIZE_MAX, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = [
    "C_RECORD",
    "RESET",
    "Abi",
    "CContracts",
    "Choice",
    "Functions",
    "Instance",
    "calls_of",
    "malloc_target",
    "plain_target",
]

C_RECORD = Capabilities(alignment=8, thread_safe=True, out_of_memory=("null",), host_readable=True)
"""What a function in C promises by default."""

_TYPES: dict[str, Any] = {
    "": None, "s": c_size_t, "l": c_size_t, "a": c_size_t, "1": c_size_t, "i": c_int, "t": c_char_p,
}  # fmt: skip
"""The types of arguments and results, by their letters in `Abi.calls`; all others are pointers."""

RESET = "reset"
"""The part of a function ``void reset(void)``, which frees all blocks; it is never guessed."""

_UNTOUCHED, _ERRNO = 0x5A5A0, 4242
"""A pointer that nobody returns, and an errno that nobody sets."""

_NATIVE = ("malloc", "free", "calloc", "realloc")
"""The parts that the native driver calls, in its order."""
_NATIVE_RESULTS = ("p", "", "p", "p")
_NATIVE_ARGUMENTS = frozenset("csp01oal")


class Abi(NamedTuple):
    """A convention of functions in C: its kind and record, how many of its parts are needed, and a call for each part.

    A call is the letters of its arguments, and after a colon that of its result: s is a size, l the size of before,
    a an alignment, p a pointer, o an object that the library made, c a context or null, i an int, t a text, 0 and 1 are
    numbers.
    """

    kind: str
    record: Capabilities
    needed: int
    calls: dict[str, str]
    target: Callable[[Functions], Target]
    most: int = SIZE_MAX
    native: tuple[str, ...] = _NATIVE

    def native_calls(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The arguments of each symbol that the native driver can call, in its order; none if it cannot use them.

        An object that the library makes is one for each process; a context or a state that begins anew is not for it.
        """
        fresh = parts.keys() & ({"make", RESET} if "allocate" not in self.calls else {RESET})
        calls: dict[str, str] = {}
        for part, result in zip(self.native, _NATIVE_RESULTS, strict=True):
            arguments, _, returned = self.calls.get(part, ":none").partition(":")
            if fresh or part not in parts or returned != result or not _NATIVE_ARGUMENTS.issuperset(arguments):
                break
            calls[parts[part]] = arguments
        return calls if len(calls) > 1 else {}

    def arguments(self, part: str) -> str:
        """The letters of the arguments of a part."""
        return self.calls[part].partition(":")[0]


def calls_of(text: str) -> dict[str, str]:
    """The call of each part, from a text like ``malloc=s:p free=p``."""
    return {part: call for part, _, call in (letter.partition("=") for letter in text.split())}


class Functions:
    """The functions of a library, by their parts in a convention."""

    def __init__(self, library: ctypes.CDLL, symbols: Mapping[str, str], abi: Abi) -> None:
        self.library = library
        self.symbols = symbols
        self.abi = abi

    @property
    def make_fresh(self) -> bool:
        """Whether each target has a state of its own: a function makes it, or makes that of the library as new."""
        return not self.symbols.keys().isdisjoint(("make", RESET))

    def bind(self, part: str) -> Any:
        """The function for a part; None if the library has none."""
        return self.bind_symbol(self.symbols[part], self.abi.calls.get(part, "")) if part in self.symbols else None

    def bind_with_errno(self, part: str) -> Any:
        """The function for a part, which sets and leaves the errno of ctypes; None if the library has none."""
        if part not in self.symbols:
            return None
        library = ctypes.CDLL(self.library._name, use_errno=True)  # noqa: SLF001 -- its name, as it was loaded
        return Functions(library, self.symbols, self.abi).bind(part)

    def resetting(self, forget: Callable[[], object] = lambda: None) -> Callable[[], Any] | None:
        """The function that frees all blocks, and then forgets what was known of them; None without it."""
        reset = self.bind(RESET)
        return None if reset is None else lambda: (reset(), forget())

    def bind_symbol(self, symbol: str, call: str) -> Any:
        """The function with a symbol; None if the library has none."""
        if not hasattr(self.library, symbol):
            return None
        arguments, _, result = call.partition(":")
        function = self.library[symbol]  # a new function object; an attribute would be shared
        function.restype = _TYPES.get(result, c_void_p)
        function.argtypes = [_TYPES.get(letter, c_void_p) for letter in arguments]
        return function


class Instance:
    """An object of a library, which its own functions made and can destroy."""

    def __init__(self, address: int | None, drop: Callable[[int], object] | None, reason: str = "null") -> None:
        if address is None:
            raise TargetError(f"the library made no allocator: {reason}")
        self.address: int = address
        self._drop = drop

    def close(self) -> None:
        """Destroy the object."""
        if self._drop is not None:
            self._drop(self.address)


class CContracts:
    """Calls of which C and POSIX say more than that they allocate; `resizes` and `aligns` say whether these are there.

    Each returns what is wrong, or an empty text; a resize returns its result.  `allocate` and `free` are the functions.
    """

    def __init__(self, functions: Functions) -> None:
        self._realloc, self._memalign = map(functions.bind, ("realloc", "posix_memalign"))
        self._free_with_errno, self._usable_size = (
            functions.bind_with_errno("free"),
            functions.bind("malloc_usable_size"),
        )
        self.allocate: Any = functions.bind("malloc")
        self.free: Any = functions.bind("free")
        self.resizes: bool = self._realloc is not None
        self.aligns: bool = self._memalign is not None

    def free_null(self) -> str:
        """``free(NULL)``, which does nothing; and null has no usable bytes."""
        self.free(None)
        usable: int = 0 if self._usable_size is None else self._usable_size(None)
        return f"malloc_usable_size(NULL) is {usable}" if usable else ""

    def free_with_errno(self, handle: int) -> str:
        """``free``, which leaves errno as it was."""
        ctypes.set_errno(_ERRNO)
        self._free_with_errno(handle)
        now = ctypes.get_errno()
        return "" if now == _ERRNO else f"a free has set errno to {now}"

    def resize_null(self, size: int) -> int | None:
        """``realloc(NULL, size)``, which is ``malloc(size)``."""
        address: int | None = self._realloc(None, size)
        return address

    def resize_to_nothing(self, handle: int) -> int | None:
        """``realloc(handle, 0)``, which frees the block, or returns a block of nothing."""
        address: int | None = self._realloc(handle, 0)
        return address

    def request_bad_alignment(self, alignment: int, size: int) -> str:
        """``posix_memalign`` with what is no alignment: it returns EINVAL, and leaves the pointer as it was."""
        place = c_void_p(_UNTOUCHED)
        status: int = self._memalign(byref(place), alignment, size)
        if status != EINVAL:
            return f"posix_memalign with an alignment of {alignment} returned {status}, and not EINVAL"
        return (
            "" if place.value == _UNTOUCHED else f"posix_memalign returned EINVAL, and changed the pointer to {place}"
        )


def plain_target(functions: Functions) -> Target:
    """NumPy's ``PyDataMem_Handler``, PyTorch's pluggable allocator, or CuPy's ``CFunctionAllocator``.

    The context is null, or what the function for ``make`` returns.
    """
    abi, make = functions.abi, functions.bind("make")
    context = None if make is None else Instance(make(), functions.bind("drop"))
    numbers = {"c": context and context.address, "0": None, "1": 1}

    def call(part: str, names: str) -> Any:
        """The function for a part, of the values with these letters in this order."""
        function = functions.bind(part)
        if function is None or (letters := abi.arguments(part)) == names:
            return function
        if letters == names[0]:
            give: Callable[[int, int], Any] = lambda handle, _: function(handle)  # noqa: E731 -- the shortest of three ways
            return give

        def reorder(*values: int) -> Any:
            by_letter = numbers | dict(zip(names, values, strict=False))
            return function(*(by_letter[letter] for letter in letters))

        return reorder

    return Target(
        kind=abi.kind,
        subject=context,
        capabilities=abi.record,
        take=call("malloc", "s"),
        give=call("free", "ps"),
        take_zeroed=call("calloc", "s"),
        take_many=call("calloc", "s1"),
        resize=call("realloc", "ps_"),
        reset=functions.resetting(),
        most=abi.most,
        owned=context is not None,
    )


def malloc_target(functions: Functions) -> Target:
    """C's functions: malloc and free, and those of their relatives that the library has."""
    calloc, relatives = functions.bind("calloc"), _Relatives(functions)
    target = plain_target(functions)
    parts = functions.symbols.keys()
    sized = "free_sized" in parts
    return replace(
        target,
        capabilities=replace(target.capabilities, sized_free=sized),
        give=relatives.give if sized else target.give,
        take_aligned=relatives.take_aligned if parts & {"aligned_alloc", "posix_memalign"} else None,
        take_many=_taking_many(calloc, functions.bind("reallocarray")),
        take_zeroed=None if calloc is None else partial(calloc, 1),
        resize=relatives.resize if parts & {"realloc", "reallocarray"} else None,
        usable_size=functions.bind("malloc_usable_size"),
        reset=functions.resetting(relatives.forget),
        contracts=CContracts(functions),
    )


def _taking_many(calloc: Any, reallocarray: Any) -> Callable[[int, int], Any] | None:
    """The requests for a count of blocks of a size.  The fuzzer makes only such that overflow, so each must refuse."""
    if reallocarray is None:
        return calloc  # type: ignore[no-any-return]  # a function of ctypes
    if calloc is None:
        return partial(reallocarray, None)
    return lambda count, size: calloc(count, size) or reallocarray(None, count, size)


class Choice:
    """Chooses among functions that do the same, for calls through ctypes and for programs in C.

    One gets even sizes and the other odd ones, so a step always makes the same call: reallocarray, aligned_alloc and
    free_sized get even sizes; realloc, posix_memalign and free get odd ones.  Aligned memory is freed with
    free_aligned_sized or with free, as C23 wants; resized memory counts as plain.
    """

    def __init__(self, parts: Collection[str]) -> None:
        self._parts = parts
        self.requests: dict[int, tuple[str, int, int]] = {}
        """The aligned requests, each under a name of its block: the part, the alignment and the size."""

    def aligned(self, size: int, alignment: int) -> tuple[str, int, int]:
        """The part that meets an aligned request, with its alignment and its size."""
        if "aligned_alloc" not in self._parts or (size % 2 and "posix_memalign" in self._parts):
            return "posix_memalign", max(alignment, sizeof(c_void_p)), size
        whole = -(-size // alignment) * alignment  # C11 wants a multiple of the alignment
        return "aligned_alloc", alignment, whole if whole <= SIZE_MAX else whole - alignment

    def resized(self, size: int) -> tuple[str, tuple[int, ...]]:
        """The part that resizes, with its sizes."""
        if "reallocarray" not in self._parts or (size % 2 and "realloc" in self._parts):
            return "realloc", (size,)
        count = 1 if size % 2 else 2
        return "reallocarray", (count, size // count)

    def freed(self, block: int, size: int) -> tuple[str, tuple[int, ...]]:
        """The part that frees a block, with its sizes."""
        part, alignment, whole = self.requests.pop(block, ("", 0, 0))
        if "free_sized" not in self._parts:
            return "free", ()
        if part == "aligned_alloc" and "free_aligned_sized" in self._parts:
            return "free_aligned_sized", (alignment, whole)
        return ("free_sized", (size,)) if not part and not size % 2 else ("free", ())


class _Relatives:
    """The functions of C that are called through ctypes, as they are chosen."""

    def __init__(self, functions: Functions) -> None:
        self._call = {part: functions.bind(part) for part in functions.symbols}
        self._choice = Choice(self._call)

    def take_aligned(self, size: int, alignment: int) -> int | None:
        """Allocate with an alignment."""
        part, *numbers = request = self._choice.aligned(size, alignment)
        address: int | None = self._take_posix(*numbers) if part == "posix_memalign" else self._call[part](*numbers)
        if address and "free_sized" in self._call:
            self._choice.requests[address] = request
        return address

    def _take_posix(self, alignment: int, size: int) -> int | None:
        place = c_void_p()
        status: int = self._call["posix_memalign"](byref(place), alignment, size)
        if status == ENOMEM:
            return None
        if status or (size and not place.value):
            raise OSError(f"posix_memalign returned {status}, and the pointer {place.value}")
        return place.value

    def forget(self) -> None:
        """Forget all requests."""
        self._choice.requests.clear()

    def resize(self, handle: int, size: int, _: int) -> int | None:
        """Change the size of a block."""
        part, sizes = self._choice.resized(size)
        request = self._choice.requests.pop(handle, None)
        address: int | None = self._call[part](handle, *sizes)
        if not address and request is not None:
            self._choice.requests[handle] = request
        return address

    def give(self, handle: int, size: int) -> None:
        """Free a block."""
        part, sizes = self._choice.freed(handle, size)
        self._call[part](handle, *sizes)
