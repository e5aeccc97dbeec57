"""The oracle of blobs: which memories there are, who holds which, and what each call must do to them.

A blob is a shape over two memories, and a memory is what the oracle of memories says of one.  Nothing here knows
a table of heads: a call is a few reads and writes of memories, and what has to be seen follows from which of their
copies are fresh.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from syncedmem.model import Mode, SyncedHead

from ..memory.oracle import Oracle
from .elements import INTEGERS, decoded, encoded, itemsize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..engine.calls import Side
    from ..memory.oracle import Wanted

__all__ = ["Blob", "Duty", "Foreseen", "Part", "Shape", "World"]

Shape = tuple[int, ...]
Part = Literal["data", "diff"]


class Duty(NamedTuple):
    """What a call breaks if it does something wrong.

    Attributes
    ----------
    conduct : str
        The requirement about what is allocated, copied and moved, and about the heads.
    result : str
        The requirement about the numbers.
    others : str
        The requirement about the blobs that take no part.
    """

    conduct: str
    result: str
    others: str = "B59-independent"


Done = tuple[tuple["Wanted", int], ...]
"""Allocator calls with their bytes."""


class Foreseen(NamedTuple):
    """What must be seen of one call.

    Attributes
    ----------
    duty : Duty
    after : World
    calls : tuple of Done
        What must be seen for each memory; which memory comes first is left open, as C++ leaves it.
    refused : str
        The requirement that makes the call refused; empty if it is not.
    value : object
        What the call returns, if that is a number.
    view : bytes or None
        What the view shows that the call returns.
    """

    duty: Duty
    after: World
    calls: tuple[Done, ...] = ()
    refused: str = ""
    value: Any = None
    view: bytes | None = None


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob: a shape over two memories, which it may share with others.

    Attributes
    ----------
    shape : tuple of int
    count : int
        Not always the product: a blob that was never given a shape has no axes and no elements.
    data, diff : int
        Keys of memories.
    """

    shape: Shape
    count: int
    data: int
    diff: int

    def memory(self, part: Part) -> int:
        """The key of a part's memory."""
        return self.data if part == "data" else self.diff

    def on(self, part: Part, key: int) -> Blob:
        """The blob with another memory for one part."""
        return replace(self, data=key) if part == "data" else replace(self, diff=key)


