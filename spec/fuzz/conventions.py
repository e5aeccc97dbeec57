"""The conventions of allocators in Python: how each is recognised, by attributes and not by base classes, and called.

Each is a function that takes an object, and returns its target, or None if it follows another convention.
"""

from __future__ import annotations

import inspect
import time
from functools import partial
from inspect import Parameter
from typing import TYPE_CHECKING, Any, cast

from syncedmem.model.errors import said
from syncedmem.model.interface import MemcpyKind

from .capabilities import Capabilities
from .finding import TargetError
from .handles import address_of, is_null
from .streams import Stream
from .targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["name_of", "recognise"]

_PROBE, _PROBE_SECONDS = 64, 0.2
"""The size of the block by which a target is recognised, and the seconds for which it may refuse that at first."""

_ACCEPTED = (
    "an object or class with allocate and deallocate (or release, or free), with memalloc or with malloc; "
    "a pair of callables; or a callable that returns something with release, free or close"
)


def name_of(target: object) -> str:
    """What a target is called in a message."""
    if isinstance(target, tuple):
        return ", ".join(name_of(item) for item in cast("tuple[object, ...]", target))
    return str(getattr(target, "__qualname__", None) or f"an object of type {type(target).__qualname__}")


class _Signature:
    """What can be called with which arguments; of functions in another language it is often not known."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.name: str = getattr(function, "__qualname__", None) or repr(function)
        self.known: bool = callable(function)
        self.parameters: Mapping[str, Parameter] = {}
        try:
            self.parameters = inspect.signature(function).parameters if self.known else {}
        except (TypeError, ValueError):  # written in another language
            self.known = False
        self.positional = self._names(Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        self.variable = self._names(Parameter.VAR_POSITIONAL)
        named = [*self.positional, *self._names(Parameter.KEYWORD_ONLY)]
        self.required = [name for name in named if self.parameters[name].default is Parameter.empty]

    def _names(self, *kinds: object) -> list[str]:
        return [name for name, parameter in self.parameters.items() if parameter.kind in kinds]

    def has(self, *names: str) -> bool:
        """Whether there are parameters with these names."""
        return self.parameters.keys() >= set(names)

    @property
    def positions(self) -> int:
        """The number of positional arguments without a stream; 1 if it is not known."""
        named = len(self.positional) - ("stream" in self.positional)
        return max(named, 2 if self.variable else 0) if self.known else 1

    def first(self, most: int, what: str, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The function, or another one with the same signature, as a function of only its first arguments."""
        wanted = [name for name in self.required if name != "stream"]
        too_few = self.known and self.positions < most
        if len(wanted) > most or too_few or not set(wanted) <= set(self.positional):
            names = ", ".join(wanted) or "no argument"
            raise TargetError(f"{self.name} wants {names}; the fuzzer has a {what}{' and a size' * (most > 1)}")
        called = function or self._function
        return partial(called, stream=Stream(0)) if "stream" in self.required else called


def _methods(take_name: str, give_name: str, subject: Any) -> Target | None:
    """An object with a method that allocates and one that frees: RMM, Warp, cuda.core, ours.

    The signatures show how many arguments each takes, and whether one is a stream.
    """
    take, give, calloc, realloc = (getattr(subject, name, None) for name in (take_name, give_name, "calloc", "realloc"))
    if not (callable(take) and callable(give)):
        return None
    taking, giving = _Signature(take), _Signature(give)
    sized = giving.positions > 1
    if giving.has("stream") and "stream" not in giving.positional:
        give = _closing(give)
    plain = giving.first(1 + sized, "pointer", give)
    resize = None if realloc is None else _Signature(realloc).first(2, "pointer")
    return Target(
        kind=f"{take_name} and {give_name}",
        subject=subject,
        capabilities=Capabilities(sized_free=sized),
        take=taking.first(1, "size"),
        give=plain if sized else lambda handle, _: plain(handle),
        take_aligned=(lambda size, alignment: take(size, alignment=alignment)) if taking.has("alignment") else None,
        take_on=(lambda size, stream: take(size, stream=stream)) if taking.has("stream") else None,
        give_on=(lambda handle, size, stream: give(handle, *[size] * sized, stream=stream))
        if giving.has("stream")
        else None,
        take_zeroed=None if calloc is None else _Signature(calloc).first(1, "size"),
        resize=None if resize is None else lambda handle, size, _: resize(handle, size),
        copy=_copying(subject),
        read=getattr(subject, "read", None),
        write=getattr(subject, "write", None),
        usable_size=getattr(subject, "usable_size", None),
        reset=_resetting(subject),
    )


def _closing(give: Callable[..., Any]) -> Callable[..., Any]:
    """cuda.core's convention: a buffer with ``close`` is closed, and then calls ``deallocate`` with an address."""

    def close(handle: Any, *arguments: Any, stream: Any = None) -> Any:
        closing = getattr(handle, "close", None)
        return give(handle, *arguments, stream=stream) if closing is None else closing(stream)

    return close


def _resetting(subject: Any) -> Callable[[], Any] | None:
    """The method that makes an arena as new; it is called only if the arena is promised to be one."""
    reset: Any = getattr(subject, "reset", None)
    return reset if callable(reset) and not _Signature(reset).required else None


