"""Inspection of blobs under test: their attributes, which memory they hold, and its bytes.

Everything is compared with the oracle, and the first difference is raised as a `Violation` with the requirement that
it breaks.
"""

from __future__ import annotations

import gc
from collections import Counter
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any

from syncedmem.model import using_mode

from ..engine.heads import FRESH, HEADS
from .elements import alike, near, shown
from .oracle import NORMS, PARTS
from .steps import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.call_log import AllocatorCall
    from ..engine.run import Run
    from .oracle import Blame, BlobStates, Foreseen
    from .steps import BlobCall

__all__ = ["BlobInspection", "besides_extents"]

_LAZY = "B67-shape-lazy"

_TOLERANCE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12}
"""The tolerance for norms, by the type of the elements: they are sums, in any order."""

_LONGEST = 256
_EXTENTS = range(0, 4 * 32 + 1, 4)
"""The sizes that the extents of a blob can have in bytes."""


class BlobInspection:
    """Everything that can be observed of the blobs of one driver, compared with the oracle.

    Parameters
    ----------
    run : Run
    states : BlobStates

    Attributes
    ----------
    states : BlobStates
        The expected state; the driver sets it.
    has_extents : bool
        Whether a blob's shape was requested on the device, where it has memory of its own.
    """

    def __init__(self, run: Run, states: BlobStates) -> None:
        self.states = states
        self.has_extents = False
        self._run = run
        self._known: dict[int, int] = {}  # key of a memory to the identity of the object

    def blob(self, n: int) -> Any:
        """The blob with this number."""
        return self._run.reproducer.names[name_of(n)]

    # --- the effect of a call

    def compare_calls(
        self, foreseen: Foreseen, seen: Sequence[AllocatorCall], requirement: str, axes: int = -1
    ) -> None:
        """Compare the allocator calls of a call; it may start with either memory.

        Before these, a call that gives a shape of so many `axes` may allocate the extents.
        """
        for _, sentence in self._run.log.stray:
            self._run.report("B60-nothing-left", sentence)
        if requirement == "B43-copy-self":
            moved = sum(it.byte_size for it in seen if it.operation == "clone")
            self._run.require(not moved, requirement, f"{moved} bytes were copied onto themselves")
        found, without = _moving(seen), _moving(besides_extents(seen, axes))
        orders = [
            [(it.operation, it.side, it.pinned, size) for it, size in chain.from_iterable(order)]
            for order in permutations(foreseen.calls)
        ] or [[]]
        sentence = f"saw {_listed(found)}, expected {_listed(orders[0])}"
        self._run.require(found in orders or without in orders, requirement, sentence)
        self._run.require(found in orders, _LAZY, sentence)

    def compare_value(self, step: BlobCall, foreseen: Foreseen, value: Any) -> None:
        """Compare the number or the view that a call returned."""
        result = foreseen.blame.result
        if foreseen.value is not None:
            tolerance = _TOLERANCE[self.states.dtype] if step.call in NORMS else 0.0
            same = near(value, foreseen.value, tolerance)
            self._run.require(same, result, f"{step.call} is {value!r}, expected {foreseen.value!r}")
        if foreseen.view is not None:
            self._compare_view(step, foreseen.view, value)

    def _compare_view(self, step: BlobCall, content: bytes, view: Any) -> None:
        found = shown(view)
        if not alike(found, content, self.states.dtype):
            self._run.report("B22-elements", f"{step.call} shows {_compared(found, content)}")
        if not content or self._run.subject.program is not None:
            return
        if "cpu" in step.call:
            shape, wanted = memoryview(view).shape, self.states.blobs[step.blob].shape
            self._run.require(shape == wanted, "B22-elements", f"the view has the shape {shape}, expected {wanted}")
        with using_mode(self.states.mode):
            again = getattr(self.blob(step.blob), step.call)()
        self._run.require(again is not view, "B69-fresh-view", f"{step.call} returned one object twice")

    # --- the state afterwards

    def compare_blobs(self, acting: set[int], blame: Blame, sizes: str = "") -> None:
        """Compare shapes, and which blob holds which memory."""
        objects: list[tuple[int, Any, str]] = []
        for n, wanted in self.states.blobs.items():
            blob, known = self.blob(n), blame.conduct if n in acting else blame.others
            found = (tuple(blob.shape), blob.count)
            if found != (wanted.shape, wanted.count):
                expected = f"expected {wanted.shape} and {wanted.count}"
                self._run.report(known, f"{name_of(n)} has the shape {found[0]} and {found[1]} elements, {expected}")
            objects += ((wanted.memory(part), getattr(blob, f"{part}_memory"), known) for part in PARTS)
        self._compare_sharing(objects)
        for n in self.states.blobs:
            self._compare_capacity(n, sizes or blame.conduct)
        self.compare_live()

    def _compare_sharing(self, objects: list[tuple[int, Any, str]]) -> None:
        """Check that each memory is the same object as before, and that the right blobs hold it."""
        now: dict[int, int] = {}
        for key, memory, known in objects:
            there = now.setdefault(key, id(memory))
            self._run.require(there == id(memory), known, "blobs that share a memory hold different ones")
            before = self._known.get(key, there)
            self._run.require(before == there, known, "a blob holds another memory than before")
        self._run.require(
            len(set(now.values())) == len(now), objects[-1][2], "blobs that do not share a memory hold the same one"
        )
        self._known = now

    def _compare_capacity(self, n: int, requirement: str) -> None:
        blob, wanted = self.blob(n), self.states.blobs[n]
        found = tuple(getattr(blob, f"{part}_memory").size for part in PARTS)
        sizes = tuple(self.states.memories[wanted.memory(part)].size for part in PARTS)
        if requirement == "B06-growth-renews" and len(set(found)) > 1:
            requirement = "B08-equal-sizes"
        if found != sizes:
            self._run.report(requirement, f"data and diff have {found} bytes, expected {sizes}")
        expected = self.states.capacity(n)
        if self._run.safe and blob.capacity != expected:
            self._run.report("B46-capacity", f"the capacity is {blob.capacity}, but {expected} elements fit")

    def compare_live(self) -> None:
        """Check that exactly the memory owned by held memories is allocated."""
        if self.has_extents or not self._run.sees_actions:
            return
        held = [self.states.memories[key] for key in self.states.held]
        sides: tuple[str, ...] = ("cpu", "gpu")
        wanted: Counter[tuple[str, int]] = Counter(
            (side, it.size) for it in held for side in sides if it.size and it.copy(side).owner == "memory"
        )
        found = self._live()
        if not self._accounts_for(found, wanted):
            gc.collect()
            found = self._live()
        if not self._accounts_for(found, wanted):
            self._run.report("B60-nothing-left", f"allocated are {_tally(found)}, expected {_tally(wanted)}")

    def _accounts_for(self, found: Counter[tuple[str, int]], wanted: Counter[tuple[str, int]]) -> bool:
        """Whether the held memories own what is allocated; extents may be besides, if they need not be lazy."""
        if found == wanted or not (wanted <= found and self._are_extents(found - wanted)):
            return found == wanted
        return _LAZY not in self._run.judged or self._run.excused(_LAZY)

    def _are_extents(self, blocks: Counter[tuple[str, int]]) -> bool:
        """Whether these can be the extents of the blobs, on the host: four bytes for each axis."""
        fits = all(side == "cpu" and size in _EXTENTS for side, size in blocks)
        # One blob may be there besides: that of another type, which only one rule makes.
        return fits and blocks.total() <= len(self.states.blobs) + 1

    def _live(self) -> Counter[tuple[str, int]]:
        return Counter((entry.side, entry.byte_size) for _, entry in self._run.log.live.values())

    def compare_memories(self, acting: set[int], blame: Blame) -> None:
        """Compare heads, and the bytes of every fresh side."""
        mine = {self.states.blobs[n].memory(part) for n in acting for part in PARTS}
        for key, memory in self._held_objects().items():
            known = blame.conduct if key in mine else blame.others
            wanted = HEADS[self.states.memories[key].fresh]
            if memory.head is not wanted:
                self._run.report(known, f"a head is {memory.head}, expected {wanted}")
            content: dict[str, bytes | None] = {
                side: self.states.memories[key].copy(side).content for side in FRESH[wanted]
            }
            if self._run.sees_bytes:
                self._compare_content(memory, content, blame.result if key in mine else blame.others)

    def _held_objects(self) -> dict[int, Any]:
        return {
            wanted.memory(part): getattr(self.blob(n), f"{part}_memory")
            for n, wanted in self.states.blobs.items()
            for part in PARTS
        }

    def _compare_content(self, memory: Any, content: dict[str, bytes | None], requirement: str) -> None:
        for side, wanted in content.items():
            start = len(self._run.log.calls)
            with using_mode(self.states.mode):
                found = shown(getattr(memory, f"{side}_data")())
            self._run.require(len(self._run.log.calls) == start, requirement, f"the {side} side was not fresh")
            if not alike(found, wanted or b"", self.states.dtype):
                self._run.report(requirement, f"the {side} side holds {_compared(found, wanted or b'')}")

    def fresh_numbers(self) -> dict[int, bytes | None]:
        """The contents of each memory that was ever written."""
        memories = {key: self.states.memories[key] for key in self.states.held}
        return {
            key: next(copy.content for copy in it.copies.values() if copy.fresh)
            for key, it in memories.items()
            if it.fresh
        }

    def compare_fresh(self, key: int, expected: bytes | None, requirement: str) -> None:
        """Check that the fresh sides of a memory have these bytes, at any head."""
        memory = self._held_objects()[key]
        self._run.require(bool(FRESH[memory.head]), requirement, "the memory has lost what was written to it")
        self._compare_content(memory, dict.fromkeys(FRESH[memory.head], expected), requirement)


