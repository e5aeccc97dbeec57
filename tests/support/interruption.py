"""Interrupts at every point where CPython can deliver one, in the code of every file.

CPython looks for signals when a function starts, when a call has returned, and when a loop jumps back.  Also, an
instruction that makes an object can raise ``MemoryError``.  `interrupt_everywhere` runs a call once for each of these
points, and raises there.  It leaves out only instructions that cannot raise: those that move values, such as
``STORE_ATTR``, and do not follow a call.  So two assignments in a row, without a call between them, are one step, as
they are for a real signal.
"""

from __future__ import annotations

import dis
import functools
import gc
import itertools
import signal
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

__all__ = ["INTERRUPTS", "Points", "Report", "acquired_elsewhere", "interrupt_everywhere", "interrupt_with_signals"]

SubjectT = TypeVar("SubjectT")

INTERRUPTS = (KeyboardInterrupt, SystemExit, MemoryError, RecursionError)
"""The exceptions that may come at any time."""

_LOOKS_FOR_SIGNALS = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "SEND", "YIELD")
"""CPython may raise after an instruction whose name begins so.  Entering a ``with`` block is not among them."""

_MOVES = (
    "CACHE",
    "COPY",
    "COPY_FREE_VARS",
    "DELETE_FAST",
    "EXTENDED_ARG",
    "IS_OP",
    "JUMP_FORWARD",
    "KW_NAMES",
    "LOAD_CLOSURE",
    "LOAD_CONST",
    "LOAD_DEREF",
    "LOAD_FAST",
    "LOAD_GLOBAL",
    "MAKE_CELL",
    "NOP",
    "NOT_TAKEN",
    "POP_EXCEPT",
    "POP_ITER",
    "POP_JUMP",
    "POP_TOP",
    "PRECALL",
    "PUSH_EXC_INFO",
    "PUSH_NULL",
    "RERAISE",
    "RESUME",
    "RETURN",
    "STORE_ATTR",
    "STORE_DEREF",
    "STORE_FAST",
    "SWAP",
    "UNPACK_SEQUENCE",
    "END_FOR",
    "CHECK_EXC_MATCH",
    "WITH_EXCEPT_START",
)
"""Instructions that cannot raise themselves, by the beginning of their names."""

_LEAVES = "LEAVES"
"""Our name for the call of ``__exit__`` at the end of a ``with`` block, which does not begin with a point either."""


def _after(name: str) -> bool:
    return name.startswith((*_LOOKS_FOR_SIGNALS, _LEAVES))


def _plain(name: str) -> bool:
    return name.startswith((*_MOVES, _LEAVES))


def _named(code: CodeType) -> dict[int, str]:
    """The instructions of a function by their offsets."""
    names: dict[int, str] = {}
    nones = 0  # how many None were loaded in a row: __exit__ is called with three
    for it in dis.get_instructions(code):
        names[it.offset] = _LEAVES if nones == 3 and it.opname == "CALL" else it.opname
        if it.opname.startswith("LOAD_CONST"):
            nones = nones + 1 if it.argval is None else 0
        elif it.opname not in ("PRECALL", "CACHE"):
            nones = 0
    return names


class _Code:
    """The instructions of a function: their names, which one follows, and what handles an exception there."""

    def __init__(self, code: CodeType) -> None:
        self.names = _named(code)
        offsets = list(self.names)
        self._next = dict(itertools.pairwise(offsets))
        self._ranges = [(it.start, it.end, it.target) for it in cast("Any", dis.Bytecode(code)).exception_entries]

    def _handler(self, offset: int) -> int | None:
        return next((target for start, end, target in self._ranges if start <= offset < end), None)

    def one_handler(self, offset: int, following: int) -> bool:
        """Whether an exception at the second instruction goes to the same handler as one at the first."""
        return not self._ranges or self._handler(offset) == self._handler(following)

    def ends_a_block(self, offset: int) -> bool:
        """Whether a call is the last instruction of a ``try`` or ``with`` block."""
        following = self._next.get(offset, offset)
        return self.names.get(offset, "").startswith("CALL") and not self.one_handler(offset, following)


