"""A process that does jobs on targets, each in a child of its own, so that what a target does is seen from outside.

`main` reads jobs from standard input, a line each, and forks for every one of them.  A child moves as long as its
journal does.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..engine.supervisor import Child, Death, Limits
from .finding import TargetError
from .jobs import perform
from .journal import Journal
from .recognition import Source

if TYPE_CHECKING:
    from ..engine.supervisor import Progress
    from .jobs import Answer, Job

__all__ = ["main", "serve"]

_PATIENCE = 12
"""How many time limits a target has to be imported and made."""


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer jobs until there are no more."""
    for line in requests:
        replies.write(json.dumps(_in_child(json.loads(line))) + "\n")
        replies.flush()


def _in_child(job: Job) -> Answer:
    """Do a job in a process of its own, and wait for it no longer than it moves."""
    limits = Limits(seconds=job["hang"], first=job["hang"] * _PATIENCE)
    answer = Child(answer_to, job, limits=limits, moved=Journal(Path(job["journal"])).mark, forks=True).wait()
    if not isinstance(answer, Death):
        return answer
    if answer.kind == "hang":
        return {"hang": job["hang"]}
    how = answer.detail if answer.kind == "crash" else f"exit status {answer.detail}"
    return {"crash": how, "said": answer.last_line}


def answer_to(job: Job, /, *, progress: Progress) -> Answer:
    """Do a job in this process; what cannot be used is an answer too."""
    del progress
    try:
        return perform(Source(job["target"]), job, Journal(Path(job["journal"])))
    except TargetError as error:
        return {"error": str(error)}


def main() -> None:
    """Serve standard input; what targets print goes elsewhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us is interrupted too, and ends us
    serve(sys.stdin, sys.stdout)
