"""The jobs on targets, and the places for them.  A job is a mapping of values that JSON has, and comes to an outcome.

In a process that may crash, `main` reads jobs from standard input, one on each line, and forks for each.  A fork makes
progress as long as its journal does.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from ctypes import c_size_t, c_void_p
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from syncedmem.model import FileAccessError

from ..engine.descendants import adopt_orphans, end_children, end_with_parent
from ..engine.fork import failure, in_fork
from ..engine.supervisor import Command, Death, Limits
from ..engine.violation import Violation
from .campaign import Stage, campaign
from .driver import Driver
from .finding import MOST_STEPS, EngineError, Finding, TargetError
from .journal import Journal
from .loops import items_from_json
from .mask import Mask
from .native_driver.building import built
from .outcome import Outcome, finding_of
from .recognition import TargetSource
from .shortening import SpentError, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .capabilities import Capabilities
    from .finding import HeapStep
    from .targets import Target

__all__ = ["WORKER", "Inline", "Isolated", "Job", "JobPlace", "main", "perform"]

_STIRRED, _LARGEST_STIRRED = 256, 4096
"""The most blocks that change a heap, and their largest size."""

_LOOKS, _LOOK_SECONDS, _LOOKED_AT = 32, 0.5, 64
"""How often a block of a size is allocated and freed to see how long that takes, and the seconds for it."""

Job = dict[str, Any]


def perform(source: TargetSource, job: Job, journal: Journal) -> Outcome:
    """Do a job.

    Parameters
    ----------
    source : TargetSource
    job : dict
        ``{"job": "describe"}``, or ``"look"``, ``"campaign"``, ``"program"``, ``"shorten"``, with ``"promises"``
        and the other values that the job needs.
    journal : Journal
        Records the steps.
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
                "handles_forks": source.handles_forks,
                "preload": source.preload,
            }
        )
    if job["job"] == "look":
        return Outcome(described={"pace": _pace(target)})
    return _JOBS[job["job"]](source, record, job, journal)


def _pace(target: Target) -> float:
    """The seconds of a call, as most take them; 0 if a call is refused, or fails."""
    times: list[float] = []
    with suppress(Exception):  # what fails will be found by a generator
        target.give(target.take(_LOOKED_AT), _LOOKED_AT)  # the first call may set up the allocator, and is not measured
        until = time.perf_counter() + _LOOK_SECONDS
        while len(times) < _LOOKS and time.perf_counter() < until:
            began = time.perf_counter()
            target.give(target.take(_LOOKED_AT), _LOOKED_AT)
            times.append((time.perf_counter() - began) / 2)
    return median(times) if times else 0.0


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
    stage, mask = Stage(**{name: job[name] for name in Stage._fields}), Mask.from_json(job["mask"])
    return campaign(source, record, journal, stage, seed=job["seed"], seconds=job["seconds"], mask=mask)


def _program(source: TargetSource, record: Capabilities, job: Job, journal: Journal) -> Outcome:
    """Take the steps of a program; if it is to be short, those of the shortest one that breaks a requirement.

    It ends between two steps if its seconds are over, and then has found nothing, or nothing shorter.
    """
    program, mask = items_from_json(job["program"]), Mask.from_json(job.get("mask"))
    until = time.perf_counter() + job.get("seconds", math.inf)
    broken: dict[tuple[HeapStep, ...], Violation] = {}
    notes: list[str] = []

    def fails(steps: tuple[HeapStep, ...]) -> bool:
        journal.begin()
        driver = Driver(source.open(), record, journal, mask=mask)
        driver.notes = notes
        try:
            driver.run(_taken_until(until, steps))
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
    return Outcome(None if wrong is None else Finding(wrong.requirement, wrong.message, program), notes=notes)


def _taken_until(until: float, steps: Iterable[HeapStep]) -> Iterator[HeapStep]:
    """The steps, as long as there is time for another one."""
    for step in steps:
        if time.perf_counter() > until:
            raise SpentError
        yield step


_JOBS = {"campaign": _campaign, "program": _program, "shorten": _program}


# --- the two places for jobs: this process, and a process that may crash

_FAILED = "the fuzzer itself has failed, which says nothing about the target"