class Points:
    """Counts the points of a call and raises at one of them.

    Parameters
    ----------
    target : int
        The number of the point, from 0.
    error : type of BaseException

    Attributes
    ----------
    where : str
        The point at which `error` was raised: file, line, function and instruction; empty if there was none.
    """

    def __init__(self, target: int, error: type[BaseException]) -> None:
        self._left = target
        self._error = error
        self.where = ""

    def _come(self, frame: FrameType, name: str) -> None:
        """Count a point, and raise if it is the right one."""
        if not self._left:
            self.where = _described(frame, name)
            raise self._error
        self._left -= 1

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """A profile function for `sys.setprofile`: the points at the end of a ``try`` or ``with`` block.

        An interrupt that comes when the last call in the block has returned is raised by that call, and so in the
        block.  A trace function could raise it only after the block.
        """
        caller = frame if event == "c_return" else frame.f_back if event == "return" else None
        if self.where or caller is None or caller.f_globals.get("__name__") == __name__:
            return
        if _code(caller.f_code).ends_a_block(caller.f_lasti):
            self._come(caller, "return")

    def trace(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        """A trace function for `sys.settrace`."""
        if self.where or frame.f_globals.get("__name__") == __name__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code, previous, offset = _code(frame.f_code), "", 0

        def local(frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
            nonlocal previous, offset
            if self.where:  # the rest is not traced, so it takes half the time
                return None
            if event == "exception":  # next comes the handler, and CPython does not look for signals before it
                previous = ""
            elif event == "opcode":
                name = code.names.get(frame.f_lasti, "")
                left = _after(previous) and code.one_handler(offset, frame.f_lasti)
                previous, offset = name, frame.f_lasti
                if left or not _plain(name):
                    self._come(frame, name)
            return local

        return local


@functools.cache
def _code(code: CodeType) -> _Code:
    return _Code(code)


def _described(frame: FrameType, name: str) -> str:
    stack: list[str] = []
    at: FrameType | None = frame
    while at is not None and len(stack) < 6 and at.f_globals.get("__name__") != __name__:
        stack.append(f"{at.f_code.co_filename.rpartition('/')[2]}:{at.f_lineno} {at.f_code.co_name}")
        at = at.f_back
    return f"{name} in " + " < ".join(stack)


@dataclass
class Report:
    """What happened to a call that was interrupted at each of its points.

    Attributes
    ----------
    points : int
        The number of points.
    broken : list of str
        Where the check failed afterwards, and how.
    silent : list of str
        Where the interrupt was not raised, and `sys.unraisablehook` did not show it, as it shows that of a finaliser.
    """

    points: int = 0
    broken: list[str] = field(default_factory=list[str])
    silent: list[str] = field(default_factory=list[str])

    def require(self, at_least: int = 1) -> None:
        """Fail if anything broke, or if there were fewer points than expected."""
        assert not self.broken, f"{len(self.broken)} of {self.points} points broken:\n" + "\n".join(self.broken[:20])
        assert self.points >= at_least, self.points


class _Run(Generic[SubjectT]):
    """One call that is interrupted at one point; an interrupt that a finaliser could not raise is stored too."""

    def __init__(self, act: Callable[[SubjectT], object], subject: SubjectT, points: Points) -> None:
        self.act, self.subject, self.points = act, subject, points
        self.unraisable: list[Any] = []

    def run(self) -> BaseException | None:
        raised: BaseException | None = None
        tracing, hook = sys.gettrace(), sys.unraisablehook
        sys.unraisablehook = lambda it: self.unraisable.append(it.exc_type)
        gc.disable()  # otherwise another finaliser could be interrupted instead of the call
        profiling = sys.getprofile()
        sys.setprofile(self.points.profile)
        sys.settrace(self.points.trace)
        try:
            self.act(self.subject)
        except BaseException as error:  # noqa: BLE001 -- it is what was injected, or what became of it
            raised = error
        finally:
            sys.settrace(tracing)
            sys.setprofile(profiling)
            sys.unraisablehook = hook
            gc.enable()
        _strip(raised)
        return raised


def _strip(error: BaseException | None) -> None:
    """Drop the frames of an error and of its causes: they would keep objects that the call was about to drop."""
    while error is not None:
        error.__traceback__ = None
        behind = error.__cause__ or error.__context__
        error.__context__ = None
        error = behind


def interrupt_everywhere(
    prepare: Callable[[], SubjectT],
    act: Callable[[SubjectT], object],
    check: Callable[[SubjectT, BaseException | None], object],
    error: type[BaseException] = KeyboardInterrupt,
    stride: int = 1,
) -> Report:
    """Interrupt a call at each of its points in turn.

    Parameters
    ----------
    prepare : callable
        Makes the object of the call, a new one for each point.
    act : callable
        The call; it gets what `prepare` made.
    check : callable
        It gets the same, and the exception that `act` raised, or None.  It raises if anything is broken or lost.  An
        interrupt inside a finaliser cannot be raised, so None is possible although there was one.
    error : type of BaseException
    stride : int
        Try only every n-th point.

    Returns
    -------
    Report
    """
    report = Report()
    for target in itertools.count(step=stride):
        points = Points(target, error)
        subject = prepare()
        run = _Run(act, subject, points)
        raised = run.run()
        try:
            check(subject, raised)
        except BaseException as problem:  # noqa: BLE001 -- whatever it is, this point is broken
            report.broken.append(
                f"{error.__name__} at {points.where or 'no point'}: {type(problem).__name__}: {problem}"
            )
        if not points.where:
            return report
        if raised is None and not run.unraisable:
            report.silent.append(f"{error.__name__} at {points.where}")
        report.points += 1
    raise AssertionError  # itertools.count() has no end


def interrupt_with_signals(
    act: Callable[[], object], check: Callable[[BaseException | None], object], *, times: int, microseconds: int
) -> Report:
    """Interrupt a call by real signals, each a little later than the one before.

    Parameters
    ----------
    act : callable
        The call; it should take longer than `microseconds`, or repeat itself.
    check : callable
        It gets the exception that `act` raised, or None.
    times : int
        The number of signals.
    microseconds : int
        The longest time before a signal.

    Returns
    -------
    Report
        Its points are the signals that came while `act` was running.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    report = Report()
    before, hook, tracing = signal.signal(signal.SIGALRM, interrupt), sys.unraisablehook, sys.gettrace()
    sys.unraisablehook = lambda _: None  # pytest's hook keeps the error, and so its frames
    try:
        for k in range(times):
            raised: BaseException | None = None
            sys.settrace(None)  # an interrupt in coverage's own code would leave its lock held
            try:
                signal.setitimer(signal.ITIMER_REAL, (1 + k * microseconds / times) / 1e6)
                act()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as error:
                raised = error
                _strip(raised)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                sys.settrace(tracing)
            report.points += raised is not None
            try:
                check(raised)
            except BaseException as problem:  # noqa: BLE001 -- as above
                report.broken.append(f"signal {k}: {type(problem).__name__}: {problem}")
    finally:
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
    return report


def acquired_elsewhere(*locks: Any) -> bool:
    """Whether another thread can acquire each of some locks."""
    found: list[bool] = []

    def acquire() -> None:
        for lock in locks:
            found.append(lock.acquire(timeout=1))
            if found[-1]:
                lock.release()

    thread = threading.Thread(target=acquire)
    thread.start()
    thread.join()
    return all(found)
