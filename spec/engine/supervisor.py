"""Supervised processes: each ends with an answer, a crash, an exit or a hang, and affects no other process.

A `Child` does one job, which is a Python function; `side_by_side` runs several at a time.  A `Command` is any program
that answers lines.  Both can have `Limits`.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import select
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection, get_context
from typing import IO, TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, cast

from syncedmem.interrupts import BY_SIGNAL, ENDING

from .descendants import end_descendants
from .imports import SAFE_PATH, safe_starts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection

    Progress = Callable[[str, int], None]
    Watch = Callable[[str], AbstractContextManager[Progress | None]]

__all__ = ["Child", "Command", "Death", "Limits", "Reporter", "processors", "side_by_side"]

AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

_PAUSE = 0.05
_MOMENT = 0.2


class Job(Protocol[AnswerT_co]):
    """A job for another process: if that is spawned, the job, its argument and its answer must be picklable."""

    def __call__(self, argument: Any, /, *, progress: Reporter) -> AnswerT_co: ...


class Reporter:
    """What a job has of the process that started it: called, it reports progress."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stage, self._since = "", 0.0

    def __call__(self, stage: str, cases: int) -> None:
        """Report the stage, and the number of its cases that are done; not more often than anybody can see."""
        if stage != self._stage or time.monotonic() - self._since > _PAUSE:
            self._stage, self._since = stage, time.monotonic()
            self._connection.send(("progress", (stage, cases)))

    def send(self, message: object) -> None:
        """Send a message."""
        self._connection.send(("message", message))


@dataclass(frozen=True)
class Death:
    """A process ended without an answer.

    Attributes
    ----------
    kind : {"crash", "exit", "hang", "flood", "late"}
        A signal ended it, it exited, it made no progress until its time was up, its answer was too long, or the time
        for all of it was over.
    detail : str
        The name of the signal, the exit status, the seconds, or the number of bytes.
    stage : str
        The last stage that it reported.
    cases : int
        The number of cases of that stage that it had done.
    last_line : str
        The last line that it printed, if its output was kept.
    """

    kind: Literal["crash", "exit", "hang", "flood", "late"]
    detail: str
    stage: str = ""
    cases: int = 0
    last_line: str = ""

    @classmethod
    def of(cls, status: int | None, stage: str = "", cases: int = 0) -> Self:
        """The death of a process that ended with this exit status, which is negative for a signal.

        If it was a signal that ends commands, wait a moment: whoever sent it may be about to send it to us.
        """
        if status is not None and (-status in ENDING or status - BY_SIGNAL in ENDING):
            time.sleep(_MOMENT)
        if status is not None and status < 0:
            return cls("crash", signal.Signals(-status).name, stage, cases)
        return cls("exit", str(status), stage, cases)

    @property
    def how(self) -> str:
        """The second half of a sentence whose subject is the process."""
        if self.kind == "hang":
            return f"was ended after {self.detail} seconds without progress"
        if self.kind == "flood":
            return f"was ended after {self.detail} bytes of one answer"
        return f"was ended by {self.detail}" if self.kind == "crash" else f"ended with status {self.detail}"


@dataclass(frozen=True)
class Limits:
    """The limits of a process.

    Attributes
    ----------
    seconds : float or None
        The longest time without progress.
    busy : float or None
        The most processor time of a fork without progress, if it works all the time; None for as much as `seconds`.
    first : float or None
        The longest time before its first progress, which includes imports; None for the same limit as later.
    whole : float or None
        The longest time of a fork altogether.
    memory : int or None
        The most private, writable memory in bytes.
    answer : int or None
        The length of an answer of a `Command` in bytes.
    """

    seconds: float | None = None
    first: float | None = None
    whole: float | None = None
    busy: float | None = None
    memory: int | None = None
    answer: int | None = None


