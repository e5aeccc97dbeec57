"""Runs a vector of memories, and judges by the vector alone, without the model or the oracle.

It is also the simplest explanation of the format: for each field of a step there is one function here.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Mode, using_mode

from ..engine.call_log import InjectedInterrupt, recorded
from ..engine.contents import Watched, contrasted, fetch, put
from ..engine.violation import Violation
from .expected import content
from .programs import LOOK, OWN, SET_MODE, WRITE_BUFFER

if TYPE_CHECKING:
    from ..engine.call_log import AllocatorCall
    from ..engine.subject import Subject

__all__ = ["Difference", "Problem", "named", "replay_memories"]

_SIDES: dict[str, str] = {"cpu": "cpu", "gpu": "gpu"}
_NAMES = {"copy": "copy_to", "push": "copy_to"}
_TAIL = bytes((0xA5, 0x5A, 0xC3, 0x3C, 0x96))
"""What is behind the bytes of a caller's buffer, where nobody may write."""
_BYTES_FROM, _ACTIONS_FROM = "L1", "L2"


class Difference(NamedTuple):
    """A difference between a memory and a vector.

    Attributes
    ----------
    step : int
        Counted from 0.
    call : str
    expected, seen : str
    """

    step: int
    call: str
    expected: str
    seen: str

    def __str__(self) -> str:
        return f"step {self.step}, {self.call}: expected {self.expected}, seen {self.seen}"


Problem = tuple[str, str]
"""What was expected, and what was seen."""


def replay_memories(subject: Subject, vector: dict[str, Any]) -> Difference | None:
    """Run a vector against new memories, until something is wrong.

    Parameters
    ----------
    subject : Subject
        Without a device for vectors of ``cpu_only``, with a device for others.
    vector : dict
        The data of one line in a file of vectors.

    Returns
    -------
    Difference or None
        The first difference; None if there is none.
    """
    with nullcontext() if subject.device is None else subject.device.using():
        caller = _Caller(subject)
        try:
            players = [_Player(caller, size) for size in vector["sizes"]]
        except Violation as found:
            return Difference(0, "new", "an answer", found.message)
        for number, step in enumerate(vector["steps"]):
            which: int = step.get("memory", 0)
            try:
                problem = caller.play(step, players[which])
            except Violation as found:  # a program ended, or answered something else
                problem = ("an answer", found.message)
            except Exception as error:  # noqa: BLE001 -- any error that a subject causes here
                problem = ("a memory that can be looked at", f"{type(error).__name__}: {error}")
            if problem is not None:
                return Difference(number, step["call"], *problem)
        return None


