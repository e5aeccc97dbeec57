"""A case of blobs while it runs: each step is done, seen and compared; and the shortest case that fails alike.

Enumerated tests, rules and generated tests are all cases, so every failure is shortened and shown in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.shrinking import shortest
from ..record.compare import Judge
from ..requirements import HARMLESS
from .cells import cell_of
from .claims import blob_requirements_for
from .compare import LEFT, BlobComparison
from .objects import ObjectBlobs
from .oracle import BlobStates, failing_calls, foresee
from .programs import ProgramBlobs
from .seen import BlobsSeen
from .steps import FORESEEN, BlobStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from ..record.compare import Difference
    from .cells import BlobCell
    from .steps import BlobCase

__all__ = ["BlobBench", "BlobTrial", "blob_bench", "run_case", "shortened"]


class BlobBench(NamedTuple):
    """What is tested, and by what.

    Attributes
    ----------
    subject : Subject
    performer : ObjectBlobs or ProgramBlobs
        Does steps, and says what is seen.
    comparison : BlobComparison
    """

    subject: Subject
    performer: ObjectBlobs | ProgramBlobs
    comparison: BlobComparison


def blob_bench(subject: Subject, excuses: Callable[[str], bool] = lambda _: False) -> BlobBench:
    """A subject, judged by every requirement that it can be judged by, unless that is excepted."""
    judge = Judge(
        blob_requirements_for(subject),
        level=subject.level,
        excused=lambda requirement: requirement in HARMLESS and excuses(requirement),
    )
    port = subject.program
    performer = ObjectBlobs(subject) if port is None else ProgramBlobs(port, has_device=subject.device is not None)
    return BlobBench(subject, performer, BlobComparison(judge, safe=subject.profile == "safe"))


class BlobTrial:
    """A case that is under way.

    Attributes
    ----------
    states : BlobStates
        As it must be now.
    done : list of BlobStep
    visited : list of BlobCell
        The cells that were taken, for coverage.
    steps : int
        The number of calls that were compared with the oracle.
    """

    def __init__(self, bench: BlobBench) -> None:
        self.states: BlobStates = BlobStates(bench.subject.device is not None)
        self.done: list[BlobStep] = []
        self.visited: list[BlobCell] = []
        self.steps: int = 0
        self._bench = bench
        self._seen = BlobsSeen()
        bench.performer.begin()

    def take(self, step: BlobStep) -> None:
        """Do a step, and compare."""
        self.done.append(step)
        self.steps += step.expected is FORESEEN and step.call not in ("new", "mode", "drop")
        step = numbered(self.states, step, self.steps)
        if step.fail and step.fail <= failing_calls(self.states, step):
            self._take_failing(step)
            return
        step, before = step._replace(fail=0) if step.fail else step, self.states
        due = foresee(before, step)
        if step.call == "mode":
            self.states = due.after
            return
        if step.expected is FORESEEN and (cell := cell_of(before, step)):
            self.visited.append(cell)
        looks = not (step.is_valued or step.call == "gpu_shape")
        seen = self._bench.performer.perform(step, before.mode, due.after.blobs if looks else ())
        difference = self._bench.comparison.first(step, before, due, seen, self._seen)
        if difference is not None and difference.requirement == LEFT:  # perhaps only until the garbage is collected
            seen.called = seen.called._replace(live=self._bench.performer.collected())
            difference = self._bench.comparison.first(step, before, due, seen, self._seen)
        self._raise(difference)
        self.states, self._seen = due.after, seen if looks else replace(self._seen, called=seen.called)

    def finish(self) -> None:
        """Drop all blobs, and check that nothing is left."""
        if self.states.blobs:
            self.take(BlobStep(0, "drop"))

    def _take_failing(self, step: BlobStep) -> None:
        """Make a call of which an allocator call fails, and then make it again; the numbers must be right."""
        performer, compared = self._bench.performer, self._bench.comparison.after_failure
        after, mode = foresee(self.states, step).after, self.states.mode
        seen = performer.perform(step, mode, self.states.blobs)
        if seen.called.blown:
            self._raise(compared(self.states, seen, failed=True))
            seen = performer.perform(step._replace(fail=0), mode, self.states.blobs)
        self._raise(compared(after, seen, failed=False))
        self.states, self._seen = after, seen

    def _raise(self, difference: Difference | None) -> None:
        if difference is not None:
            raise self._bench.performer.violation(*difference)


def numbered(states: BlobStates, step: BlobStep, number: int) -> BlobStep:
    """A step with the numbers that it writes."""
    blob = states.blobs.get(step.blob)
    return step if blob is None else step._replace(number=number, elements=blob.count)


def run_case(bench: BlobBench, case: BlobCase, made: list[BlobTrial] | None = None) -> BlobTrial:
    """Run a case, drop all blobs, and check that nothing is left.

    Parameters
    ----------
    bench : BlobBench
    case : tuple of BlobStep
    made : list, optional
        It gets the trial that has passed.
    """
    trial = BlobTrial(bench)
    for step in case:
        trial.take(step)
    trial.finish()
    if made is not None:
        made.append(trial)
    return trial


# --- shortening


def shortened(bench: BlobBench, case: BlobCase, violation: Violation) -> Violation:
    """The violation of the shortest case that breaks the same requirement.

    Blobs keep their numbers.  A step with an expectation of its own is right only where it stands: a shorter case
    counts only if each of them has the context that it has in the whole one.
    """
    has_device = bench.subject.device is not None
    contexts = _contexts(case, has_device=has_device)

    def run(steps: BlobCase) -> None:
        if _is_complete(steps) and _contexts(steps, has_device=has_device) <= contexts:
            run_case(bench, steps)

    def simpler(step: BlobStep) -> tuple[BlobStep, ...]:
        return (step._replace(fail=0),) if step.fail else ()

    return shortest(case, violation, run, simpler=simpler, program=bench.subject.program)


def _is_complete(case: BlobCase) -> bool:
    """Whether each step has the blobs that it uses."""
    there = set[int]()
    for step in case:
        if not step.blobs <= there:
            return False
        if step.call == "new":
            there.add(step.blob)
    return True


def _contexts(case: BlobCase, *, has_device: bool) -> set[str]:
    """The steps with expectations of their own, each with its context: its blobs, and what was written into them."""
    if all(step.expected is FORESEEN for step in case):
        return set()
    contexts, written = set[str](), dict[int, Any]()
    states = BlobStates(has_device)
    for number, step in enumerate(case):
        if step.expected is not FORESEEN:
            known = [written.get(n) for n in sorted(step.blobs)]
            contexts.add(repr((step, states.dtype, states.outline(step.blobs), known)))
        else:
            states = foresee(states, numbered(states, step, number)).after
        if step.values:
            written[step.blob] = (written.get(step.blob), step.values)
    return contexts