_NO_LIMITS = Limits()


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Child(Generic[AnswerT]):
    """A process that does one job, and its progress until now.

    Parameters
    ----------
    job : callable
        Called with the argument, and with a function that reports progress.
    argument : object
    limits : Limits
    moved : callable or None
        Returns a value that changes whenever the job makes progress; a second way to show progress.
    progress : callable or None
        Called with the progress.
    on_message : callable or None
        Called with each message of the job.
    nests : bool
        Whether the job starts processes of its own.

    Attributes
    ----------
    answer : object or Death
        Available when the process has ended.
    """

    answer: AnswerT | Death

    def __init__(  # noqa: PLR0913 -- the options of a process
        self,
        job: Job[AnswerT],
        argument: object,
        *,
        limits: Limits = _NO_LIMITS,
        moved: Callable[[], object] | None = None,
        progress: Progress | None = None,
        on_message: Callable[[Any], object] | None = None,
        nests: bool = False,
    ) -> None:
        self._limits = limits
        self._moved = moved
        self._progress = progress
        self._on_message = on_message
        self._stage: tuple[str, int] = ("its start", 0)
        self._stack = ExitStack()
        context: Any = get_context("spawn")  # OpenCL and CUDA do not survive a fork
        self.connection: Connection
        self.connection, there = cast("tuple[Connection, Connection]", context.Pipe())
        self._stack.callback(self.connection.close)
        self._patience = limits.first or limits.seconds
        self._mark, self._since = moved() if moved else None, time.monotonic()
        # A daemon could not have child processes.
        self._process: Any = context.Process(
            target=serve, args=(there, job, argument, os.environ.get(SAFE_PATH)), daemon=not nests
        )
        with there:
            try:
                with safe_starts():
                    self._process.start()
            except BaseException:
                self._stack.close()
                raise
        self._stack.callback(self._process.join)
        self._stack.callback(self._process.kill)
        if limits.memory is not None:
            limit_memory(self._process.pid, limits.memory)

    def wait(self) -> AnswerT | Death:
        """The answer, or how the process ended without one."""
        with self:
            while not self.listen(_PAUSE):
                pass
            return self.answer

    def again(self, argument: object, progress: Progress | None = None) -> None:
        """Have a process that has answered do its job once more; if it has ended since, `listen` says so."""
        self._stage, self._progress = ("its start", 0), progress
        self._moves()
        with suppress(OSError):
            self.connection.send(argument)

    def listen(self, seconds: float) -> bool:
        """Receive the next message, if it comes in time; return whether the process has ended or its time is up."""
        if not self.connection.poll(seconds):
            return self._stands_still()
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):  # OSError if it ended in the middle of a message
            self._process.join()
            self.answer = Death.of(self._process.exitcode, *self._stage)
            return True
        if kind == "answer":
            self.answer = cast("AnswerT", content)
            return True
        self._moves()
        if kind == "message":
            if self._on_message is not None:
                self._on_message(content)
            return False
        self._stage = content
        if self._progress is not None:
            self._progress(*self._stage)
        return False

    def _moves(self) -> None:
        self._patience, self._since = self._limits.seconds, time.monotonic()

    def _stands_still(self) -> bool:
        """Whether there was no progress for too long; if so, end the process."""
        if self._moved is not None and (mark := self._moved()) != self._mark:
            self._mark = mark
            self._moves()
        if self._patience is None or time.monotonic() - self._since < self._patience:
            return False
        self._process.kill()
        self._process.join()
        self.answer = Death("hang", f"{self._patience:g}", *self._stage)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def serve(there: Connection, job: Callable[..., Any], argument: object, safe_path: str | None) -> None:
    """Do a job in this process, and send its progress and its answer; then once more for each further argument."""
    if safe_path is None:  # what the job starts finds the environment of the user
        os.environ.pop(SAFE_PATH, None)
    faulthandler.disable()  # what a target prints last says why it ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
    with suppress(EOFError):  # nobody wants more
        while True:
            there.send(("answer", job(argument, progress=Reporter(there))))
            argument = there.recv()


def limit_memory(process: int, size: int) -> None:
    """Limit the private, writable memory of a process to this many bytes.

    Its address space is not limited: CUDA reserves more of it than the GPU and the host have memory.
    """
    with suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(process, resource.RLIMIT_DATA, (size, size))


def side_by_side(
    job: Job[AnswerT], names: Iterable[str], *, processes: int, watch: Watch, limits: Limits = _NO_LIMITS
) -> Iterator[tuple[str, AnswerT | Death]]:
    """Do a job for each name in some processes, each of which does one at a time; one that ends loses only its job.

    When the caller stops iterating, all are ended.  A process does several jobs because its start takes long.

    Parameters
    ----------
    job : callable
        Called with a name, and with a function that reports progress.
    names : iterable of str
        In the order in which their jobs start; a name is taken only when its job can start.
    processes : int
        The number of processes at a time.
    watch : callable
        Called with a name, it returns a context for the time of the job, which gives a progress callback or None.
    limits : Limits
        The limits of each process.

    Yields
    ------
    (str, object)
        A name and the answer, or the `Death` of its process, in the order in which they end.
    """
    waiting = iter(names)
    running: dict[str, tuple[Child[AnswerT], ExitStack]] = {}
    idle: list[Child[AnswerT]] = []
    with ExitStack() as everything:
        while True:
            for name in islice(waiting, processes - len(running)):
                stack = everything.enter_context(ExitStack())
                progress = stack.enter_context(watch(name))
                if idle:
                    child = idle.pop()
                    child.again(name, progress)
                else:
                    child = everything.enter_context(Child(job, name, limits=limits, progress=progress))
                running[name] = child, stack
            if not running:
                return
            connection.wait([child.connection for child, _ in running.values()], _PAUSE)
            for name in [name for name, (child, _) in running.items() if child.listen(0)]:
                child, stack = running.pop(name)
                stack.close()
                if not isinstance(child.answer, Death):
                    idle.append(child)
                yield name, child.answer


