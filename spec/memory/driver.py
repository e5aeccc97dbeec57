"""One memory under test, driven call by call and inspected in full after each call.

After every call the driver compares with the oracle: whether the call was refused, the allocator calls in order with
their sizes and kinds, the head and the flags, the bytes of the returned view, and the bytes of every fresh side, which
it reads without the memory's help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Call, Input, InvalidArgumentError, Mode, State, caffe

from ..engine.contents import pattern
from ..engine.reproducer import Reproducer
from ..engine.run import Run, blaming, check_maker
from ..engine.violation import Violation
from ..requirements import REQUIREMENTS
from .by_table import TableOracle
from .claims import requirements_for
from .inspection import MemoryInspection
from .oracle import Expected, Oracle
from .policy import CPU_ONLY, POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from syncedmem.model import Head

    from ..engine.call_log import CallLog
    from ..engine.reproducer import Outcome
    from ..engine.subject import Memory, Subject

    Buffers = Callable[["MemoryDriver", str, int], str]

__all__ = ["Attempt", "MemoryDriver"]


def _oracle_of(subject: Subject, size: int) -> Oracle:
    """What is expected of a new memory."""
    if subject.by_table:
        return TableOracle.of(subject.machine, size)
    return Oracle.new(subject.policy or (CPU_ONLY if subject.device is None else POLICIES[subject.machine.name]), size)


class Attempt(NamedTuple):
    """A call that was made, with its expected effect and its result.

    Attributes
    ----------
    expected : Expected
    start : int
        How many allocator calls there were before.
    argument : str
        The argument's name in the reproducer, if it has one.
    raised : BaseException or None
    view : object
        What the call returned.
    """

    expected: Expected
    start: int
    argument: str
    raised: BaseException | None
    view: Any


class MemoryDriver:
    """A memory under test, and the calls on it.

    Parameters
    ----------
    subject : Subject
    size : int
        The size of the memory in bytes.
    mode : Mode
        The mode at the start.
    reproducer : Reproducer, optional
        The reproducer to continue, if several memories live at the same time.
    check_device : bool
        Make the memory with ``check_device=True``.
    buffers : callable, optional
        Called with the driver, a side and a number, it makes a buffer with the pattern of that number to be adopted,
        and returns the buffer's name.  The default is `hand_in`.
    judged : collection of str, optional
        The requirements by which the memory is judged; by default those of the subject.

    Attributes
    ----------
    number : int
        The number of the pattern that is written next.
    run : Run
    inspection : MemoryInspection
    name : str
        The name of the memory in the reproducer.
    visited : list of (State, Input)
        The states and inputs that were taken, for coverage.
    """

    def __init__(  # noqa: PLR0913 -- each option is for one contract
        self,
        subject: Subject,
        size: int,
        mode: Mode = Mode.GPU,
        *,
        reproducer: Reproducer | None = None,
        check_device: bool = False,
        buffers: Buffers | None = None,
        judged: Collection[str] | None = None,
    ) -> None:
        self.subject: Subject = subject
        self.settings: dict[str, str] = {it.name: it.initial for it in subject.machine.settings.values()}
        self.mode = mode
        self.reproducer: Reproducer = reproducer or Reproducer(subject)
        self.run: Run = Run(self.reproducer, requirements_for(subject) if judged is None else judged)
        self.log: CallLog = self.run.log
        self.name: str = self.reproducer.fresh("memory")
        self.inspection: MemoryInspection = MemoryInspection(self.run, self.name, _oracle_of(subject, size))
        self.visited: list[tuple[State, Input]] = []
        self._buffers = buffers or MemoryDriver.hand_in
        self.number: int = 0
        self._streams: list[tuple[str, str]] = []
        self._readers = {it.side: it for it in subject.machine.calls.values() if it.does == "read"}
        self._make(", check_device=True" if check_device else "")

    def _make(self, options: str) -> None:
        self._apply_settings()
        text = f"subject.make({self.size}{self.run.arguments}{options})"
        error = self.reproducer.call(text, self.mode, keep=self.name).raised
        made, calls = self.reproducer.names.get(self.name), self.subject.machine.calls
        check_maker(self.subject, made, error, calls, (self.size,), self.run.allocators)
        if error is not None:
            message = f"making a memory of {self.size} bytes raised {type(error).__name__}: {error}"
            raise self.run.violation("R01-lazy" if self.size else "R44-size-zero", message) from error
        self.inspection.compare_new()

    @property
    def memory(self) -> Memory:
        """The memory under test."""
        return self.inspection.memory

    @property
    def oracle(self) -> Oracle:
        """The expected state."""
        return self.inspection.oracle

    @property
    def head(self) -> Head:
        """The expected head."""
        return self.inspection.head

    @property
    def mode(self) -> Mode:
        """Caffe's mode; a machine without modes is always in the same one."""
        return Mode[self.settings.get(caffe.MODE.name, Mode.GPU.name)]

    @mode.setter
    def mode(self, mode: Mode) -> None:
        if caffe.MODE.name in self.settings:
            self.settings[caffe.MODE.name] = mode.name

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.oracle.size

    @property
    def state(self) -> State:
        """The state of the machine that the oracle expects, for coverage."""
        facts = (fact.name for fact in self.subject.machine.facts.values() if self.oracle.holds(fact))
        return State(self.head.name, frozenset(facts), tuple(self.settings.values()))

    @property
    def steps(self) -> int:
        """The number of calls that were made."""
        return len(self.visited)

    def blame(self, error: Exception) -> Violation:
        """The violation for an error that the kit met outside a call."""
        requirement = "R10-same-bytes" if self.size else "R44-size-zero"
        return self.run.violation(requirement, f"inspecting the memory raised {type(error).__name__}: {error}")

    # --- calls

    @blaming
    def perform(self, entry: Input) -> None:
        """Perform one input, and compare everything with the oracle; nothing if the subject has no such call.

        Raises
        ------
        Violation
        """
        if entry.given or (entry.call and not self._has(entry.call)):
            return  # nobody can say from here what is given
        self.visited.append((self.state, entry))
        self.number += 1
        if entry.call is None:
            self._set(entry.setting, entry.value)
            return
        self._judge(entry, self.attempt(entry))

    def _set(self, setting: str, value: str) -> None:
        self.settings[setting] = value  # it takes effect where the next call is made, as the mode does

    def _apply_settings(self) -> None:
        """Let the settings of the subject be those of this memory; another memory may have left them otherwise."""
        for setting, value in self.settings.items():
            if setting != caffe.MODE.name and self.reproducer.settings.get(setting) != value:
                self.reproducer.settings[setting] = value
                self.reproducer.run(f"subject.setting({setting!r}, {value!r})")

    def _has(self, call: Call) -> bool:
        """Whether the subject has a call; a Python object without a device has all of Caffe's, and refuses some."""
        alone = self.subject.device is None and self.subject.is_caffe and self.subject.program is None
        return self.oracle.defines(call) and (alone or call.name in self.subject.machine.calls)

    @blaming
    def perform_failing(
        self, entry: Input, k: int, *, partial: bool = False, interrupt: bool = False, again: bool = True
    ) -> None:
        """Make a call whose k-th allocator call fails, check that nothing has changed, and make it again.

        Parameters
        ----------
        entry : Input
        k : int
            Counted from 1.
        partial : bool
            Whether the failing call first writes half of its destination.
        interrupt : bool
            Whether it fails with an interrupt, which is not an ``Exception``.
        again : bool
            Whether to make the call again; if not, the next step shows whether the memory still works.

        Raises
        ------
        Violation
        """
        live = dict(self.log.live)
        how = f"{k}{', InjectedInterrupt' if interrupt else ''}{', partial=True' if partial else ''}"
        raised = self.attempt(entry, f"{self.run.log_name}.moves.armed({how})").raised
        self._expect(raised)
        self.run.require(raised is not None, "R32-strong-guarantee", "a failed allocator call was not reported")
        # Freed memory cannot be taken back: some sides are freed, and the others must still be freed.
        for freed in self.predict(entry).calls[: k - 1] if entry.ends else ():
            self.inspection.oracle = self.oracle.freed(freed.side)
            live = {key: value for key, value in live.items() if value[1].side != freed.side}
        self.inspection.compare_unchanged(set(live))
        if again:
            self._perform_again(entry)

    @blaming
    def perform_stumbling(self, entry: Input, first: int = 1) -> None:
        """Make a call again and again, each time with a failure of another of its other allocator calls.

        Those are the calls that do not move memory: adopting, looking for overlaps, recording an event, waiting
        for it, making a view.  A call that raises must have changed nothing.

        Parameters
        ----------
        entry : Input
            Not one that is refused.
        first : int
            The first of these calls to fail, counted from 1.

        Raises
        ------
        Violation
        """
        self.visited.append((self.state, entry))
        self.number += 1
        k = first - 1
        while True:
            k += 1
            live = set(self.log.live)
            attempt = self.attempt(entry, f"{self.run.log_name}.steps.armed({k})")
            if attempt.raised is None or not self.log.steps.blown:
                self._judge(entry, attempt)
                return
            self._expect(attempt.raised)
            self.inspection.compare_unchanged(live)

    def _perform_again(self, entry: Input) -> None:
        try:
            self.perform(entry)
        except Violation as violation:
            if REQUIREMENTS[violation.requirement].kind == "port":
                raise
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
        for place, stream in streams:
            try:
                self.reproducer.run(f"{place}.record({stream}).synchronize()")
            except Exception as error:  # noqa: BLE001 -- any error of a device about memory that was freed
                self.run.report("R42-in-flight-not-freed", f"the push failed: {error}")

    @blaming
    def finish(self) -> None:
        """Release, and check that nothing is left.

        Raises
        ------
        Violation
        """
        ending = next((call for call in self.subject.machine.calls.values() if call.ends), None)
        if not self.oracle.released and ending is not None:
            self.perform(Input(ending))
        self.synchronize()
        if not self.oracle.released:
            return
        left = [f"{entry.byte_size} bytes on {entry.side}" for _, entry in self.log.live.values()]
        self.run.require(not left, "R27-release-frees-owned", f"still allocated after release: {', '.join(left)}")

    @blaming
    def compare_untouched(self) -> None:
        """Check a memory after calls on another memory.

        Raises
        ------
        Violation
        """
        if not self.oracle.released:
            self.inspection.compare_head("R53-independent")
            self.inspection.compare_bytes("R53-independent")

    @property
    def ending(self) -> str:
        """The method that releases the memory; empty if there is none."""
        if self.subject.is_caffe:
            return "close"  # in Caffe it is the destructor
        return next((it.name for it in self.subject.machine.calls.values() if it.ends), "")

    def end(self) -> None:
        """Release a memory after calls of which the oracle does not know; compare nothing."""
        if self.ending:
            self.reproducer.run(f"{self.name}.{self.ending}()")

    def predict(self, entry: Input) -> Expected:
        """The expected effect of a call."""
        content = pattern(self.number, self.size) if entry.data else None
        if entry.call is None:
            raise InvalidArgumentError("entry", str(entry), "a call")
        return self.oracle.expect(entry.call, self.settings, content)

    # --- making a call, and comparing its effect

    def attempt(self, entry: Input, within: str = "") -> Attempt:
        """Make a call, perhaps in a context, and judge nothing."""
        if not self.run.safe:
            self._land()  # in Caffe the caller must wait
        expected, start, argument = self.predict(entry), len(self.log.calls), self._argument(entry)
        return Attempt(expected, start, argument, *self._invoke(entry, argument, within))

    def _judge(self, entry: Input, attempt: Attempt) -> None:
        expected, start, argument, raised, view = attempt
        before, side = self.oracle, entry.side
        self.inspection.compare_calls(entry, expected, self.log.calls[start:], raised)
        self.inspection.compare_refusal(entry, expected, raised)
        self._expect(raised)
        adopted = side if raised is None and entry.data and entry.does == "adopt" else ""
        if adopted:
            self.inspection.adopted(adopted, self.reproducer.names[argument])
        self.inspection.oracle = expected.after
        if raised is None:
            self.inspection.compare_flight(entry, self.reproducer.names.get(argument))
        self.inspection.compare_state(entry, expected, before, view, raised)
        if not self.run.sees_bytes:
            return
        if adopted:
            self._write_as_caller(adopted, argument)
        if raised is None and entry.writes:
            self.write(side, "view")
            self.inspection.compare_lasting(side)

    def _expect(self, raised: BaseException | None) -> None:
        if raised is not None:
            self.reproducer.expect(raised)

    def _argument(self, entry: Input) -> str:
        """The argument of a call, by its name in the reproducer."""
        if entry.queues:
            return self._stream(entry.side if entry.does == "push" or entry.call is None else entry.call.source)
        if entry.does != "adopt":
            return ""
        return self._buffers(self, entry.side, self.number) if entry.data else "None"

    def _stream(self, side: str) -> str:
        """A stream of the device of a side; nothing if it is no device."""
        if self.subject.is_host(side):
            return ""
        if self.subject.place(side) is None:
            return "object()"
        place, stream = self.subject.named(side), self.reproducer.fresh("stream")
        self._streams.append((place, stream))
        self.reproducer.run(f"{stream} = {place}.stream()")
        return stream

    def hand_in(self, side: str, number: int) -> str:
        """A buffer of the caller with a pattern in it, by its name; every third buffer is longer than needed."""
        longer = 5 if number % 3 == 0 else 0
        owner = self.subject.keyword(side)
        name = f"{owner}_buffer{self.name.removeprefix('memory')}"
        if self.subject.place(side) is None:
            self.reproducer.run(f"{name} = object()")
        elif self.subject.on_host(side):
            rest = f" + bytes({longer})" if longer else ""
            self.reproducer.run(f"{name} = bytearray(pattern({number}, {self.size}){rest})")
        else:
            self.reproducer.run(f"{name} = {self.subject.named(side)}.empty({self.size + longer})")
            self._put(side, name, number)
        return name

    def _invoke(self, entry: Input, argument: str, within: str) -> Outcome:
        self._apply_settings()
        method = self.ending if entry.ends else str(entry.call)
        keyword = "stream=" if argument and entry.queues else ""
        current = None if self.subject.device is None else self.subject.device.current_ordinal()
        call = f"{self.name}.{method}({keyword}{argument})"
        keep = "view" if entry.writes else ""
        outcome = self.reproducer.call(call, self.mode, keep=keep, within=within)
        if self.subject.device is not None:
            now = self.subject.device.current_ordinal()
            self.run.require(now == current, "R50-device-restored", f"device {current} was current, and now {now} is")
        return outcome

    def _put(self, side: str, array: str, number: int) -> None:
        """Write a pattern into an array, by its name in the reproducer."""
        there = "" if side == caffe.GPU else f", {side!r}"
        self.reproducer.run(f"put(subject, {array}, pattern({number}, {self.size}){there})")

    def write(self, side: str, name: str) -> None:
        """Write the pattern of this step into a view, or into a buffer that may be longer."""
        if self.subject.on_host(side):
            content = f"pattern({self.number}, {self.size})"
            self.reproducer.run(f"memoryview({name}).cast('B')[:{self.size}] = {content}")
        else:
            self._put(side, name, self.number)
        self.inspection.oracle = self.oracle.written(side, pattern(self.number, self.size))

    def _write_as_caller(self, side: str, buffer: str) -> None:
        """Write into a buffer that was just adopted: the memory must use the buffer, not a copy of it.

        Reading a fresh side does nothing, so this leaves the state as it is.
        """
        self._look(side)
        self.number += 1
        self.write(side, buffer)
        self._look(side)

    def _look(self, side: str) -> None:
        view = self._readers.get(side)
        if view is None:
            return
        raised, shown = self.reproducer.call(f"{self.name}.{view}()", self.mode)
        if raised is not None:
            raise raised
        self.inspection.compare_again(view, shown)
