"""The comparison: says which requirement the first difference breaks.

It does not know who was seen: an object of Python, a program, a vector, or a recorded run.  What is wrong whatever is
expected, such as a free of what is not allocated, has its requirement already, from who saw it (`Observation.wrong`).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ..engine.contents import contrasted
from ..requirements import REQUIREMENTS, seen_as
from .observation import NOTHING
from .steps import CANARY, OWN, content
from .world import FAILED, REFUSED_BY_US

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from syncedmem.model import Call, Machine

    from ..engine.actions import Action
    from .observation import Observation
    from .steps import Buffer, Step

__all__ = ["Comparison", "Difference", "Found", "Judge"]

_NAMED = {name.partition("-")[0]: name for name in REQUIREMENTS}

_MISSING = {"allocate": "R03", "zero": "R05", "copy": "R08", "push": "R21", "free": "R17"}
"""The requirement of what a call should have done, and did not."""
_NEEDLESS = {"allocate": "R03", "zero": "R06", "copy": "R09", "clone": "R09", "push": "R21"}
"""The requirement of what a call did, and should not have done."""
_REFUSED = {
    "released": "R48", "absent": "R30", "null": "R20", "push": "R22", "untouched": "R05", FAILED: "R32",
    **REFUSED_BY_US,
}  # fmt: skip
"""The requirement by which a call is refused, by the reason."""
_DONE = {"adopt": "R15", "push": "R21", "pull": "R21", "release": "R27"}
"""The requirement of a call that does this, and was refused although it should not be."""
_HEAD = {"write": "R13", "overwrite": "R13", "adopt": "R15", "push": "R21", "pull": "R21"}
"""The requirement of a wrong head after a call that does this."""
_FLAGS = {"owned": "R23", "pointer": "R23", "pinned": "R24"}
_ON_HOST = {"R08": "R07", "R15": "R14"}
"""The requirement about the host in place of the one about a device."""
_KINDS = ("pageable", "page-locked")
_PAIR = 2

Found = tuple[str, str]
"""A requirement, or its number, and a sentence."""


class Difference(NamedTuple):
    """What is wrong: a requirement, and a sentence."""

    requirement: str
    message: str


class Judge:
    """Says which differences count.

    Parameters
    ----------
    judged : collection of str
        The requirements by which is judged; a difference that breaks another one is none.
    level : str
        How much is observed: what it does not show is a wrong head, or wrong bytes.
    excused : callable
        Whether a requirement is excepted, and what comes after can be judged all the same.
    beyond : collection of str
        Further requirements: a difference that breaks one is noted, and does not count.

    Attributes
    ----------
    judged, level
        The parameters.
    """

    def __init__(
        self,
        judged: Collection[str],
        *,
        level: str,
        excused: Callable[[str], bool],
        beyond: Collection[str] = (),
    ) -> None:
        self.judged: Collection[str] = judged
        self.level: str = level
        self._excused = excused
        self._beyond = beyond
        self._noted: dict[str, str] = {}

    def takes(self, requirement: str) -> str:
        """The requirement that a difference counts for; empty if it does not count."""
        name = seen_as(requirement, self.level)
        return name if name in self.judged and not self._excused(name) else ""

    def first(self, findings: Iterable[Found]) -> Difference | None:
        """The first of some differences that counts."""
        for requirement, message in findings:
            if name := self.takes(requirement):
                return Difference(name, message)
            if requirement in self._beyond:
                self._noted.setdefault(requirement, message)
        return None

    def noted(self) -> list[Difference]:
        """What was noted since the last time: the first difference of each further requirement."""
        noted = [Difference(name, message) for name, message in self._noted.items()]
        self._noted.clear()
        return noted


class Comparison:
    """Compares what is seen of memories with what must be, step by step.

    Parameters
    ----------
    machine : Machine
    judge : Judge
    safe : bool
        Whether promises beyond Caffe's are judged.
    hosts : collection of str
        The sides that are host memory.
    alone : bool
        Whether there is no device.
    defers : bool
        Whether a queued push happens only when somebody waits, so that one that waits for its copy is noticed.
    """

    def __init__(  # noqa: PLR0913 -- what there is to know of a subject
        self, machine: Machine, judge: Judge, *, safe: bool, hosts: Collection[str], alone: bool, defers: bool
    ) -> None:
        self._machine = machine
        self._judge = judge
        self._safe = safe
        self._hosts = hosts
        self._alone = alone
        self._defers = defers
        self._parts = (
            self._actions, self._refusal, self._flights, self._live, self._lifetimes, self._state, self._view,
            self._bytes, self._older,
        )  # fmt: skip
        self.begin()

    def begin(self) -> None:
        """Let a new case begin."""
        self._due: dict[int, Observation] = {}
        self._seen: dict[int, Observation] = {}

    def after(self, step: Step, due: Observation, seen: Observation) -> Difference | None:
        """The first difference of what is seen after a step of a case from what must be."""
        before, earlier = (them.get(step.memory, NOTHING) for them in (self._due, self._seen))
        difference = self.first(step, before, due, seen, earlier)
        if difference is None and due is not NOTHING:
            self._due[step.memory] = due
            if seen.live is not None:
                self._seen[step.memory] = seen
        return difference

    def noted(self) -> list[Difference]:
        """What its judge has noted since the last time."""
        return self._judge.noted()

    def first(
        self, step: Step, before: Observation, due: Observation, seen: Observation, earlier: Observation
    ) -> Difference | None:
        """The first difference that is judged, in the order in which differences explain each other.

        Parameters
        ----------
        step : Step
        before : Observation
            What had to be seen of this memory before the step.
        due : Observation
            What must be seen after it.
        seen : Observation
        earlier : Observation
            What was seen before the step.
        """
        parts = chain.from_iterable(part(step, before, due, seen, earlier) for part in self._parts)
        return self._judge.first(chain(seen.wrong, ((_NAMED[number], message) for number, message in parts)))

    def _call(self, step: Step) -> Call | None:
        return self._machine.calls.get(step.name) if step.does == "call" else None

    def _does(self, step: Step) -> str:
        call = self._call(step)
        return call.does if call else ""

    def _on(self, side: str, number: str) -> str:
        """A requirement about a device, or the one about the host, if the side is there."""
        return _ON_HOST.get(number, number) if side in self._hosts else number

    # --- actions

    def _actions(
        self, step: Step, before: Observation, due: Observation, seen: Observation, _: Observation
    ) -> Iterator[Found]:
        if due.actions is None or seen.actions is None or (seen.refused and not due.refused):
            return
        if due.refused in REFUSED_BY_US and not seen.refused:
            return  # that says more than what it did instead
        done = [action for action in seen.actions if action.does != "wait" and not action.failed]
        if step.does == "new":
            yield from self._of_making(done, due)
        elif before.size:
            yield from self._of_actions(step, before, due, done)
        elif done:
            yield "R44", f"zero bytes, but it called {self._listed(done)}"

    def _of_making(self, done: list[Action], due: Observation) -> Iterator[Found]:
        """What is made at the beginning; a side of which nothing is promised may be zeroed all the same."""
        needed = {(action.does, action.side) for action in due.actions or ()}
        free = {("zero", side) for does, side in needed if does == "allocate" and side not in due.sides} - needed
        saw, expected = (
            ", ".join(sorted(f"{way.does} {way.side}" for way in them if (way.does, way.side) not in free)) or "nothing"
            for them in (done, due.actions or ())
        )
        if saw != expected:
            yield "R01", f"making a memory: saw {saw}, expected {expected}"

    def _of_actions(self, step: Step, before: Observation, due: Observation, done: list[Action]) -> Iterator[Found]:
        expected = due.actions or ()
        if wrong := [action for action in done if not due.refused and action.size not in (None, before.size)]:
            yield "R04", f"{wrong[0].does} of {wrong[0].size} bytes, the size is {before.size}"
        wanted, done_kinds = _kinds(expected), _kinds(done)
        if wanted != done_kinds:
            message = f"saw {self._listed(done)}, expected {self._listed(expected)}"
            if due.refused in REFUSED_BY_US:
                message = f"the last call was refused, but it did something: {message}"
            yield self._counted(step, before, due, wanted, done_kinds), message
            return
        for one, other in zip(expected, done, strict=True):
            if one.does == "allocate" and None not in (one.pinned, other.pinned) and one.pinned != other.pinned:
                kinds = _KINDS[not one.pinned], _KINDS[bool(one.pinned)]
                yield "R24", f"the host memory is {kinds[0]}, expected {kinds[1]}"

    def _counted(self, step: Step, before: Observation, due: Observation, wanted: Kinds, kinds: Kinds) -> str:
        """The requirement that a missing, needless or misplaced action breaks."""
        call = self._call(step)
        ends = call is not None and call.ends
        if missing := list((Counter(wanted) - Counter(kinds)).elements()):
            does, side, _ = missing[0]
            return "R27" if does == "free" and ends else self._on(side, _MISSING[does])
        if extra := list((Counter(kinds) - Counter(wanted)).elements()):
            does, side, _ = extra[0]
            if due.refused:
                return _REFUSED[due.refused]
            if call is not None and call.does == "adopt" and (does == "copy" or call.side != side):
                return "R16"
            if does == "allocate" and before.owners.get(side) == "memory":
                return "R29"
            return _NEEDLESS.get(does, "R28")
        return "R26" if ends else "R03"

    def _listed(self, actions: Sequence[Action]) -> str:
        """Actions as a part of a sentence; between two sides it is clear from where a copy comes."""
        many = len(self._machine.sides) > _PAIR
        ways = (f"{action.source} to {action.side}" if many and action.source else action.side for action in actions)
        return ", ".join(f"{action.does} {way}" for action, way in zip(actions, ways, strict=True)) or "nothing"

    # --- refusals

    def _refusal(
        self, step: Step, before: Observation, due: Observation, seen: Observation, _: Observation
    ) -> Iterator[Found]:
        if due.refused is None or seen.refused is None or bool(due.refused) == bool(seen.refused):
            return
        if due.refused == FAILED:
            yield "R32", "a failed allocator call was not reported"
        elif due.refused:
            name = "the last call" if due.refused in REFUSED_BY_US else step.spelled
            yield _REFUSED[due.refused], f"{name} was not refused"
        else:
            yield self._of_error(step, before, due), f"{step.spelled} was refused: {seen.refused}"

    def _of_error(self, step: Step, before: Observation, due: Observation) -> str:
        """The requirement that a call breaks if it is refused although it should not be."""
        if step.does == "new":
            return "R01" if step.size else "R44"
        call = self._call(step)
        if not before.size:
            return "R44"
        if call is not None and call.ends and before.head is None:
            return "R49"
        if call is not None and call.does == "adopt":
            return self._on(call.side, _DONE["adopt"])
        worked = next((action for action in due.actions or () if action.does not in ("allocate", "free")), None)
        if worked is not None:
            return self._on(worked.side, _MISSING[worked.does])
        return _DONE.get(self._does(step), "R10")

    # --- pushes in flight, and what is allocated

    def _flights(
        self, step: Step, _before: Observation, due: Observation, seen: Observation, _: Observation
    ) -> Iterator[Found]:
        if seen.refused or due.refused or seen.flying is None or self._judge.level < "L2":
            return
        if due.flying:
            if self._defers and not seen.flying:
                yield "R21", f"{step.name} waited for its copy"
            given, used = due.flying[0][0], [action.stream for action in seen.actions or () if action.does == "push"]
            if self._judge.level >= "L4" and used[-1:] != [given]:
                stream = _stream(used[-1]) if used else "no stream"
                yield "R58", f"the push was queued on {stream}, not on {_stream(given)}, which it was given"
        elif due.flying == () and seen.flying:
            yield "R42", "a push still uses the dropped memory"
        call = self._call(step)
        if self._safe and call is not None and call.does == "write" and call.side in self._hosts and seen.flying:
            yield "R41", f"{step.name} returned while a push still reads the {call.side} side"

    def _live(
        self, step: Step, _: Observation, due: Observation, seen: Observation, earlier: Observation
    ) -> Iterator[Found]:
        """After a failure, and at the end: what is allocated."""
        if due.live is None or seen.live is None:
            return
        if due.refused == FAILED:
            wanted, blocks = (
                Counter(observation.live.values()) for observation in (due, seen) if observation.live is not None
            )
            new = [block for key, block in seen.live.items() if key not in (earlier.live or {})]
            if wanted != blocks or new:
                what = f"still allocated after the failure: {_sizes(new)}" if new else "something was freed"
                yield "R33", what
        elif step.does == "drop" and seen.live:
            number = "P04" if _NAMED["P04"] in self._judge.judged else "R55"
            yield number, f"still allocated after the memory was dropped: {_sizes(seen.live.values())}"
        elif not due.refused and self._does(step) == "release" and seen.live:
            yield "R27", f"still allocated after release: {_sizes(seen.live.values())}"

    def _lifetimes(
        self, step: Step, _before: Observation, due: Observation, seen: Observation, _: Observation
    ) -> Iterator[Found]:
        """What became of buffers that only a memory can hold."""
        lent = {buffer.name for side, buffer in due.lent.items() if side in self._hosts}
        if lost := sorted(seen.gone & lent):
            yield "R40", f"the adopted buffer {lost[0]} was dropped"
        if step.does == "forget" and due.head is None and seen.held:
            yield "R56", f"still held after release: {', '.join(sorted(seen.held))}"

    # --- head, size and flags

    def _state(
        self, step: Step, before: Observation, due: Observation, seen: Observation, _: Observation
    ) -> Iterator[Found]:
        unchanged = _unchanged(step, due)
        if None not in (due.head, seen.head) and due.head != seen.head:
            usual = unchanged or self._of_head(step, before, due)
            yield usual, f"{_after(due)}the head is {seen.head}, expected {due.head}"
        if None not in (due.size, seen.size) and due.size != seen.size:
            yield "R31", f"the size is {seen.size}, expected {due.size}"
        for name, value in due.flags.items():
            if name in seen.flags and seen.flags[name] != value:
                usual = unchanged or _FLAGS[self._machine.facts[name].means]
                yield usual, f"{_after(due)}{name} is {seen.flags[name]}, expected {value}"

    def _of_head(self, step: Step, before: Observation, due: Observation) -> str:
        """The requirement that a wrong head after a step breaks."""
        call = self._call(step)
        if step.does == "new":
            return "R02"
        if call is None:
            return "R11"
        if due.refused:
            return _REFUSED[due.refused]
        if self._alone and call.does != "adopt":
            return "R11"
        fresh = self._machine.heads[before.head].fresh if before.head else ()
        if call.does == "read" and fresh:
            return "R12"
        return self._on(call.side, _HEAD.get(call.does, "R21" if call.queues else "R11"))

    # --- bytes

    def _view(
        self, step: Step, _: Observation, due: Observation, seen: Observation, _earlier: Observation
    ) -> Iterator[Found]:
        call = self._call(step)
        if call is None or not call.shows or due.refused or seen.refused:
            return
        if due.viewed and seen.viewed is False:
            yield "R10", f"{step.name} returned nothing"
        if due.view is None or seen.view is None:
            return
        wanted = content(due.view, due.size or 0)
        if seen.view != wanted:
            number = "R43" if call.side in _landing(seen) else self._of_view(call.side, due, seen)
            expected, shown = contrasted(wanted, seen.view)
            yield number, f"{step.name} shows {shown}, expected {expected}"

    def _of_view(self, side: str, due: Observation, seen: Observation) -> str:
        """The requirement for a wrong view: about a wrong buffer, about a copy that went elsewhere, or about bytes."""
        lent = due.lent.get(side)
        if lent is None or lent.name not in seen.buffers:
            return "R40" if lent is not None and lent.name in seen.gone | seen.held else "R10"
        there = seen.buffers[lent.name][_start(lent) :][: due.size or 0]
        return self._on(side, "R15") if there == content(due.view, due.size or 0) else self._target()

    def _target(self) -> str:
        """The requirement for bytes that an adopted buffer lacks; without a device nothing is copied to it."""
        return "R14" if self._alone else "R19"

    def _bytes(
        self, step: Step, _: Observation, due: Observation, seen: Observation, _earlier: Observation
    ) -> Iterator[Found]:
        unchanged, landing, size = _unchanged(step, due), _landing(seen), due.size or 0
        for side, number in due.sides.items():
            lent = due.lent.get(side)
            content_now = seen.sides.get(side) if lent is None else seen.buffers.get(lent.name)
            if content_now is None or side in landing:
                continue
            wanted, start = content(number, size), 0 if lent is None else _start(lent)
            held = content_now[start : start + size]
            if held != wanted:
                expected, there = contrasted(wanted, held)
                usual = self._target() if lent is not None else "R10"
                yield unchanged or usual, f"{_after(due)}the {side} side holds {there}, expected {expected}"
            if lent is not None and any(byte != CANARY for byte in content_now[:start] + content_now[start + size :]):
                yield "R04", "bytes around the adopted buffer were written"

    def _older(
        self, _step: Step, _before: Observation, due: Observation, seen: Observation, _: Observation
    ) -> Iterator[Found]:
        """What an earlier view shows: the memory, whatever was written since."""
        for side, shown_now in seen.older.items():
            if side in due.sides and side not in _landing(seen):
                wanted = content(due.sides[side], due.size or 0)
                if shown_now != wanted:
                    expected, shown = contrasted(wanted, shown_now)
                    yield "R54", f"an older view of the {side} side shows {shown}, expected {expected}"


def _start(lent: Buffer) -> int:
    """Where the bytes of a memory begin in an adopted object."""
    return 0 if lent.name == OWN else lent.offset


def _unchanged(step: Step, due: Observation) -> str:
    """The requirement that every difference of what is kept breaks: nothing may have changed."""
    if step.does == "look":
        return "R53"
    return "R32" if due.refused in {FAILED, *REFUSED_BY_US} else ""


def _after(due: Observation) -> str:
    return "the last call was refused, but " if due.refused in REFUSED_BY_US else ""


def _landing(seen: Observation) -> Collection[str]:
    """The sides to which a push has still to happen."""
    return {flight[2] for flight in seen.flying or ()}


Kinds = list[tuple[str, str, str]]
"""What actions do, their sides and their sources."""


def _kinds(actions: Sequence[Action]) -> Kinds:
    return [(action.does, action.side, action.source) for action in actions]


def _sizes(blocks: Collection[object]) -> str:
    return ", ".join(map(str, blocks))


def _stream(number: object) -> str:
    return f"stream {number}" if number else "the default stream"
