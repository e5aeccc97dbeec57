"""The two places for jobs: this process, and a process that may crash."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from syncedmem.model import FileAccessError
from syncedmem.model.files import refused

from ..engine.fork import failure
from ..engine.supervisor import Command, Death
from .finding import MOST_STEPS, EngineError, TargetError
from .jobs import perform
from .journal import Journal
from .native_driver.building import built
from .outcome import Outcome, finding_of
from .recognition import TargetSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jobs import Job

__all__ = ["WORKER", "Inline", "Isolated", "JobPlace", "environment"]

_FAILED = "the fuzzer itself has failed, which says nothing about the target"


class Inline:
    """The same process: for targets that are objects without a name, which another process could not look up."""

    protects = False

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


_STATIC_TLS = "glibc.rtld.optional_static_tls"
_ROOM = 1 << 16


def environment() -> dict[str, str]:
    """The environment of this process, with room for libraries that must be loaded at the start, such as jemalloc."""
    tunables = [it for it in os.environ.get("GLIBC_TUNABLES", "").split(":") if it and not it.startswith(_STATIC_TLS)]
    return {**os.environ, "GLIBC_TUNABLES": ":".join([*tunables, f"{_STATIC_TLS}={_ROOM}"])}


class Isolated:
    """A worker process, which does each job in its own child process."""

    protects = True

    def __init__(self, target: str, hang: float) -> None:
        self._target = built(target)
        self._named = {self._target.rpartition(":")[0] or self._target: target.rpartition(":")[0] or target}
        self._hang = hang
        self._folder = tempfile.TemporaryDirectory(prefix="syncedmem-")
        try:
            self.journal: Journal = _on_the_disk(Path(self._folder.name) / "journal")
        except FileAccessError:
            self._folder.cleanup()
            raise
        self.worker: Command = _worker()

    def perform(self, job: Job) -> Outcome:
        """Do a job in the worker; if the target ends its process, the journal says what it has done until then.

        Raises
        ------
        TargetError, EngineError
            As `answer`.
        """
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
        line = json.dumps({"hang": self._hang, **job, "target": self._target, **place})
        reply = self.worker.ask(line)
        if isinstance(reply, Death):
            self._renew()
            reply = self.worker.ask(line)
        if isinstance(reply, Death):
            self._renew()
            raise EngineError(
                f"the process that watches the target {reply.how}, twice in the same job; the target, or something "
                "outside, ends processes that are not its own"
            )
        answer: dict[str, Any] = json.loads(reply)
        if "error" in answer:
            error: str = answer["error"]
            for library, named in self._named.items():  # a source is what it was compiled to
                error = error.replace(library, named)
            raise TargetError(error)
        if "failed" in answer:
            raise EngineError(f"{_FAILED}: {answer['failed']}")
        return answer

    def _renew(self) -> None:
        """Begin another worker."""
        self.worker.end()
        with self.worker:
            self.worker = _worker()

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


WORKER = "from syncedmem.spec.fuzz.jobs import main; main()"


JobPlace = Inline | Isolated
"""Does jobs on one target, in a context.  With `protects` it survives a crash or a hang, and so can report it."""


def _worker() -> Command:
    return Command([sys.executable, "-c", WORKER], environment(), group=True)


_allocate: Callable[[int, int, int], None] = getattr(
    os, "posix_fallocate", lambda file, _, size: os.ftruncate(file, size)
)


def _on_the_disk(path: Path) -> Journal:
    """A journal in a file that has room; without that, a full disk would end the process that writes to it."""
    try:
        with path.open("wb") as file:
            _allocate(file.fileno(), 0, Journal.size())
    except OSError as error:
        raise refused(str(path.parent), error) from error
    return Journal(path)
