"""Processes of their own, watched: each ends with an answer, a crash, an exit or a hang, and harms nobody else.

`Child` does one job, which is a Python function; `side_by_side` has several at a time.  `Command` is any program that
answers lines.  Either may have `Limits`.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context
from typing import IO, TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection

    Progress = Callable[[str, int], None]
    Watch = Callable[[str], AbstractContextManager[Progress | None]]

__all__ = ["Child", "Command", "Death", "Limits", "processors", "side_by_side"]

AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)

_PAUSE = 0.05
_LONGEST_LINE = 200


class Job(Protocol[AnswerT_co]):
    """What is done in another process: where that is spawned, it, its argument and its answer can be pickled."""

    def __call__(self, argument: Any, /, *, progress: Progress) -> AnswerT_co: ...


@dataclass(frozen=True)
class Death:
    """A process ended without an answer.

    Attributes
    ----------
    kind : {"crash", "exit", "hang"}
        A signal ended it, it left by itself, or it stood still until its time was up.
    detail : str
        The name of the signal, the exit status, or the seconds.
    stage : str
        What it said that it did last.
    cases : int
        How much of that was done.
    last_line : str
        The last line that it printed, where that was kept.
    """

    kind: Literal["crash", "exit", "hang"]
    detail: str
    stage: str = ""
    cases: int = 0
    last_line: str = ""

    @classmethod
    def of(cls, status: int | None, stage: str = "", cases: int = 0) -> Self:
        """The death of a process that ended by itself with an exit status, which is negative for a signal."""
        if status is not None and status < 0:
            return cls("crash", signal.Signals(-status).name, stage, cases)
        return cls("exit", str(status), stage, cases)

    @property
    def how(self) -> str:
        """The end of a sentence that begins with the process."""
        if self.kind == "hang":
            return f"was ended after {self.detail} seconds without a sign of life"
        return f"was ended by {self.detail}" if self.kind == "crash" else f"ended with status {self.detail}"


@dataclass(frozen=True)
class Limits:
    """What a process may use.

    Attributes
    ----------
    seconds : float or None
        For how long it may stand still.
    first : float or None
        The same before it has moved at all: what it imports and makes takes longer; None for no other limit.
    memory : int or None
        Bytes of its address space.
    """

    seconds: float | None = None
    first: float | None = None
    memory: int | None = None


_NO_LIMITS = Limits()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Child(Generic[AnswerT]):
    """A process that does one job, and what it said so far.

    Parameters
    ----------
    job : callable
        Given the argument, and who is to be told of its progress.
    argument : object
    limits : Limits
    moved : callable or None
        Something that differs whenever the job has moved, besides telling so.
    progress : callable or None
        Who is told of its progress.
    forks : bool
        Whether the process begins as a copy of this one, which has to have a single thread; else it begins afresh:
        OpenCL and CUDA do not survive a fork.  A copy is interrupted as any process is, what it prints is kept, and
        nothing happens in it after its answer.

    Attributes
    ----------
    answer : object or Death
        Once it has ended.
    """

    answer: AnswerT | Death

    def __init__(  # noqa: PLR0913 -- what there is to say of a process
        self,
        job: Job[AnswerT],
        argument: object,
        *,
        limits: Limits = _NO_LIMITS,
        moved: Callable[[], object] | None = None,
        progress: Progress | None = None,
        forks: bool = False,
    ) -> None:
        self._limits = limits
        self._moved = moved
        self._progress = progress
        self._stage: tuple[str, int] = ("its start", 0)
        self._stack = ExitStack()
        context: Any = get_context("fork" if forks else "spawn")
        self._output: IO[bytes] | None = None
        if forks:
            self._output = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 -- the stack closes it
        self.connection: Connection
        self.connection, there = cast("tuple[Connection, Connection]", context.Pipe(duplex=False))
        self._stack.callback(self.connection.close)
        self._patience = limits.first or limits.seconds
        self._mark, self._since = moved() if moved else None, time.monotonic()
        output = None if self._output is None else self._output.fileno()
        # A daemon would not be allowed to have processes of its own, which a target may want.
        self._process: Any = context.Process(target=serve, args=(there, job, argument, output), daemon=not forks)
        with there:
            try:
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

    def listen(self, seconds: float) -> bool:
        """Take what it says next, if that is soon; whether that was its last, or its time is up."""
        if not self.connection.poll(seconds):
            return self._stands_still()
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):  # the latter if it ended in the middle of what it said
            self._process.join()
            self.answer = replace(Death.of(self._process.exitcode, *self._stage), last_line=self._last_line())
            return True
        if kind == "answer":
            self.answer = cast("AnswerT", content)
            return True
        self._moves()
        self._stage = content
        if self._progress is not None:
            self._progress(*self._stage)
        return False

    def _moves(self) -> None:
        self._patience, self._since = self._limits.seconds, time.monotonic()

    def _stands_still(self) -> bool:
        """Whether nothing has happened for too long; then it is ended."""
        if self._moved is not None and (mark := self._moved()) != self._mark:
            self._mark = mark
            self._moves()
        if self._patience is None or time.monotonic() - self._since < self._patience:
            return False
        self._process.kill()
        self._process.join()
        self.answer = Death("hang", f"{self._patience:g}", *self._stage, last_line=self._last_line())
        return True

    def _last_line(self) -> str:
        """What it printed last."""
        if self._output is None:
            return ""
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:_LONGEST_LINE] if lines else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def serve(there: Connection, job: Callable[..., Any], argument: object, output: int | None) -> None:
    """Do a job in this process, and send its progress and its answer.

    Parameters
    ----------
    there : Connection
    job : callable
    argument : object
    output : int or None
        Where everything goes that is printed, if this process is a copy.
    """
    if output is None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us is interrupted too, and ends us
    else:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
    stage, told = "", 0.0

    def tell(now: str, cases: int) -> None:
        nonlocal stage, told
        if now != stage or time.monotonic() - told > _PAUSE:
            stage, told = now, time.monotonic()
            there.send(("progress", (now, cases)))

    there.send(("answer", job(argument, progress=tell)))
    if output is not None:
        os._exit(0)  # what the job would do at the end of a process is not ours to wait for


def limit_memory(process: int, size: int) -> None:
    """Let a process have so many bytes of address space and no more."""
    with suppress(ProcessLookupError):  # it is gone already
        resource.prlimit(process, resource.RLIMIT_AS, (size, size))


def side_by_side(
    job: Job[AnswerT], names: Iterable[str], *, processes: int, watch: Watch, limits: Limits = _NO_LIMITS
) -> Iterator[tuple[str, AnswerT | Death]]:
    """Do a job for each name, each in a process of its own; no more run when the caller stops listening.

    Parameters
    ----------
    job : callable
        Given a name, and who is to be told of its progress.
    names : iterable of str
        In the order in which they start.
    processes : int
        How many run at a time.
    watch : callable
        Given a name, a context for the time its job runs, which gives who is told of its progress, or None.
    limits : Limits
        Of each process.

    Yields
    ------
    (str, object)
        A name and the answer, or the `Death` of its process, in the order in which they end.
    """
    waiting = list(names)
    running: dict[str, tuple[Child[AnswerT], ExitStack]] = {}
    with ExitStack() as everything:
        while waiting or running:
            while waiting and len(running) < processes:
                name, stack = waiting.pop(0), everything.enter_context(ExitStack())
                progress = stack.enter_context(watch(name))
                running[name] = stack.enter_context(Child(job, name, limits=limits, progress=progress)), stack
            connection.wait([child.connection for child, _ in running.values()], _PAUSE)
            for name in [name for name, (child, _) in running.items() if child.listen(0)]:
                child, stack = running.pop(name)
                stack.close()
                yield name, child.answer


class Command:
    """A program that answers each line on its standard input with one on its standard output.

    Parameters
    ----------
    arguments : sequence of str
        The program, and what it is told.
    environment : mapping or None
        That of this process if None.
    limits : Limits
        `first` is for the first answer.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None = None, limits: Limits = _NO_LIMITS
    ) -> None:
        self.process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 -- whoever names a program wants it run
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._requests, self._replies = cast("IO[bytes]", self.process.stdin), cast("IO[bytes]", self.process.stdout)
        self._limits = limits
        self._patience = limits.first or limits.seconds
        self._rest = b""
        if limits.memory is not None:
            limit_memory(self.process.pid, limits.memory)

    def ask(self, line: str) -> str | Death:
        """The answer to a line, or how the process ended without one."""
        try:
            self._requests.write(line.encode() + b"\n")
            self._requests.flush()
        except BrokenPipeError:
            return Death.of(self.process.wait())
        end = self._replies.fileno()
        deadline = None if self._patience is None else time.monotonic() + self._patience
        while b"\n" not in self._rest:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not select.select([end], [], [], left)[0]:
                self.process.kill()
                self.process.wait()
                return Death("hang", f"{self._patience:g}")
            part = os.read(end, 1 << 16)
            if not part:
                return Death.of(self.process.wait())
            self._rest += part
        answer, _, self._rest = self._rest.partition(b"\n")
        self._patience = self._limits.seconds
        return answer.decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Tell it that there is no more, and wait for its end, as long as for an answer."""
        for pipe in (self._requests, self._replies):
            with suppress(OSError):  # a process that is gone reads no more
                pipe.close()
        try:
            self.process.wait(self._limits.seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