@dataclass(frozen=True, slots=True)
class World:
    """All blobs of a driver, and their memories.

    Attributes
    ----------
    dtype : str
    has_device : bool
    mode : Mode
    blobs : tuple of Blob
    memories : dict of int to Oracle
        Also of memories that nobody holds any more.
    """

    dtype: str
    has_device: bool
    mode: Mode
    blobs: tuple[Blob, ...] = ()
    memories: Mapping[int, Oracle] = field(default_factory=dict[int, Oracle])

    @property
    def held(self) -> set[int]:
        """The memories that some blob holds."""
        return {key for blob in self.blobs for key in (blob.data, blob.diff)}

    def capacity(self, n: int) -> int:
        """How many elements fit into both memories of a blob."""
        blob = self.blobs[n]
        return min(self.memories[blob.data].size, self.memories[blob.diff].size) // itemsize(self.dtype)

    def head(self, n: int, part: Part) -> SyncedHead:
        """The head of a part."""
        return self.memories[self.blobs[n].memory(part)].head

    # --- making and shaping

    def make(self, shape: Shape | None) -> World:
        """Another blob, with a shape or without."""
        bare = replace(self, blobs=(*self.blobs, Blob((), 0, -1, -1))).renewed(len(self.blobs), 0)
        return bare if shape is None else bare.reshape(len(self.blobs), shape).after

    def reshape(self, n: int, shape: Shape) -> Foreseen:
        """Another shape: the same memories if it fits, and new ones if not."""
        count = prod(shape)
        fits = count <= self.capacity(n)
        kept = self if fits else self.renewed(n, count)
        after = kept.holding(n, replace(kept.blobs[n], shape=shape, count=count))
        kept_duty = Duty("B05-reshape-keeps", "B05-reshape-keeps")
        return Foreseen(
            kept_duty if fits else Duty("B06-growth-renews", "B06-growth-renews", "B07-growth-unshares"), after
        )

    def shrink_to_fit(self, n: int) -> Foreseen:
        """New memories of exactly the blob's size where they are larger, with the elements in them."""
        duty, after, calls = Duty("B45-shrink", "B45-shrink"), self, list[Done]()
        parts: tuple[Part, ...] = ("data", "diff")
        for part in parts:
            old = self.memories[self.blobs[n].memory(part)]
            if old.size > self._size(n):
                fresh = after._unused()
                after = replace(after, memories={**after.memories, fresh: Oracle(self._size(n), self.has_device)})
                after = after.holding(n, after.blobs[n].on(part, fresh))
                if old.head is not SyncedHead.UNINITIALIZED:
                    side = _where(old)
                    done, after = after.touch(fresh, side, write=True)
                    after = after.overwritten(fresh, side, self.content(n, part, side))
                    calls.append(done)
        return Foreseen(duty, after, tuple(calls))

    def renewed(self, n: int, count: int) -> World:
        """Two memories of its own for a blob, which nobody has touched."""
        size, key = count * itemsize(self.dtype), self._unused()
        fresh = {key: Oracle(size, self.has_device), key + 1: Oracle(size, self.has_device)}
        bigger = replace(self, memories={**self.memories, **fresh})
        return bigger.holding(n, replace(self.blobs[n], data=key, diff=key + 1))

    def _unused(self) -> int:
        return 1 + max(self.memories, default=-1)

    # --- access, adoption, sharing

    def access(self, n: int, part: Part, side: Side, *, write: bool) -> Foreseen:
        """Ask for a side of a part."""
        duty, key = Duty("B21-accessors", "B22-elements"), self.blobs[n].memory(part)
        if side == "gpu" and not self.has_device:
            return self._refusal("B48-no-device")
        done, after = self.touch(key, side, write=write)
        return Foreseen(duty, after, (done,), view=after.content(n, part, side))

    def in_mode(self, mode: Mode) -> World:
        """The same under another mode."""
        return replace(self, mode=mode)

    def at(self, n: int, part: Part, indices: Shape) -> Foreseen:
        """Ask for one element, by a sequence of indices."""
        position, shape = 0, self.blobs[n].shape
        inside = all(0 <= index < extent for index, extent in zip(indices, shape, strict=False))
        if len(indices) > len(shape) or not inside or not self.blobs[n].count:
            return self._refusal("B63-element-in-range")
        for index, extent in zip_longest(indices, shape, fillvalue=0):
            position = position * extent + index
        done, after = self.touch(self.blobs[n].memory(part), "cpu", write=False)
        value = decoded(after.content(n, part, "cpu"), self.dtype)[position]
        return Foreseen(Duty("B18-element", "B18-element"), after, (done,), value=value)

    def adopt(self, n: int, part: Part, side: Side, content: bytes | None) -> Foreseen:
        """Hand in a buffer with these bytes, or none at all."""
        if content is None:
            return self._refusal("B49-bad-buffer-refused")
        if side == "gpu" and not self.has_device:
            return self._refusal("B48-no-device")
        fits = self.memories[self.blobs[n].memory(part)].size == self._size(n)
        if fits:
            known, there = "B23-adopt-redirects", self
        elif part == "data":
            known, there = "B24-adopt-renews", self.renewed(n, self.blobs[n].count)
        else:
            known, there = "B25-adopt-diff", self._diff_renewed(n)
        key = there.blobs[n].memory(part)
        known = "B25-adopt-diff" if part == "diff" else known
        after = there.onto(key, there.memories[key].adopt(side, content).after)
        return Foreseen(Duty(known, known), after)

    def _diff_renewed(self, n: int) -> World:
        key = self._unused()
        bigger = replace(self, memories={**self.memories, key: Oracle(self._size(n), self.has_device)})
        return bigger.holding(n, self.blobs[n].on("diff", key))

    def share(self, n: int, part: Part, other: int) -> Foreseen:
        """Use the memory of another blob's part."""
        if self.blobs[n].count != self.blobs[other].count:
            return self._refusal("B27-share-count")
        after = self.holding(n, self.blobs[n].on(part, self.blobs[other].memory(part)))
        return Foreseen(Duty("B26-share-object", "B26-share-object"), after)

    # --- copies and arithmetic

    def copy_from(self, n: int, source: int, *, copy_diff: bool, reshape: bool) -> Foreseen:
        """Copy one part of another blob, on the side that the mode names."""
        before, mine, theirs = self, self.blobs[n], self.blobs[source]
        if (mine.shape, mine.count) != (theirs.shape, theirs.count):
            if not reshape or theirs.count != prod(theirs.shape):  # what was never given a shape has none to take
                return self._refusal("B42-copy-shape")
            before = self.reshape(n, theirs.shape).after
        part: Part = "diff" if copy_diff else "data"
        side: Side = "gpu" if self.mode is Mode.GPU and self.has_device else "cpu"
        target = before.blobs[n].memory(part)
        taken, after = before.touch(target, side, write=True)
        given, after = after.touch(after.blobs[source].memory(part), side, write=False)
        after = after.overwritten(target, side, after.content(source, part, side))
        return Foreseen(Duty("B40-copy-by-mode", "B39-copy-numbers"), after, (taken, given))

    def update(self, n: int) -> Foreseen:
        """Subtract the diff from the data, where the data is."""
        head = self.head(n, "data")
        if self.dtype in INTEGERS or head is SyncedHead.UNINITIALIZED:
            return self._refusal("B38-integers-refused" if self.dtype in INTEGERS else "B30-update-unwritten")
        side, blob = _where(self.memories[self.blobs[n].data]), self.blobs[n]
        read, after = self.touch(blob.diff, side, write=False)
        written, after = after.touch(blob.data, side, write=True)
        pairs = zip(after.numbers(n, "data", side), after.numbers(n, "diff", side), strict=True)
        after = after.overwritten(blob.data, side, encoded((mine - step for mine, step in pairs), self.dtype))
        return Foreseen(Duty("B29-update-side", "B28-update-numbers"), after, (read, written))

    def norm(self, n: int, part: Part, squared: bool) -> Foreseen:
        """The sum of the magnitudes, or of the squares."""
        if self.dtype in INTEGERS:
            return self._refusal("B38-integers-refused")
        memory = self.memories[self.blobs[n].memory(part)]
        if memory.head is SyncedHead.UNINITIALIZED:
            return Foreseen(Duty("B33-norm-unwritten", "B33-norm-unwritten"), self, value=0.0)
        elements = self.numbers(n, part, _where(memory))
        value = sum(x * x for x in elements) if squared else sum(map(abs, elements))
        return Foreseen(Duty("B34-norm-side", "B32-sumsq" if squared else "B31-asum"), self, value=float(value))

    def scale(self, n: int, part: Part, factor: float) -> Foreseen:
        """Multiply, where the numbers are."""
        if self.dtype in INTEGERS:
            return self._refusal("B38-integers-refused")
        key = self.blobs[n].memory(part)
        memory = self.memories[key]
        if memory.head is SyncedHead.UNINITIALIZED:
            return Foreseen(Duty("B37-scale-unwritten", "B37-scale-unwritten"), self)
        side = _where(memory)
        done, after = self.touch(key, side, write=True)
        scaled = encoded((factor * x for x in after.numbers(n, part, side)), self.dtype)
        return Foreseen(Duty("B36-scale-side", "B35-scale-numbers"), after.overwritten(key, side, scaled), (done,))

    def load(self, n: int, shape: Shape, numbers: Mapping[Part, bytes]) -> Foreseen:
        """Take a shape, and these numbers for these parts, on the host."""
        after, calls = self.reshape(n, shape).after, list[Done]()
        for part, content in numbers.items():
            done, after = after.touch(after.blobs[n].memory(part), "cpu", write=True)
            after = after.wrote(n, part, "cpu", content)
            calls.append(done)
        return Foreseen(Duty("B51-message-numbers", "B51-message-numbers"), after, tuple(calls))

    # --- steps of the above

    def touch(self, key: int, side: Side, *, write: bool) -> tuple[Done, World]:
        """Read or write one side of a memory: what must be seen of that, and what is the case then."""
        memory = self.memories[key]
        expected = memory.write(side, self.mode) if write else memory.read(side, self.mode)
        return tuple((call, memory.size) for call in expected.calls), self.onto(key, expected.after)

    def onto(self, key: int, memory: Oracle) -> World:
        """The case with another state of one memory."""
        return replace(self, memories={**self.memories, key: memory})

    def holding(self, n: int, blob: Blob) -> World:
        """The case with another state of one blob."""
        return replace(self, blobs=(*self.blobs[:n], blob, *self.blobs[n + 1 :]))

    def wrote(self, n: int, part: Part, side: Side, content: bytes) -> World:
        """What is the case after somebody wrote the elements of a part."""
        return self.overwritten(self.blobs[n].memory(part), side, content)

    def overwritten(self, key: int, side: Side, content: bytes) -> World:
        """The same for a memory; what lies behind the elements stays."""
        memory = self.memories[key]
        return self.onto(key, memory.written(side, (content + _content(memory, side)[len(content) :])[: memory.size]))

    def content(self, n: int, part: Part, side: Side) -> bytes:
        """The bytes of the elements of a part on one side."""
        return _content(self.memories[self.blobs[n].memory(part)], side)[: self._size(n)]

    def numbers(self, n: int, part: Part, side: Side) -> tuple[Any, ...]:
        """The same as numbers."""
        return decoded(self.content(n, part, side), self.dtype)

    def _size(self, n: int) -> int:
        return self.blobs[n].count * itemsize(self.dtype)

    def _refusal(self, requirement: str) -> Foreseen:
        return Foreseen(Duty(requirement, requirement), self, refused=requirement)


def _where(memory: Oracle) -> Side:
    """Where numbers are computed with: on the device wherever that copy is fresh."""
    return "gpu" if memory.gpu.fresh else "cpu"


def _content(memory: Oracle, side: Side) -> bytes:
    return memory.copy(side).content or b""
