"""The comparison of blobs: the only code that says which requirement of blobs is broken.

It does not know whose blobs were seen, like the comparison of memories (`syncedmem.spec.record.compare`).  That one
judges a memory's own calls, action by action; here a call touches several memories, and breaks what is said of blobs.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, permutations, product
from typing import TYPE_CHECKING, Any

from ..engine.contents import contrasted
from ..engine.heads import FRESH, HEADS
from .elements import alike, near
from .oracle import NORMS, Blame
from .seen import SIDES
from .steps import FORESEEN, PARTS, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..engine.actions import Action
    from ..record.compare import Difference, Found, Judge
    from .oracle import BlobStates, Foreseen
    from .seen import BlobsSeen, MemorySeen
    from .steps import BlobStep

__all__ = ["LEFT", "BlobComparison"]

LEFT = "B60-nothing-left"
_BROKEN, _ELEMENTS, _LAZY = "B21-accessors", "B22-elements", "B67-shape-lazy"
_EMPTY = "B64-no-elements"
_FAILED = "B57-failure-keeps-numbers"
_UNCHANGED = Blame(*("B56-unchanged",) * 3)
_TOLERANCE = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-12}
"""The tolerance for norms, by the type of the elements: they are sums, in any order."""
_SHAPING = ("new", "reshape", "reshape_like", "copy_from", "from_proto")
"""What may give a shape."""
_EXTENTS = range(0, 4 * 32 + 1, 4)
"""The sizes that the extents of a blob can have in bytes."""


class BlobComparison:
    """Compares what is seen of blobs with what must be.

    Parameters
    ----------
    judge : Judge
        Says which differences count.
    safe : bool
        Whether promises beyond Caffe's are judged.
    """

    def __init__(self, judge: Judge, *, safe: bool) -> None:
        self._judge = judge
        self._safe = safe

    def first(
        self, step: BlobStep, before: BlobStates, due: Foreseen, seen: BlobsSeen, earlier: BlobsSeen
    ) -> Difference | None:
        """The first difference that is judged, in the order in which differences explain each other.

        Parameters
        ----------
        step : BlobStep
        before : BlobStates
            What had to be before the step.
        due : Foreseen
            What must be after it.
        seen, earlier : BlobsSeen
            What was seen after the step and before it.
        """
        return self._judge.first(self._differences(step, before, due, seen, earlier))

    def after_failure(self, states: BlobStates, seen: BlobsSeen, *, failed: bool) -> Difference | None:
        """The first difference after a call that failed, or was made again.

        A failed call may have brought a side up to date: so at any head, the fresh sides have the numbers.
        """
        return self._judge.first((_FAILED, sentence) for sentence in self._failures(states, seen, failed=failed))

    def _accounts_for(self, states: BlobStates, seen: BlobsSeen) -> bool:
        """Whether exactly the memory owned by held memories is allocated, as far as it was seen."""
        if seen.called.live is None or states.extents is not None:
            return True
        allocated, wanted = _allocated(seen), _owned(states)
        if allocated == wanted or not (wanted <= allocated and self._are_extents(allocated - wanted, states)):
            return allocated == wanted
        return not self._judge.takes(_LAZY)

    def _are_extents(self, blocks: Counter[tuple[str, int]], states: BlobStates) -> bool:
        """Whether these can be the extents of the blobs, on the host: four bytes for each axis."""
        fits = all(side == "cpu" and size in _EXTENTS for side, size in blocks)
        # One blob may be there besides: that of another type, which only one rule makes.
        return fits and blocks.total() <= len(states.blobs) + 1

    # --- a step

    def _differences(
        self, step: BlobStep, before: BlobStates, due: Foreseen, seen: BlobsSeen, earlier: BlobsSeen
    ) -> Iterator[Found]:
        blame, called = due.blame, seen.called
        if called.refused is None:  # no call was made
            yield _BROKEN, f"inspecting the blobs raised {seen.broken}"
            return
        if due.refused:
            if called.refused == "":
                yield due.refused, f"{step.spelled} was not refused"
            if not self._safe:
                return  # Caffe ends the process; it may also bring a side up to date first (blob.hpp:191-194)
            blame = _UNCHANGED
            if {*(called.live or ())} != {*(earlier.called.live or ())}:
                yield blame.conduct, f"{step.spelled} was refused, and changed memory"
        elif called.refused:
            yield blame.accepted or blame.conduct, f"{step.spelled} raised {called.refused}"
        yield from self._actions(step, due, seen, blame.conduct)
        yield from self._blobs(step, before, due, seen, earlier, blame)
        if called.refused == "" and not due.refused:
            yield from self._result(step, due, seen)
        yield from self._memories(step, due.after, seen, blame)
        if seen.broken:
            yield _BROKEN, f"inspecting the blobs raised {seen.broken}"

    def _actions(self, step: BlobStep, due: Foreseen, seen: BlobsSeen, requirement: str) -> Iterator[Found]:
        """What was allocated, filled and copied; a call may start with either of its memories, as in C++.

        Before these, a call that gives a shape may allocate the extents.
        """
        yield from ((LEFT, sentence) for _, sentence in seen.called.wrong)
        if seen.called.actions is None or due.calls is None:
            return
        done = [action for action in seen.called.actions if action.does != "wait" and not action.failed]
        if step.expected is not FORESEEN:
            if done:
                yield requirement, "it called its allocators, and must not"
            return
        moved = sum(action.size or 0 for action in done if action.does == "clone")
        if requirement == "B43-copy-self" and moved:
            yield requirement, f"{moved} bytes were copied onto themselves"
        if requirement == _EMPTY and any(action.size or action.does != "clone" for action in done):
            yield (
                requirement,
                f"it called its allocators: {', '.join(f'{action.does} {action.side}' for action in done)}",
            )
        axes = len(due.after.blobs[step.blob].shape) if step.call in _SHAPING and step.arguments else -1
        actions, without = _moving(done), _moving(_besides_extents(done, axes))
        orders = [
            [(step.operation, step.side, step.pinned, size) for step, size in chain.from_iterable(order)]
            for order in permutations(due.calls)
        ]
        sentence = f"saw {_listed(actions)}, expected {_listed(orders[0])}"
        if actions not in orders and without not in orders:
            yield requirement, sentence
        if actions not in orders:
            yield _LAZY, sentence

    def _result(self, step: BlobStep, due: Foreseen, seen: BlobsSeen) -> Iterator[Found]:
        """The number or the view that a call returned."""
        known, states, wanted = due.blame.result, due.after, due.value
        if wanted is not None and (step.is_valued or self._judge.level >= "L1"):
            tolerance = _TOLERANCE[states.dtype] if step.call in NORMS else 0.0
            exact = step.is_valued or step.call == "gpu_shape"
            if not (seen.value == wanted if exact else near(seen.value, wanted, tolerance)):
                yield known, f"{step.call} is {seen.value!r}, expected {wanted!r}"
        if due.view is None or self._judge.level < "L1":
            return
        if seen.called.view is None:
            if not seen.broken:
                yield _BROKEN, f"{step.call} returned no view"
            return
        if not alike(seen.called.view, due.view, states.dtype):
            yield _ELEMENTS, f"{step.call} shows {_compared(seen.called.view, due.view)}"
        if due.view and seen.shape is not None and seen.shape != states.blobs[step.blob].shape:
            yield _ELEMENTS, f"the view has the shape {seen.shape}, expected {states.blobs[step.blob].shape}"
        if seen.twice:
            yield "B69-fresh-view", f"{step.call} returned one object twice"

    # --- the state afterwards

    def _blobs(  # noqa: PLR0913 -- before and after, as they must be and as they are
        self, step: BlobStep, before: BlobStates, due: Foreseen, seen: BlobsSeen, earlier: BlobsSeen, blame: Blame
    ) -> Iterator[Found]:
        """Shapes; whether each memory is the same as before, and the right blobs hold it; and what is allocated."""
        states, known, now = due.after, _names(before, earlier), dict[int, Any]()
        requirements = {n: (blame.shapes or blame.conduct) if n in step.changed else blame.others for n in seen.blobs}
        for n, blob in seen.blobs.items():
            wanted = states.blobs[n]
            if (blob.shape, blob.count) != (wanted.shape, wanted.count):
                expected = f"expected {wanted.shape} and {wanted.count}"
                there = f"{name_of(n)} has the shape {blob.shape} and {blob.count} elements"
                yield requirements[n], f"{there}, {expected}"
        for n, part in product(seen.blobs, PARTS):
            key, name = states.blobs[n].memory(part), seen.blobs[n].memory(part)
            if now.setdefault(key, name) != name:
                yield requirements[n], "blobs that share a memory hold different ones"
            if known.get(key, now[key]) != now[key]:
                yield requirements[n], "a blob holds another memory than before"
        if len({*now.values()}) != len(now):
            yield [*requirements.values()][-1], "blobs that do not share a memory hold the same one"
        for n in seen.blobs:
            yield from self._capacity(n, states, seen, blame.sizes or blame.conduct)
        if (seen.blobs or not states.blobs) and not self._accounts_for(states, seen):
            yield LEFT, f"allocated are {_tally(_allocated(seen))}, expected {_tally(_owned(states))}"

    def _capacity(self, n: int, states: BlobStates, seen: BlobsSeen, requirement: str) -> Iterator[Found]:
        blob = seen.blobs[n]
        if not {blob.data, blob.diff} <= seen.memories.keys():
            return  # looking there raised an error
        now = tuple(seen.memories[blob.memory(part)].size for part in PARTS)
        sizes = tuple(states.memories[states.blobs[n].memory(part)].size for part in PARTS)
        if requirement == "B06-growth-renews" and len(set(now)) > 1:
            requirement = "B08-equal-sizes"
        if now != sizes:
            yield requirement, f"data and diff have {now} bytes, expected {sizes}"
        expected = states.capacity(n)
        if self._safe and blob.capacity != expected:
            yield "B46-capacity", f"the capacity is {blob.capacity}, but {expected} elements fit"

    def _memories(self, step: BlobStep, states: BlobStates, seen: BlobsSeen, blame: Blame) -> Iterator[Found]:
        """Heads, and the bytes of every fresh side."""
        mine = {states.blobs[n].memory(part) for n in step.changed if n in states.blobs for part in PARTS}
        for key, memory in _held(states, seen).items():
            wanted = HEADS[states.memories[key].fresh]
            if memory.head != wanted.name:
                known = blame.conduct if key in mine else blame.others
                yield known, f"a head is {memory.head}, expected {wanted}"
                continue
            contents = {side: states.memories[key].copy(side).content or b"" for side in FRESH[wanted]}
            requirement = blame.result if key in mine else blame.others
            yield from (
                (name or requirement, sentence) for name, sentence in self._contents(memory, contents, states.dtype)
            )

    def _contents(self, memory: MemorySeen, contents: Mapping[str, bytes], dtype: str) -> Iterator[Found]:
        """What is wrong with sides that were looked at; without a requirement, if it is that of the call."""
        for side, wanted in contents.items() if self._judge.level >= "L1" else ():
            content = memory.sides.get(side)
            if memory.touched:
                yield "", f"the {side} side was not fresh"
            if content is None:
                if wanted:
                    yield _BROKEN, f"the {side} side, which is fresh, is not shown"
            elif not alike(content, wanted, dtype):
                yield "", f"the {side} side holds {_compared(content, wanted)}"

    def _failures(self, states: BlobStates, seen: BlobsSeen, *, failed: bool) -> Iterator[str]:
        if failed and not seen.called.refused:
            yield "a failed allocator call was not reported"
        elif seen.called.refused and not failed:
            yield f"nothing failed, but it raised {seen.called.refused}"
        shapes = [(blob.shape, blob.count) for blob in seen.blobs.values()]
        wanted = [(states.blobs[n].shape, states.blobs[n].count) for n in seen.blobs]
        if shapes != wanted:
            yield f"after a failure the shapes are {shapes}, expected {wanted}"
        for key, memory in _held(states, seen).items():
            content = states.content_of(key)
            if content is None:
                continue
            fresh = SIDES.get(memory.head, ())
            if not fresh:
                yield "the memory has lost what was written to it"
            contents = dict.fromkeys(fresh, content)
            yield from (sentence for _, sentence in self._contents(memory, contents, states.dtype))
        if seen.broken:
            yield f"inspecting the blobs raised {seen.broken}"


def _names(states: BlobStates, seen: BlobsSeen) -> Mapping[int, Any]:
    """What each memory that must be there is known by, where it was seen."""
    there = ((n, blob) for n, blob in seen.blobs.items() if n in states.blobs)
    return {states.blobs[n].memory(part): blob.memory(part) for n, blob in there for part in PARTS}


def _held(states: BlobStates, seen: BlobsSeen) -> Mapping[int, MemorySeen]:
    """What was seen of each memory that must be there."""
    return {key: seen.memories[name] for key, name in _names(states, seen).items() if name in seen.memories}


def _owned(states: BlobStates) -> Counter[tuple[str, int]]:
    """What must be allocated: the sides and sizes of the blocks that held memories own."""
    held = [states.memories[key] for key in states.held]
    sides = ("cpu", "gpu")
    return Counter(
        (side, memory.size) for memory in held for side in sides if memory.size and memory.copy(side).owner == "memory"
    )


def _allocated(seen: BlobsSeen) -> Counter[tuple[str, int]]:
    return Counter((block.side, block.size) for block in (seen.called.live or {}).values())


def _besides_extents(seen: Sequence[Action], axes: int) -> Sequence[Action]:
    """The actions without those that make the memory of so many extents, if they are the first."""
    actions = [action for action in seen if action.does != "free"]
    first = [(action.does, action.side, action.size) for action in actions[:2]]
    return actions[2:] if first == [(does, "cpu", 4 * axes) for does in ("allocate", "zero")] else seen


def _moving(actions: Sequence[Action]) -> list[tuple[Any, ...]]:
    """The actions without frees, and without copies within one side."""
    return [
        (action.does, action.side, bool(action.pinned), action.size)
        for action in actions
        if action.does not in ("free", "clone")
    ]


def _listed(actions: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(f"{does} {side} {size} bytes" for does, side, _, size in actions) or "nothing"


def _tally(live: Counter[tuple[str, int]]) -> str:
    return ", ".join(f"{times} x {size} bytes on {side}" for (side, size), times in sorted(live.items())) or "nothing"


def _compared(content: bytes, wanted: bytes) -> str:
    expected, shown = contrasted(wanted, content)
    return f"{shown}, expected {expected}"
