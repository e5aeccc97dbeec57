"""The fast generator: seeded rounds of steps, from one thread or from several, and the plan of its processes.

Some bugs show only in the first calls of a process, others only in an old one.  So a run begins many processes, and one
of them grows old.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.violation import Violation
from .driver import Driver
from .finding import Finding
from .mask import NO_MASK, Mask
from .outcome import Outcome
from .rounds import CHUNK, Round, take_round
from .shadow_heap import Intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .capabilities import Capabilities
    from .journal import Journal
    from .recognition import TargetSource
    from .rounds import Kind

__all__ = ["Stage", "campaign", "stages"]

_YOUNG_PROCESSES = 16
_SHORTEST_LIFE = 1 << 11
"""The fewest steps of a process; a short run begins fewer processes."""
_ROUNDS_OF_A_STAGE = 1 << 16


class Stage(NamedTuple):
    """The rounds that one process takes; it ages if they all have the same target."""

    steps: int
    kind: Kind = "drawn"
    first_round: int = 0
    ages: bool = False
    threads: int = 1
    rounds: int = sys.maxsize


def stages(steps: int) -> list[Stage]:
    """The stages of a run: fixed rounds, sixteen young processes, an old one with half of the steps, and late rounds.

    A process is young in its own process only if the target has a name; an object stays in this process.
    """
    young = max(1, min(_YOUNG_PROCESSES, steps // 2 // _SHORTEST_LIFE))
    each = -(-steps // 2 // young)
    return [
        Stage(steps, "fixed"),
        *(Stage(each, first_round=(1 + index) * _ROUNDS_OF_A_STAGE) for index in range(young)),
        Stage(-(-steps // 2), ages=True),
        Stage(steps, "late"),
    ]


def campaign(  # noqa: PLR0913 -- the options of a campaign
    source: TargetSource,
    capabilities: Capabilities,
    journal: Journal,
    stage: Stage,
    *,
    seed: int,
    seconds: float,
    mask: Mask = NO_MASK,
) -> Outcome:
    """Take the random steps of a stage until something is wrong, or its steps or rounds or the seconds are used up.

    Afterwards the journal has the steps of the last round, or of all rounds if these have the same target: if it ages,
    or if the source makes no new ones.  The same numbers take the same steps.

    Several threads take drawn steps on one target, and nobody can take the same again: so they leave no program.
    """
    if stage.threads > 1:
        return _threaded(source, capabilities, journal, stage, seed=seed, seconds=seconds, mask=mask)
    outcome, wrong, target, access = Outcome(), None, None, None
    fresh = source.makes_fresh and not stage.ages
    deadline = time.perf_counter() + seconds
    # A round is always taken to its end, so that the same seed takes the same steps.
    for number in range(stage.first_round, stage.first_round + stage.rounds):
        left = stage.steps - outcome.operations
        if wrong is not None or left <= 0 or time.perf_counter() >= deadline:
            break
        if target is None or fresh or journal.full:
            target = source.open() if target is None or fresh else target
            journal.begin()
        begun = journal.length
        journal.enter(number, outcome.operations)
        # A target that ages is closed after its last round.
        opened = replace(target, owned=fresh and target.owned)
        driver = Driver(opened, capabilities, journal, access=access, mask=mask)
        start, spoilt = time.perf_counter(), False
        try:
            if not take_round(driver, stage.kind, number, seed, left, deadline):
                break
        except Violation as violation:
            wrong = _unless_left_out(violation, mask)
            spoilt = wrong is None and source.makes_fresh  # what is wrong with it would show again
        _add(outcome, driver, begun, time.perf_counter() - start)
        access = driver.oracle.host_access
        target = None if spoilt else target
    if target is not None and wrong is None and not fresh:
        wrong = _closed(Driver(target, capabilities, journal, mask=mask), mask)
    outcome.last = journal.last_round()
    if wrong is not None:
        outcome.finding = Finding(wrong.requirement, wrong.message, journal.steps())
    return outcome


def _add(outcome: Outcome, driver: Driver, start: int, seconds: float) -> None:
    """Add what a driver has done, whose steps begin there in its journal."""
    outcome.operations += driver.journal.length - start
    outcome.seconds += seconds
    outcome.rounds += 1
    outcome.checked += driver.oracle.looked_at()
    outcome.notes += driver.notes
    if driver.oracle.contents_reason is not None:
        outcome.unread = driver.oracle.contents_reason


def _closed(driver: Driver, mask: Mask) -> Violation | None:
    """Close a target after its last round; return the violation, or None."""
    try:
        driver.close()
    except Violation as wrong:
        return _unless_left_out(wrong, mask)
    return None


def _unless_left_out(wrong: Violation, mask: Mask) -> Violation | None:
    return None if wrong.requirement in mask.unjudged else wrong


def _threaded(  # noqa: PLR0913 -- as campaign
    source: TargetSource,
    capabilities: Capabilities,
    journal: Journal,
    stage: Stage,
    *,
    seed: int,
    seconds: float,
    mask: Mask,
) -> Outcome:
    """Run the fast generator in several threads on one target, with one shadow heap of addresses."""
    # A block that one thread frees twice may belong to another thread by then, so this cannot be judged.
    capabilities = replace(capabilities, double_free="undefined")
    shared, target, raised = Intervals(), source.open(), list[BaseException]()
    deadline = time.perf_counter() + seconds
    journal.begin()
    drivers = [Driver(target, capabilities, None if i else journal, shared, mask=mask) for i in range(stage.threads)]
    start = threading.Barrier(stage.threads)

    def work(index: int) -> None:
        rng = random.Random(f"{seed}:thread {index}")  # noqa: S311 -- replayable
        try:
            start.wait()
            for _ in _chunks(stage.steps // stage.threads, deadline, raised):
                Round(drivers[index], rng, drivers[index].journal.length << 4 | index << 28).take(CHUNK)
                for number in list(drivers[index].blocks):
                    drivers[index].free(number)
        except BaseException as error:  # noqa: BLE001 -- it would end this thread alone, and nobody would know
            if not isinstance(error, Violation) or _unless_left_out(error, mask):
                raised.append(error)

    _run_together(work, stage.threads)
    wrong = [error for error in raised if isinstance(error, Violation)]
    if raised and not wrong:
        raise raised[0]
    if not wrong and (violation := _closed(drivers[0], mask)):
        wrong.append(violation)
    outcome = Outcome()
    for driver in drivers:
        _add(outcome, driver, 0, 0.0)
    outcome.seconds = time.perf_counter() - deadline + seconds
    outcome.checked["A20-threads"] = outcome.operations
    if wrong:
        outcome.finding = Finding(wrong[0].requirement, wrong[0].message, ())
    return outcome


def _chunks(steps: int, deadline: float, wrong: list[BaseException]) -> Iterator[int]:
    for done in range(0, steps, CHUNK):
        if wrong or time.perf_counter() > deadline:
            return
        yield done


def _run_together(work: Callable[[int], Any], threads: int) -> None:
    """Run a function in several threads, which switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        running = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
