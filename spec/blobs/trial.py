"""Several blobs under test, driven call by call and looked at in full after each.

After every call the trial compares with the oracle: whether it was refused, the allocator calls with their sizes, the
shapes and capacities, which memories are shared, their heads, and the bytes of every fresh side; of the blobs that
took part, and of all others.
"""

from __future__ import annotations

import gc
from collections import Counter
from functools import wraps
from itertools import chain, permutations
from math import isclose
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from syncedmem.model import Mode, SyncedHead, using_mode

from ..script import Script
from ..subject import Violation
from .elements import decoded, shown
from .oracle import Duty, World
from .steps import ADOPTIONS, Other, Step, foresee, number_of, write_of
from .tables import cell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ledger import Entry, Ledger
    from ..oracle import Side
    from ..script import Outcome
    from ..subject import Bench
    from .oracle import Foreseen, Part, Shape
    from .tables import Cell

__all__ = ["PARTS", "BlobTrial"]

P = ParamSpec("P")
PARTS: tuple[Part, ...] = ("data", "diff")

_FRESH: dict[SyncedHead, tuple[Side, ...]] = {
    SyncedHead.UNINITIALIZED: (),
    SyncedHead.HEAD_AT_CPU: ("cpu",),
    SyncedHead.HEAD_AT_GPU: ("gpu",),
    SyncedHead.SYNCED: ("cpu", "gpu"),
}

_UNCHANGED = Duty("B56-unchanged", "B56-unchanged", "B56-unchanged")

_TOLERANCE = {"float16": 1e-2, "float32": 1e-4}


