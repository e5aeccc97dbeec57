"""One memory under test, driven call by call and looked at in full after each.

After every call the driver compares with the oracle: whether it was refused, the allocator calls in order with
their sizes and kinds, the head and the flags, the bytes of the view that was handed out, and, behind the
memory's back, the bytes of every fresh side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Call, Input, Mode, SyncedHead

from ..engine.calls import ADOPTIONS, PUSHES, READS, SIDES, WRITES, Side
from ..engine.contents import pattern
from ..engine.finding import Violation
from ..engine.reproducer import Reproducer
from ..engine.run import Run, blaming
from .inspection import MemoryInspection
from .oracle import Copy, Expected, Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.reproducer import Outcome
    from ..engine.subject import Memory, Subject

    Buffers = Callable[["MemoryDriver", Side, int], str]

__all__ = ["MemoryDriver", "State"]

State = tuple[SyncedHead, str, str, bool, Mode]
"""A head, the owners of both sides, the pinned flag and the mode: what coverage is counted in."""

_VIEWS: dict[Side, Call] = {"cpu": Call.CPU_DATA, "gpu": Call.GPU_DATA}


class _Attempt(NamedTuple):
    """A call that was made, and what it was to do."""

    expected: Expected
    start: int
    argument: str
    raised: BaseException | None
    view: Any


class MemoryDriver:
    """A memory under test, and what is done to it.

    Parameters
    ----------
    subject : Subject
    size : int
        In bytes.
    mode : Mode
        The mode the driver starts in.
    reproducer : Reproducer, optional
        The one to go on with, where several memories live at once.
    check_device : bool
        Make the memory with ``check_device=True``.
    buffers : callable, optional
        Given the driver, a side and a number: makes a buffer to be adopted that holds the pattern of that number, and
        gives its name; `hand_in` unless somebody says otherwise.

    Attributes
    ----------
    run : Run
    inspection : MemoryInspection
    name : str
        What the reproducer calls the memory.
    visited : list of (State, Input)
        What was taken, for counting coverage.
    """

    def __init__(  # noqa: PLR0913 -- all but the first two are for one contract each
        self,
        subject: Subject,
        size: int,
        mode: Mode = Mode.GPU,
        *,
        reproducer: Reproducer | None = None,
        check_device: bool = False,
        buffers: Buffers | None = None,
    ) -> None:
        self.subject, self.mode = subject, mode
        self.reproducer = reproducer or Reproducer(subject)
        self.run = Run(self.reproducer)
        self.log = self.run.log
        self.name = self.reproducer.fresh("memory")
        self.inspection = MemoryInspection(self.run, self.name, Oracle(size, subject.device is not None))
        self.visited: list[tuple[State, Input]] = []
        self._buffers = buffers or MemoryDriver.hand_in
        self._number = 0
        self._streams: list[str] = []
        self._make(", check_device=True" if check_device else "")

    def _make(self, options: str) -> None:
        text = f"subject.make({self.size}, host={self.run.host}, device={self.run.device}{options})"
        error = self.reproducer.call(text, self.mode, keep=self.name).raised
        if error is not None:
            message = f"making a memory of {self.size} bytes raised {type(error).__name__}: {error}"
            raise self.run.violation("R01-lazy" if self.size else "R44-size-zero", message) from error
        self.inspection.compare_new()

    @property
    def memory(self) -> Memory:
        """The memory itself."""
        return self.inspection.memory

    @property
    def oracle(self) -> Oracle:
        """What must be the case now."""
        return self.inspection.oracle

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.oracle.size

    @property
    def state(self) -> State:
        """Where the driver stands, for counting coverage."""
        oracle = self.oracle
        return (oracle.head, oracle.cpu.owner, oracle.gpu.owner, oracle.pinned, self.mode)

    @property
    def steps(self) -> int:
        """How many calls were made."""
        return len(self.visited)

    def blame(self, error: Exception) -> Violation:
        """The violation that an error means which the kit stumbled over."""
        requirement = "R10-same-bytes" if self.size else "R44-size-zero"
        return self.run.violation(requirement, f"looking at the memory raised {type(error).__name__}: {error}")

    # --- doing

    @blaming
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

    @blaming
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
        raised = self._attempt(entry, f"{self.run.log_name}.moves.armed({how})").raised
        self._expect(raised)
        self.run.require(raised is not None, "R32-strong-guarantee", "a failed allocator call was not reported")
        if entry.ends and k > 1:
            # What is freed cannot be unfreed: here the host side is gone and the device side is left to free.
            self.inspection.oracle = replace(before, cpu=Copy(), released=True)
            live = {key: value for key, value in live.items() if value[1].side == "gpu"}
        self.inspection.compare_unchanged(set(live))
        if again:
            self._perform_again(entry)

    @blaming
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
            attempt = self._attempt(entry, f"{self.run.log_name}.steps.armed({k})")
            if attempt.raised is None or not self.log.steps.blown:
                self._judge(entry, attempt)
                return
            self._expect(attempt.raised)
            self.inspection.compare_unchanged(live)

    def _perform_again(self, entry: Input) -> None:
        try:
            self.perform(entry)
        except Violation as violation:
            self.run.require(
                False, "R34-works-after-failure", f"afterwards: {violation.requirement}: {violation.message}"
            )

    @blaming
    def synchronize(self) -> None:
        """Wait for every push."""
        self._land()
        self.inspection.compare_bytes()

    def _land(self) -> None:
        streams, self._streams = self._streams, []
        for stream in streams:
            try:
                self.reproducer.run(f"subject.device.record({stream}).synchronize()")
            except Exception as error:  # noqa: BLE001 -- whatever a device says of memory it lost
                self.run.require(False, "R42-in-flight-not-freed", f"the push failed: {error}")

    @blaming
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
        self.run.require(not left, "R27-release-frees-owned", f"still allocated after release: {', '.join(left)}")

    @blaming
    def compare_untouched(self) -> None:
        """After something was done to another memory: look at this one.

        Raises
        ------
        Violation
        """
        if not self.oracle.released:
            self.inspection.compare_head("R53-independent")
            self.inspection.compare_bytes("R53-independent")

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
        if not self.run.safe:
            self._land()  # Caffe leaves waiting to its caller
        expected, start, argument = self.predict(entry), len(self.log.calls), self._argument(entry)
        return _Attempt(expected, start, argument, *self._invoke(entry, argument, within))

    def _judge(self, entry: Input, attempt: _Attempt) -> None:
        expected, start, argument, raised, view = attempt
        before, side = self.oracle.head, SIDES.get(entry.call or Call.RELEASE)
        self.inspection.compare_calls(entry, expected, self.log.calls[start:], raised)
        self.inspection.compare_refusal(entry, expected, raised)
        self._expect(raised)
        adopted = side if raised is None and entry.data and entry.call in ADOPTIONS else None
        if adopted:
            self.inspection.adopted(adopted, self.reproducer.names[argument])
        self.inspection.oracle = expected.after
        if raised is None:
            self.inspection.compare_flight(entry)
        self.inspection.compare_state(entry, before, view, raised)
        if adopted:
            self._write_as_caller(adopted, argument)
        if side and raised is None and entry.call in WRITES:
            self._write(side, "view")
            self.inspection.compare_lasting(side)

    def _expect(self, raised: BaseException | None) -> None:
        if raised is not None:
            self.reproducer.expect(raised)

    def _argument(self, entry: Input) -> str:
        """What a call takes, by its name in the reproducer."""
        if entry.call in PUSHES:
            return self._stream()
        if entry.call not in ADOPTIONS:
            return ""
        return self._buffers(self, SIDES[entry.call], self._number) if entry.data else "None"

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
        method = "close" if entry.ends else entry.call.value if entry.call else ""
        keyword = "stream=" if entry.call in PUSHES else ""
        current = None if self.subject.device is None else self.subject.device.current_ordinal()
        call, keep = f"{self.name}.{method}({keyword}{argument})", "view" if entry.call in WRITES else ""
        outcome = self.reproducer.call(call, self.mode, keep=keep, within=within)
        if self.subject.device is not None:
            now = self.subject.device.current_ordinal()
            self.run.require(now == current, "R50-device-restored", f"device {current} was current, and now {now} is")
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
        self.inspection.oracle = self.oracle.written(side, pattern(self._number, self.size))

    def _write_as_caller(self, side: Side, buffer: str) -> None:
        """Write into a buffer that was just adopted: the memory must hold the buffer, not a copy of it.

        Looking at a fresh side does nothing, so these looks leave the state as it is.
        """
        self._look(side)
        self._number += 1
        self._write(side, buffer)
        self._look(side)

    def _look(self, side: Side) -> None:
        view = _VIEWS[side]
        raised, shown = self.reproducer.call(f"{self.name}.{view.value}()", self.mode)
        if raised is not None:
            raise raised
        self.inspection.compare_again(view, shown)
