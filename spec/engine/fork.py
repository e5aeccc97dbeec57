"""A fork of this process for one job, which may crash, exit or hang, and do what it likes with what is open.

The answer is a file, and only the end of the process is waited for.  So it does not matter if the job forks too, closes
its pipes, writes to them, or starts processes that never let go of them.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from syncedmem.interrupts import ENDING

from .descendants import end_with_parent
from .supervisor import Death, limit_memory
from .tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from .supervisor import Limits

__all__ = ["failure", "in_fork", "seen", "serve"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05
_LONGEST_LINE = 200
_ASLEEP, _MOST_TIMES = 0.02, 4
"""A process that works less than this share of the time waits; one that works has so many times its processor time."""


def in_fork(
    job: Callable[[], Any], answer: Path, limits: Limits, moved: Callable[[], object] | None = None
) -> dict[str, Any] | Death:
    """Do a job in a fork; return its answer, or how it ended without one.

    Parameters
    ----------
    job : callable
        Returns something that JSON has.
    answer : Path
        A file for the answer.
    limits : Limits
        `seconds` and `first` limit the time without progress, and `whole` all of it.
    moved : callable or None
        Returns a value that changes whenever the job makes progress.

    Returns
    -------
    dict or Death
        ``{"failed": text}`` if the job raised an exception, or its answer could not be written.
    """
    answer.unlink(missing_ok=True)
    moved = moved or (lambda: None)
    with Tail() as output:
        mark = moved()  # before the fork, which on a busy machine may take its first step before we look
        process = os.fork()
        if not process:
            serve(job, answer, output.end)
        output.begin()
        if limits.memory is not None:
            limit_memory(process, limits.memory)
        try:
            death = _ended(process, limits, moved, mark)
        except BaseException:  # an interrupt
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        if not answer.exists():
            return replace(death, last_line=_last_line(output))
        try:
            data: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        except ValueError:
            if death.kind == "crash":  # in the middle of writing: a target that damages the heap ends anywhere
                return replace(death, last_line=_last_line(output))
            return {"failed": f"its answer could not be written to {answer}"}
    return data


def _ended(process: int, limits: Limits, moved: Callable[[], object], mark: object) -> Death:
    """Wait for the end of a process, as long as it makes progress since a mark."""
    since, patience = time.monotonic(), limits.first or limits.seconds
    busy, used = limits.busy or patience, seen(process).seconds
    end = None if limits.whole is None else since + limits.whole
    pause = _FIRST_PAUSE
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return Death.of(os.waitstatus_to_exitcode(status))
        now, found = time.monotonic(), moved()
        if found != mark:
            mark, since, patience = found, now, limits.seconds
            busy, used = limits.busy or patience, seen(process).seconds
        late, hangs = end is not None and now >= end, patience is not None and now - since >= patience
        if hangs and not late and patience is not None and busy is not None:
            # One that works has had little of a busy machine; one that waits will wait.
            hangs = _is_over(now - since, seen(process).seconds - used, patience, busy)
        if late or hangs:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return Death("late", f"{limits.whole:g}") if late else Death("hang", f"{patience:g}")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_over(seconds: float, worked: float, patience: float, busy: float) -> bool:
    """Whether a process without progress for so many seconds, of which it worked so many, has had its time."""
    waits = worked < _ASLEEP * seconds
    return waits or worked >= busy or seconds >= _MOST_TIMES * max(busy, patience)


class Seen(NamedTuple):
    """What the system says of a process: its state, as ps names it, and the processor time that it has had."""

    state: str
    seconds: float


def seen(process: int) -> Seen:
    """What the system says of a process; no state and no time if it does not say it."""
    try:
        state, *numbers = Path(f"/proc/{process}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return Seen("", 0.0)
    return Seen(state, (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK"))


def serve(job: Callable[[], Any], answer: Path, output: int) -> NoReturn:
    """Do a job in this process, which is a fork, write the answer, and end.

    Parameters
    ----------
    job : callable
    answer : Path
    output : int
        The file for all that the job prints.
    """
    end_with_parent()
    faulthandler.disable()  # what a target prints last says why it ends
    process = os.getpid()
    status = 0
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for number in ENDING:
            if callable(signal.getsignal(number)):  # a handler of ours; what is ignored stays so, as under nohup
                signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the requests that wait there are not for the job
        os.dup2(output, 1)
        os.dup2(output, 2)
        text = json.dumps(_answered(job))
        if os.getpid() == process:  # a fork that the job has made may come here too
            answer.write_text(text, encoding="utf-8")
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001 -- nothing may return from here
        status = 1
        with suppress(Exception):  # the job may have closed its output
            traceback.print_exc()
    finally:
        with suppress(Exception):  # as above
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)  # do not wait for handlers that the job has registered for the end of the process


def _answered(job: Callable[[], Any]) -> Any:
    """The answer of a job; an exception is one too."""
    try:
        return job()
    except Exception as error:  # noqa: BLE001 -- a failure of ours must not look like one of the target
        return {"failed": failure(error)}


def failure(error: Exception) -> str:
    """What an exception says, and where it was raised."""
    places = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(places[-1].filename)}:{places[-1].lineno})" if places else ""  # noqa: PTH119
    return f"{type(error).__name__}: {error}{place}"


def _last_line(output: Tail) -> str:
    """The last line that was printed."""
    lines = output.text().strip().splitlines()
    return lines[-1][:_LONGEST_LINE] if lines else ""
