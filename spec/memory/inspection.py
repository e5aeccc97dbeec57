"""Inspection of one memory under test: its attributes, its views, and its bytes, read without its help.

Everything is compared with the oracle, and the first difference is raised as a `Violation` with the requirement that
it breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Head, Input, SyncedHead

from ..engine.contents import contrasted, fetch, shown
from ..engine.heads import head_name
from .differences import FLAGS, STRAY, Differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.call_log import AllocatorCall
    from ..engine.run import Run
    from ..engine.subject import Memory
    from .oracle import Expected, Oracle

__all__ = ["MemoryInspection"]


class MemoryInspection:
    """Everything that can be observed of one memory, compared with the oracle.

    Parameters
    ----------
    run : Run
    name : str
        The name of the memory in the reproducer.
    oracle : Oracle

    Attributes
    ----------
    oracle : Oracle
        The expected state; the driver sets it.
    """

    def __init__(self, run: Run, name: str, oracle: Oracle) -> None:
        self.oracle = oracle
        subject, machine = run.subject, run.subject.machine
        self._run = run
        self._differences = Differences(subject)
        self._heads: dict[frozenset[str], Head] = {frozenset(it.fresh): it for it in machine.heads.values()}
        self._flags = [it for it in machine.facts.values() if it.flag or it.means in ("owned", "pinned")]
        self._name = name
        self._external: dict[str, Any] = {}
        self._views: dict[Call, list[Any]] = {}
        self._lasting: dict[str, Any] = {}  # for each side a view for reading over its present memory

    @property
    def memory(self) -> Memory:
        """The memory under test."""
        memory: Memory = self._run.reproducer.names[self._name]
        return memory

    @property
    def head(self) -> Head:
        """The head that says what the oracle expects to be fresh."""
        machine, fresh = self._run.subject.machine, self.oracle.fresh
        if self.oracle.head:
            return machine.heads[self.oracle.head]
        # A memory that is released, or half so, has no head; others have one, or the policy would have been refused.
        return self._heads.get(fresh, machine.initial) if self.oracle.released else self._heads[fresh]

    @property
    def _size(self) -> int:
        return self.oracle.size

    def adopted(self, side: str, buffer: Any) -> None:
        """Note that a side is now a buffer of the caller."""
        self._external[side] = buffer
        self._lasting.pop(side, None)

    def compare_new(self) -> None:
        """Check a new memory."""
        wanted, seen = (
            sorted(f"{it.operation} {it.side}" for it in calls) for calls in (self.oracle.made, self._run.log.calls)
        )
        if seen != wanted and self._run.sees_actions:
            told = [", ".join(them) or "nothing" for them in (seen, wanted)]
            self._run.report("R01-lazy", f"making a memory: saw {told[0]}, expected {told[1]}")
        self.compare_head("R02-uninitialized")
        self.compare_flags()

    # --- the effect of a call

    def compare_calls(self, entry: Input, expected: Expected, seen: Sequence[AllocatorCall], raised: object) -> None:
        """Compare the allocator calls of a call; if it failed, only its frees."""
        if not self._run.sees_actions:
            return
        self._compare_frees()
        if raised is None or expected.refused:
            found = self._differences.of_calls(entry, expected, seen, self.oracle)
            self._run.require(found is None, *(found or ("", "")))

    def _compare_frees(self) -> None:
        for kind, sentence in self._run.log.stray:
            self._run.report(STRAY[kind], sentence)
        early = "; ".join(dict.fromkeys(self._run.log.freed_in_flight))
        self._run.require(not early, "R42-in-flight-not-freed", early)

    def compare_refusal(self, entry: Input, expected: Expected, raised: BaseException | None) -> None:
        """Check that a call was refused if, and only if, it should be."""
        name = str(entry.call)
        if expected.refused:
            self._run.require(raised is not None, self._differences.of_refusal(expected), f"{name} was not refused")
        else:
            requirement = self._differences.of_error(entry, expected) if self._size else "R44-size-zero"
            self._run.require(raised is None, requirement, f"{name} raised {type(raised).__name__}: {raised}")

    def compare_flight(self, entry: Input, stream: Any) -> None:
        """After a successful call: a push must be in flight, and a call that drops memory must have waited for it."""
        flying = bool(self._run.log.flying())
        if entry.queues and self._size:
            if self._run.subject.defers:
                self._run.require(flying, "R21-push", f"{entry.call} waited for its copy")
            self._compare_stream(stream)
        if self._run.safe and entry.does in ("adopt", "release"):
            self._run.require(not flying, "R42-in-flight-not-freed", "a push still uses the dropped memory")

    def _compare_stream(self, given: Any) -> None:
        """After a push: it was queued on the stream that it was given, if the subject shows that."""
        if self._run.sees("R58-push-on-its-stream"):
            used = self._run.log.streams[-1:]
            other = f"the push was queued on {used[0] if used else 'no stream'}, not on {given}, which it was given"
            self._run.require(used == [given], "R58-push-on-its-stream", other)

    def compare_unchanged(self, live: set[int]) -> None:
        """After a call that raised: nothing has changed, and exactly `live` is allocated."""
        self._compare_frees()
        self._run.require(set(self._run.log.live) == live, "R33-failure-leaks-nothing", self._leak(live))
        if not self.oracle.released:
            self.compare_head("R32-strong-guarantee")
            self.compare_flags("R32-strong-guarantee")
            self.compare_bytes("R32-strong-guarantee")

    def _leak(self, live: set[int]) -> str:
        new = [entry for key, (_, entry) in self._run.log.live.items() if key not in live]
        sizes = ", ".join(f"{it.byte_size} bytes on {it.side}{', page-locked' if it.pinned else ''}" for it in new)
        return f"still allocated after the failure: {sizes}" if new else "something was freed"

    def compare_state(self, entry: Input, expected: Expected, before: Oracle, view: Any, raised: object) -> None:
        """After a call: compare the head, the flags, the returned view, and the bytes of every fresh side."""
        if self.oracle.released:
            return
        if raised is None and entry.shows and self._run.sees_bytes:
            self._run.require(view is not None, "R10-same-bytes", f"{entry.call} returned nothing")
        self.compare_head(self._differences.of_head(entry, expected, before))
        self.compare_flags()
        if view is not None and entry.call is not None:
            self.compare_view(entry.call, view)
        self.compare_bytes()

    # --- its attributes

    def compare_head(self, requirement: str) -> None:
        """Compare the head and the size."""
        memory, wanted = self.memory, self.head.name
        seen = getattr(memory, "head", wanted)
        if head_name(self._run.subject.machine, seen) != wanted:
            told = seen.name if isinstance(seen, SyncedHead | Head) else repr(seen)
            self._run.report(requirement, f"the head is {told}, expected {wanted}")
        size = getattr(memory, "size", self._size)
        if size != self._size:
            self._run.report("R31-size-constant", f"the size is {size}, expected {self._size}")

    def compare_flags(self, requirement: str = "") -> None:
        """Compare the flags that the memory has; each has its own requirement, unless one is given."""
        for flag in self._flags:
            value, usual = self.oracle.holds(flag), FLAGS.get(flag.means, "")
            seen = getattr(self.memory, flag.name, value)
            if value is not None and seen != value and self._run.sees(requirement or usual):
                self._run.report(requirement or usual, f"{flag.name} is {seen}, expected {value}")

    # --- its views

    def compare_view(self, call: Call, view: Any) -> None:
        """Check a view that a call just returned."""
        if not self._run.sees_bytes:
            return
        side = call.side
        if self._run.safe:
            self._compare_view_object(call, view)
        if call.does == "read":
            self._lasting[side] = view
        in_flight = self._in_flight(side)
        found, content = self._shown(side, view), self.oracle.copy(side).content
        if content is not None and found != content:
            requirement = "R43-in-flight-read" if in_flight else self._content_requirement(side)
            wanted, seen = contrasted(content, found)
            self._run.report(requirement, f"{call} shows {seen}, expected {wanted}")

    def _compare_view_object(self, call: Call, view: Any) -> None:
        if self._run.subject.program is None:
            earlier = self._views.setdefault(call, [])
            again = any(view is old for old in earlier)
            self._run.require(not again, "R46-fresh-view", f"{call} returned one object twice")
            earlier.append(view)
            frozen = call.does != "read" or not self._run.subject.is_host(call.side) or _is_frozen(view)
            self._run.require(frozen, "R47-read-only-view", f"the view of {call} can be written")
        if call.does == "write" and self._run.subject.is_host(call.side):
            sentence = f"{call} returned while a push still reads the {call.side} side"
            self._run.require(not self._read_in_flight(call.side), "R41-in-flight-not-written", sentence)

    def compare_lasting(self, side: str) -> None:
        """Check an older view for reading after its side was written in place: it must show the new bytes."""
        view = self._lasting.get(side)
        if view is None or "R54-view-of-the-memory" not in self._run.judged or self._in_flight(side):
            return
        found, content = self._shown(side, view), self.oracle.copy(side).content
        if found != content:  # the sentence takes longer than all else
            wanted, seen = contrasted(content or b"", found)
            sentence = f"an older view of the {side} side shows {seen}, expected {wanted}"
            self._run.report("R54-view-of-the-memory", sentence)

    def compare_again(self, call: Call, view: Any) -> None:
        """Check a view and drop it; the older view of this side stays the one that later checks use."""
        side = call.side
        lasting = self._lasting.get(side)
        self.compare_view(call, view)
        if lasting is not None:
            self._lasting[side] = lasting
            self.compare_lasting(side)

    def _content_requirement(self, side: str) -> str:
        """The requirement for a wrong view: about a wrong buffer, about a copy that went elsewhere, or about bytes."""
        copy = self.oracle.copy(side)
        if copy.owner != "caller" or side not in self._external:
            return "R10-same-bytes"
        if self._get(side, self._external[side])[: self._size] == copy.content:
            return self._differences.on(side, "R15-adopt-device")
        return self._target_requirement()

    def _target_requirement(self) -> str:
        """The requirement for bytes that an adopted buffer lacks; without a device nothing is copied to it."""
        return "R14-adopt-host" if self.oracle.policy.absent else "R19-external-is-target"

    # --- its bytes

    def compare_bytes(self, requirement: str = "") -> None:
        """Compare the bytes of every fresh side, read without the memory's help."""
        if not self._run.sees_bytes:
            return
        for side, copy in self.oracle.copies.items():
            if not copy.fresh or copy.content is None or not self._size or self._in_flight(side):
                continue
            for pointer in self._pointers(side):
                found = self._get(side, pointer)[: self._size]
                if found != copy.content:
                    wanted, seen = contrasted(copy.content, found)
                    usual = self._target_requirement() if copy.owner == "caller" else "R10-same-bytes"
                    self._run.report(requirement or usual, f"the {side} side holds {seen}, expected {wanted}")

    def _pointers(self, side: str) -> list[Any]:
        """What is on a side, without a call; a memory that is no Python object shows it itself."""
        if self.oracle.copy(side).owner == "caller":
            return [self._external[side]]
        if self._run.subject.program is None:
            return self._run.log.owned(side)
        memory: Any = self.memory
        sides: list[Any] = memory.state(side)
        return sides

    def _in_flight(self, side: str) -> bool:
        """Whether a push to a side has still to happen."""
        return any(it.sides[1] == side for it in self._run.log.flying())

    def _read_in_flight(self, side: str) -> bool:
        """Whether a push still reads the bytes of a side."""
        if self._run.subject.program is not None:
            return bool(self._run.log.flying())
        place = self._run.subject.place(side)
        pointers = [place.adopt(pointer, self._size) for pointer in self._pointers(side)] if self._size else []
        return any(self._run.log.uses_in_flight(side, pointer, place.overlaps) for pointer in pointers)

    def _get(self, side: str, pointer: Any) -> bytes:
        return fetch(self._run.subject, pointer, self._size, side)

    def _shown(self, side: str, view: Any) -> bytes:
        return shown(self._run.subject, view, side)


def _is_frozen(view: Any) -> bool:
    """Whether a host view is read-only and cannot be made writable."""
    if not memoryview(view).readonly:
        return False
    try:
        view.setflags(write=True)
    except (ValueError, AttributeError):
        return True
    return False