class _Caller:
    """The mode, and the caller's buffers, which several memories may adopt."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.mode = Mode.GPU
        self._buffers: dict[int, tuple[str, int, Any]] = {}

    def play(self, step: dict[str, Any], player: _Player) -> Problem | None:
        """Take one step and check it; None if everything is as expected."""
        if step["call"] == SET_MODE:
            self.mode = Mode[step["argument"]]
            return None
        if step["call"] == WRITE_BUFFER:
            self._fill(step["argument"])
        problem = player.compared(step) if step["call"] in (WRITE_BUFFER, LOOK) else player.play(step)
        return problem or self._tails()

    def buffer(self, side: str, size: int, argument: dict[str, int]) -> Any:
        """A buffer of the caller, which is made when it is first used."""
        number = argument["buffer"]
        if number not in self._buffers:
            there: Any = self.subject.device if side == "gpu" else self.subject.host
            behind = len(_TAIL) if size else 0
            foreign = self.subject.program is not None or (side == "gpu" and self.subject.device is not None)
            made = there.empty(size + behind) if foreign else Watched(size + behind)
            self._buffers[number] = side, size, made
            self._write(number, bytes(size) + _TAIL[:behind])
        if "bytes" in argument:
            self._fill(argument)
        return self._buffers[number][2]

    def _fill(self, argument: dict[str, int]) -> None:
        self._write(argument["buffer"], content(argument["bytes"], self._buffers[argument["buffer"]][1]))

    def _write(self, number: int, content: bytes) -> None:
        _, _, buffer = self._buffers[number]
        if isinstance(buffer, Watched):
            buffer[: len(content)] = content
        else:
            put(self.subject, buffer, content)

    def _tails(self) -> Problem | None:
        """Check that nobody wrote behind the bytes of a buffer."""
        for number, (_, size, buffer) in self._buffers.items():
            if size and self.subject.level >= _BYTES_FROM:
                there = buffer if isinstance(buffer, Watched) else fetch(self.subject, buffer, size + len(_TAIL))
                if bytes(there[size:]) != _TAIL:
                    return f"{_TAIL.hex()} behind buffer {number}", bytes(there[size:]).hex()
        return None


class _Player:
    """A memory with its log, and the buffers that it adopted."""

    def __init__(self, caller: _Caller, size: int) -> None:
        self._caller = caller
        self._subject = caller.subject
        self._size = size
        self._log, host, device = recorded(self._subject)
        self._adopted: dict[str, Any] = {}
        self._view: dict[str, Any] = {}
        with using_mode(caller.mode):
            make: Any = self._subject.make
            self._memory: Any = make(size, host=host, device=device)

    def play(self, step: dict[str, Any]) -> Problem | None:
        """Make a call, and check it."""
        start = len(self._log.calls)
        raised, value = self._call(step)
        return (
            self._refusal(step, raised)
            or self._shown(step, value)
            or self._ledgered(step)
            or self.compared(step)
            or self._actions(step, self._log.calls[start:])
        )

    # --- calls

    def _call(self, step: dict[str, Any]) -> tuple[BaseException | None, Any]:
        name, side = step["call"], _SIDES["gpu" if "gpu" in step["call"] else "cpu"]
        method = getattr(self._memory, "close" if name == "release" else name)
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        if name == "async_gpu_push":
            keywords["stream"] = object() if self._subject.device is None else self._subject.device.stream()
        elif "argument" in step:
            arguments.append(self._argument(side, step["argument"]))
        armed = self._log.moves.armed(step["fail"]) if "fail" in step else nullcontext()
        try:
            with using_mode(self._caller.mode), armed:
                value = method(*arguments, **keywords)
        except Violation:
            raise
        except (Exception, InjectedInterrupt) as error:  # noqa: BLE001 -- subjects may raise any error
            return error, None
        if keywords and self._subject.device is not None:
            self._subject.device.record(keywords["stream"]).synchronize()
        if arguments:
            self._adopted[side] = arguments[0]
        self._view[side] = value
        return None, value

    def _argument(self, side: str, argument: dict[str, int] | None) -> Any:
        """The argument of a call: None, the memory's own pointer, or a buffer of the caller."""
        if argument is None:
            return None
        return self._view[side] if argument == OWN else self._caller.buffer(side, self._size, argument)

    # --- checks

    def _refusal(self, step: dict[str, Any], raised: BaseException | None) -> Problem | None:
        wanted = "a failure" if "fail" in step else f"the refusal {step['refusal']}" if step["refusal"] else ""
        if bool(wanted) == (raised is not None):
            return None
        return wanted or "an answer", f"{type(raised).__name__}: {raised}" if raised else "an answer"

    def _shown(self, step: dict[str, Any], value: Any) -> Problem | None:
        if "shows" not in step or self._subject.level < _BYTES_FROM:
            return None
        shown = bytes(memoryview(value.get() if self._is_foreign(step["call"]) else value).cast("B"))
        problem = self._differing("the view", content(step["shows"], self._size), shown)
        if problem is None and "write" in step:
            written = content(step["write"], self._size)
            if hasattr(value, "get"):
                put(self._subject, value, written)
            else:
                memoryview(value).cast("B")[:] = written
        return problem

    def _ledgered(self, step: dict[str, Any]) -> Problem | None:
        """Check that every free was right, and that nothing is left after release."""
        if self._log.stray:
            return "a free of what it allocated", self._log.stray[0][1]
        if step["call"] == "release" and self._log.live:
            return "nothing left after release", f"{len(self._log.live)} allocations"
        return None

    def compared(self, step: dict[str, Any]) -> Problem | None:
        """Compare head, flags and bytes, as far as the vector has them."""
        if "head" in step and self._memory.head.name != step["head"]:
            return f"the head {step['head']}", self._memory.head.name
        for flag, wanted in step.get("flags", {}).items():
            found = getattr(self._memory, flag, wanted)  # a program need not show it
            if found != wanted:
                return f"{flag} {wanted}", str(found)
        for side, number in step.get("bytes", {}).items():
            wanted = None if number is None else content(number, self._size)
            for pointer in () if wanted is None else self._pointers(_SIDES[side]):
                problem = self._differing(f"the {side} side", wanted, self._bytes(_SIDES[side], pointer))
                if problem is not None:
                    return problem
        return None

    def _differing(self, what: str, wanted: bytes | None, found: bytes) -> Problem | None:
        """Compare contents; of long ones, show the bytes from the first that differs."""
        if wanted is None or found == wanted:
            return None
        expected, seen = contrasted(wanted, found)
        return f"{what} {expected}", seen

    def _pointers(self, side: str) -> list[Any]:
        if self._subject.level < _BYTES_FROM:
            return []
        if side in self._adopted:
            return [self._adopted[side]]
        shown: list[Any] = self._log.owned(side) if self._subject.program is None else self._memory.state(side)
        return shown

    def _bytes(self, side: str, pointer: Any) -> bytes:
        if self._is_foreign(side):
            return fetch(self._subject, pointer, self._size)
        return bytes(memoryview(pointer).cast("B"))[: self._size]

    def _is_foreign(self, name: str) -> bool:
        """Whether the memory of a side, or what a call returns, is read by asking for it."""
        return "gpu" in name or self._subject.program is not None

    def _actions(self, step: dict[str, Any], entries: list[AllocatorCall]) -> Problem | None:
        """Compare allocator calls: their order, their sizes, and the kind of host memory."""
        if "actions" not in step or self._subject.level < _ACTIONS_FROM:
            return None
        wanted = [it for it in step["actions"] if not it.startswith("adopt")]
        seen = [f"{named(it)}{'' if it.byte_size == self._size else f' of {it.byte_size} bytes'}" for it in entries]
        if seen != wanted:
            return f"{', '.join(wanted) or 'no action'}", ", ".join(seen) or "no action"
        locked: bool | None = step.get("flags", {}).get("cpu_malloc_use_cuda")
        made = [entry.pinned for entry in entries if (entry.operation, entry.side) == ("allocate", "cpu")]
        if locked is None or all(pinned == locked for pinned in made):
            return None
        kinds = ("pageable host memory", "page-locked host memory")
        return kinds[locked], kinds[not locked]


def named(entry: AllocatorCall) -> str:
    """The name of the action that an allocator call belongs to."""
    name = f"{_NAMES.get(entry.operation, entry.operation)}_{entry.side}"
    return f"{name}_async" if entry.operation == "push" else name