class Inline:
    """The same process: for targets that are objects without a name, which another process could not look up."""

    def __init__(self, target: object) -> None:
        self._source = TargetSource(target)
        self.journal: Journal = Journal()

    def perform(self, job: Job) -> Outcome:
        """Do a job in this process."""
        try:
            return perform(self._source, job, self.journal)
        except TargetError:
            raise
        except Exception as error:
            raise EngineError(f"{_FAILED}: {failure(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()


class Isolated:
    """A worker process, which does each job in its own child process.

    Parameters
    ----------
    target : str
    hang : float
        The time limit for a call, in seconds.
    made : str or None
        What the target was built to, if it is not to be built anew.

    Attributes
    ----------
    target : str
        What the target was built to.
    hang : float
    preloaded : str
        The library that its processes load before all others; empty if there is none.
    deep : bool
        Whether a library is bound to its own functions first.
    """

    def __init__(
        self, target: str, hang: float, made: str | None = None, preloaded: str = "", *, deep: bool = False
    ) -> None:
        self.target: str = built(target) if made is None else made
        self.hang: float = hang
        self.preloaded: str = preloaded
        self.deep: bool = deep
        self._given = target
        self._folder = tempfile.TemporaryDirectory(prefix="syncedmem-")
        try:
            self.journal: Journal = Journal(Path(self._folder.name) / "journal")
        except FileAccessError:
            self._folder.cleanup()
            raise
        self.worker: Command = self._worker()

    def elsewhere(self) -> Isolated:
        """Another worker with the same target, as it was built: what it was built from may have changed."""
        return Isolated(self._given, self.hang, self.target, self.preloaded, deep=self.deep)

    def preload(self, library: str) -> None:
        """Load a library before all others in all processes from now on, or none if that is empty."""
        self.preloaded = library
        self._begin_again()

    def perform(self, job: Job) -> Outcome:
        """Do a job in the worker; if the target ends its process, the journal says what it has done until then."""
        start = time.perf_counter()
        answer = self.answer(job, self.journal)
        if "death" not in answer:
            return Outcome.from_json(answer)
        death = Death(**answer["death"])
        outcome = Outcome(finding_of(death, self.journal), death, seconds=time.perf_counter() - start)
        if job["job"] == "campaign":
            begun, operations = self.journal.entered()[0], self.journal.moved()[1]
            # The last round comes to its end.
            outcome.spoilt = begun < 0 or not 0 <= operations <= job["steps"] + MOST_STEPS
            outcome.rounds = max(begun - job["first_round"], 0) + 1
            outcome.operations = 0 if outcome.spoilt else operations
            outcome.last = self.journal.last_round()
        return outcome

    def answer(self, job: Job, journal: Journal) -> dict[str, Any]:
        """The outcome of a job with a journal as data, or the death of its process.

        If the worker is ended, another one does the job.

        Raises
        ------
        TargetError
            If the target cannot be used.
        EngineError
            If the fuzzer itself fails, or the worker is ended twice.
        """
        place = {"journal": str(journal.path), "layout": [journal.capacity, journal.threads]}
        line = json.dumps({"hang": self.hang, **job, "target": self.target, "deep": self.deep, **place})
        reply = self._reply(line)
        if isinstance(reply, Death):
            reply = self._reply(line)
        if isinstance(reply, Death):
            raise EngineError(
                f"the process that watches the target {reply.how}, twice in the same job; the target, or something "
                "outside, ends processes that are not its own"
            )
        answer: dict[str, Any] = json.loads(reply)
        if "error" in answer:
            error: str = answer["error"]
            library, named = (text.rpartition(":")[0] or text for text in (self.target, self._given))
            raise TargetError(error.replace(library, named))  # a source is what it was compiled to
        if "failed" in answer:
            raise EngineError(f"{_FAILED}: {answer['failed']}")
        return answer

    def _reply(self, line: str) -> str | Death:
        """What the worker replies; if it is ended, there is another one from now on."""
        reply = self.worker.ask(line)
        if isinstance(reply, Death):
            self._begin_again()
        return reply

    def _begin_again(self) -> None:
        """End the worker, and begin another one."""
        self.worker.end()
        with self.worker:
            self.worker = self._worker()

    def _worker(self) -> Command:
        return Command([sys.executable, "-P", "-c", WORKER], _environment(self.preloaded), group=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the worker, with all processes that the target has begun; after an error do not wait for its job."""
        try:
            if kind is not None:
                self.worker.end()
            with self.worker:
                pass
        finally:
            self.journal.close()
            self._folder.cleanup()


JobPlace = Inline | Isolated
"""Does jobs on one target, in a context; only if that is isolated it survives a crash or a hang, and can report it."""


# --- the worker: a process that does each job in a fork, so that it survives a crash of a target

WORKER = "from syncedmem.spec.fuzz.jobs import main; main()"

_PATIENCE = 12
"""The time for importing and making a target, as a multiple of the limit of a call."""


def _in_child(job: Job) -> dict[str, Any]:
    """Do a job in a fork, which may become another program, and wait as long as it makes progress."""
    limits = Limits(seconds=job["hang"], first=job["hang"] * _PATIENCE, whole=job.get("whole"), busy=job.get("busy"))
    path, command = Path(job["journal"]), job.get("command")
    work = partial(_answer_to, job) if command is None else partial(os.execv, command[0], command)
    with Journal(path, *job["layout"]) as journal:
        answer = in_fork(work, path.with_name("answer"), limits, journal.mark)
    return {"death": vars(answer)} if isinstance(answer, Death) else answer


def _answer_to(job: Job) -> dict[str, Any]:
    """The outcome of a job in this process as data; a target that cannot be used gives an answer too."""
    journal = Journal(Path(job["journal"]))
    journal.stay()
    try:
        return perform(TargetSource(job["target"], deep=job["deep"]), job, journal).as_json()
    except TargetError as error:
        return {"error": str(error)}


def main() -> None:
    """Answer jobs from standard input; the output of targets goes elsewhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
    end_with_parent()
    adopt_orphans()
    for line in sys.stdin:
        answer = _in_child(json.loads(line))
        end_children()  # that the job has left
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


_STATIC_TLS = "glibc.rtld.optional_static_tls"
_ROOM = 1 << 16


def _environment(preloaded: str) -> dict[str, str]:
    """The environment of this process, with room for libraries that must be loaded at the start, such as jemalloc.

    A library is preloaded after those of the user, of which one may have to be the first.  Sets have the same order in
    each run, so that the same seed finds the same.
    """
    tunables = [
        item for item in os.environ.get("GLIBC_TUNABLES", "").split(":") if item and not item.startswith(_STATIC_TLS)
    ]
    environment = {
        "PYTHONHASHSEED": "0",
        **os.environ,
        "GLIBC_TUNABLES": ":".join([*tunables, f"{_STATIC_TLS}={_ROOM}"]),
    }
    if preloaded:
        environment["LD_PRELOAD"] = ":".join(filter(None, [os.environ.get("LD_PRELOAD", ""), preloaded]))
    return environment
