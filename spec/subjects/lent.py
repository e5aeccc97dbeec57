"""The buffers that the caller of memories in Python hands in: in many forms, watched, and with canaries around."""

from __future__ import annotations

import ctypes
import gc
import weakref
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..engine.contents import Watched, put
from ..record.steps import CANARY, UNSUITABLE, content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..engine.call_log import Adopted
    from ..engine.subject import Subject
    from ..record.steps import Buffer

__all__ = ["Lent", "LentBuffers"]

_ROWS = 6


@dataclass
class Lent:
    """A buffer of the caller.

    Attributes
    ----------
    side : str
    start, used, size : int
        Where the bytes that a memory uses begin, how many they are, and how many there are in all.
    whole, handed : object
        What has all of the bytes, and what is handed in; None if the owner has forgotten them.
    watch : callable
        What is handed in, as long as it is there.
    pointers : list of callable
        What the allocators made of it, as long as it is there.
    """

    side: str
    start: int
    used: int
    size: int
    whole: Any
    handed: Any
    watch: Callable[[], Any] = lambda: None
    pointers: list[Callable[[], Any]] = field(default_factory=list["Callable[[], Any]"])

    @property
    def is_held(self) -> bool:
        """Whether it is still there, perhaps as an array of somebody's."""
        return any(watch() is not None for watch in (self.watch, *self.pointers))


class LentBuffers:
    """The buffers of a case, by their names."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._buffers: dict[str, Lent] = {}

    def known(self, name: str) -> Lent | None:
        """A buffer that its owner still has."""
        lent = self._buffers.get(name)
        return None if lent is None or lent.whole is None else lent

    def handed_in(self, wanted: Buffer, size: int) -> Any:
        """A buffer for a memory of this size, which is made if there is none, or filled again."""
        if self._subject.place(wanted.side) is None:
            return object()
        if wanted.form in UNSUITABLE:
            return self._unsuitable(wanted.form, wanted.side, size)
        if wanted.name not in self._buffers:
            lent = self._buffers[wanted.name] = self._new(wanted, size)
            if lent.size:
                put(self._subject, lent.whole, bytes([CANARY]) * lent.size, lent.side)
            self.fill(wanted.name, wanted.content or 0)
        elif wanted.content is not None:
            self.fill(wanted.name, wanted.content)
        return self._buffers[wanted.name].handed

    def own(self, wanted: Buffer, size: int, block: Any, view: Any) -> Any:
        """A memory's own block, or a part of it: the view that was returned last, or the block in another form."""
        host = self._subject.on_host(wanted.side)
        forms: dict[str, Callable[[], Any]] = {
            "": lambda: block if view is None else view,
            "block": lambda: block,
            "view": lambda: memoryview(block) if host else block.view(),
            "doubles": lambda: memoryview(block).cast("B").cast("d"),
            "part": lambda: memoryview(block[:]) if host else block[:size],
            "ctypes": lambda: (ctypes.c_char * size).from_buffer(block),
        }
        own = forms[wanted.form]()
        return own[wanted.offset :] if wanted.offset else own

    def fill(self, name: str, number: int) -> None:
        """Write a content into the part of a buffer that a memory uses."""
        lent = self._buffers[name]
        if lent.whole is None or not lent.used:
            return
        bytes_ = content(number, lent.used)
        if self._subject.on_host(lent.side):
            memoryview(lent.whole).cast("B")[lent.start : lent.start + lent.used] = bytes_
        else:
            put(self._subject, lent.whole[lent.start :] if lent.start else lent.whole, bytes_, lent.side)

    def adopted_as(self, name: str, pointers: Iterable[Adopted]) -> None:
        """Note what the allocators made of a buffer; a memory may keep that in its place."""
        if name in self._buffers:
            self._buffers[name].pointers += (pointer.pointer for pointer in pointers)

    # --- lifetimes

    def forget(self, name: str) -> None:
        """Forget a buffer, or all without a name; and use what was their memory, if nothing else holds it."""
        forgotten = [buffer for key, buffer in self._buffers.items() if name in ("", key)]
        for buffer in forgotten:
            buffer.whole = buffer.handed = None
        gc.collect()
        for lent in forgotten[:1]:
            for other in [self._empty(lent.side, lent.size) for _ in range(3)]:
                put(self._subject, other, bytes(lent.size), lent.side)

    def gone(self) -> frozenset[str]:
        """The forgotten buffers that are no longer there."""
        return frozenset(
            name for name, buffer in self._buffers.items() if buffer.handed is None and buffer.watch() is None
        )

    def held(self) -> frozenset[str]:
        """The forgotten buffers that something still holds, perhaps as an array of its own."""
        forgotten = ((name, buffer) for name, buffer in self._buffers.items() if buffer.handed is None)
        return frozenset(name for name, buffer in forgotten if buffer.is_held)

    # --- forms

    def _empty(self, side: str, size: int) -> Any:
        """A buffer of the caller that can be watched."""
        return Watched(size) if self._subject.on_host(side) else self._subject.place(side).empty(size)

    def _new(self, wanted: Buffer, size: int) -> Lent:
        """A buffer, in a form that a memory must adopt if it is long enough."""
        side, form = wanted.side, wanted.form
        used = max(size + min(wanted.longer, 0), 0)
        long = used + max(wanted.longer, 0)
        whole: Any = (
            array("d", bytes(long)) if form == "doubles"
            else (ctypes.c_char * long)() if form == "ctypes"
            else self._subject.place(side).empty(long) if form == "array"
            else self._empty(side, long)
        )  # fmt: skip
        handed = whole
        if form == "rows":
            handed = memoryview(whole).cast("B", (_ROWS, long // _ROWS))
        elif form in ("middle", "rest"):
            end = wanted.offset + used if form == "middle" else long
            handed = (memoryview(whole) if self._subject.on_host(side) else whole)[wanted.offset : end]
        lent = Lent(side, wanted.offset, used, long, whole, handed)
        with suppress(TypeError):  # it cannot be watched
            lent.watch = weakref.ref(handed)
        return lent

    def _unsuitable(self, form: str, side: str, size: int) -> Any:
        """An object that must not be adopted."""
        place, other = self._subject.place(side), self._subject.elsewhere
        forms: dict[str, Callable[[], Any]] = {
            "read-only": lambda: bytes(size),
            "frozen view": lambda: memoryview(bytearray(size)).toreadonly(),
            "spread": lambda: memoryview(bytearray(2 * size))[::2],
            "backwards": lambda: memoryview(bytearray(2 * size))[::-1],
            "columns": lambda: place.empty(size).reshape(_ROWS, -1).T,
            "text": lambda: "0" * size,
            "number": lambda: 12345,
            "host": lambda: bytearray(size),
            "page-locked": lambda: place.pinned_host().empty(size),
            "elsewhere": lambda: other and other.empty(size),
        }
        return forms.get(form, object)()
