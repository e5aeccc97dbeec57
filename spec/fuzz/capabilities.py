"""The capability record: the promises of an allocator.

An allocator cannot break a promise that it never made.  So the fuzzer does not try what the record leaves *undefined*,
and it reports what it cannot check as not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_type_hints

from .finding import TargetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Capabilities", "Misuse", "ZeroSize", "check_names"]

Misuse = Literal["undefined", "detect", "ignore"]
"""The effect of a wrong free: undefined; refused with an error; ignored."""

ZeroSize = Literal["any", "null", "unique", "error"]
"""The result for zero bytes: any of these; null; a unique address; an error."""

_LARGEST_ALIGNMENT = 1 << 20


@dataclass(frozen=True)
class Capabilities:
    """The promises of a target.

    Attributes
    ----------
    alignment : int
        Every block starts at a multiple of this power of two; 1 promises nothing.
    zero_size : {"any", "null", "unique", "error"}
        The result of a request for zero bytes.
    sized_free : bool
        Whether a free takes the size of the block.
    wrong_size, foreign_free, double_free : {"undefined", "detect", "ignore"}
        The effect of a free with a wrong size, of a pointer that was never allocated, and of a block that is already
        free.  If undefined, the fuzzer does not try it.
    zeroed : bool
        Whether new memory is zero.
    reuse : bool
        Whether freed memory is lent again.  An arena lends it only after a reset.
    stream_ordered : bool
        Whether memory goes to another stream only after the work on it is done.
    thread_safe : bool
        Whether several threads may call at the same time.
    fork_safe : bool
        Whether a forked child may call, even if another thread was calling.
    errno_kept : bool
        Whether a free in C leaves ``errno`` as it was.
    out_of_memory : tuple of str
        The names of the exceptions that mean out of memory; ``"null"`` if a null pointer means it.
    host_readable : bool or None
        Whether the host can read and write the memory; if None, the operating system is asked at the first block.
    limit : int
        The most bytes that may be live at the same time; if 0, the target's own limit.
    """

    alignment: int = 1
    zero_size: ZeroSize = "any"
    sized_free: bool = False
    wrong_size: Misuse = "undefined"
    foreign_free: Misuse = "undefined"
    double_free: Misuse = "undefined"
    zeroed: bool = False
    reuse: bool = True
    stream_ordered: bool = False
    thread_safe: bool = False
    fork_safe: bool = False
    errno_kept: bool = False
    out_of_memory: tuple[str, ...] = ("MemoryError",)
    host_readable: bool | None = None
    limit: int = 0

    def with_promises(self, promises: Mapping[str, str]) -> Capabilities:
        """The record with some entries replaced by promises of a command line.

        Parameters
        ----------
        promises : mapping of str to str
            ``{"alignment": "64", "double_free": "detect", "thread_safe": "yes"}``.

        Raises
        ------
        TargetError
            If there is no such entry or value, or if the entries contradict each other.
        """
        check_names(promises)
        entries: dict[str, Any] = {name: _value(name, text) for name, text in promises.items()}
        record = replace(self, **entries)
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
        for name, number in self.as_numbers().items():
            if number < 0:
                raise TargetError(f"{name} must not be negative, got {number}")
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
        return {field.name: _text(field.name, getattr(self, field.name)) for field in fields(self)}

    def as_numbers(self) -> dict[str, int]:
        """What the native driver gets: numbers, choices by their places, and whether null means no room."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        numbers = {name: int(value) for name, value in values.items() if isinstance(value, int)}
        chosen = {name: value for name, value in values.items() if isinstance(value, str)}
        numbers |= {name: list(_SPELLINGS[name].values()).index(value) for name, value in chosen.items()}
        return numbers | {"null": int("null" in self.out_of_memory)}

    def makes(self, promise: str) -> bool:
        """Whether an entry promises something; a requirement for which ``"anything"`` is enough needs no promise."""
        return promise == "anything" or getattr(self, promise) != getattr(Capabilities, promise)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an exception, or one of its base classes, is among those that mean out of memory."""
        return any(kind.__name__ in self.out_of_memory for kind in type(error).__mro__)


_YES_NO = {"yes": True, "no": False}
_CHOICES: dict[Any, dict[str, Any]] = {
    bool: _YES_NO,
    bool | None: {**_YES_NO, "ask": None},
    **{kind: {choice: choice for choice in get_args(kind)} for kind in (Misuse, ZeroSize)},
}
_SPELLINGS = {name: _CHOICES[hint] for name, hint in get_type_hints(Capabilities).items() if hint in _CHOICES}
"""The values of the promises that have a choice, as a command line spells them; the others are numbers and names."""


def check_names(promises: Iterable[str]) -> None:
    """Refuse unknown names of promises."""
    known = [field.name for field in fields(Capabilities)]
    for name in promises:
        if name not in known:
            raise TargetError(f"there is no promise {name!r}; there are {', '.join(known)}")


def _value(name: str, text: str) -> object:
    spellings = _SPELLINGS.get(name)
    if spellings is not None:
        if text not in spellings:
            raise TargetError(f"{name} must be one of {', '.join(spellings)}, got {text!r}")
        return spellings[text]
    if name == "out_of_memory":
        return tuple(filter(None, text.split(",")))
    try:
        return int(text)
    except ValueError:
        raise TargetError(f"{name} must be a number, got {text!r}") from None


def _text(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(cast("tuple[str, ...]", value))
    return next((text for text, meaning in _SPELLINGS.get(name, {}).items() if meaning == value), str(value))
