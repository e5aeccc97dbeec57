"""One memory under test, driven call by call and looked at in full after each.

After every call the trial compares with the oracle: whether it was refused, the allocator calls in order with
their sizes and kinds, the head and the flags, the bytes of the view that was handed out, and, behind the
memory's back, the bytes of every fresh side.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec

from syncedmem.model import Call, Input, Mode, SyncedHead, using_mode

from .inspection import Inspection
from .ledger import InjectedFailure, InjectedInterrupt
from .oracle import Copy, Expected, Side
from .subject import Bench, Violation
from .verdict import ADOPTIONS, READS, SIDES, WRITES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["State", "Trial", "pattern"]

P = ParamSpec("P")

State = tuple[SyncedHead, str, str, bool, Mode]
"""A head, the owners of both sides, the pinned flag and the mode: what coverage is counted in."""

_VIEWS: dict[Side, Call] = {"cpu": Call.CPU_DATA, "gpu": Call.GPU_DATA}

# 251 is prime, so that no shift by a power of two maps the pattern onto itself.
_WHEEL = bytes(range(251)) * 2


def pattern(number: int, size: int) -> bytes:
    """Bytes that differ from those of every other number, everywhere they can."""
    start = number * 7 % 251
    return (_WHEEL[start : start + 251] * (size // 251 + 1))[:size]


def _blaming(act: Callable[Concatenate[Trial, P], None], /) -> Callable[Concatenate[Trial, P], None]:
    """Whatever a subject makes the kit stumble over is a violation, not a failure of the kit."""

    @wraps(act)
    def blamed(trial: Trial, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            act(trial, *args, **kwargs)
        except Violation:
            raise
        except Exception as error:
            requirement = "R10-same-bytes" if trial.size else "R44-size-zero"
            message = f"looking at the memory raised {type(error).__name__}: {error}"
            raise Violation(requirement, message, tuple(trial.script)) from error

    return blamed


class _Attempt(NamedTuple):
    """A call that was made, and what it was to do."""

    expected: Expected
    start: int
    argument: Any
    raised: BaseException | None
    view: Any


class Trial(Inspection):
    """A subject, and what is done to it.

    Parameters
    ----------
    bench : Bench
    size : int
        In bytes.
    mode : Mode
        The mode the trial starts in.

    Attributes
    ----------
    visited : list of (State, Input)
        What was taken, for counting coverage.
    """

    def __init__(self, bench: Bench, size: int, mode: Mode = Mode.GPU) -> None:
        super().__init__(bench, size, mode)
        self.visited: list[tuple[State, Input]] = []
        self._number = 0
        self._streams: list[Any] = []

    @property
    def state(self) -> State:
        """Where the trial stands, for counting coverage."""
        oracle = self.oracle
        return (oracle.head, oracle.cpu.owner, oracle.gpu.owner, oracle.pinned, self.mode)

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
            self.script.append(f"set_mode(Mode.{self.mode.name})")
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
        before, live = self.oracle, dict(self.ledger.live)
        self.ledger.moves.arm(k, InjectedInterrupt if interrupt else InjectedFailure, partial=partial)
        raised = self._attempt(entry).raised
        self.ledger.moves.arm(0)
        how = "is interrupted" if interrupt else "fails halfway" if partial else "fails"
        self.script[-1] += f"  # allocator call {k} {how}"
        self._require(raised is not None, "R32-strong-guarantee", "a failed allocator call was not reported")
        if entry.call is Call.RELEASE and k > 1:
            # What is freed cannot be unfreed: here the host side is gone and the device side is left to free.
            self.oracle = replace(before, cpu=Copy(), released=True)
            live = {key: value for key, value in live.items() if value[1].side == "gpu"}
        self._compare_unchanged(set(live))
        if again:
            self._perform_again(entry)

    @_blaming
    def perform_stumbling(self, entry: Input) -> None:
        """Do one thing again and again, while each other step of it fails once.

        Those are adopting, looking for overlaps, recording an event, waiting for it, making a view: what a
        memory asks of its allocators besides moving memory.  A call that raises must have changed nothing.

        Raises
        ------
        Violation
        """
        if self.predict(entry).refused:
            self.perform(entry)
            return
        self.visited.append((self.state, entry))
        self._number += 1
        k = 0
        while True:
            k += 1
            live = set(self.ledger.live)
            self.ledger.steps.arm(k)
            attempt = self._attempt(entry)
            stumbled = self.ledger.steps.blown
            self.ledger.steps.arm(0)
            if not stumbled or attempt.raised is None:
                self._judge(entry, attempt)
                return
            self.script[-1] += f"  # {stumbled} fails"
            self._compare_unchanged(live)

    def _perform_again(self, entry: Input) -> None:
        try:
            self.perform(entry)
        except Violation as violation:
            self._require(False, "R34-works-after-failure", f"afterwards: {violation}")

    @_blaming
    def synchronize(self) -> None:
        """Wait for every push."""
        self._land()
        self._compare_bytes()

    def _land(self) -> None:
        if self._in_flight():
            self.script.append("# wait for every stream")
        for stream in self._streams:
            try:
                self._device.record(stream).synchronize()
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
        left = [f"{entry.byte_size} bytes on {entry.side}" for _, entry in self.ledger.live.values()]
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

    def _attempt(self, entry: Input) -> _Attempt:
        if not self._safe:
            self._land()  # Caffe leaves waiting to its caller
        expected, start, argument = self.predict(entry), len(self.ledger.entries), self._argument(entry)
        return _Attempt(expected, start, argument, *self._invoke(entry, argument))

    def _judge(self, entry: Input, attempt: _Attempt) -> None:
        expected, start, argument, raised, view = attempt
        before, side = self.oracle.head, SIDES.get(entry.call or Call.RELEASE)
        self._compare_calls(entry, expected, self.ledger.entries[start:], raised)
        self._compare_refusal(entry, expected, raised)
        adopted = side if raised is None and argument is not None and entry.call in ADOPTIONS else None
        if adopted:
            self._external[adopted] = argument
            self._lasting.pop(adopted, None)
        self.oracle = expected.after
        if raised is None:
            self._compare_flight(entry)
        self._compare_situation(entry, before, view, raised)
        if adopted:
            self._write_as_caller(adopted, argument)
        if side and raised is None and entry.call in WRITES:
            self._write(side, view)

    def _argument(self, entry: Input) -> Any:
        """The buffer or the stream a call takes."""
        if entry.call is Call.ASYNC_GPU_PUSH:
            if self.bench.device is None:
                return object()
            self._streams.append(self._device.stream())
            return self._streams[-1]
        if entry.call not in ADOPTIONS or not entry.data:
            return None
        return self.buffer(SIDES[entry.call], pattern(self._number, self.size))

    def buffer(self, side: Side, content: bytes) -> Any:
        """Memory of the caller's own; every third one is longer than it needs to be."""
        longer = len(content) + (5 if self._number % 3 == 0 else 0)
        if side == "cpu":
            return bytearray(content.ljust(longer, b"\0"))
        if self.bench.device is None:
            return object()
        array = self.bench.device.empty(longer)
        self._put(array, content)
        return array

    def _invoke(self, entry: Input, argument: Any) -> tuple[BaseException | None, Any]:
        method = "close" if entry.call is Call.RELEASE else entry.call.value if entry.call else ""
        self.script.append(f"memory.{method}({self._shown_argument(entry)})")
        arguments = (argument,) if entry.call in ADOPTIONS else ()
        keywords = {"stream": argument} if entry.call is Call.ASYNC_GPU_PUSH else {}
        current = None if self.bench.device is None else self.bench.device.current_ordinal()
        try:
            with using_mode(self.mode):
                outcome: tuple[BaseException | None, Any] = None, getattr(self.subject, method)(*arguments, **keywords)
        except (Exception, InjectedInterrupt) as error:  # noqa: BLE001 -- a subject refuses with whatever it likes
            outcome = error, None
        if self.bench.device is not None:
            now = self.bench.device.current_ordinal()
            self._require(now == current, "R50-device-restored", f"device {current} was current, and now {now} is")
        return outcome

    def _shown_argument(self, entry: Input) -> str:
        if entry.call is Call.ASYNC_GPU_PUSH:
            return "stream=memory.device.stream()"
        if entry.call not in ADOPTIONS:
            return ""
        buffer = f"bytearray({self.size})" if entry.call is Call.SET_CPU_DATA else f"memory.device.empty({self.size})"
        return buffer if entry.data else "None"

    def _write(self, side: Side, view: Any) -> None:
        content = pattern(self._number, self.size)
        value = content[0] if content else 0
        written = f"[:] = {value}" if side == "cpu" else f".set(numpy.full({self.size}, {value}, 'uint8'))"
        self.script[-1] += written
        if side == "cpu":
            memoryview(view).cast("B")[: self.size] = content
        else:
            self._put(view, content)
        self.oracle = self.oracle.written(side, content)
        self._compare_lasting(side)

    def _write_as_caller(self, side: Side, buffer: Any) -> None:
        """Write into a buffer that was just adopted: the memory must hold the buffer, not a copy of it.

        Looking at a fresh side does nothing, so these looks leave the state as it is.
        """
        self._look(side)
        self._number += 1
        content = pattern(self._number, self.size)
        self.script[-1] += "  # and write into that buffer"
        if side == "cpu":
            memoryview(buffer).cast("B")[: self.size] = content
        else:
            self._put(buffer, content)
        self.oracle = self.oracle.written(side, content)
        self._look(side)

    def _look(self, side: Side) -> None:
        lasting = self._lasting.get(side)
        with using_mode(self.mode):
            self._compare_view(_VIEWS[side], getattr(self.subject, _VIEWS[side].value)())
        if lasting is not None:
            self._lasting[side] = lasting
            self._compare_lasting(side)
