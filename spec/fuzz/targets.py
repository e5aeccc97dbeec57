"""A target for the fuzzer: a few functions and a capability record.

Allocators differ in their names, in the kind of their pointers, and in the arguments of a free.  Each function here
makes a `Target` for one convention; ``recognition`` decides which function is used.
"""

from __future__ import annotations

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

__all__ = ["Target", "from_callable", "from_methods", "from_pair"]

_DEVICE_TO_DEVICE, _HOST_TO_HOST = MemcpyKind.CUDA2CUDA, MemcpyKind.CPU2CPU


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


def from_methods(subject: Any, take: Callable[..., Any], give: Callable[..., Any], kind: str) -> Target:
    """The target for an object with a method that allocates and one that frees: RMM, Warp, cuda.core, ours.

    The signatures show how many arguments each takes, and whether one is a stream.
    """
    taking, giving = _Call(take, "size"), _Call(give, "pointer")
    sized = giving.positions > 1
    if giving.keyword_only("stream"):
        give = _closing(give)
    return Target(
        kind=kind,
        subject=subject,
        capabilities=Capabilities(sized_free=sized),
        take=taking.plain(1),
        give=giving.plain(2, give) if sized else _without_size(giving.plain(1, give)),
        take_aligned=(lambda size, alignment: take(size, alignment=alignment)) if taking.has("alignment") else None,
        take_on=(lambda size, stream: take(size, stream=stream)) if taking.has("stream") else None,
        give_on=_giving_on(give, sized) if giving.has("stream") else None,
        take_zeroed=_zeroing(subject),
        resize=_resizing(subject),
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


def _without_size(give: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    return lambda handle, _: give(handle)


def _giving_on(give: Callable[..., Any], sized: bool) -> Callable[[Any, int, Any], Any]:
    if sized:
        return lambda handle, size, stream: give(handle, size, stream=stream)
    return lambda handle, _, stream: give(handle, stream=stream)


def _resizing(subject: Any) -> Callable[[Any, int, int], Any] | None:
    if getattr(subject, "realloc", None) is None:
        return None
    resize = _Call(subject.realloc, "pointer").plain(2)
    return lambda handle, size, _: resize(handle, size)


def _zeroing(subject: Any) -> Callable[[int], Any] | None:
    calloc = getattr(subject, "calloc", None)
    return None if calloc is None else _Call(calloc, "size").plain(1)


def _copying(subject: Any) -> Callable[[Any, Any, int], Any] | None:
    """The copy between two blocks of one device: KuiperLLama's interface, or C's order of arguments.

    The names of the parameters show whether the destination comes first, and whether there are a kind and a wish to
    wait.  Without them, or with others that are required, the copy is not tried.
    """
    copy = getattr(subject, "memcpy", None)
    if copy is None:
        return None
    try:
        parameters = list(inspect.signature(copy).parameters.values())
    except (TypeError, ValueError):  # written in another language
        return None
    names = [it.name for it in parameters if it.kind in (it.POSITIONAL_ONLY, it.POSITIONAL_OR_KEYWORD)]
    if any(it.kind is it.VAR_POSITIONAL for it in parameters):
        names += ["source", "target", "size"][len(names) :]
    extra: list[Any] = []
    if "kind" in names[3:4]:
        on_host = getattr(getattr(subject, "device_type", None), "name", "CPU") == "CPU"
        extra.append(_HOST_TO_HOST if on_host else _DEVICE_TO_DEVICE)
    given = {*names[: 3 + len(extra)], "need_sync"}
    wanted = [it for it in parameters if it.default is it.empty and it.kind not in (it.VAR_KEYWORD, it.VAR_POSITIONAL)]
    if len(names) < 3 or any(it.name not in given for it in wanted):  # noqa: PLR2004 -- source, destination and size
        return None
    waits = {"need_sync": True} if any(it.name == "need_sync" for it in parameters) else {}
    if names[0].lower().startswith(("d", "to")):
        return lambda source, target, size: copy(target, source, size, *extra, **waits)
    return lambda source, target, size: copy(source, target, size, *extra, **waits)


class _Call:
    """The signature of a function, and calls of it."""

    def __init__(self, function: Callable[..., Any], first: str) -> None:
        self._function = function
        self._first = first
        self._known = True
        try:
            self._parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # written in another language
            self._known, self._parameters = False, []
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        named = [it for it in self._parameters if it.kind in by_position and it.name != "stream"]
        self._required = [it for it in named if it.default is it.empty]
        variable = any(it.kind is it.VAR_POSITIONAL for it in self._parameters)
        self.positions = max(len(named), 2 if variable else 0) if self._known else 1
        self._only_by_name = [
            it for it in self._parameters
            if it.kind is it.KEYWORD_ONLY and it.default is it.empty and it.name != "stream"
        ]  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether there is a parameter with this name."""
        return any(it.name == name for it in self._parameters)

    def keyword_only(self, name: str) -> bool:
        """Whether there is a parameter that must be given by this name."""
        return any(it.name == name and it.kind is it.KEYWORD_ONLY for it in self._parameters)

    def plain(self, most: int, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The function, or another one with the same signature, as a function of only its first arguments."""
        wanted = [*self._required, *self._only_by_name]
        if len(wanted) > most or self._only_by_name or (self._known and self.positions < most):
            names = ", ".join(it.name for it in wanted) or "no argument"
            name = getattr(self._function, "__qualname__", repr(self._function))
            raise TargetError(f"{name} wants {names}; the fuzzer has a {self._first}{' and a size' * (most > 1)}")
        needed = [it.name for it in self._parameters if it.default is it.empty and it.name == "stream"]
        called = function or self._function
        return (lambda *arguments: called(*arguments, stream=None)) if needed else called


def from_pair(take: Callable[..., Any], give: Callable[..., Any]) -> Target:
    """The target for two functions: of size, and then device or stream; and of pointer, and then size and those.

    CuPy's ``PythonFunctionAllocator`` and RMM's ``CallbackMemoryResource`` take such pairs.
    """
    taking, giving = _arguments(take, {"size": 0, "device": 0, "stream": None}), _arguments(give, {"pointer": 0})
    sized = any("size" in name or "bytes" in name for name in giving[1:])
    extra_take = tuple(_neutral(name) for name in taking[1:])
    extra_give = tuple(_neutral(name) for name in (giving[2:] if sized else giving[1:]))

    def give_back(handle: Any, size: int) -> Any:
        return give(handle, size, *extra_give) if sized else give(handle, *extra_give)

    return Target(
        kind="a pair of callables",
        subject=None,
        capabilities=Capabilities(sized_free=sized),
        take=(lambda size: take(size, *extra_take)) if extra_take else take,
        give=give if sized and not extra_give else give_back,
    )


def _arguments(function: Callable[..., Any], fallback: dict[str, Any]) -> list[str]:
    """The names of the required arguments; if they are not known, the first of the fallback."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return list(fallback)[:1]
    names = [it.name for it in parameters if it.default is it.empty and it.kind is not it.VAR_KEYWORD]
    most = 3
    if names[:1] == ["self"]:
        name = getattr(function, "__qualname__", repr(function))
        raise TargetError(f"{name} is a method without its object: name the class, or a function that makes the object")
    if not 1 <= len(names) <= most:
        name = getattr(function, "__qualname__", repr(function))
        raise TargetError(f"{name} takes {len(names)} arguments; one to three were expected")
    return names


def _neutral(name: str) -> int | None:
    """A neutral value for an argument for which the fuzzer has none."""
    return 0 if "dev" in name else None


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
    found: Giving | None = next((name for name in methods if callable(getattr(handle, name, None))), None)
    if found is not None or handle is None or isinstance(handle, int | str | bytes):
        return found
    return "drop" if address_of(handle) else None
