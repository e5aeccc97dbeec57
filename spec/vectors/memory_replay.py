"""Runs a vector of memories, and judges by the vector alone, without the model or the oracle.

The driver of the kit makes the calls.  For each field of a step there is one function here that compares.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Input

from ..engine.call_log import action_of
from ..engine.contents import Watched, contrasted, fetch, put, shown
from ..engine.heads import head_name
from ..engine.reproducer import Reproducer
from ..engine.violation import Violation
from ..memory.driver import MemoryDriver
from ..record.steps import content
from .programs import LOOK, MOVES, OWN, WRITE_BUFFER, setting_of

if TYPE_CHECKING:
    from ..engine.call_log import AllocatorCall
    from ..engine.subject import Subject

__all__ = ["Difference", "Problem", "replay"]

_TAIL = bytes((0xA5, 0x5A, 0xC3, 0x3C, 0x96))
"""What is behind the bytes of a caller's buffer, where nobody may write."""
_BYTES_FROM, _ACTIONS_FROM = "L1", "L2"
_WAITING = frozenset({"R42-in-flight-not-freed"})
"""What the driver itself judges: that it can wait for a push."""

_GIVEN = "given"
"""What a reproducer calls the buffer that is handed in."""


def _name_given(*_: object) -> str:
    return _GIVEN


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


def replay(subject: Subject, vector: dict[str, Any]) -> Difference | None:
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
        # What is expected stands in the vector, so the driver needs no policy.
        reproducer = Reproducer(subject if subject.policy is None else replace(subject, policy=None))
        buffers = _Buffers(subject)
        try:
            players = [_Player(reproducer, buffers, size) for size in vector["sizes"]]
        except Violation as violation:
            return Difference(0, "new", "an answer", violation.message)
        for number, step in enumerate(vector["steps"]):
            try:
                problem = _play(step, players, buffers)
            except Violation as violation:  # a program ended, or answered something else
                problem = ("an answer", violation.message)
            except Exception as error:  # noqa: BLE001 -- any error that a subject causes here
                problem = ("a memory that can be looked at", f"{type(error).__name__}: {error}")
            if problem is not None:
                return Difference(number, step["call"], *problem)
        return None


def _play(step: dict[str, Any], players: list[_Player], buffers: _Buffers) -> Problem | None:
    """Take one step and check it; None if everything is as expected."""
    number: int = step.get("memory", 0)
    first, player = players[0].driver, players[number]
    if setting := setting_of(first.subject.machine, step["call"]):
        first.perform(Input(setting=setting, value=step["argument"]))
        for other in players[1:]:
            other.driver.settings.update(first.settings)
        return None
    if step["call"] == WRITE_BUFFER:
        buffers.fill(step["argument"])
    problem = player.compare(step) if step["call"] in (WRITE_BUFFER, LOOK) else player.play(step)
    return problem or buffers.compare_tails()