def _copying(subject: Any) -> Callable[[Any, Any, int], Any] | None:
    """The copy between two blocks of one device: KuiperLLama's interface, or C's order of arguments.

    The names of the parameters show whether the destination comes first, and whether there are a kind and a wish to
    wait.  Without them, or with others that are required, the copy is not tried.
    """
    copy: Any = getattr(subject, "memcpy", None)
    signature = _Signature(copy)
    names = signature.positional
    if signature.variable:
        names = [*names, *("source", "target", "size")[len(names) :]]
    extra: list[Any] = []
    if "kind" in names[3:4]:
        on_host = getattr(getattr(subject, "device_type", None), "name", "CPU") == "CPU"
        extra.append(MemcpyKind.CPU2CPU if on_host else MemcpyKind.CUDA2CUDA)
    if len(names) < 3 or not {*names[: 3 + len(extra)], "need_sync"}.issuperset(signature.required):  # noqa: PLR2004 -- source, destination and size
        return None
    waits = {"need_sync": True} if signature.has("need_sync") else {}
    if names[0].lower().startswith(("d", "to")):
        return lambda source, target, size: copy(target, source, size, *extra, **waits)
    return lambda source, target, size: copy(source, target, size, *extra, **waits)


def _pair(subject: Any) -> Target | None:
    """Two functions: of size, and then device or stream; and of pointer, and then size and those.

    CuPy's ``PythonFunctionAllocator`` and RMM's ``CallbackMemoryResource`` take such pairs.
    """
    if type(subject) not in (tuple, list) or len(subject) != 2 or not all(map(callable, subject)):  # noqa: PLR2004 -- a pair
        return None
    take, give = subject
    taking, giving = _arguments(take), _arguments(give)
    sized = any("size" in name or "bytes" in name for name in giving[1:])
    extra_take, extra_give = (list(map(_value_of, names)) for names in (taking[1:], giving[1 + sized :]))
    return Target(
        kind="a pair of callables",
        subject=None,
        capabilities=Capabilities(sized_free=sized),
        take=(lambda size: take(size, *extra_take)) if extra_take else take,
        give=give if sized and not extra_give else lambda handle, size: give(handle, *[size] * sized, *extra_give),
    )


def _value_of(name: str) -> object:
    """What is passed for a further argument: device 0, the default stream, or none of what is not known."""
    return Stream(0) if "stream" in name else 0 if "dev" in name else None


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The names of the required arguments; if they are not known, only one."""
    signature = _Signature(function)
    if not signature.known:
        return [""]
    names = [*signature.required, *signature.variable]
    if names[:1] == ["self"]:
        what = "is a method without its object: name the class, or a function that makes the object"
        raise TargetError(f"{signature.name} {what}")
    if not 1 <= len(names) <= 3:  # noqa: PLR2004 -- a size, a device and a stream
        raise TargetError(f"{signature.name} takes {len(names)} arguments; one to three were expected")
    return names


def _probed(name: str, subject: Any) -> Target | None:
    """An object with a method of this name, or a callable, whose results have a method that frees, or are dropped.

    So are those of Numba and CuPy, and of PyTorch.  It is called until it returns something, because only its result
    shows how it is freed.
    """
    take = getattr(subject, name, None) if name else subject
    if not callable(take):
        return None
    handle = _tried(take, name_of(subject))
    method = next((name for name in ("release", "free", "close") if callable(getattr(handle, name, None))), "drop")
    if method == "drop" and (isinstance(handle, int | str | bytes) or not address_of(handle)):
        what = f"{handle!r}, which has neither release, free nor close"
        raise TargetError(f"{name_of(subject)} returned {what}; it has to be {_ACCEPTED}")
    if method != "drop":
        getattr(handle, method)()
    is_tensor = callable(getattr(handle, "untyped_storage", None))  # PyTorch refuses with a RuntimeError
    return Target(
        kind=f"{name or 'a callable'}, then {method}",
        subject=subject,
        capabilities=Capabilities(out_of_memory=("MemoryError", "RuntimeError") if is_tensor else ("MemoryError",)),
        take=take if method != "drop" else lambda size: _Dropped(take(size)),
        give=lambda handle, _: getattr(handle, method)(),
    )


def _tried(take: Callable[[int], Any], name: str) -> Any:
    """What a call returns; an allocator that refuses it is asked again for a while."""
    until = time.monotonic() + _PROBE_SECONDS
    while True:
        is_last = time.monotonic() >= until
        try:
            handle = take(_PROBE)
        except Exception as error:
            if is_last:
                raise TargetError(f"{name} cannot be called with a size of {_PROBE}: {said(error)}") from error
        else:
            if is_last or not is_null(handle):
                return handle


class _Dropped:
    """Holds the only reference to an object that is freed when it is dropped."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def drop(self) -> None:
        """Drop the object."""
        self._held = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)


_CONVENTIONS: tuple[Callable[[Any], Target | None], ...] = (
    partial(_methods, "allocate", "deallocate"),
    partial(_methods, "allocate", "release"),
    partial(_methods, "allocate", "free"),
    partial(_methods, "malloc", "free"),
    *(partial(_probed, name) for name in ("memalloc", "malloc", "allocate", "alloc")),
    _pair,
    partial(_probed, ""),
)
"""All conventions; the first that an object follows is used."""


def recognise(subject: Any) -> Target:
    """The target for an object."""
    for convention in _CONVENTIONS:
        target = convention(subject)
        if target is not None:
            return target
    raise TargetError(f"{name_of(subject)} is not recognised as an allocator; it has to be {_ACCEPTED}")
