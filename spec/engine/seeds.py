"""One seed of a run, in a process of its own.

`run_seed` starts the process and waits for its answer.  The process ends with the one that waits: its standard input
is a *lifeline*, a pipe that nobody writes to once the job has been sent.  When it is closed, because the process that
waits has ended in whatever way, the job is interrupted.  It then ends its own processes, as after Ctrl-C.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from socket import gethostname
from typing import TYPE_CHECKING, Any, Literal

from syncedmem.model import SyncedMemoryError

from .fork import failure
from .supervisor import Death

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["SeedLostError", "SeedResult", "end_running", "run_seed", "serve"]

_PROGRAM = "import sys; from syncedmem.spec.engine.seeds import serve; serve(0, int(sys.argv[1]))"

Kind = Literal["answer", "refused", "failed"]


class SeedLostError(SyncedMemoryError, RuntimeError):
    """The process of a seed ended without an answer.  It says nothing about the target, and the seed can run again."""


@dataclass(frozen=True)
class SeedResult:
    """The result of one seed.

    Attributes
    ----------
    seed : int
    kind : {"answer", "refused", "failed"}
        Whether the seed ran; if not, whether the user can help it, or we failed.
    answer : object
        What the function of the run returned; if the seed did not run, the reason as a line.
    operations : int
    seconds : float
        With the start of the process.
    machine : str
    worker : (int, int)
        The process and the thread that waited for it.
    """

    seed: int
    kind: Kind
    answer: Any
    operations: int
    seconds: float
    machine: str
    worker: tuple[int, int]


_running: set[subprocess.Popen[bytes]] = set()


def run_seed(function: str, options: object, seed: int) -> SeedResult:
    """Run one seed in a process of its own.

    Parameters
    ----------
    function : str
        ``"module:name"`` of a function that is called with the options and the seed, and returns an answer and the
        number of its operations.
    options : object
        Like the answer, it must be picklable.
    seed : int

    Raises
    ------
    SeedLostError
        If the process ends without an answer.
    """
    start = time.perf_counter()
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as answers:
        try:
            process = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-c", _PROGRAM, str(writing)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,  # what a target prints is nobody's answer
                pass_fds=(writing,),
                start_new_session=True,  # Ctrl-C is for those who wait
            )
        finally:
            os.close(writing)
        with process:
            _running.add(process)
            try:
                _send(process, pickle.dumps((function, options, seed)))
                kind, answer, operations = pickle.load(answers)  # noqa: S301 -- from our own process
            except (EOFError, pickle.UnpicklingError):
                raise SeedLostError(f"its process {Death.of(process.wait()).how}") from None
            finally:
                _running.discard(process)
    seconds = time.perf_counter() - start
    return SeedResult(seed, kind, answer, operations, seconds, gethostname(), (os.getpid(), threading.get_ident()))


def _send(process: subprocess.Popen[bytes], job: bytes) -> None:
    """Send a job, and leave the lifeline open."""
    assert process.stdin is not None  # noqa: S101 -- for type checkers: it is a pipe
    with suppress(BrokenPipeError):  # it has ended, and there will be no answer
        process.stdin.write(job)
        process.stdin.flush()


def end_running() -> None:
    """Have all processes of seeds end that this process waits for."""
    for process in [*_running]:
        assert process.stdin is not None  # noqa: S101 -- as above
        process.stdin.close()


def serve(lifeline: int, answers: int) -> None:
    """Do the job that comes through the lifeline, and send its answer; if the lifeline is closed before, end the job.

    Parameters
    ----------
    lifeline, answers : int
        Descriptors.
    """
    with os.fdopen(answers, "wb") as file:
        with os.fdopen(lifeline, "rb", closefd=False) as requests:
            function, options, seed = pickle.load(requests)  # noqa: S301 -- from the process that has started this one
        try:
            with _ending_with(lifeline):
                answer = _answer(function, options, seed)
        except KeyboardInterrupt:
            return
        file.write(answer)


@contextmanager
def _ending_with(lifeline: int) -> Generator[None]:
    """Interrupt this thread, the main one, when the lifeline is closed."""
    done, thread = threading.Event(), threading.get_ident()

    def watch() -> None:
        os.read(lifeline, 1)  # nobody writes to it, so this is its end
        if not done.is_set():
            signal.pthread_kill(thread, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored by who has started us
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.signal(signal.SIGINT, before)


def _answer(function: str, options: object, seed: int) -> bytes:
    """The answer of a function, pickled; an exception is an answer too."""
    module, _, name = function.partition(":")
    try:
        answer, operations = getattr(import_module(module), name)(options, seed)
        return pickle.dumps(("answer", answer, operations))
    except (SyncedMemoryError, OSError) as error:
        return pickle.dumps(("refused", " ".join(str(error).split()), 0))
    except Exception as error:  # noqa: BLE001 -- a failure of ours must not look like one of the target
        return pickle.dumps(("failed", " ".join(failure(error).split()), 0))