def besides_extents(seen: Sequence[AllocatorCall], axes: int) -> Sequence[AllocatorCall]:
    """The allocator calls without those that make the memory of the extents, if they are the first."""
    made = [it for it in seen if it.operation != "free"]
    first = [(it.operation, it.side, it.byte_size) for it in made[:2]]
    return made[2:] if first == [(call, "cpu", 4 * axes) for call in ("allocate", "zero")] else seen


def _moving(calls: Sequence[AllocatorCall]) -> list[tuple[str, str, bool, int]]:
    """The calls without frees, and without copies within one side."""
    return [(it.operation, it.side, it.pinned, it.byte_size) for it in calls if it.operation not in ("free", "clone")]


def _listed(calls: Sequence[tuple[object, ...]]) -> str:
    return ", ".join(f"{operation} {side} {size} bytes" for operation, side, _, size in calls) or "nothing"


def _tally(live: Counter[tuple[str, int]]) -> str:
    return ", ".join(f"{times} x {size} bytes on {side}" for (side, size), times in sorted(live.items())) or "nothing"


def _compared(found: bytes, wanted: bytes) -> str:
    """Both as hexadecimal digits; if they are long, only the part at the first difference."""
    if max(len(found), len(wanted)) <= _LONGEST:
        return f"{found.hex()}, expected {wanted.hex()}"
    at = next((it for it, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), 0) & -8
    mine, theirs = (content[at : at + 8].hex() for content in (found, wanted))
    return f"{mine} from byte {at} of {len(found)}, expected {theirs} of {len(wanted)}"
