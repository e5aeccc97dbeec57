"""The jobs on targets, and the worker that does them.  A job is a mapping of values that JSON has.

`main` reads jobs from standard input, one on each line, and forks for each.  A fork makes progress as long as its
journal does.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import signal
import sys
import time
from contextlib import suppress
from ctypes import c_size_t, c_void_p
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..engine.descendants import adopt_orphans, end_children, end_with_parent
from ..engine.fork import in_fork
from ..engine.supervisor import Death, Limits
from ..engine.violation import Violation
from .campaign import Stage, campaign
from .driver import Driver
from .finding import Finding, TargetError
from .journal import Journal
from .loops import items_from_json
from .mask import Mask
from .outcome import Outcome
from .recognition import TargetSource
from .shortening import SpentError, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .capabilities import Capabilities
    from .finding import HeapStep
    from .targets import Target

__all__ = ["Job", "main", "perform", "serve"]

_STIRRED, _LARGEST_STIRRED = 256, 4096
"""The most blocks that change a heap, and their largest size."""

Job = dict[str, Any]


def perform(source: TargetSource, job: Job, journal: Journal) -> Outcome:
    """Do a job.

    Parameters
    ----------
    source : TargetSource
    job : dict
        ``{"job": "describe"}``, or ``"campaign"``, ``"program"``, ``"shorten"``, with ``"promises"``
        and the other values that the job needs.
    journal : Journal
        Records the steps.

    Raises
    ------
    TargetError
        If the target or the record cannot be used.
    """
    if job.get("heap"):
        _stir(job["heap"])
    target = source.open()
    record = target.capabilities.with_promises(job["promises"])
    if job["job"] == "describe":
        _check_promises(record, job, target)
        functions = {"calloc": target.take_zeroed, "realloc": target.resize}
        return Outcome(
            described={
                "kind": target.kind,
                "capabilities": record.as_json(),
                "fresh": source.makes_fresh,
                "functions": [name for name, function in functions.items() if function is not None],
                "parts": source.parts,
            }
        )
    return _JOBS[job["job"]](source, record, job, journal)


def _stir(seed: int) -> None:
    """Leave another heap to the target than other processes have."""
    library, rng = ctypes.CDLL(None), random.Random(seed)  # noqa: S311 -- replayable
    library.malloc.restype, library.malloc.argtypes, library.free.argtypes = c_void_p, (c_size_t,), (c_void_p,)
    blocks = [library.malloc(rng.randrange(1, _LARGEST_STIRRED)) for _ in range(rng.randrange(_STIRRED))]
    for block in blocks[::2]:
        library.free(block)


def _check_promises(record: Capabilities, job: Job, target: Target) -> None:
    """Refuse promises that this target cannot keep."""
    if record.stream_ordered and (target.take_on is None or target.give_on is None):
        raise TargetError("stream_ordered=yes contradicts the target: it is told no stream when it allocates and frees")
    if record.sized_free != target.capabilities.sized_free:
        said, is_told = ("yes", "no") if record.sized_free else ("no", "the")
        raise TargetError(f"sized_free={said} contradicts the target: its free is told {is_told} size")
    unknown = [name for name in record.out_of_memory if name != "null" and not _is_exception(name)]
    if unknown:
        raise TargetError(
            f"out_of_memory={','.join(unknown)}: no exception of that name is known once the target is imported"
        )
    if job.get("threads", 1) > 1 and not record.thread_safe:
        raise TargetError(f"{job['threads']} threads, but thread_safe=no; say --promise thread_safe=yes if it is")


def _is_exception(name: str) -> bool:
    """Whether this process knows an exception with this name."""
    kinds: list[type[BaseException]] = [BaseException]
    while kinds:
        kind = kinds.pop()
        if kind.__name__ == name:
            return True
        kinds += kind.__subclasses__()
    return False


def _campaign(source: TargetSource, record: Capabilities, job: Job, journal: Journal) -> Outcome:
    chosen = {name: job[name] for name in ("seed", "seconds", *Stage._fields)}
    return campaign(source, record, journal, mask=Mask.from_json(job["mask"]), **chosen)


def _program(source: TargetSource, record: Capabilities, job: Job, journal: Journal) -> Outcome:
    """Take the steps of a program; if it is to be short, those of the shortest one that breaks a requirement.

    It ends between two steps if its seconds are over, and then has found nothing, or nothing shorter.
    """
    program, mask = items_from_json(job["program"]), Mask.from_json(job.get("mask"))
    until = time.perf_counter() + job.get("seconds", math.inf)
    broken: dict[tuple[HeapStep, ...], Violation] = {}

    def fails(steps: tuple[HeapStep, ...]) -> bool:
        journal.begin()
        try:
            Driver(source.open(), record, journal, mask=mask).run(_taken_until(until, steps))
        except Violation as wrong:
            if wrong.requirement in mask.unjudged or job.get("requirement", wrong.requirement) != wrong.requirement:
                return False
            broken[steps] = wrong
        return steps in broken

    if job["job"] == "shorten":
        program = shortened(program, fails, count_calls=journal.calls)
    else:
        with suppress(SpentError):
            fails(program)
    wrong = broken.get(program)
    return Outcome(None if wrong is None else Finding(wrong.requirement, wrong.message, program))


def _taken_until(until: float, steps: Iterable[HeapStep]) -> Iterator[HeapStep]:
    """The steps, as long as there is time for another one."""
    for step in steps:
        if time.perf_counter() > until:
            raise SpentError
        yield step


_JOBS = {"campaign": _campaign, "program": _program, "shorten": _program}


# --- the worker: a process that does each job in a fork, so that it survives a crash of a target

_PATIENCE = 12
"""The time for importing and making a target, as a multiple of the limit of a call."""


def serve(requests: IO[str], replies: IO[str], clear: Callable[[], None] = lambda: None) -> None:
    """Answer jobs until there are no more; after each job, clear up what it has left."""
    for line in requests:
        answer = _in_child(json.loads(line))
        clear()
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


def _in_child(job: Job) -> dict[str, Any]:
    """Do a job in a fork, which may become another program, and wait as long as it makes progress."""
    limits = Limits(seconds=job["hang"], first=job["hang"] * _PATIENCE, whole=job.get("whole"), busy=job.get("busy"))
    path, command = Path(job["journal"]), job.get("command")
    work = partial(answer_to, job) if command is None else partial(os.execv, command[0], command)
    with Journal(path, *job["layout"]) as journal:
        answer = in_fork(work, path.with_name("answer"), limits, journal.mark)
    return {"death": vars(answer)} if isinstance(answer, Death) else answer


def answer_to(job: Job) -> dict[str, Any]:
    """The outcome of a job in this process as data; a target that cannot be used gives an answer too."""
    journal = Journal(Path(job["journal"]))
    journal.stay()
    try:
        return perform(TargetSource(job["target"]), job, journal).as_json()
    except TargetError as error:
        return {"error": str(error)}


def main() -> None:
    """Answer jobs from standard input; the output of targets goes elsewhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
    end_with_parent()
    adopt_orphans()
    serve(sys.stdin, sys.stdout, end_children)
