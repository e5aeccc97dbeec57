"""The two places for jobs: this process, and a process that may crash."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from ..engine.supervisor import Command, Death
from .finding import TargetError
from .jobs import perform
from .journal import Journal
from .native_driver.building import built
from .recognition import Source

if TYPE_CHECKING:
    from .finding import Step
    from .jobs import Answer, Job

__all__ = ["Inline", "Isolated", "Place", "environment"]


class Place(Protocol):
    """Does jobs on one target."""

    protects: bool
    """Whether it survives a crash or a hang, and so can report it."""

    def perform(self, job: Job) -> Answer:
        """Do a job; an answer with ``"crash"`` or ``"hang"`` means that the target ended the process."""
        ...

    def steps(self) -> tuple[Step, ...]:
        """The steps of the last program, up to the one that ended the process."""
        ...


class Inline:
    """The same process: for targets that are objects without a name, which another process could not look up."""

    protects = False

    def __init__(self, target: object) -> None:
        self._source = Source(target)
        self._journal = Journal()

    def perform(self, job: Job) -> Answer:
        """Do a job in this process."""
        return perform(self._source, job, self._journal)

    def steps(self) -> tuple[Step, ...]:
        """The steps of the last program."""
        return self._journal.steps()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()


_STATIC_TLS = "glibc.rtld.optional_static_tls"
_ROOM = 1 << 16


def environment() -> dict[str, str]:
    """The environment of this process, with room for libraries that must be loaded at the start, such as jemalloc."""
    tunables = [it for it in os.environ.get("GLIBC_TUNABLES", "").split(":") if it and not it.startswith(_STATIC_TLS)]
    return {**os.environ, "GLIBC_TUNABLES": ":".join([*tunables, f"{_STATIC_TLS}={_ROOM}"])}


class Isolated:
    """A worker process, which does each job in its own child process.

    Parameters
    ----------
    target : str
        The name that the worker looks up.
    hang : float
        The seconds after which a call that has not returned counts as a hang.
    """

    protects = True

    def __init__(self, target: str, hang: float) -> None:
        self._target = built(target).target
        self._hang = hang
        self._folder = tempfile.TemporaryDirectory(prefix="syncedmem-")
        self._path = Path(self._folder.name) / "journal"
        self._journal = Journal(self._path)
        program = "from syncedmem.spec.fuzz.worker import main; main()"
        self.worker: Command = Command([sys.executable, "-c", program], environment())

    def perform(self, job: Job) -> Answer:
        """Do a job in the worker.

        Raises
        ------
        TargetError
            If the target cannot be used, or if the worker has ended.
        """
        line = json.dumps({"hang": self._hang, **job, "target": self._target, "journal": str(self._path)})
        reply = self.worker.ask(line)
        if isinstance(reply, Death):
            raise TargetError(f"the worker process {reply.how}")
        answer: Answer = json.loads(reply)
        if "error" in answer:
            raise TargetError(answer["error"])
        return answer

    def steps(self) -> tuple[Step, ...]:
        """The steps of the last program, up to the one that ended the process."""
        return self._journal.steps()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.worker:
            pass
        self._journal.close()
        self._folder.cleanup()