def _blaming(act: Callable[Concatenate[BlobTrial, P], None], /) -> Callable[Concatenate[BlobTrial, P], None]:
    """Whatever a blob makes the kit stumble over is a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(trial: BlobTrial, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(trial, *args, **kwargs)
        except Violation:
            raise
        except Exception as error:
            message = f"looking at the blobs raised {type(error).__name__}: {error}"
            raise trial.violation("B21-accessors", message) from error

    return blamed


class BlobTrial:
    """Blobs of one type that live at the same time, and what is done to them.

    Parameters
    ----------
    bench : Bench
        Makes blobs.
    dtype : str
        Of all of them.

    Attributes
    ----------
    world : World
        What must be the case now.
    ledger : Ledger
        What all of them asked their allocators for.
    visited : list of Cell
        For counting coverage.
    """

    def __init__(self, bench: Bench, dtype: str = "float32") -> None:
        self.bench = bench
        self.world = World(dtype, bench.device is not None, Mode.GPU)
        self.script = Script(bench)
        self.script.run("ledger, host, device = recorded(bench)")
        self.ledger: Ledger = self.script.names["ledger"]
        self.visited: list[Cell] = []
        self._number = 0
        self._known: dict[int, int] = {}  # key of a memory to the identity of the object
        self._extents = False  # whether a blob's shape was asked for, which has memory too

    @property
    def steps(self) -> int:
        """How many calls were compared with the oracle."""
        return self._number

    @property
    def safe(self) -> bool:
        """Whether more is asked than Caffe promises."""
        return self.bench.profile == "safe"

    # --- making blobs

    @_blaming
    def make(self, shape: Shape | None) -> None:
        """Make another blob; nothing is allocated by that.

        Raises
        ------
        Violation
        """
        name, given = self.name(len(self.world.blobs)), "" if shape is None else f"{shape!r}, "
        text = f"bench.make({given}dtype={self.world.dtype!r}, host=host, device=device)"
        start = len(self.ledger.entries)
        error = self.script.call(text, self.world.mode, keep=name).raised
        known = "B01-empty" if shape is None else "B02-lazy"
        self.require(error is None, known, f"making a blob raised {type(error).__name__}: {error}")
        self.world = self.world.make(shape)
        self.require(len(self.ledger.entries) == start, "B02-lazy", "making a blob called its allocators")
        shaped, grown = "B01-empty" if shape is None else "B03-shape", "B06-growth-renews"
        self._compare_blobs({len(self.world.blobs) - 1}, Duty(shaped, shaped), sizes=grown)
        self._compare_memories({len(self.world.blobs) - 1}, Duty("B02-lazy", "B02-lazy"))

    def name(self, n: int) -> str:
        """What the script calls a blob."""
        return "blob" if n == 0 else f"blob{n + 1}"

    def blob(self, n: int) -> Any:
        """A blob itself."""
        return self.script.names[self.name(n)]

    # --- doing

    @_blaming
    def perform(self, step: Step, *, about: str = "", text: str = "") -> None:
        """Make one call, and compare everything.

        Parameters
        ----------
        step : Step
        about : str
            The requirement that all of it is for, where it is not the usual one.
        text : str
            How the script is to say it, where that is not the usual way.

        Raises
        ------
        Violation
        """
        self._number += 1
        foreseen = foresee(self.world, step, self._number)
        if about:
            foreseen = foreseen._replace(duty=Duty(about, about))
        if step.call == "mode":
            self.world = foreseen.after
            return
        if cell := cell_of(self.world, step):
            self.visited.append(cell)
        start, live = len(self.ledger.entries), set(self.ledger.live)
        raised, value = self._call(text or self._text(step), step)
        name, duty = f"{self.name(step.blob)}.{step.call}", foreseen.duty
        if foreseen.refused:
            self.require(raised is not None, foreseen.refused, f"{name} was not refused")
            self.require(set(self.ledger.live) == live, "B56-unchanged", f"{name} was refused, and changed memory")
            self.expect(raised)
            duty = _UNCHANGED
        else:
            self.require(raised is None, duty.conduct, f"{name} raised {type(raised).__name__}: {raised}")
        self._compare_calls(foreseen, self.ledger.entries[start:], duty.conduct)
        self.world = foreseen.after
        self._compare_blobs(step.changed, duty)
        if raised is None:
            self._compare_value(step, foreseen, value)
        self._compare_memories(step.changed, duty)
        if raised is None:
            self._write(step, value)

    @_blaming
    def perform_failing(self, step: Step, k: int) -> None:
        """Make one call whose k-th allocator call fails, and then again: the numbers must be what they would have been.

        A side may have been brought up to date before the call failed, so heads are not compared.

        Raises
        ------
        Violation
        """
        foreseen = foresee(self.world, step, self._number)
        # A free of memory that is dropped has nobody to tell; a copy between blobs is one call more than is foreseen.
        if foreseen.refused or k > sum(map(len, foreseen.calls)) + (step.call == "copy_from"):
            self.perform(step)
            return
        self._number += 1
        numbers, shapes = self._fresh_numbers(), [(blob.shape, blob.count) for blob in self.world.blobs]
        text, known = self._text(step), "B57-failure-keeps-numbers"
        raised = self.script.call(text, self.world.mode, within=f"ledger.moves.armed({k})").raised
        if not self.ledger.moves.blown:
            self.require(raised is None, known, f"nothing failed, and yet it raised {raised!r}")
        else:
            self.require(raised is not None, known, "a failed allocator call was not reported")
            self.expect(raised)
            found = [(tuple(self.blob(n).shape), self.blob(n).count) for n in range(len(shapes))]
            self.require(found == shapes, known, f"it failed, and the shapes are {found}, expected {shapes}")
            for key, expected in numbers.items():
                self._compare_side_by_side(key, expected, known)
            again = self.script.call(text, self.world.mode).raised
            self.require(again is None, known, f"afterwards it raised {again!r}")
        self.world = foresee(self.world, step, self._number).after
        for key, expected in self._fresh_numbers().items():
            self._compare_side_by_side(key, expected, known)

    @_blaming
    def refused(self, requirement: str, *calls: str) -> None:
        """See that calls raise, call no allocator and change nothing.

        Parameters
        ----------
        requirement : str
            What one breaks that does not raise.
        *calls : str
            As the script has them.

        Raises
        ------
        Violation
        """
        everyone = set(range(len(self.world.blobs)))
        for call in calls:
            start = len(self.ledger.entries)
            raised = self.script.call(call, self.world.mode).raised
            self.require(raised is not None, requirement, "the last call was not refused")
            self.require(len(self.ledger.entries) == start, "B56-unchanged", "it was refused, but it called allocators")
            self._compare_blobs(everyone, _UNCHANGED)
            self._compare_memories(everyone, _UNCHANGED)
            self.expect(raised)

    @_blaming
    def shows(self, requirement: str, expression: str, expected: object) -> None:
        """See what an expression is, that it calls no allocator, and that it changes nothing.

        Raises
        ------
        Violation
        """
        start = len(self.ledger.entries)
        raised, value = self.script.call(expression, self.world.mode)
        text = f"it raised {type(raised).__name__}: {raised}" if raised else f"it is {value!r}, expected {expected!r}"
        self.require(raised is None and value == expected, requirement, text)
        self.require(len(self.ledger.entries) == start, requirement, "looking called allocators")

    def extents(self) -> tuple[object, ...]:
        """Ask the first blob for its extents on the device; from now on it has memory for them besides its own.

        Raises
        ------
        Violation
        """
        self._extents = True
        raised, value = self.script.call("blob.gpu_shape()", self.world.mode)
        self.require(raised is None, "B17-gpu-shape", f"it raised {type(raised).__name__}: {raised}")
        return decoded(shown(value), "int32")

    @_blaming
    def finish(self) -> None:
        """Let go of all blobs, and look for what is left.

        Raises
        ------
        Violation
        """
        self.script.run(f"del {', '.join(map(self.name, range(len(self.world.blobs))))}")
        self.script.names.pop("view", None)
        self.world = World(self.world.dtype, self.world.has_device, self.world.mode)
        self._extents = False
        self._compare_live()

    # --- failing

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the script that led to it."""
        return Violation(requirement, message, self.script.complete())

    def require(self, holds: bool, requirement: str, message: str) -> None:
        """Report what does not hold.

        Raises
        ------
        Violation
        """
        if not holds:
            raise self.violation(requirement, message)

    def expect(self, raised: BaseException | None) -> None:
        """The last call had to raise."""
        if raised is not None:
            raised.__traceback__ = None  # it holds blobs, which are watched for being dropped
            self.script.expect(raised)

    # --- making a call

    def _call(self, text: str, step: Step) -> Outcome:
        return self.script.call(text, self.world.mode, keep="view" if write_of(step.call) else "")

    def _text(self, step: Step) -> str:
        given = [self._hand_in(step)] if step.call in ADOPTIONS else [self._said(it) for it in step.arguments]
        given += [f"{option}={value!r}" for option, value in step.options]
        return f"{self.name(step.blob)}.{step.call}({', '.join(given)})"

    def _said(self, argument: object) -> str:
        return self.name(argument.blob) if isinstance(argument, Other) else repr(argument)

    def _hand_in(self, step: Step) -> str:
        """A buffer of the caller's own, by its name in the script."""
        if not step.arguments[0]:
            return "None"
        count, (_, side) = self.world.blobs[step.blob].count, ADOPTIONS[step.call]
        name, content = self.script.fresh("buffer"), f"numbers({self._number}, {count}, {self.world.dtype!r})"
        if side == "cpu":
            self.script.run(f"{name} = bytearray({content})")
        elif self.bench.device is None:
            self.script.run(f"{name} = object()")
        else:
            self.script.run(f"{name} = bench.device.empty({len(number_of(self.world, step.blob, self._number))})")
            self.script.run(f"put(bench, {name}, {content})")
        return name

    def _write(self, step: Step, view: Any) -> None:
        """Write this step's numbers through the view that was handed out for it."""
        writes = write_of(step.call)
        if writes is None:
            return
        content = number_of(self.world, step.blob, self._number)
        if content:
            count = self.world.blobs[step.blob].count
            self.script.run(f"pour(view, numbers({self._number}, {count}, {self.world.dtype!r}))")
            self.world = self.world.wrote(step.blob, *writes, content)
        self._compare_memories({step.blob}, Duty("B21-accessors", "B22-elements"))

    # --- what a call did

    def _compare_calls(self, foreseen: Foreseen, seen: Sequence[Entry], requirement: str) -> None:
        for _, sentence in self.ledger.stray:
            self.require(False, "B60-nothing-left", sentence)
        found = [(it.operation, it.side, it.pinned, it.byte_size) for it in seen if it.operation not in ("free", "clone")]
        orders = [
            [(it.operation, it.side, it.pinned, size) for it, size in chain.from_iterable(order)]
            for order in permutations(foreseen.calls)
        ] or [[]]
        sentence = f"saw {_listed(found)}, expected {_listed(orders[0])}"
        self.require(found in orders, requirement, sentence)

    def _compare_value(self, step: Step, foreseen: Foreseen, value: Any) -> None:
        result = foreseen.duty.result
        if foreseen.value is not None:
            near = isclose(float(value), foreseen.value, rel_tol=_TOLERANCE.get(self.world.dtype, 1e-9))
            self.require(near, result, f"{step.call} is {value!r}, expected {foreseen.value!r}")
        if foreseen.view is not None:
            self._compare_view(step, foreseen.view, value)

    def _compare_view(self, step: Step, content: bytes, view: Any) -> None:
        found = shown(view)
        self.require(found == content, "B22-elements", f"{step.call} shows {_short(found)}, expected {_short(content)}")
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
            fresh = key not in self._known and there in self._known.values()
            self.require(not fresh or self._gone(there), known, "a blob still holds its old memory")
        self.require(len(set(now.values())) == len(now), objects[-1][2], "blobs hold one memory that do not share it")
        self._known = now

    def _gone(self, there: int) -> bool:
        """Whether the memory of this identity is held by nobody, so that another may have taken its place."""
        held = self.world.held
        return all(key not in held for key, identity in self._known.items() if identity == there)

    def _compare_capacity(self, n: int, requirement: str) -> None:
        blob, wanted = self.blob(n), self.world.blobs[n]
        found = tuple(getattr(blob, f"{part}_memory").size for part in PARTS)
        sizes = tuple(self.world.memories[wanted.memory(part)].size for part in PARTS)
        if len(set(found)) > len(set(sizes)):
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
        wanted = Counter((side, it.size) for it in held for side in sides if it.size and it.copy(side).owner == "memory")
        if self._live() != wanted:
            gc.collect()
        found = self._live()
        left = f"allocated are {_tally(found)}, expected {_tally(wanted)}"
        self.require(found == wanted, "B60-nothing-left", left)

    def _live(self) -> Counter[tuple[Side, int]]:
        return Counter((entry.side, entry.byte_size) for _, entry in self.ledger.live.values())

    def _compare_memories(self, acting: set[int], duty: Duty) -> None:
        """Heads, and the bytes of every fresh side."""
        mine = {self.world.blobs[n].memory(part) for n in acting for part in PARTS}
        for key, memory in self._held_objects().items():
            known = duty.conduct if key in mine else duty.others
            wanted = self.world.memories[key].head
            self.require(memory.head is wanted, known, f"a head is {memory.head}, expected {wanted}")
            content = {side: self.world.memories[key].copy(side).content for side in _FRESH[wanted]}
            self._compare_content(memory, content, duty.result if key in mine else duty.others)

    def _held_objects(self) -> dict[int, Any]:
        return {
            wanted.memory(part): getattr(self.blob(n), f"{part}_memory")
            for n, wanted in enumerate(self.world.blobs)
            for part in PARTS
        }

    def _compare_content(self, memory: Any, content: dict[Side, bytes | None], requirement: str) -> None:
        for side, wanted in content.items():
            start = len(self.ledger.entries)
            with using_mode(self.world.mode):
                found = shown(getattr(memory, f"{side}_data")())
            self.require(len(self.ledger.entries) == start, requirement, f"the {side} side was not fresh")
            text = f"the {side} side holds {_short(found)}, expected {_short(wanted)}"
            self.require(found == wanted, requirement, text)

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


def _short(content: bytes | None) -> str:
    return (content or b"").hex()
