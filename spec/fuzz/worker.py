"""A process that does jobs on targets, each in a fork of its own, so that it survives a crash of a target.

`main` reads jobs from standard input, one on each line, and forks for each.  A fork makes progress as long as its
journal does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..engine.descendants import adopt_orphans, end_children
from ..engine.fork import in_fork
from ..engine.supervisor import Death, Limits
from .finding import TargetError
from .jobs import perform
from .journal import Journal
from .native_driver.running import NativeJournal
from .recognition import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jobs import Answer, Job

__all__ = ["main", "serve"]

_PATIENCE = 12
"""The time for importing and making a target, as a multiple of the limit of a call."""


def serve(requests: IO[str], replies: IO[str], clear: Callable[[], None] = lambda: None) -> None:
    """Answer jobs until there are no more; after each job, clear up what it has left."""
    for line in requests:
        answer = _in_child(json.loads(line))
        clear()
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


def _in_child(job: Job) -> Answer:
    """Do a job in a fork, and wait as long as it makes progress."""
    limits = Limits(seconds=job["hang"], first=job["hang"] * _PATIENCE, whole=job.get("whole"))
    journal = Path(job["journal"])
    if job["job"] == "native":
        return _natively(job, journal.with_name("answer"), limits)
    answer = in_fork(partial(answer_to, job), journal.with_name("answer"), limits, Journal(journal).mark)
    if not isinstance(answer, Death):
        return answer
    if answer.kind == "hang":
        return {"hang": job["hang"]}
    if answer.kind == "late":
        return {"late": job["whole"]}
    how = answer.detail if answer.kind == "crash" else f"exit status {answer.detail}"
    return {"crash": how, "said": answer.last_line}


def _natively(job: Job, answer: Path, limits: Limits) -> Answer:
    """Run the native driver in a fork, as another program."""
    program, *_ = command = job["command"]
    with NativeJournal(*job["layout"]) as journal:
        run = partial(os.execve, program, command, {**os.environ, **job["environment"]})
        death = in_fork(run, answer, limits, journal.mark)
        return {"death": vars(death)} if isinstance(death, Death) else death


def answer_to(job: Job) -> Answer:
    """Do a job in this process; a target that cannot be used gives an answer too."""
    journal = Journal(Path(job["journal"]))
    journal.stay()
    try:
        return perform(Source(job["target"]), job, journal)
    except TargetError as error:
        return {"error": str(error)}


def main() -> None:
    """Answer jobs from standard input; the output of targets goes elsewhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
    adopt_orphans()
    serve(sys.stdin, sys.stdout, end_children)
