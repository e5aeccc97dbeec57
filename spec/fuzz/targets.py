"""A target for the fuzzer: a few functions and a capability record.

Allocators differ in their names, in the kind of their pointers, and in the arguments of a free.  Each function here
makes a `Target` for one convention; ``recognition`` decides which function is used.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from syncedmem.model.interface import MemcpyKind

from .capabilities import Capabilities
from .finding import TargetError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Signature", "Target", "from_callable", "from_methods", "from_pair", "from_typed"]


@dataclass(frozen=True, repr=False)
class Target:
    """One allocator.

    Attributes
    ----------
    kind : str
        The convention that it follows, in words.
    subject : object
        The allocator itself, for its statistics, its limit and its close.
    capabilities : Capabilities
        Its promises, unless the user replaces them.
    take : callable
        ``take(size)`` returns the allocator's result; ``None`` or 0 is null.
    give : callable
        ``give(handle, size)`` frees it.
    take_aligned, take_on, give_on, take_zeroed, take_many, resize, copy : callable or None
        ``take_aligned(size, alignment)``, ``take_on(size, stream)``, ``give_on(handle, size, stream)``,
        ``take_zeroed(size)``, ``take_many(count, size)``, ``resize(handle, size, old_size)``,
        ``copy(source, destination, size)``, if the allocator has them.
    read, write : callable or None
        ``read(handle, size)`` and ``write(handle, data)``, if the allocator has them.
    usable_size : callable or None
        ``usable_size(handle)`` is the number of bytes that may be used, if the allocator says it.
    most : int
        The largest size that its functions can be told.
    owned : bool
        Whether it was made only for this run, and may be closed.
    """

    kind: str
    subject: Any
    capabilities: Capabilities
    take: Callable[[int], Any]
    give: Callable[[Any, int], Any]
    take_aligned: Callable[[int, int], Any] | None = None
    take_on: Callable[[int, Any], Any] | None = None
    give_on: Callable[[Any, int, Any], Any] | None = None
    take_zeroed: Callable[[int], Any] | None = None
    take_many: Callable[[int, int], Any] | None = None
    resize: Callable[[Any, int, int], Any] | None = None
    copy: Callable[[Any, Any, int], Any] | None = None
    read: Callable[[Any, int], bytes] | None = None
    write: Callable[[Any, bytes], Any] | None = None
    usable_size: Callable[[Any], int] | None = None
    most: int = 2 * sys.maxsize + 1
    owned: bool = False

    def __repr__(self) -> str:
        return f"<Target {self.subject!r}: {self.kind}>"


def is_null(handle: Any) -> bool:
    """Whether a result is a null pointer."""
    return handle is None or (isinstance(handle, int) and not handle)


def address_of(handle: Any) -> int:
    """The address that a handle reports; 0 if it reports none."""
    if isinstance(handle, int):
        return handle
    interface: Any = getattr(handle, "__array_interface__", None) or getattr(handle, "__cuda_array_interface__", None)
    if interface is not None:
        return int(interface["data"][0])
    for name in ("ptr", "handle", "device_pointer", "data_ptr"):
        place: Any = getattr(handle, name, None)
        if name == "data_ptr" and callable(place):  # PyTorch's tensors and storages
            place = place()
        if hasattr(place, "__index__"):
            return operator.index(place)
    return 0


def size_of(handle: Any) -> int | None:
    """The number of bytes that a handle reports; None if it reports none."""
    if isinstance(handle, int):
        return None
    storage: Any = getattr(handle, "untyped_storage", None)
    if callable(storage):  # a tensor of PyTorch has the bytes of its storage
        return int(cast("Any", storage()).nbytes())
    return next((size for name in ("nbytes", "size") if isinstance(size := getattr(handle, name, None), int)), None)


class Signature:
    """What can be called with which arguments; of functions in another language it is often not known."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.name: str = getattr(function, "__qualname__", None) or repr(function)
        self.known: bool = callable(function)
        self.parameters: list[inspect.Parameter] = []
        try:
            self.parameters = list(inspect.signature(function).parameters.values()) if self.known else []
        except (TypeError, ValueError):  # written in another language
            self.known = False
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.positional: list[inspect.Parameter] = [it for it in self.parameters if it.kind in by_position]
        self.variable: bool = any(it.kind is it.VAR_POSITIONAL for it in self.parameters)
        variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.required: list[inspect.Parameter] = [
            it for it in self.parameters if it.default is it.empty and it.kind not in variable
        ]

    def has(self, name: str) -> bool:
        """Whether there is a parameter with this name."""
        return any(it.name == name for it in self.parameters)

    @property
    def positions(self) -> int:
        """The number of positional arguments without a stream; 1 if it is not known."""
        named = sum(it.name != "stream" for it in self.positional)
        return max(named, 2 if self.variable else 0) if self.known else 1

    def first(self, most: int, what: str, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The function, or another one with the same signature, as a function of only its first arguments."""
        wanted = [it for it in self.required if it.name != "stream"]
        too_few = self.known and self.positions < most
        if len(wanted) > most or too_few or any(it.kind is it.KEYWORD_ONLY for it in wanted):
            names = ", ".join(it.name for it in wanted) or "no argument"
            raise TargetError(f"{self.name} wants {names}; the fuzzer has a {what}{' and a size' * (most > 1)}")
        called = function or self._function
        if any(it.name == "stream" for it in self.required):
            return lambda *arguments: called(*arguments, stream=None)
        return called


def from_methods(subject: Any, take: Callable[..., Any], give: Callable[..., Any], kind: str) -> Target:
    """The target for an object with a method that allocates and one that frees: RMM, Warp, cuda.core, ours.

    The signatures show how many arguments each takes, and whether one is a stream.
    """
    taking, giving = Signature(take), Signature(give)
    sized = giving.positions > 1
    if any(it.name == "stream" and it.kind is it.KEYWORD_ONLY for it in giving.parameters):
        give = _closing(give)
    plain = giving.first(1 + sized, "pointer", give)
    calloc, realloc = (getattr(subject, name, None) for name in ("calloc", "realloc"))
    resize = None if realloc is None else Signature(realloc).first(2, "pointer")
    return Target(
        kind=kind,
        subject=subject,
        capabilities=Capabilities(sized_free=sized),
        take=taking.first(1, "size"),
        give=plain if sized else lambda handle, _: plain(handle),
        take_aligned=(lambda size, alignment: take(size, alignment=alignment)) if taking.has("alignment") else None,
        take_on=(lambda size, stream: take(size, stream=stream)) if taking.has("stream") else None,
        give_on=(lambda handle, size, stream: give(handle, *[size] * sized, stream=stream))
        if giving.has("stream")
        else None,
        take_zeroed=None if calloc is None else Signature(calloc).first(1, "size"),
        resize=None if resize is None else lambda handle, size, _: resize(handle, size),
        copy=_copying(subject),
        read=getattr(subject, "read", None),
        write=getattr(subject, "write", None),
        usable_size=getattr(subject, "usable_size", None),
    )


def _closing(give: Callable[..., Any]) -> Callable[..., Any]:
    """cuda.core's convention: a buffer with ``close`` is closed, and then calls ``deallocate`` with an address."""

    def close(handle: Any, *arguments: Any, stream: Any = None) -> Any:
        closing = getattr(handle, "close", None)
        return give(handle, *arguments, stream=stream) if closing is None else closing(stream)

    return close


def _copying(subject: Any) -> Callable[[Any, Any, int], Any] | None:
    """The copy between two blocks of one device: KuiperLLama's interface, or C's order of arguments.

    The names of the parameters show whether the destination comes first, and whether there are a kind and a wish to
    wait.  Without them, or with others that are required, the copy is not tried.
    """
    copy: Any = getattr(subject, "memcpy", None)
    signature = Signature(copy)
    names = [it.name for it in signature.positional]
    if signature.variable:
        names += ["source", "target", "size"][len(names) :]
    extra: list[Any] = []
    if "kind" in names[3:4]:
        on_host = getattr(getattr(subject, "device_type", None), "name", "CPU") == "CPU"
        extra.append(MemcpyKind.CPU2CPU if on_host else MemcpyKind.CUDA2CUDA)
    given = {*names[: 3 + len(extra)], "need_sync"}
    if len(names) < 3 or any(it.name not in given for it in signature.required):  # noqa: PLR2004 -- source, destination and size
        return None
    waits = {"need_sync": True} if signature.has("need_sync") else {}
    if names[0].lower().startswith(("d", "to")):
        return lambda source, target, size: copy(target, source, size, *extra, **waits)
    return lambda source, target, size: copy(source, target, size, *extra, **waits)


def from_pair(take: Callable[..., Any], give: Callable[..., Any]) -> Target:
    """The target for two functions: of size, and then device or stream; and of pointer, and then size and those.

    CuPy's ``PythonFunctionAllocator`` and RMM's ``CallbackMemoryResource`` take such pairs.
    """
    taking, giving = _arguments(take), _arguments(give)
    sized = any("size" in name or "bytes" in name for name in giving[1:])
    # A device is 0; of a stream, or of what is not known, there is none.
    extra_take, extra_give = ([0 if "dev" in name else None for name in it] for it in (taking[1:], giving[1 + sized :]))
    return Target(
        kind="a pair of callables",
        subject=None,
        capabilities=Capabilities(sized_free=sized),
        take=(lambda size: take(size, *extra_take)) if extra_take else take,
        give=give if sized and not extra_give else lambda handle, size: give(handle, *[size] * sized, *extra_give),
    )


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The names of the required arguments; if they are not known, only one."""
    signature = Signature(function)
    if not signature.known:
        return [""]
    variable = [it.name for it in signature.parameters if it.kind is it.VAR_POSITIONAL]
    names = [*(it.name for it in signature.required), *variable]
    if names[:1] == ["self"]:
        what = "is a method without its object: name the class, or a function that makes the object"
        raise TargetError(f"{signature.name} {what}")
    if not 1 <= len(names) <= 3:  # noqa: PLR2004 -- a size, a device and a stream
        raise TargetError(f"{signature.name} takes {len(names)} arguments; one to three were expected")
    return names


Giving = Literal["release", "free", "close", "drop"]


def from_callable(take: Callable[[int], Any], subject: Any, giving: Giving, kind: str) -> Target:
    """The target for a callable whose results are freed by their own method, or by dropping them."""
    return Target(
        kind=kind,
        subject=subject,
        capabilities=Capabilities(),
        take=take if giving != "drop" else lambda size: _Dropped(take(size)),
        give=(lambda handle, _: handle.drop()) if giving == "drop" else lambda handle, _: getattr(handle, giving)(),
    )


class _Dropped:
    """Holds the only reference to an object that is freed when it is dropped."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def drop(self) -> None:
        """Drop the object."""
        self._held = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)


