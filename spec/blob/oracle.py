"""The oracle of blobs: all memories, which blob holds which memory, and the effect of each call on them.

A blob is a shape over two memories.  A memory is described by the oracle of memories.  The oracle has no table
of heads.  A call is a few reads and writes of memories, and its expected effect follows from which of their
copies are fresh.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Mode, SyncedHead, caffe

from ..engine.heads import HEADS
from ..memory.oracle import Oracle
from ..memory.policy import CAFFE, CPU_ONLY
from .elements import INTEGERS, decoded, encoded, itemsize, numbers
from .steps import FORESEEN, PARTS, REFUSED, Exported, Message, Other

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from ..memory.oracle import Wanted
    from .steps import BlobStep, Part, Shape

__all__ = [
    "ACCESSORS",
    "ADOPTIONS",
    "NORMS",
    "SCALES",
    "Blame",
    "BlobStates",
    "ExpectedBlob",
    "Foreseen",
    "failing_calls",
    "foresee",
]

ACCESSORS: dict[str, tuple[Part, str, bool]] = {
    f"{'mutable_' if write else ''}{side}_{part}": (part, side, write)
    for part in PARTS
    for side in ("cpu", "gpu")
    for write in (False, True)
}
"""The eight accessors: the part, the side, and whether they are for writing."""

ADOPTIONS: dict[str, tuple[Part, str]] = {
    f"set_{side}_{part}": (part, side) for part in PARTS for side in ("cpu", "gpu")
}
NORMS: dict[str, tuple[Part, bool]] = {
    f"{norm}_{part}": (part, norm == "sumsq") for norm in ("asum", "sumsq") for part in PARTS
}
SCALES: dict[str, Part] = {"scale_data": "data", "scale_diff": "diff"}


class Blame(NamedTuple):
    """The requirements that a call breaks if it does something wrong.

    Attributes
    ----------
    conduct : str
        About what is allocated and copied, and about the heads.
    result : str
        About the numbers.
    others : str
        About the blobs that take no part.
    accepted, shapes, sizes : str
        About being refused without a reason, about shapes and who holds which memory, and about the sizes of these;
        `conduct` if empty.
    """

    conduct: str
    result: str
    others: str = "B59-independent"
    accepted: str = ""
    shapes: str = ""
    sizes: str = ""


Done = tuple[tuple["Wanted", int], ...]
"""Allocator calls with their bytes."""


class Foreseen(NamedTuple):
    """The expected effect of one call.

    Attributes
    ----------
    blame : Blame
    after : BlobStates
    calls : tuple of Done, or None
        The expected allocator calls for each memory; either memory may come first, as in C++.  None if nobody says it.
    refused : str
        The requirement for which the call is refused; empty if it is not refused.
    value : object
        The result of the call, if it is a number or was given.
    view : bytes or None
        The contents of the view that the call returns, before it is written.
    """

    blame: Blame
    after: BlobStates
    calls: tuple[Done, ...] | None = ()
    refused: str = ""
    value: Any = None
    view: bytes | None = None


@dataclass(frozen=True, slots=True)
class ExpectedBlob:
    """One blob: a shape over two memories, which it may share with others.

    Attributes
    ----------
    shape : tuple of int
    count : int
        Not always the product of the shape: a blob without a shape has no axes and no elements.
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

    def on(self, part: Part, key: int) -> ExpectedBlob:
        """The blob with another memory for one part."""
        return replace(self, data=key) if part == "data" else replace(self, diff=key)


