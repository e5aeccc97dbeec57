"""One memory under test, driven call by call and looked at in full after each.

After every call the driver compares with the oracle: whether it was refused, the allocator calls in order with
their sizes and kinds, the head and the flags, the bytes of the view that was handed out, and, behind the
memory's back, the bytes of every fresh side.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec

from syncedmem.model import Call, Input, Mode, SyncedHead

from ..engine.calls import ADOPTIONS, READS, SIDES, WRITES, Side
from ..engine.contents import pattern
from ..engine.finding import Violation
from .inspection import Inspection
from .oracle import Copy, Expected

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.reproducer import Outcome, Reproducer
    from ..engine.subject import Subject

__all__ = ["MemoryDriver", "State"]

P = ParamSpec("P")

State = tuple[SyncedHead, str, str, bool, Mode]
"""A head, the owners of both sides, the pinned flag and the mode: what coverage is counted in."""

_VIEWS: dict[Side, Call] = {"cpu": Call.CPU_DATA, "gpu": Call.GPU_DATA}


def _blaming(act: Callable[Concatenate[MemoryDriver, P], None], /) -> Callable[Concatenate[MemoryDriver, P], None]:
    """Whatever a memory makes the kit stumble over is a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(driver: MemoryDriver, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(driver, *args, **kwargs)
        except Violation:
            raise
        except Exception as error:
            requirement = "R10-same-bytes" if driver.size else "R44-size-zero"
            raise driver.violation(
                requirement, f"looking at the memory raised {type(error).__name__}: {error}"
            ) from error

    return blamed


class _Attempt(NamedTuple):
    """A call that was made, and what it was to do."""

    expected: Expected
    start: int
    argument: str
    raised: BaseException | None
    view: Any


class MemoryDriver(Inspection):
    """A memory under test, and what is done to it.

    Parameters
    ----------
    subject : Subject
    size : int
        In bytes.
    mode : Mode
        The mode the driver starts in.
    reproducer : Reproducer, optional
        The reproducer to go on with, where several memories live at once.
    check_device : bool
        Make the memory with ``check_device=True``.

    Attributes
    ----------
    visited : list of (State, Input)
        What was taken, for counting coverage.
    """

    def __init__(
        self,
        subject: Subject,
        size: int,
        mode: Mode = Mode.GPU,
        *,
        reproducer: Reproducer | None = None,
        check_device: bool = False,
    ) -> None:
        super().__init__(subject, size, mode, reproducer=reproducer, check_device=check_device)
        self.visited: list[tuple[State, Input]] = []
        self._number = 0
        self._streams: list[str] = []

    @property
    def state(self) -> State:
        """Where the driver stands, for counting coverage."""
        oracle = self.oracle
        return (oracle.head, oracle.cpu.owner, oracle.gpu.owner, oracle.pinned, self.mode)

    @property
    def steps(self) -> int:
        """How many calls were made."""
        return len(self.visited)

    # --- doing

    @_blaming
    def perform(self, entry: Input) -> None:
        """Do one thing, and compare everything.

        Raises
        ------
        Violation
        """
        self.visited.append((self.state, entry))
        self._number += 1
        if entry.call is None:
            self.mode = entry.mode or self.mode
            return
        self._judge(entry, self._attempt(entry))

    @_blaming
    def perform_failing(
        self, entry: Input, k: int, *, partial: bool = False, interrupt: bool = False, again: bool = True
    ) -> None:
        """Do one thing whose k-th allocator call fails; nothing must have changed, and then it must work.

        Parameters
        ----------
        entry : Input
        k : int
            From 1.
        partial : bool
            What fails has spoilt half of its destination.
        interrupt : bool
            It fails with an interrupt, which is no ``Exception``.
        again : bool
            See whether it works then; otherwise that is left to what comes next.

        Raises
        ------
        Violation
        """
        before, live = self.oracle, dict(self.log.live)
        how = f"{k}{', InjectedInterrupt' if interrupt else ''}{', partial=True' if partial else ''}"
        raised = self._attempt(entry, f"{self.log_name}.moves.armed({how})").raised
        self._expect(raised)
        self._require(raised is not None, "R32-strong-guarantee", "a failed allocator call was not reported")
        if entry.call is Call.RELEASE and k > 1:
            # What is freed cannot be unfreed: here the host side is gone and the device side is left to free.
            self.oracle = replace(before, cpu=Copy(), released=True)
            live = {key: value for key, value in live.items() if value[1].side == "gpu"}
        self._compare_unchanged(set(live))
        if again:
            self._perform_again(entry)

    @_blaming
    def perform_stumbling(self, entry: Input, first: int = 1) -> None:
        """Do one thing again and again, while each other step of it fails once.

        Those are adopting, looking for overlaps, recording an event, waiting for it, making a view: what a
        memory asks of its allocators besides moving memory.  A call that raises must have changed nothing.

        Parameters
        ----------
        entry : Input
        first : int
            The step to begin with, from 1.

        Raises
        ------
        Violation
        """
        if self.predict(entry).refused:
            self.perform(entry)
            return
        self.visited.append((self.state, entry))
        self._number += 1
        k = first - 1
        while True:
            k += 1
            live = set(self.log.live)
            attempt = self._attempt(entry, f"{self.log_name}.steps.armed({k})")
            if attempt.raised is None or not self.log.steps.blown:
                self._judge(entry, attempt)
                return
            self._expect(attempt.raised)
            self._compare_unchanged(live)

    def _perform_again(self, entry: Input) -> None:
        try:
            self.perform(entry)
        except Violation as violation:
            self._require(False, "R34-works-after-failure", f"afterwards: {violation.requirement}: {violation.message}")

    @_blaming
    def synchronize(self) -> None:
        """Wait for every push."""
        self._land()
        self._compare_bytes()

    def _land(self) -> None:
        streams, self._streams = self._streams, []
        for stream in streams:
            try:
                self.reproducer.run(f"subject.device.record({stream}).synchronize()")
            except Exception as error:  # noqa: BLE001 -- whatever a device says of memory it lost
                self._require(False, "R42-in-flight-not-freed", f"the push failed: {error}")

    @_blaming
    def finish(self) -> None:
        """Release, and look for what is left.

        Raises
        ------
        Violation
        """
        if not self.oracle.released:
            self.perform(Input(Call.RELEASE))
        self.synchronize()
        left = [f"{entry.byte_size} bytes on {entry.side}" for _, entry in self.log.live.values()]
        self._require(not left, "R27-release-frees-owned", f"still allocated after release: {', '.join(left)}")

    @_blaming
    def compare_untouched(self) -> None:
        """After something was done to another memory: look at this one.

        Raises
        ------
        Violation
        """
        if not self.oracle.released:
            self._compare_head("R53-independent")
            self._compare_bytes("R53-independent")

    def predict(self, entry: Input) -> Expected:
        """What the oracle says of a call."""
        call, oracle = entry.call, self.oracle
        if call in READS:
            return oracle.read(SIDES[call], self.mode)
        if call in WRITES:
            return oracle.write(SIDES[call], self.mode)
        if call in ADOPTIONS:
            return oracle.adopt(SIDES[call], pattern(self._number, self.size) if entry.data else None)
        return oracle.push() if call is Call.ASYNC_GPU_PUSH else oracle.release()

    # --- making a call, and judging it

    def _attempt(self, entry: Input, within: str = "") -> _Attempt:
        if not self._safe:
            self._land()  # Caffe leaves waiting to its caller
        expected, start, argument = self.predict(entry), len(self.log.calls), self._argument(entry)
        return _Attempt(expected, start, argument, *self._invoke(entry, argument, within))

    def _judge(self, entry: Input, attempt: _Attempt) -> None:
        expected, start, argument, raised, view = attempt
        before, side = self.oracle.head, SIDES.get(entry.call or Call.RELEASE)
        self._compare_calls(entry, expected, self.log.calls[start:], raised)
        self._compare_refusal(entry, expected, raised)
        self._expect(raised)
        adopted = side if raised is None and entry.data and entry.call in ADOPTIONS else None
        if adopted:
            self._external[adopted] = self.reproducer.names[argument]
            self._lasting.pop(adopted, None)
        self.oracle = expected.after
        if raised is None:
            self._compare_flight(entry)
        self._compare_state(entry, before, view, raised)
        if adopted:
            self._write_as_caller(adopted, argument)
        if side and raised is None and entry.call in WRITES:
            self._write(side, "view")
            self._compare_lasting(side)

    def _expect(self, raised: BaseException | None) -> None:
        if raised is not None:
            self.reproducer.expect(raised)

    def _argument(self, entry: Input) -> str:
        """What a call takes, by its name in the reproducer."""
        if entry.call is Call.ASYNC_GPU_PUSH:
            return self._stream()
        if entry.call not in ADOPTIONS:
            return ""
        return self.hand_in(SIDES[entry.call], self._number) if entry.data else "None"

    def _stream(self) -> str:
        if self.subject.device is None:
            return "object()"
        self._streams.append(self.reproducer.fresh("stream"))
        self.reproducer.run(f"{self._streams[-1]} = subject.device.stream()")
        return self._streams[-1]

    def hand_in(self, side: Side, number: int) -> str:
        """Memory of the caller's own with a pattern in it, by its name; every third one is longer than needed."""
        longer = 5 if number % 3 == 0 else 0
        name = f"{'host' if side == 'cpu' else 'device'}_buffer{self.name.removeprefix('memory')}"
        if side == "cpu":
            rest = f" + bytes({longer})" if longer else ""
            self.reproducer.run(f"{name} = bytearray(pattern({number}, {self.size}){rest})")
        elif self.subject.device is None:
            self.reproducer.run(f"{name} = object()")
        else:
            self.reproducer.run(f"{name} = subject.device.empty({self.size + longer})")
            self._put(name, number)
        return name

    def _invoke(self, entry: Input, argument: str, within: str) -> Outcome:
        method = "close" if entry.call is Call.RELEASE else entry.call.value if entry.call else ""
        keyword = "stream=" if entry.call is Call.ASYNC_GPU_PUSH else ""
        current = None if self.subject.device is None else self.subject.device.current_ordinal()
        call, keep = f"{self.name}.{method}({keyword}{argument})", "view" if entry.call in WRITES else ""
        outcome = self.reproducer.call(call, self.mode, keep=keep, within=within)
        if self.subject.device is not None:
            now = self.subject.device.current_ordinal()
            self._require(now == current, "R50-device-restored", f"device {current} was current, and now {now} is")
        return outcome

    def _put(self, array: str, number: int) -> None:
        """Write a pattern into a device array that the reproducer knows."""
        self.reproducer.run(f"put(subject, {array}, pattern({number}, {self.size}))")

    def _write(self, side: Side, name: str) -> None:
        """Write this step's pattern into a view, or into a buffer that may be longer."""
        if side == "cpu":
            content = f"pattern({self._number}, {self.size})"
            self.reproducer.run(f"memoryview({name}).cast('B')[:{self.size}] = {content}")
        else:
            self._put(name, self._number)
        self.oracle = self.oracle.written(side, pattern(self._number, self.size))

    def _write_as_caller(self, side: Side, buffer: str) -> None:
        """Write into a buffer that was just adopted: the memory must hold the buffer, not a copy of it.

        Looking at a fresh side does nothing, so these looks leave the state as it is.
        """
        self._look(side)
        self._number += 1
        self._write(side, buffer)
        self._look(side)

    def _look(self, side: Side) -> None:
        lasting, view = self._lasting.get(side), _VIEWS[side]
        raised, shown = self.reproducer.call(f"{self.name}.{view.value}()", self.mode)
        if raised is not None:
            raise raised
        self._compare_view(view, shown)
        if lasting is not None:
            self._lasting[side] = lasting
            self._compare_lasting(side)