def giving_of(handle: Any) -> Giving | None:
    """How an object that an allocator returned is freed; None for a plain address."""
    methods: tuple[Giving, ...] = ("release", "free", "close")
    method: Giving | None = next((name for name in methods if callable(getattr(handle, name, None))), None)
    if method is not None or handle is None or isinstance(handle, int | str | bytes):
        return method
    return "drop" if address_of(handle) else None


# --- allocators of arrays: ``allocate(shape, dtype, device_id, layout_map, byte_alignment)``, as gt4py has them


def from_typed(subject: Any) -> Target | None:
    """The target for an object that allocates arrays by shape, type and alignment; None for another one.

    A request for bytes becomes one for an array of bytes: with one dimension if the size is odd, else with two, in the
    order of C or of Fortran.  Contents are written and read through the array, so its shape and its strides are tested
    too.
    """
    allocate: Any = getattr(subject, "allocate", None)
    signature = Signature(allocate)
    if not all(map(signature.has, ("shape", "dtype", "byte_alignment"))):
        return None
    numpy: Any = importlib.import_module("numpy")
    gt4py: Any = sys.modules.get("gt4py._core.definitions")  # which has its own description of types
    dtype = numpy.dtype("uint8") if gt4py is None else gt4py.dtype(numpy.uint8)

    def take(size: int, alignment: int = 1) -> _Array:
        shape, layout = ((2, size // 2), ((0, 1) if size % 4 else (1, 0))) if size % 2 == 0 else ((size,), (0,))
        offered = {"shape": shape, "dtype": dtype, "byte_alignment": alignment, "device_id": 0, "layout_map": layout}
        return _Array(allocate(**{name: value for name, value in offered.items() if signature.has(name)}))

    return Target(
        kind="allocate with a shape",
        subject=subject,
        capabilities=Capabilities(host_readable=False),
        take=take,
        give=lambda handle, _: handle.drop(),
        take_aligned=take,
        read=lambda handle, size: b"".join(row.tobytes() for row in handle.rows(size)),
        write=lambda handle, data: handle.write(data),
    )


class _Array(_Dropped):
    """Holds the only reference to an array."""

    @property
    def ndarray(self) -> Any:
        """The array itself."""
        return getattr(self._held, "ndarray", self._held)

    @property
    def ptr(self) -> int:
        """The address of its first element."""
        return address_of(self.ndarray)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return int(self.ndarray.nbytes)

    def rows(self, size: int) -> list[Any]:
        """Its first bytes, row by row: of a large block only some are written and read."""
        rows = self.ndarray if self.ndarray.ndim > 1 else self.ndarray[None]
        starts = range(0, size, max(rows.shape[1], 1))
        return [row[: size - start] for row, start in zip(rows, starts, strict=False)]

    def write(self, data: bytes) -> None:
        """Write its first bytes."""
        library: Any = sys.modules[type(self.ndarray).__module__.partition(".")[0]]  # NumPy or CuPy
        written = 0
        for row in self.rows(len(data)):
            row[...] = library.frombuffer(data[written : written + len(row)], dtype="uint8")
            written += len(row)