@dataclass(frozen=True, slots=True)
class BlobStates:
    """All blobs of a case, and their memories.

    Attributes
    ----------
    has_device : bool
    dtype : str
        Their element type, which is that of the first blob.
    mode : Mode
    blobs : dict of int to ExpectedBlob
    memories : dict of int to Oracle
        Memories that no blob holds any more are included.
    extents : tuple of int or None
        The shape of the first blob that was asked for last on the device, where it has memory of its own since.
    """

    has_device: bool
    dtype: str = ""
    mode: Mode = Mode.GPU
    blobs: Mapping[int, ExpectedBlob] = field(default_factory=dict[int, ExpectedBlob])
    memories: Mapping[int, Oracle] = field(default_factory=dict[int, Oracle])
    extents: Shape | None = None

    @property
    def held(self) -> set[int]:
        """The memories that some blob holds."""
        return {key for blob in self.blobs.values() for key in (blob.data, blob.diff)}

    def capacity(self, n: int) -> int:
        """The number of elements that fit into both memories of a blob."""
        blob = self.blobs[n]
        return min(self.memories[blob.data].size, self.memories[blob.diff].size) // itemsize(self.dtype)

    def head(self, n: int, part: Part) -> SyncedHead:
        """The head of a part."""
        return HEADS[self.memories[self.blobs[n].memory(part)].fresh]

    # --- making and shaping

    def make(self, n: int, shape: Shape | None = None, *, dtype: str) -> Foreseen:
        """Another blob, with a shape or without; one of another type is not followed."""
        if self.dtype not in ("", dtype):
            return Foreseen(Blame("B02-lazy", "B02-lazy"), self, None)
        bare = replace(self, dtype=dtype).holding(n, ExpectedBlob((), 0, -1, -1)).renewed(n, 0)
        accepted, shapes = ("B01-empty", "B01-empty") if shape is None else ("B02-lazy", "B03-shape")
        blame = Blame("B02-lazy", "B02-lazy", accepted=accepted, shapes=shapes, sizes="B06-growth-renews")
        return Foreseen(blame, bare if shape is None else bare.reshape(n, shape).after)

    def dropped(self, _: int) -> Foreseen:
        """No blobs: nothing of theirs is left."""
        return Foreseen(Blame("B60-nothing-left", "B60-nothing-left"), BlobStates(self.has_device), None)

    def reshape(self, n: int, shape: Shape) -> Foreseen:
        """Another shape: the same memories if it fits, and new ones if not."""
        count = prod(shape)
        fits = count <= self.capacity(n)
        kept = self if fits else self.renewed(n, count)
        after = kept.holding(n, replace(kept.blobs[n], shape=shape, count=count))
        if fits:
            return Foreseen(Blame("B05-reshape-keeps", "B05-reshape-keeps"), after)
        return Foreseen(Blame("B06-growth-renews", "B06-growth-renews", "B07-growth-unshares"), after)

    def shrink_to_fit(self, n: int) -> Foreseen:
        """New memories of exactly the blob's size, with its elements, in place of larger ones."""
        blame, after, calls = Blame("B45-shrink", "B45-shrink"), self, list[Done]()
        for part in PARTS:
            old = self.memories[self.blobs[n].memory(part)]
            if old.size > self._size(n):
                fresh = after._unused()
                after = replace(after, memories={**after.memories, fresh: self._new(self._size(n))})
                after = after.holding(n, after.blobs[n].on(part, fresh))
                if old.fresh:
                    side = _where(old)
                    done, after = after.touch(fresh, side, write=True)
                    after = after.overwritten(fresh, side, self.content(n, part, side))
                    calls.append(done)
        return Foreseen(blame, after, tuple(calls))

    def renewed(self, n: int, count: int) -> BlobStates:
        """Give a blob two new memories that only this blob holds."""
        size, key = count * itemsize(self.dtype), self._unused()
        fresh = {key: self._new(size), key + 1: self._new(size)}
        bigger = replace(self, memories={**self.memories, **fresh})
        return bigger.holding(n, replace(self.blobs[n], data=key, diff=key + 1))

    def _new(self, size: int) -> Oracle:
        return Oracle.new(CAFFE if self.has_device else CPU_ONLY, size)

    def _unused(self) -> int:
        return 1 + max(self.memories, default=-1)

    # --- access, adoption, sharing

    def access(self, step: BlobStep, part: Part, side: str, *, write: bool) -> Foreseen:
        """Call an accessor for a side of a part; then write through what it returned, if it is for writing."""
        n, blame = step.blob, Blame("B21-accessors", "B22-elements")
        if side == "gpu" and not self.has_device:
            return self._refusal("B48-no-device")
        done, after = self.touch(self.blobs[n].memory(part), side, write=write)
        view = after.content(n, part, side)
        written = after.wrote(n, part, side, content_of(step, self.dtype)) if write else after
        return Foreseen(blame, written, (done,), view=view)

    def in_mode(self, _: int, mode: Mode) -> Foreseen:
        """The same blobs in another mode."""
        return Foreseen(Blame("B21-accessors", "B21-accessors"), replace(self, mode=mode))

    def at(self, n: int, indices: Shape, part: Part) -> Foreseen:
        """Read one element, by a sequence of indices."""
        position, shape = 0, self.blobs[n].shape
        inside = all(0 <= index < extent for index, extent in zip(indices, shape, strict=False))
        if len(indices) > len(shape) or not inside or not self.blobs[n].count:
            return self._refusal("B63-element-in-range")
        for index, extent in zip_longest(indices, shape, fillvalue=0):
            position = position * extent + index
        done, after = self.touch(self.blobs[n].memory(part), "cpu", write=False)
        value = decoded(after.content(n, part, "cpu"), self.dtype)[position]
        return Foreseen(Blame("B18-element", "B18-element"), after, (done,), value=value)

    def adopt_exported(self, n: int, part: Part, side: str, exporter: Exported) -> Foreseen:
        """Adopt the memory of a part of a blob, through a view of it for writing."""
        exported: Any = exporter.part
        done, there = self.touch(self.blobs[exporter.blob].memory(exported), side, write=True)
        foreseen = there.adopt(n, part, side, there.content(exporter.blob, exported, side))
        return foreseen._replace(calls=(done, *(foreseen.calls or ())))

    def adopt(self, n: int, part: Part, side: str, content: bytes | None) -> Foreseen:
        """Adopt a buffer with these bytes; None is no buffer."""
        if content is None:
            return self._refusal("B68-null-refused")
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
        return Foreseen(Blame(known, known), after)

    def _diff_renewed(self, n: int) -> BlobStates:
        key = self._unused()
        bigger = replace(self, memories={**self.memories, key: self._new(self._size(n))})
        return bigger.holding(n, self.blobs[n].on("diff", key))

    def share(self, n: int, other: int, part: Part) -> Foreseen:
        """Use the memory of another blob's part."""
        if self.blobs[n].count != self.blobs[other].count:
            return self._refusal("B27-share-count")
        after = self.holding(n, self.blobs[n].on(part, self.blobs[other].memory(part)))
        return Foreseen(Blame("B26-share-object", "B26-share-object", accepted="B27-share-count"), after)

    # --- copies and arithmetic

    def copy_from(self, n: int, source: int, *, copy_diff: bool = False, reshape: bool = False) -> Foreseen:
        """Copy one part of another blob, on the side that the mode names."""
        before, mine, theirs = self, self.blobs[n], self.blobs[source]
        if (mine.shape, mine.count) != (theirs.shape, theirs.count):
            if not reshape or theirs.count != prod(theirs.shape):  # a blob without a shape has none to take
                return self._refusal("B42-copy-shape")
            before = self.reshape(n, theirs.shape).after
        part: Part = "diff" if copy_diff else "data"
        side: str = "gpu" if self.mode is Mode.GPU and self.has_device else "cpu"
        target = before.blobs[n].memory(part)
        calls, after = before.touch(target, side, write=True)
        origin = after.blobs[source].memory(part)
        given, after = after.touch(origin, side, write=False)
        after = after.overwritten(target, side, after.content(source, part, side))
        conduct = "B43-copy-self" if origin == target else "B40-copy-by-mode"
        return Foreseen(Blame(conduct, "B39-copy-numbers"), after, (calls, given))

    def update(self, n: int) -> Foreseen:
        """Subtract the diff from the data, on the side of the data."""
        head = self.head(n, "data")
        if self.dtype in INTEGERS or head is SyncedHead.UNINITIALIZED:
            return self._refusal("B38-integers-refused" if self.dtype in INTEGERS else "B30-update-unwritten")
        side, blob = _where(self.memories[self.blobs[n].data]), self.blobs[n]
        read, after = self.touch(blob.diff, side, write=False)
        written, after = after.touch(blob.data, side, write=True)
        pairs = zip(after.numbers(n, "data", side), after.numbers(n, "diff", side), strict=True)
        after = after.overwritten(blob.data, side, encoded((mine - step for mine, step in pairs), self.dtype))
        return Foreseen(Blame("B29-update-side", "B28-update-numbers"), after, (read, written))

    def norm(self, n: int, part: Part, squared: bool) -> Foreseen:
        """The sum of the magnitudes, or of the squares."""
        if self.dtype in INTEGERS:
            return self._refusal("B38-integers-refused")
        memory = self.memories[self.blobs[n].memory(part)]
        if not memory.fresh:
            return Foreseen(Blame("B33-norm-unwritten", "B33-norm-unwritten"), self, value=0.0)
        elements = self.numbers(n, part, _where(memory))
        value = sum(x * x for x in elements) if squared else sum(map(abs, elements))
        return Foreseen(Blame("B34-norm-side", "B32-sumsq" if squared else "B31-asum"), self, value=float(value))

    def scale(self, n: int, part: Part, factor: float) -> Foreseen:
        """Multiply, on the side of the numbers."""
        if self.dtype in INTEGERS:
            return self._refusal("B38-integers-refused")
        key = self.blobs[n].memory(part)
        memory = self.memories[key]
        if not memory.fresh:
            return Foreseen(Blame("B37-scale-unwritten", "B37-scale-unwritten"), self)
        side = _where(memory)
        done, after = self.touch(key, side, write=True)
        scaled = encoded((factor * x for x in after.numbers(n, part, side)), self.dtype)
        return Foreseen(Blame("B36-scale-side", "B35-scale-numbers"), after.overwritten(key, side, scaled), (done,))

    def gpu_shape(self, n: int) -> Foreseen:
        """Send the extents to the device, unless they are there."""
        shape, known = self.blobs[n].shape, "B17-gpu-shape"
        sent, after = self.extents == shape, replace(self, extents=shape)
        blame = Blame("B61-shape-once" if sent else known, known, accepted=known)
        return Foreseen(blame, after, () if sent else None, value=shape)

    def load(self, n: int, message: Message, *, reshape: bool = True) -> Foreseen:
        """Take the shape of a message, and then its numbers, on the host."""
        fields, mine = dict(message.fields), self.blobs[n].shape
        is_old = bool(fields.keys() & {*_OLD})
        shape: Shape = tuple(fields.get(field, 0) for field in _OLD) if is_old else fields.get("shape.dim", ())
        if not reshape:
            padded = (*(1,) * (len(_OLD) - len(mine)), *mine) if is_old else mine
            if padded != shape:
                return self._refusal("B53-message-same-shape")
            shape = mine
        numbers: dict[Part, Any] = {part: fields.get(f"double_{part}") or fields.get(part, ()) for part in PARTS}
        values: list[tuple[Part, Any]] = [
            (part, number) for part, number in numbers.items() if number or part == "data"
        ]
        after, calls = self.reshape(n, shape).after, list[Done]()
        for part, content in values:
            done, after = after.touch(after.blobs[n].memory(part), "cpu", write=True)
            after = after.wrote(n, part, "cpu", encoded(content, self.dtype))
            calls.append(done)
        return Foreseen(Blame("B51-message-numbers", "B51-message-numbers"), after, tuple(calls))

    def outline(self, blobs: Iterable[int]) -> Hashable:
        """What some blobs are, except for their numbers: shapes, sizes, and what is shared or adopted."""
        held = {n: self.blobs[n] for n in sorted(blobs) if n in self.blobs}
        keys = list(dict.fromkeys(key for blob in held.values() for key in (blob.data, blob.diff)))
        blobs_seen = [
            (n, blob.shape, blob.count, keys.index(blob.data), keys.index(blob.diff)) for n, blob in held.items()
        ]
        sizes = [self.memories[key].size for key in keys]
        adopted = [
            (at, side)
            for at, key in enumerate(keys)
            for side, copy in self.memories[key].copies.items()
            if copy.owner == "caller"
        ]
        return *blobs_seen, *sizes, *adopted

    # --- steps of the calls above

    def touch(self, key: int, side: str, *, write: bool) -> tuple[Done, BlobStates]:
        """Read or write one side of a memory: the expected allocator calls, and the state afterwards."""
        memory = self.memories[key]
        settings = {caffe.MODE.name: self.mode.name}
        expected = memory.write(side, settings) if write else memory.read(side, settings)
        return tuple((call, memory.size) for call in expected.calls), self.onto(key, expected.after)

    def onto(self, key: int, memory: Oracle) -> BlobStates:
        """The same state, except for one memory."""
        return replace(self, memories={**self.memories, key: memory})

    def holding(self, n: int, blob: ExpectedBlob) -> BlobStates:
        """The same state, except for one blob."""
        return replace(self, blobs={**self.blobs, n: blob})

    def wrote(self, n: int, part: Part, side: str, content: bytes) -> BlobStates:
        """The state after the elements of a part were written."""
        return self.overwritten(self.blobs[n].memory(part), side, content)

    def overwritten(self, key: int, side: str, content: bytes) -> BlobStates:
        """The state after the first bytes of a memory were written; the rest of its bytes stays."""
        memory = self.memories[key]
        return self.onto(key, memory.written(side, (content + _content(memory, side)[len(content) :])[: memory.size]))

    def content(self, n: int, part: Part, side: str) -> bytes:
        """The bytes of the elements of a part on one side."""
        return _content(self.memories[self.blobs[n].memory(part)], side)[: self._size(n)]

    def content_of(self, key: int) -> bytes | None:
        """The bytes of a memory, on a side that has them; None if it was never written."""
        return next((copy.content or b"" for copy in self.memories[key].copies.values() if copy.fresh), None)

    def numbers(self, n: int, part: Part, side: str) -> tuple[Any, ...]:
        """The numbers of the elements of a part on one side."""
        return decoded(self.content(n, part, side), self.dtype)

    def _size(self, n: int) -> int:
        return self.blobs[n].count * itemsize(self.dtype)

    def _refusal(self, requirement: str) -> Foreseen:
        return Foreseen(Blame(requirement, requirement), self, refused=requirement)


