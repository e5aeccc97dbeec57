"""Looking at one memory under test: what it says, what it hands out, and what lies there behind its back.

Every look compares with the oracle, and the first difference is raised as a `Violation` that names the requirement
it breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import Call, Input, Mode, SyncedHead

from ..engine.calls import READS, SIDES, WRITES, Side
from ..engine.contents import fetch
from ..engine.finding import Violation
from ..engine.reproducer import Reproducer
from .differences import difference, head_requirement, refusal_requirement, success_requirement
from .oracle import Copy, Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..engine.call_log import AllocatorCall, CallLog
    from ..engine.subject import Memory, Subject
    from .oracle import Expected

__all__ = ["Inspection"]

_SHOWN = 16


class Inspection:
    """A memory with its own call log, and the oracle beside it.

    Parameters
    ----------
    subject : Subject
    size : int
        In bytes.
    mode : Mode
        The mode in which the memory is made.
    reproducer : Reproducer, optional
        The reproducer to go on with, where several memories live at once.
    check_device : bool
        Make the memory with ``check_device=True``.

    Attributes
    ----------
    log : CallLog
    oracle : Oracle
        What must be the case now.
    name : str
        What the reproducer calls the memory.
    """

    def __init__(
        self,
        subject: Subject,
        size: int,
        mode: Mode,
        *,
        reproducer: Reproducer | None = None,
        check_device: bool = False,
    ) -> None:
        self.subject = subject
        self.mode = mode
        self.oracle = Oracle(size, subject.device is not None)
        self.reproducer = reproducer or Reproducer(subject)
        self._external: dict[Side, Any] = {}
        self._views: dict[Call, list[Any]] = {}
        self._lasting: dict[Side, Any] = {}  # a view to read of each side, over the memory that is there now
        self.name, self.log_name, host, device = map(self.reproducer.fresh, ("memory", "log", "host", "device"))
        self.reproducer.run(f"{self.log_name}, {host}, {device} = recorded(subject)")
        self.log: CallLog = self.reproducer.names[self.log_name]
        options = ", check_device=True" if check_device else ""
        self._make(f"subject.make({size}, host={host}, device={device}{options})")
        self._require(not self.log.calls, "R01-lazy", "making a memory called its allocators")
        self._compare_head("R02-uninitialized")
        self._compare_flags()

    def _make(self, expression: str) -> None:
        error = self.reproducer.call(expression, self.mode, keep=self.name).raised
        if error is not None:
            message = f"making a memory of {self.size} bytes raised {type(error).__name__}: {error}"
            raise self.violation("R01-lazy" if self.size else "R44-size-zero", message) from error

    @property
    def memory(self) -> Memory:
        """The memory itself."""
        memory: Memory = self.reproducer.names[self.name]
        return memory

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.oracle.size

    @property
    def _safe(self) -> bool:
        """Whether more is asked than Caffe promises."""
        return self.subject.profile == "safe"

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the reproducer that led to it."""
        return Violation(requirement, message, self.reproducer.complete())

    def _require(self, holds: bool, requirement: str, message: str) -> None:
        if not holds:
            raise self.violation(requirement, message)

    # --- what a call did

    def _compare_calls(self, entry: Input, expected: Expected, seen: Sequence[AllocatorCall], raised: object) -> None:
        self._compare_frees()
        if raised is None or expected.refused:
            found = difference(entry, expected, seen, self.oracle)
            self._require(found is None, *(found or ("", "")))

    def _compare_frees(self) -> None:
        kinds = {"external": "R18-external-not-freed", "pinned": "R25-pinned-frozen", "stray": "R28-freed-once"}
        for kind, sentence in self.log.stray:
            self._require(False, kinds[kind], sentence)
        early = "; ".join(self.log.freed_in_flight)
        self._require(not early, "R42-in-flight-not-freed", early)

    def _compare_refusal(self, entry: Input, expected: Expected, raised: BaseException | None) -> None:
        name = entry.call.value if entry.call else "release"
        if expected.refused:
            self._require(raised is not None, refusal_requirement(entry, self.oracle), f"{name} was not refused")
        else:
            requirement = success_requirement(entry, expected) if self.size else "R44-size-zero"
            self._require(raised is None, requirement, f"{name} raised {type(raised).__name__}: {raised}")

    def _compare_flight(self, entry: Input) -> None:
        """After a call that succeeded: a push is on its way, and what lets go of memory has waited for it."""
        if entry.call is Call.ASYNC_GPU_PUSH and self.subject.defers and self.size:
            self._require(self._in_flight(), "R21-push", "async_gpu_push waited for its copy")
        if self._safe and entry.call in (Call.SET_CPU_DATA, Call.SET_GPU_DATA, Call.RELEASE):
            self._require(not self._in_flight(), "R42-in-flight-not-freed", "a push still uses what was let go")

    def _compare_unchanged(self, live: set[int]) -> None:
        """After a call that raised: nothing has changed, and `live` is still allocated."""
        self._compare_frees()
        self._require(set(self.log.live) == live, "R33-failure-leaks-nothing", self._leak(live))
        if not self.oracle.released:
            self._compare_head("R32-strong-guarantee")
            self._compare_flags("R32-strong-guarantee")
            self._compare_bytes("R32-strong-guarantee")

    def _leak(self, live: set[int]) -> str:
        new = [entry for key, (_, entry) in self.log.live.items() if key not in live]
        return f"leaked {new}" if new else "something was freed"

    def _compare_state(self, entry: Input, before: SyncedHead, view: Any, raised: object) -> None:
        if self.oracle.released:
            return
        if raised is None and entry.call in READS + WRITES:
            self._require(view is not None, "R10-same-bytes", f"{entry.call.value} returned nothing")
        self._compare_head(head_requirement(entry, before))
        self._compare_flags()
        if view is not None and entry.call in SIDES:
            self._compare_view(entry.call, view)
        self._compare_bytes()

    # --- what it says

    def _compare_head(self, requirement: str) -> None:
        head, wanted = getattr(self.memory, "head", self.oracle.head), self.oracle.head
        if head is not wanted:
            named = head == wanted.value if isinstance(head, int) else getattr(head, "name", head) == wanted.name
            self._require(named, requirement, f"the head is {head!r}, expected {wanted.name}")
        size = getattr(self.memory, "size", self.size)
        self._require(size == self.size, "R31-size-constant", f"the size is {size}, expected {self.size}")

    def _compare_flags(self, requirement: str = "") -> None:
        expected = {
            "own_cpu_data": (self.oracle.cpu.owner == "memory", "R23-own-flags"),
            "own_gpu_data": (self.oracle.gpu.owner == "memory", "R23-own-flags"),
            "cpu_malloc_use_cuda": (self.oracle.pinned, "R24-pinned-by-mode"),
        }
        for flag, (value, usual) in expected.items():
            found = getattr(self.memory, flag, value)
            self._require(found == value, requirement or usual, f"{flag} is {found}, expected {value}")

    # --- what it hands out

    def _compare_view(self, call: Call, view: Any) -> None:
        side = SIDES[call]
        if self._safe:
            self._compare_view_object(call, view)
        if call in READS:
            self._lasting[side] = view
        in_flight = side == "gpu" and self._in_flight()
        shown, content = _shown(side, view), self.oracle.copy(side).content
        if shown != content:
            requirement = "R43-in-flight-read" if in_flight else self._content_requirement(side)
            self._require(False, requirement, f"{call.value} shows {_short(shown)}, expected {_short(content)}")

    def _compare_view_object(self, call: Call, view: Any) -> None:
        earlier = self._views.setdefault(call, [])
        again = any(view is old for old in earlier)
        self._require(not again, "R46-fresh-view", f"{call.value} returned one object twice")
        earlier.append(view)
        if call is Call.CPU_DATA:
            self._require(_is_frozen(view), "R47-read-only-view", "the view of cpu_data can be written")
        if call is Call.MUTABLE_CPU_DATA:
            sentence = "mutable_cpu_data returned while a push still reads the host side"
            self._require(not self._host_in_flight(), "R41-in-flight-not-written", sentence)

    def _compare_lasting(self, side: Side) -> None:
        """A view that was handed out to read, before its side was written in place, shows what was written."""
        view = self._lasting.get(side)
        if view is None or not self._safe or (side == "gpu" and self._in_flight()):
            return
        shown, content = _shown(side, view), self.oracle.copy(side).content
        sentence = f"an older view of the {side} side shows {_short(shown)}, expected {_short(content)}"
        self._require(shown == content, "R54-view-of-the-memory", sentence)

    def _content_requirement(self, side: Side) -> str:
        """Whether a wrong view is a wrong buffer, a copy that went elsewhere, or wrong bytes."""
        copy = self.oracle.copy(side)
        if copy.owner != "caller" or side not in self._external:
            return "R10-same-bytes"
        if self._get(side, self._external[side])[: self.size] == copy.content:
            return "R14-adopt-host" if side == "cpu" else "R15-adopt-device"
        return "R19-external-is-target"

    # --- what lies there

    def _compare_bytes(self, requirement: str = "") -> None:
        """Look at every fresh side behind the memory's back."""
        sides: tuple[tuple[Side, Copy], ...] = (("cpu", self.oracle.cpu), ("gpu", self.oracle.gpu))
        for side, copy in sides:
            if not copy.fresh or copy.content is None or not self.size or (side == "gpu" and self._in_flight()):
                continue
            for pointer in self._pointers(side):
                found = self._get(side, pointer)[: self.size]
                self._require(
                    found == copy.content,
                    requirement or ("R19-external-is-target" if copy.owner == "caller" else "R10-same-bytes"),
                    f"the {side} side holds {_short(found)}, expected {_short(copy.content)}",
                )

    def _pointers(self, side: Side) -> list[Any]:
        return [self._external[side]] if self.oracle.copy(side).owner == "caller" else self.log.owned(side)

    def _in_flight(self) -> bool:
        return bool(self.log.flying())

    def _host_in_flight(self) -> bool:
        """Whether a push still reads the bytes of the host side."""
        host = self.subject.host
        pointers = [host.adopt(pointer, self.size) for pointer in self._pointers("cpu")] if self.size else []
        return any(self.log.uses_in_flight("cpu", pointer, host.overlaps) for pointer in pointers)

    def _get(self, side: Side, pointer: Any) -> bytes:
        return bytes(memoryview(pointer).cast("B")) if side == "cpu" else fetch(self.subject, pointer, self.size)


def _shown(side: Side, view: Any) -> bytes:
    return bytes(memoryview(view if side == "cpu" else view.get()).cast("B"))


def _is_frozen(view: Any) -> bool:
    """Whether a host view is read-only and stays so."""
    if not memoryview(view).readonly:
        return False
    try:
        view.setflags(write=True)
    except (ValueError, AttributeError):
        return True
    return False


def _short(content: bytes | None) -> str:
    content = content or b""
    return content.hex() if len(content) <= _SHOWN else f"{content[:_SHOWN].hex()}... ({len(content)} bytes)"
