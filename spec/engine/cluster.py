"""Seeds of a run on many processes and machines, over Dask.

Dask shares the seeds out, and gives those of a lost worker to others.  Here is only what it does not do: a seed that
Dask gives up is taken again, and a seed that ran twice counts once.  Each seed runs in a process of its own
(`seeds.run_seed`), so a target that crashes or hangs costs no worker, and on one machine the workers of Dask can be
threads of this process.

Dask is optional: only this module imports it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module, metadata
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from syncedmem.model import InvalidArgumentError, MissingPackageError

from .seeds import SeedLostError, SeedResult, end_running, run_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

__all__ = ["ADDRESS_SECONDS", "TRIES", "WANTED", "WINDOW", "Machine", "Spread", "here", "take_seeds"]

TRIES = 5
"""So often a seed is taken whose process or worker ends without a result."""

ADDRESS_SECONDS: float = 5
"""The time that a scheduler has to answer, and to have a worker."""

WINDOW = 1_000
"""So many seeds the scheduler knows at a time: enough for the workers, and it need not hold them all."""

_SHARE = 0.1
"""The part of the time that reports until now may take."""

WANTED: str = metadata.version("syncedmem")
"""The version that workers must have, because they unpickle what this process pickles."""


@dataclass
class Machine:
    """What one machine has done.

    Attributes
    ----------
    seeds, operations : int
    workers : set of (int, int)
        The threads that waited for a seed, each for one at a time.
    """

    seeds: int = 0
    operations: int = 0
    workers: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])


@dataclass
class Spread:
    """What has become of the seeds of a run, as far as is known.

    Attributes
    ----------
    seeds : sequence of int
        All seeds of the run.
    results : dict of int to SeedResult
        The results that have come, by seed; each seed counts once.
    lost : dict of int to str
        The seeds that will have no result, with the reason.
    again : int
        How often a seed was taken again, because its worker or its process was lost.
    machines : dict of str to Machine
        By their names.
    refused : str
        Why a seed could not run, so that none can; empty if there is no such reason.
    answered : int
        How many seeds have an answer.
    """

    seeds: Sequence[int]
    results: dict[int, SeedResult] = field(default_factory=dict[int, SeedResult])
    lost: dict[int, str] = field(default_factory=dict[int, str])
    again: int = 0
    machines: dict[str, Machine] = field(default_factory=dict[str, Machine])
    refused: str = ""
    answered: int = 0

    def add(self, result: SeedResult) -> bool:
        """Add a result; return whether it is new."""
        if result.seed in self.results:
            return False
        self.results[result.seed] = result
        machine = self.machines.setdefault(result.machine, Machine())
        machine.seeds += 1
        machine.operations += result.operations
        machine.workers.add(result.worker)
        if result.kind == "refused":
            self.refused = str(result.answer)
        elif result.kind == "failed":
            self.lost[result.seed] = str(result.answer)
        else:
            self.answered += 1
        return True

    @property
    def answers(self) -> list[Any]:
        """The answers in the order of the seeds, whatever the order in which they came."""
        return [self.results[it].answer for it in sorted(self.results) if self.results[it].kind == "answer"]

    @property
    def failures(self) -> list[str]:
        """Why seeds have no answer, in a line for each reason; nothing of it says something about the target."""
        alike: dict[str, list[int]] = {}
        for seed, why in sorted(self.lost.items()):
            alike.setdefault(why, []).append(seed)
        return [
            f"seed {seeds[0]} has no result: {why}"
            if len(seeds) == 1
            else f"{len(seeds):,} seeds, {seeds[0]} to {seeds[-1]}, have no result: {why}"
            for why, seeds in alike.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """The numbers as data."""
        return {
            "seeds": [*self.seeds],
            "done": self.answered,
            "again": self.again,
            "lost": len(self.lost),
            "without_result": self.failures,
            "line": self.line,
            "machines": [
                {"machine": name, "processes": len(it.workers), "seeds": it.seeds, "operations": it.operations}
                for name, it in sorted(self.machines.items())
            ],
        }

    @property
    def line(self) -> str:
        """The numbers in a line."""
        processes = sum(len(it.workers) for it in self.machines.values())
        operations = sum(it.operations for it in self.machines.values())
        again = f"; {_counted(self.again, 'seed')} taken again" if self.again else ""
        return (
            f"{self.answered:,} of {_counted(len(self.seeds), 'seed')} on "
            f"{_counted(len(self.machines), 'machine')}, {processes:,} at a time, {operations:,} operations{again}"
        )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def take_seeds(  # noqa: PLR0913 -- options
    function: str,
    options: object,
    seeds: Sequence[int],
    *,
    jobs: int,
    scheduler: str | None = None,
    on_result: Callable[[Spread], object] = lambda _: None,
    on_answers: Callable[[Spread], object] = lambda _: None,
) -> Spread:
    """Run all seeds, each in a process of its own.

    Parameters
    ----------
    function, options
        See `seeds.run_seed`.
    seeds : sequence of int
    jobs : int
        The number of processes at a time, on this machine.
    scheduler : str or None
        The address of a Dask scheduler, whose workers run the seeds; they must have the same version of syncedmem.
    on_result : callable
        Called after each result.
    on_answers : callable
        Called when there are new answers, but not after each, so that it takes a small part of the time; and at the
        end, even if that is an interrupt.

    Returns
    -------
    Spread
        If a seed was refused, those that had not run then are not in it.

    Raises
    ------
    InvalidArgumentError
        If the scheduler does not answer, or has no worker that can run a seed.
    MissingPackageError
    """
    library = _library()
    spread, seldom = Spread(seeds), _seldom(on_answers)

    def told() -> None:
        on_result(spread)
        if spread.answered:
            seldom(spread)

    with _client(library, jobs, scheduler) as client:
        try:
            _collect(library, client, (function, options), spread, told)
        finally:
            end_running()  # those that nobody waits for any more
            if spread.answered:
                on_answers(spread)
    return spread


def _seldom(call: Callable[[Spread], object]) -> Callable[[Spread], None]:
    """The same call, which does nothing as long as it would take more than its share of the time."""
    until = 0.0

    def called(spread: Spread) -> None:
        nonlocal until
        start = time.monotonic()
        if start >= until:
            call(spread)
            end = time.monotonic()
            until = end + (end - start) / _SHARE

    return called


def _library() -> Any:
    try:
        return import_module("distributed")
    except ModuleNotFoundError as error:
        raise MissingPackageError("running several seeds at a time", "distributed", "cluster") from error


def _collect(library: Any, client: Any, job: tuple[str, object], spread: Spread, told: Callable[[], None]) -> None:
    run, taken, futures = secrets.token_hex(8), Counter[int](), dict[Any, int]()
    waiting, completed = iter(spread.seeds), library.as_completed(loop=client.loop)

    def submit(seed: int) -> None:
        taken[seed] += 1
        future = client.submit(run_seed, *job, seed, key=(f"syncedmem-{run}", seed, taken[seed]), pure=False)
        futures[future] = seed
        completed.add(future)

    try:
        for seed in islice(waiting, WINDOW):
            submit(seed)
        for future in completed:
            seed, no_scheduler = futures.pop(future), future.cancelled()
            if no_scheduler:
                spread.lost |= dict.fromkeys((seed, *futures.values(), *waiting), "the scheduler was lost")
            elif (wrong := future.exception()) is None:
                spread.add(future.result())
            elif isinstance(wrong, (library.KilledWorker, SeedLostError)) and taken[seed] < TRIES:
                spread.again += 1
                submit(seed)
                continue
            else:
                spread.lost[seed] = " ".join(str(wrong).split())
            told()
            if spread.refused or no_scheduler:
                break
            for another in islice(waiting, 1):
                submit(another)
    finally:
        client.cancel([*futures])


@contextmanager
def _client(library: Any, jobs: int, scheduler: str | None) -> Generator[Any]:
    """A client of a scheduler, or of a new cluster on this machine."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost and taken again is in the report
    if scheduler is not None:
        with _connected(library, scheduler) as client:
            yield client
        return
    with (
        TemporaryDirectory(prefix="syncedmem-") as folder,
        library.LocalCluster(
            n_workers=1,
            threads_per_worker=jobs,
            processes=False,
            dashboard_address="127.0.0.1:0",  # any port: that of Dask may be in use
            silence_logs=logging.CRITICAL,
            local_directory=folder,
        ) as cluster,
        library.Client(cluster) as client,
    ):
        yield client


