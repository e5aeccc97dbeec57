"""A process in which targets run, so that what they do to it is seen from outside.

`main` reads jobs from standard input, a line each, and forks for every one of them.
The child does the job; the parent watches the journal, ends a child that stands still, and says how a child died
that gave no answer.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from .finding import TargetError
from .jobs import perform
from .journal import Journal
from .recognition import Source

if TYPE_CHECKING:
    from .jobs import Answer, Job

__all__ = ["main", "serve"]

_POLL = 0.05
_PATIENCE = 12
"""How many time limits a target has to be imported and made."""


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer jobs until there are no more."""
    for line in requests:
        replies.write(json.dumps(_in_child(json.loads(line))) + "\n")
        replies.flush()


def _in_child(job: Job) -> Answer:
    """Do a job in a process of its own, and wait for it no longer than it moves."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as said:
        child = os.fork() or be_the_child(job, reading, writing, said.fileno())
        os.close(writing)
        try:
            answer = _watch(child, reading, Journal(Path(job["journal"])), job["hang"])
        finally:
            os.close(reading)
        if "crash" in answer:
            answer["said"] = _last_line(said)
        return answer


def be_the_child(job: Job, reading: int, writing: int, said: int) -> NoReturn:
    """Answer a job on a pipe, and end."""
    os.close(reading)
    os.dup2(said, 1)
    os.dup2(said, 2)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    data = json.dumps(answer_to(job)).encode()
    while data:
        data = data[os.write(writing, data) :]
    os._exit(0)  # what the target would do at the end of the process is not ours to wait for


def answer_to(job: Job) -> Answer:
    """Do a job in this process; what cannot be used is an answer too."""
    try:
        return perform(Source(job["target"]), job, Journal(Path(job["journal"])))
    except TargetError as error:
        return {"error": str(error)}


def _watch(child: int, reading: int, journal: Journal, hang: float) -> Answer:
    """The answer of a child, or how it died without one."""
    data, mark, began = bytearray(), journal.mark(), False
    moved = time.monotonic()
    while True:
        if select.select([reading], [], [], _POLL)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                break
            data += part
            moved = time.monotonic()
        elif (now := journal.mark()) != mark:
            mark, began, moved = now, True, time.monotonic()
        elif time.monotonic() - moved > hang * (1 if began else _PATIENCE):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"hang": hang}
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status or not data:
        return {"crash": signal.Signals(-status).name if status < 0 else f"exit status {status}"}
    answer: Answer = json.loads(data)
    return answer


def _last_line(said: IO[Any]) -> str:
    """What a process said last before it died."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def main() -> None:
    """Serve standard input; what targets print goes elsewhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us is interrupted too, and ends us
    serve(sys.stdin, sys.stdout)