def _where(memory: Oracle) -> str:
    """The side where arithmetic happens: the device if its copy is fresh."""
    return "gpu" if memory.copy("gpu").fresh else "cpu"


def _content(memory: Oracle, side: str) -> bytes:
    return memory.copy(side).content or b""


# --- the effect of a step


def foresee(states: BlobStates, step: BlobStep) -> Foreseen:
    """The expected effect of a step."""
    if step.expected is not FORESEEN:
        known = Blame(*(step.about,) * 3)
        value = step.expected if step.is_valued else None
        return Foreseen(known, states, refused=step.about if step.expected is REFUSED else "", value=value)
    foreseen = _foresee(states, step)
    return foreseen._replace(blame=Blame(step.about, step.about)) if step.about else foreseen


def _foresee(states: BlobStates, step: BlobStep) -> Foreseen:
    n, call, arguments, options, *_ = step
    if call in ACCESSORS:
        part, side, write = ACCESSORS[call]
        return states.access(step, part, side, write=write)
    if call in ADOPTIONS:
        part, side = ADOPTIONS[call]
        if isinstance(arguments[0], Exported):
            return states.adopt_exported(n, part, side, arguments[0])
        return states.adopt(n, part, side, None if arguments[0] is None else content_of(step, states.dtype))
    if call in NORMS:
        return states.norm(n, *NORMS[call])
    if call in SCALES:
        return states.scale(n, SCALES[call], *arguments)
    given = (argument.blob if isinstance(argument, Other) else argument for argument in arguments)
    return _CALLS[call](states, n, *given, **dict(options))


