"""Looking at blobs under test: what they say, who holds which memory, and what lies there.

Every look compares with the oracle, and the first difference is raised as a `Violation` that names the requirement it
breaks.
"""

from __future__ import annotations

import gc
from collections import Counter
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode, SyncedHead, using_mode

from ..engine.finding import Violation
from ..engine.reproducer import Reproducer
from .elements import alike, near, shown
from .oracle import Duty, World
from .steps import NORMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.call_log import AllocatorCall, CallLog
    from ..engine.calls import Side
    from ..engine.subject import Subject
    from .oracle import Foreseen, Part
    from .steps import BlobCall

__all__ = ["PARTS", "UNCHANGED", "BlobInspection"]

PARTS: tuple[Part, ...] = ("data", "diff")

_FRESH: dict[SyncedHead, tuple[Side, ...]] = {
    SyncedHead.UNINITIALIZED: (),
    SyncedHead.HEAD_AT_CPU: ("cpu",),
    SyncedHead.HEAD_AT_GPU: ("gpu",),
    SyncedHead.SYNCED: ("cpu", "gpu"),
}

UNCHANGED = Duty("B56-unchanged", "B56-unchanged", "B56-unchanged")

_TOLERANCE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12}
"""Of norms, by the type of the elements: they are sums, in whatever order."""

_LONGEST = 256

_ELEMENTS = (("syncedmem.spec.blob.elements", ("encoded", "numbers", "pour")),)
"""What reproducers about blobs may use."""


