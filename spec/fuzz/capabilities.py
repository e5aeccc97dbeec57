"""The capability record: what an allocator promises.

Nobody can be wrong about what they never promised.  So what the record leaves *undefined* is not tried, and what
cannot be checked is reported as not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from .finding import TargetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Capabilities", "Misuse", "ZeroSize", "check_names"]

Misuse = Literal["undefined", "detect", "ignore"]
"""What becomes of a wrong free: anything; it is refused with an error; nothing happens."""

ZeroSize = Literal["any", "null", "unique", "error"]
"""What zero bytes give: any of these; null; an address of their own; an error."""

_CHOICES = {"zero_size": get_args(ZeroSize)} | dict.fromkeys(
    ("wrong_size", "foreign_free", "double_free"), get_args(Misuse)
)
_FLAGS = {"yes": True, "no": False}
_LARGEST_ALIGNMENT = 1 << 20


@dataclass(frozen=True)
class Capabilities:
    """What a target promises.

    Attributes
    ----------
    alignment : int
        Every block starts at a multiple of it; a power of two, and 1 for no promise.
    zero_size : {"any", "null", "unique", "error"}
        What a request for zero bytes gives.
    sized_free : bool
        Whether a free is told the size.
    wrong_size, foreign_free, double_free : {"undefined", "detect", "ignore"}
        What becomes of a free with a wrong size, of what was never allocated, and of what is free already.
        Undefined is not tried.
    zeroed : bool
        Whether fresh memory is zero.
    stream_ordered : bool
        Whether work on streams is waited for before memory goes to another stream.
    thread_safe : bool
        Whether several threads may call at once.
    out_of_memory : tuple of str
        Names of the exceptions that mean out of memory; ``"null"`` where a null pointer does.
    host_readable : bool or None
        Whether the host can read and write the memory; None asks the operating system at the first block.
    limit : int
        The most bytes that may be live at once; 0 for none but what the target itself says.
    """

    alignment: int = 1
    zero_size: ZeroSize = "any"
    sized_free: bool = False
    wrong_size: Misuse = "undefined"
    foreign_free: Misuse = "undefined"
    double_free: Misuse = "undefined"
    zeroed: bool = False
    stream_ordered: bool = False
    thread_safe: bool = False
    out_of_memory: tuple[str, ...] = ("MemoryError",)
    host_readable: bool | None = None
    limit: int = 0

    def with_promises(self, promises: Mapping[str, str]) -> Capabilities:
        """The record with some entries replaced by what a command line says.

        Parameters
        ----------
        promises : mapping of str to str
            ``{"alignment": "64", "double_free": "detect", "thread_safe": "yes"}``.

        Raises
        ------
        TargetError
            If there is no such entry or value, or the entries contradict each other.
        """
        check_names(promises)
        said: dict[str, Any] = {name: _value(name, text, getattr(self, name)) for name, text in promises.items()}
        record = replace(self, **said)
        record.check()
        return record

    def check(self) -> None:
        """Refuse a record that contradicts itself.

        Raises
        ------
        TargetError
        """
        if not 0 < self.alignment <= _LARGEST_ALIGNMENT or self.alignment & (self.alignment - 1):
            raise TargetError(f"alignment must be a power of two up to {_LARGEST_ALIGNMENT}, got {self.alignment}")
        if self.limit < 0:
            raise TargetError(f"limit must be a number of bytes, or 0 for none, got {self.limit}")
        if self.wrong_size != "undefined" and not self.sized_free:
            raise TargetError(f"wrong_size={self.wrong_size} contradicts sized_free=no: a free is told no size")
        if not self.out_of_memory:
            raise TargetError("out_of_memory names no exception, so nothing could mean out of memory")
        if self.foreign_free == "detect" and self.double_free == "ignore":
            raise TargetError(
                "foreign_free=detect contradicts double_free=ignore: what was given back is foreign to the allocator"
            )

    def as_json(self) -> dict[str, Any]:
        """The record as data, as `with_promises` reads it."""
        return {it.name: _text(getattr(self, it.name)) for it in fields(self)}

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an exception is one of those that mean out of memory, itself or by a base."""
        return any(kind.__name__ in self.out_of_memory for kind in type(error).__mro__)


def check_names(promises: Iterable[str]) -> None:
    """Refuse names of promises that there are none.

    Raises
    ------
    TargetError
    """
    known = [it.name for it in fields(Capabilities)]
    for name in promises:
        if name not in known:
            raise TargetError(f"there is no promise {name!r}; there are {', '.join(known)}")


def _value(name: str, text: str, present: object) -> object:
    if name in _CHOICES:
        return _chosen(name, text, _CHOICES[name])
    if name == "out_of_memory":
        return tuple(filter(None, text.split(",")))
    if name == "host_readable":
        return None if text == "ask" else _FLAGS[_chosen(name, text, ("yes", "no", "ask"))]
    if isinstance(present, bool):
        return _FLAGS[_chosen(name, text, tuple(_FLAGS))]
    try:
        return int(text)
    except ValueError:
        raise TargetError(f"{name} must be a number, got {text!r}") from None


def _chosen(name: str, text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise TargetError(f"{name} must be one of {', '.join(choices)}, got {text!r}")
    return text


def _text(value: object) -> str:
    if value is None:
        return "ask"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else str(value)