@contextmanager
def _connected(library: Any, scheduler: str) -> Generator[Any]:
    """A client of a scheduler that has a worker, all of our version.

    Raises
    ------
    InvalidArgumentError
    """
    try:
        asyncio.run(_answers(library, scheduler))  # a client that cannot connect would try again when Python ends
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        wanted = "the address of a Dask scheduler that answers, such as tcp://HOST:8786"
        raise InvalidArgumentError("scheduler", scheduler, wanted) from error
    with library.Client(scheduler, timeout=ADDRESS_SECONDS, set_as_default=False) as client:
        try:
            client.wait_for_workers(1, timeout=ADDRESS_SECONDS)
            versions = set(client.run(here).values())
        except TimeoutError:
            raise InvalidArgumentError("scheduler", scheduler, "a Dask scheduler that has a worker") from None
        except Exception as error:  # Dask has its own ones for what workers raise
            wanted = f"a Dask scheduler whose workers have syncedmem {WANTED} ({error})"
            raise InvalidArgumentError("scheduler", scheduler, wanted) from error
        if others := versions - {WANTED}:
            wanted = f"a Dask scheduler whose workers have syncedmem {WANTED}, not {', '.join(sorted(others))}"
            raise InvalidArgumentError("scheduler", scheduler, wanted)
        yield client


async def _answers(library: Any, scheduler: str) -> None:
    comm = await library.core.connect(scheduler, timeout=ADDRESS_SECONDS)
    await comm.close()


def here() -> str:
    """The version of syncedmem in this process."""
    return metadata.version("syncedmem")