class BlobInspection:
    """Blobs of one type that live at the same time, with one log, and the oracle beside them.

    Parameters
    ----------
    subject : Subject
        Makes blobs.
    dtype : str
        Of all of them.

    Attributes
    ----------
    world : World
        What must be the case now.
    log : CallLog
        What all of them asked their allocators for.
    """

    def __init__(self, subject: Subject, dtype: str) -> None:
        self.subject = subject
        self.world = World(dtype, subject.device is not None, Mode.GPU)
        self.reproducer = Reproducer(subject, _ELEMENTS)
        self.reproducer.run("log, host, device = recorded(subject)")
        self.log: CallLog = self.reproducer.names["log"]
        self._known: dict[int, int] = {}  # key of a memory to the identity of the object
        self._extents = False  # whether a blob's shape was asked for, which has memory too

    @property
    def safe(self) -> bool:
        """Whether more is asked than Caffe promises."""
        return self.subject.profile == "safe"

    def name(self, n: int) -> str:
        """What the reproducer calls a blob."""
        return "blob" if n == 0 else f"blob{n + 1}"

    def blob(self, n: int) -> Any:
        """A blob itself."""
        return self.reproducer.names[self.name(n)]

    # --- failing

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the reproducer that led to it."""
        return Violation(requirement, message, self.reproducer.complete())

    def require(self, holds: bool, requirement: str, message: str) -> None:
        """Report what does not hold.

        Raises
        ------
        Violation
        """
        if not holds:
            raise self.violation(requirement, message)

    def must_raise(self, raised: BaseException | None, requirement: str, message: str) -> None:
        """Report a call that did not raise; who runs the reproducer must get past one that did.

        Raises
        ------
        Violation
        """
        if raised is None:
            raise self.violation(requirement, message)
        raised.__traceback__ = None  # it holds blobs, which are watched for being dropped
        self.reproducer.expect(raised)

    # --- what a call did

    def _compare_calls(self, foreseen: Foreseen, seen: Sequence[AllocatorCall], requirement: str) -> None:
        for _, sentence in self.log.stray:
            self.require(False, "B60-nothing-left", sentence)
        found = [
            (it.operation, it.side, it.pinned, it.byte_size) for it in seen if it.operation not in ("free", "clone")
        ]
        orders = [
            [(it.operation, it.side, it.pinned, size) for it, size in chain.from_iterable(order)]
            for order in permutations(foreseen.calls)
        ] or [[]]
        sentence = f"saw {_listed(found)}, expected {_listed(orders[0])}"
        self.require(found in orders, requirement, sentence)

    def _compare_value(self, step: BlobCall, foreseen: Foreseen, value: Any) -> None:
        result = foreseen.duty.result
        if foreseen.value is not None:
            tolerance = _TOLERANCE[self.world.dtype] if step.call in NORMS else 0.0
            same = near(value, foreseen.value, tolerance)
            self.require(same, result, f"{step.call} is {value!r}, expected {foreseen.value!r}")
        if foreseen.view is not None:
            self._compare_view(step, foreseen.view, value)

    def _compare_view(self, step: BlobCall, content: bytes, view: Any) -> None:
        found = shown(view)
        same = alike(found, content, self.world.dtype)
        self.require(same, "B22-elements", f"{step.call} shows {_compared(found, content)}")
        if content and "cpu" in step.call:
            shape, wanted = memoryview(view).shape, self.world.blobs[step.blob].shape
            self.require(shape == wanted, "B22-elements", f"the view has the shape {shape}, expected {wanted}")

    # --- what is the case

    def _compare_blobs(self, acting: set[int], duty: Duty, sizes: str = "") -> None:
        """Shapes, and who holds which memory."""
        objects: list[tuple[int, Any, str]] = []
        for n, wanted in enumerate(self.world.blobs):
            blob, known = self.blob(n), duty.conduct if n in acting else duty.others
            found = (tuple(blob.shape), blob.count)
            self.require(
                found == (wanted.shape, wanted.count),
                known,
                f"{self.name(n)} has the shape {found[0]} and {found[1]} elements, expected {wanted.shape} and "
                f"{wanted.count}",
            )
            objects += ((wanted.memory(part), getattr(blob, f"{part}_memory"), known) for part in PARTS)
        self._compare_sharing(objects)
        for n in range(len(self.world.blobs)):
            self._compare_capacity(n, sizes or duty.conduct)
        self._compare_live()

    def _compare_sharing(self, objects: list[tuple[int, Any, str]]) -> None:
        """Each memory is the object that it was, and is held by whom it should be."""
        now: dict[int, int] = {}
        for key, memory, known in objects:
            there = now.setdefault(key, id(memory))
            self.require(there == id(memory), known, "blobs that share a memory hold different ones")
            before = self._known.get(key, there)
            self.require(before == there, known, "a blob holds another memory than before")
        self.require(len(set(now.values())) == len(now), objects[-1][2], "blobs hold one memory that do not share it")
        self._known = now

    def _compare_capacity(self, n: int, requirement: str) -> None:
        blob, wanted = self.blob(n), self.world.blobs[n]
        found = tuple(getattr(blob, f"{part}_memory").size for part in PARTS)
        sizes = tuple(self.world.memories[wanted.memory(part)].size for part in PARTS)
        if requirement == "B06-growth-renews" and len(set(found)) > 1:
            requirement = "B08-equal-sizes"
        self.require(found == sizes, requirement, f"data and diff have {found} bytes, expected {sizes}")
        expected = self.world.capacity(n)
        if self.safe:
            self.require(
                blob.capacity == expected,
                "B46-capacity",
                f"the capacity is {blob.capacity}, but {expected} elements fit",
            )

    def _compare_live(self) -> None:
        """What is allocated is what the memories that are held own."""
        if self._extents:
            return
        held = [self.world.memories[key] for key in self.world.held]
        sides: tuple[Side, ...] = ("cpu", "gpu")
        wanted: Counter[tuple[Side, int]] = Counter(
            (side, it.size) for it in held for side in sides if it.size and it.copy(side).owner == "memory"
        )
        if self._live() != wanted:
            gc.collect()
        found = self._live()
        left = f"allocated are {_tally(found)}, expected {_tally(wanted)}"
        self.require(found == wanted, "B60-nothing-left", left)

    def _live(self) -> Counter[tuple[Side, int]]:
        return Counter((entry.side, entry.byte_size) for _, entry in self.log.live.values())

    def _compare_memories(self, acting: set[int], duty: Duty) -> None:
        """Heads, and the bytes of every fresh side."""
        mine = {self.world.blobs[n].memory(part) for n in acting for part in PARTS}
        for key, memory in self._held_objects().items():
            known = duty.conduct if key in mine else duty.others
            wanted = self.world.memories[key].head
            self.require(memory.head is wanted, known, f"a head is {memory.head}, expected {wanted}")
            content: dict[Side, bytes | None] = {
                side: self.world.memories[key].copy(side).content for side in _FRESH[wanted]
            }
            self._compare_content(memory, content, duty.result if key in mine else duty.others)

    def _held_objects(self) -> dict[int, Any]:
        return {
            wanted.memory(part): getattr(self.blob(n), f"{part}_memory")
            for n, wanted in enumerate(self.world.blobs)
            for part in PARTS
        }

    def _compare_content(self, memory: Any, content: dict[Side, bytes | None], requirement: str) -> None:
        for side, wanted in content.items():
            start = len(self.log.calls)
            with using_mode(self.world.mode):
                found = shown(getattr(memory, f"{side}_data")())
            self.require(len(self.log.calls) == start, requirement, f"the {side} side was not fresh")
            same = alike(found, wanted or b"", self.world.dtype)
            self.require(same, requirement, f"the {side} side holds {_compared(found, wanted or b'')}")

    def _fresh_numbers(self) -> dict[int, bytes | None]:
        """What each memory holds that was ever written."""
        memories = {key: self.world.memories[key] for key in self.world.held}
        return {
            key: it.copy(_FRESH[it.head][0]).content
            for key, it in memories.items()
            if it.head is not SyncedHead.UNINITIALIZED
        }

    def _compare_side_by_side(self, key: int, expected: bytes | None, requirement: str) -> None:
        """Whatever the head of a memory says: its fresh sides hold these bytes."""
        memory = self._held_objects()[key]
        self.require(bool(_FRESH[memory.head]), requirement, "what was written is not there any more")
        self._compare_content(memory, dict.fromkeys(_FRESH[memory.head], expected), requirement)


def _listed(calls: Sequence[tuple[object, ...]]) -> str:
    return ", ".join(f"{operation} {side} {size} bytes" for operation, side, _, size in calls) or "nothing"


def _tally(live: Counter[tuple[Side, int]]) -> str:
    return ", ".join(f"{times} x {size} bytes on {side}" for (side, size), times in sorted(live.items())) or "nothing"


def _compared(found: bytes, wanted: bytes) -> str:
    """Both as hexadecimal digits; of many, those around the first difference."""
    if max(len(found), len(wanted)) <= _LONGEST:
        return f"{found.hex()}, expected {wanted.hex()}"
    at = next((it for it, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), 0) & -8
    mine, theirs = (content[at : at + 8].hex() for content in (found, wanted))
    return f"{mine} from byte {at} of {len(found)}, expected {theirs} of {len(wanted)}"