class _Buffers:
    """The buffers of the caller, which several memories may adopt; each with its side and its size."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._buffers: dict[int, tuple[str, int, Any]] = {}

    def hand_in(self, side: str, size: int, argument: dict[str, int]) -> Any:
        """A buffer of the caller, which is made when it is first used."""
        number, subject = argument["buffer"], self._subject
        if number not in self._buffers:
            behind = len(_TAIL) if size else 0
            place = subject.place(side)
            is_foreign = subject.program is not None or not (place is None or subject.on_host(side))
            buffer = (place or subject.host).empty(size + behind) if is_foreign else Watched(size + behind)
            self._buffers[number] = side, size, buffer
            self._write(number, bytes(size) + _TAIL[:behind])
        if "bytes" in argument:
            self.fill(argument)
        return self._buffers[number][2]

    def fill(self, argument: dict[str, int]) -> None:
        """Write a content into a buffer."""
        self._write(argument["buffer"], content(argument["bytes"], self._buffers[argument["buffer"]][1]))

    def _write(self, number: int, content: bytes) -> None:
        side, _, buffer = self._buffers[number]
        if isinstance(buffer, Watched):
            buffer[: len(content)] = content
        else:
            put(self._subject, buffer, content, side)

    def compare_tails(self) -> Problem | None:
        """Check that nobody wrote behind the bytes of a buffer."""
        for number, (side, size, buffer) in self._buffers.items():
            if size and self._subject.level >= _BYTES_FROM:
                whole = buffer if isinstance(buffer, Watched) else fetch(self._subject, buffer, size + len(_TAIL), side)
                if bytes(whole[size:]) != _TAIL:
                    return f"{_TAIL.hex()} behind buffer {number}", bytes(whole[size:]).hex()
        return None


class _Player:
    """A memory with its driver, and what it returned and adopted."""

    def __init__(self, reproducer: Reproducer, buffers: _Buffers, size: int) -> None:
        self._subject = reproducer.subject
        self._buffers = buffers
        self._size = size
        self._adopted: dict[str, Any] = {}
        self._view: dict[str, Any] = {}
        self.driver: MemoryDriver = MemoryDriver(
            self._subject, size, reproducer=reproducer, buffers=_name_given, judged=_WAITING
        )

    def play(self, step: dict[str, Any]) -> Problem | None:
        """Make a call, and check it."""
        driver, argument = self.driver, step.get("argument")
        call = self._subject.machine.calls[step["call"]]
        if argument is not None:
            driver.reproducer.names[_GIVEN] = self._given(call.side, argument)
        within = f"{driver.run.log_name}.moves.armed({step['fail']})" if "fail" in step else ""
        attempt = driver.attempt(Input(call, data=argument is not None or "argument" not in step), within)
        if attempt.raised is None:
            driver.synchronize()
            if argument is not None:
                self._adopted[call.side] = driver.reproducer.names[_GIVEN]
            self._view[call.side] = attempt.view
        return (
            self._compare_refusal(step, attempt.raised)
            or self._compare_view(step, call.side, attempt.view)
            or self._compare_frees(ended=call.ends)
            or self.compare(step)
            or self._compare_actions(step, driver.log.calls[attempt.start :])
        )

    def _given(self, side: str, argument: dict[str, int]) -> Any:
        """The buffer that an argument stands for."""
        if argument != OWN:
            return self._buffers.hand_in(side, self._size, argument)
        memory: Any = self.driver.memory
        return self._view[side] if self._subject.program is None else memory.own_buffer(side)

    # --- checks

    def _compare_refusal(self, step: dict[str, Any], raised: BaseException | None) -> Problem | None:
        wanted = "a failure" if "fail" in step else f"the refusal {step['refusal']}" if step.get("refusal") else ""
        if bool(wanted) == (raised is not None):
            return None
        return wanted or "an answer", f"{type(raised).__name__}: {raised}" if raised else "an answer"

    def _compare_view(self, step: dict[str, Any], side: str, view: Any) -> Problem | None:
        """Compare what a view shows, and write through it."""
        if self._subject.level < _BYTES_FROM:
            return None
        problem = None
        if "shows" in step:
            problem = self._differing("the view", content(step["shows"], self._size), shown(self._subject, view, side))
        if problem is None and "write" in step and view is not None:
            written = content(step["write"], self._size)
            if hasattr(view, "get"):
                put(self._subject, view, written, side)
            else:
                memoryview(view).cast("B")[:] = written
        return problem

    def _compare_frees(self, *, ended: bool) -> Problem | None:
        """Check that every free was right, and that nothing is left after release."""
        log = self.driver.log
        if log.stray:
            return "a free of what it allocated", log.stray[0][1]
        if ended and log.live:
            return "nothing left after release", f"{len(log.live)} allocations"
        return None

    def compare(self, step: dict[str, Any]) -> Problem | None:
        """Compare head, flags and bytes, as far as the vector has them."""
        memory = self.driver.memory
        if "head" in step and (problem := self._compare_head(step["head"])):
            return problem
        for flag, wanted in step.get("flags", {}).items():
            seen = getattr(memory, flag, wanted)  # a program need not show it
            if seen != wanted:
                return f"{flag} {wanted}", str(seen)
        for side, number in step.get("bytes", {}).items():
            if number is None:
                continue
            for pointer in self._pointers(side):
                there = fetch(self._subject, pointer, self._size, side)
                if problem := self._differing(f"the {side} side", content(number, self._size), there):
                    return problem
        return None

    def _compare_head(self, wanted: str) -> Problem | None:
        """Compare the head, which a memory may also show as the number of one."""
        name = head_name(self._subject.machine, getattr(self.driver.memory, "head", wanted))
        return None if name == wanted else (f"the head {wanted}", name)

    def _differing(self, what: str, wanted: bytes, there: bytes) -> Problem | None:
        """Compare contents; of long ones, show the bytes from the first that differs."""
        if there == wanted:
            return None
        expected, seen = contrasted(wanted, there)
        return f"{what} {expected}", seen

    def _pointers(self, side: str) -> list[Any]:
        if self._subject.level < _BYTES_FROM:
            return []
        if side in self._adopted:
            return [self._adopted[side]]
        memory: Any = self.driver.memory
        owned: list[Any] = self.driver.log.owned(side) if self._subject.program is None else memory.state(side)
        return owned

    def _compare_actions(self, step: dict[str, Any], calls: list[AllocatorCall]) -> Problem | None:
        """Compare allocator calls: their order, their sizes, and the kind of host memory."""
        if "actions" not in step or self._subject.level < _ACTIONS_FROM:
            return None
        machine = self._subject.machine
        actions = [machine.actions[it] for it in step["actions"] if machine.actions[it].does in MOVES]
        wanted = [("push" if it.queued else it.does, it.side, it.source) for it in actions]
        if [(it.operation, it.side, it.source) for it in calls] != wanted or any(
            it.byte_size != self._size for it in calls
        ):
            named = [(action_of(machine, it.operation, it.side, it.source), it) for it in calls]
            seen = [f"{name}{self._odd_size(it)}" for name, it in named]
            return ", ".join(it.name for it in actions) or "no action", ", ".join(seen) or "no action"
        for fact in machine.facts.values():
            locked: bool | None = step.get("flags", {}).get(fact.name) if fact.means == "pinned" else None
            pinning = [it.pinned for it in calls if (it.operation, it.side) == ("allocate", fact.side)]
            if locked is not None and any(pinned != locked for pinned in pinning):
                kinds = ("pageable host memory", "page-locked host memory")
                return kinds[locked], kinds[not locked]
        return None

    def _odd_size(self, call: AllocatorCall) -> str:
        return "" if call.byte_size == self._size else f" of {call.byte_size} bytes"