class Command:
    """A program that answers each line on its standard input with a line on its standard output.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments.
    environment : mapping or None
        Its environment; if None, that of this process.  ``PYTHONFAULTHANDLER`` is left out: what a program prints last
        says why it ends, and a traceback would come after that.
    limits : Limits
        `first` limits the first answer.
    errors : file, int or None
        The file for its standard error; if None, that of this process.
    group : bool
        Whether it and the processes that it starts are a group of their own, which ends with it.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        limits: Limits = _NO_LIMITS,
        *,
        errors: IO[bytes] | int | None = None,
        group: bool = False,
    ) -> None:
        inherited = os.environ if environment is None else environment
        self.process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 -- the user named this program to have it run
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={name: value for name, value in inherited.items() if name != "PYTHONFAULTHANDLER"},
            start_new_session=group,
        )
        self._group = group
        self._requests, self._replies = cast("IO[bytes]", self.process.stdin), cast("IO[bytes]", self.process.stdout)
        self._limits = limits
        self._patience = limits.first or limits.seconds
        self._rest = bytearray()
        os.set_blocking(self._requests.fileno(), False)  # a program that does not read must not stop us
        if limits.memory is not None:
            limit_memory(self.process.pid, limits.memory)

    def ask(self, line: str) -> str | Death:
        """The answer to a line, or how the process ended without one."""
        deadline = None if self._patience is None else time.monotonic() + self._patience
        try:
            death = self._send(line.encode() + b"\n", deadline) or self._receive(deadline)
        except BaseException:  # an interrupt: nobody waits for the answer any more
            self._kill()
            raise
        if death is not None:
            return death
        answer, _, self._rest = self._rest.partition(b"\n")
        self._patience = self._limits.seconds
        return answer.decode(errors="replace")

    def _send(self, request: bytes, deadline: float | None) -> Death | None:
        end = self._requests.fileno()
        while request:
            if not select.select([], [end], [], _left(deadline))[1]:
                return self._hangs()
            try:
                request = request[os.write(end, request) :]
            except BrokenPipeError:
                return self._died()
        return None

    def _receive(self, deadline: float | None) -> Death | None:
        """Read until there is a whole line."""
        end, searched = self._replies.fileno(), 0
        while self._rest.find(b"\n", searched) < 0:
            searched = len(self._rest)
            if self._limits.answer is not None and searched > self._limits.answer:
                self._kill()
                return Death("flood", str(searched))
            if not select.select([end], [], [], _left(deadline))[0]:
                return self._hangs()
            part = os.read(end, 1 << 16)
            if not part:
                return self._died()
            self._rest += part
        return None

    def end(self) -> None:
        """End the process, or its group, at once."""
        self._kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close its input, and wait for its end, as long as for an answer."""
        for pipe in (self._requests, self._replies):
            with suppress(OSError):  # the process has ended already
                pipe.close()
        try:
            self.process.wait(self._limits.seconds)
        except subprocess.TimeoutExpired:
            self._kill()
        if self._group:
            self._kill()

    def _died(self) -> Death:
        """How the process ended, which has closed its output or its input."""
        try:
            return Death.of(self.process.wait(self._limits.seconds))
        except subprocess.TimeoutExpired:
            return self._hangs()

    def _hangs(self) -> Death:
        self._kill()
        return Death("hang", f"{self._patience:g}")

    def _kill(self) -> None:
        """End the process, or its group and all that it has begun."""
        if self._group:
            if self.process.returncode is None:  # else its number may be that of another one
                end_descendants(self.process.pid)
            with suppress(ProcessLookupError):  # nobody of the group is left
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()


def _left(deadline: float | None) -> float | None:
    """The time until a deadline: 0 if it is over."""
    return None if deadline is None else max(deadline - time.monotonic(), 0)