def content_of(step: BlobStep, dtype: str) -> bytes:
    """The bytes that a step writes, or that a buffer has which it hands in."""
    return encoded(step.values, dtype) if step.values else numbers(step.number, step.elements, dtype)


def _reshape(states: BlobStates, n: int, *given: Any) -> Foreseen:
    shape: Any = given[0] if len(given) == 1 and not isinstance(given[0], int) else given
    return states.reshape(n, tuple(getattr(shape, "dim", shape)))


def _reshape_like(states: BlobStates, n: int, other: int) -> Foreseen:
    return states.reshape(n, states.blobs[other].shape)


_OLD = ("num", "channels", "height", "width")
"""The old fields of a message, which are a shape of four axes."""

_CALLS: dict[str, Callable[..., Foreseen]] = {
    **{f"share_{part}": partial(BlobStates.share, part=part) for part in PARTS},
    **{f"{part}_at": partial(BlobStates.at, part=part) for part in PARTS},
    "new": BlobStates.make,
    "drop": BlobStates.dropped,
    "reshape": _reshape,
    "reshape_like": _reshape_like,
    "shrink_to_fit": BlobStates.shrink_to_fit,
    "update": BlobStates.update,
    "copy_from": BlobStates.copy_from,
    "mode": BlobStates.in_mode,
    "gpu_shape": BlobStates.gpu_shape,
    "from_proto": BlobStates.load,
}


def failing_calls(states: BlobStates, step: BlobStep) -> int:
    """The number of allocator calls of a step that can be made to fail.

    A copy between blobs makes one call more than is foreseen, but on the host it may make none.  If memory is dropped,
    nobody sees the error of its free, so steps that free are left out.
    """
    foreseen = foresee(states, step)
    if foreseen.refused or step.call == "mode":
        return 0
    on_device, frees = states.mode is Mode.GPU and states.has_device, states.held - foreseen.after.held
    return sum(map(len, foreseen.calls or ())) + (step.call == "copy_from" and (on_device or not frees))
