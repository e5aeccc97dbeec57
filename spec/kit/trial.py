"""A case while it runs: each step is done, seen and compared; and the shortest case that fails alike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..engine.report import Tolerance
from ..engine.shrinking import shortest
from ..engine.violation import Violation
from ..memory.claims import requirements_for
from ..memory.policy import absent_of, without_mute
from ..record.compare import Comparison, Judge
from ..record.steps import Step
from ..record.world import REFUSED_BY_US, World
from ..requirements import HARMLESS, REQUIREMENTS
from ..subjects.objects import ObjectMemories
from ..subjects.programs import ProgramMemories

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.model import Input, State

    from ..engine.subject import Subject
    from ..record.compare import Difference
    from ..record.observation import Observation
    from ..record.steps import Case
    from .shared import Shared

    Performer = ObjectMemories | ProgramMemories

__all__ = ["Bench", "Trial", "bench_of", "comparison_of", "performer_of", "plainer", "run_case", "shortened"]


class Bench(NamedTuple):
    """A subject, and what it is judged by.

    Attributes
    ----------
    subject : Subject
    performer : ObjectMemories or ProgramMemories
        Does steps, and says what is seen.
    world : World
        Without memories.
    comparison : Comparison
    judged : tuple of str
        The requirements by which is judged.
    shared : Shared or None
        What is also found out about the profile safe.
    """

    subject: Subject
    performer: Performer
    world: World
    comparison: Comparison
    judged: tuple[str, ...]
    shared: Shared | None = None

    def begin(self) -> None:
        """Let a new case begin."""
        self.performer.begin()
        self.comparison.begin()

    def first(self, step: Step, settings: Mapping[str, str], due: Observation) -> Difference | None:
        """Do a step, and return the first difference from what must be seen."""
        difference = self.comparison.after(step, due, self.performer.perform(step, settings, due.sides, due.buffers))
        if self.shared is not None:
            for name, message in self.comparison.noted():
                self.shared.found.setdefault(name, self.performer.violation(name, message))
        return difference


def performer_of(subject: Subject) -> Performer:
    """What does steps on the memories of a subject."""
    return ObjectMemories(subject) if subject.program is None else ProgramMemories(subject.program)


def bench_of(subject: Subject, tolerance: Tolerance | None = None, shared: Shared | None = None) -> Bench:
    """A subject, judged by every requirement that it can be judged by; of those of safe, what is broken is shared."""
    machine, judged = without_mute(subject.machine, subject.policy), requirements_for(subject)
    world = World.of(machine, subject.policy, safe=subject.profile == "safe")
    performer, tolerated = performer_of(subject), tolerance or Tolerance()

    def excused(requirement: str) -> bool:
        return requirement in HARMLESS and tolerated.excuses(requirement)

    beyond = () if shared is None or world.safe else set(requirements_for(replace(subject, profile="safe"))) - {*judged}
    judge = Judge(judged, level=subject.level, excused=excused, beyond=beyond)
    comparison = comparison_of(subject, judge, performer, safe=world.safe)
    return Bench(subject, performer, world, comparison, judged, None if world.safe else shared)


def comparison_of(subject: Subject, judge: Judge, performer: Performer, *, safe: bool) -> Comparison:
    """The comparison for the memories of a subject."""
    hosts = {side for side in subject.machine.sides if subject.is_host(side)}
    alone = bool(absent_of(subject))
    return Comparison(subject.machine, judge, safe=safe, hosts=hosts, alone=alone, defers=performer.defers)


@dataclass
class Trial:
    """A case that is under way.

    Attributes
    ----------
    bench : Bench
    world : World
        As it must be now.
    done : list of Step
    refused : set of int
        The numbers of the steps that handed in what must not be adopted: what is wrong afterwards may be their fault.
    visited : list of (State, Input)
        The transitions of the machine that were taken, for coverage.
    """

    bench: Bench
    world: World = field(init=False)
    done: list[Step] = field(default_factory=list[Step], init=False)
    refused: set[int] = field(default_factory=set[int], init=False)
    visited: list[tuple[State, Input]] = field(default_factory=list["tuple[State, Input]"], init=False)
    _latest: dict[int, Step] = field(default_factory=dict[int, Step], init=False)

    def __post_init__(self) -> None:
        self.world = self.bench.world
        self.bench.begin()

    @property
    def steps(self) -> int:
        """The number of inputs of the machine that were taken."""
        return len(self.visited)

    def take(self, step: Step) -> bool:
        """Do a step, and compare; return whether it means anything here."""
        step = self._meant(step)
        entry, found = self.world.input(step), self.world.after(step)
        if found is None:
            return False
        due, after = found
        if entry is not None and step.memory in self.world.memories:
            self.visited.append((self.world.state(step.memory), entry))
        self.done.append(step)
        if step.how == "other":
            step, due, after, difference = self._stumbled(step, due, after)
        else:
            difference = self.bench.first(step, self.world.settings, due)
        if difference is not None:
            name, message = difference
            raise self.bench.performer.violation(*self._blamed(step, name, message))
        self.world = after
        if step.does == "set":
            return True
        if due.refused in REFUSED_BY_US:
            self.refused.add(len(self.done) - 1)
        if step.does == "call":
            self._latest[step.memory] = step
        return True

    def _stumbled(
        self, step: Step, failed: Observation, after: World
    ) -> tuple[Step, Observation, World, Difference | None]:
        """Do a step of which a call fails that does nothing to memory, if there are so many; only who does it knows."""
        plain = step._replace(fail=0, how="")
        done = self.world.after(plain) or (failed, after)
        buffers = {*failed.buffers, *done[0].buffers}
        seen = self.bench.performer.perform(step, self.world.settings, self.world.machine.sides, buffers)
        if not seen.blown:
            step, (failed, after) = plain, done
        return step, failed, after, self.bench.comparison.after(step, failed, seen)

    def _meant(self, step: Step) -> Step:
        """A step whose action can fail: in this state the call may have fewer, or be refused."""
        if step.does != "call" or not step.fail or step.memory not in self.world.memories:
            return step
        expected = self.world.expected(step)
        fails = expected is not None and not expected.refused
        fails = fails and (step.how == "other" or step.fail <= len(expected.calls if expected else ()))
        return step if fails else step._replace(fail=0, how="")

    def _ends(self, step: Step) -> bool:
        call = self.world.machine.calls.get(step.name)
        return call is not None and call.ends

    def _blamed(self, step: Step, requirement: str, message: str) -> tuple[str, str]:
        """What is wrong with a call that is made again, after it failed or ended the memory, is the fault of the first.

        So it has the requirement about that.
        """
        latest = self._latest.get(step.memory)
        again = latest is not None and step.does == "call" and latest.name == step.name
        if latest is not None and latest.fail and latest.how != "other" and step.does == "call" and not again:
            return requirement, f"after {latest.name}, of which an action failed: {message}"
        if latest is None or not again or REQUIREMENTS[requirement].kind == "port" or requirement in _OF_PUSHES:
            return requirement, message
        if latest.how == "other" or step.fail:
            return requirement, message
        name = "R34-works-after-failure" if latest.fail else "R49-release-twice" if self._ends(step) else ""
        return (name, f"afterwards: {requirement}: {message}") if name in self.bench.judged else (requirement, message)


_UNCHANGED = "R32-strong-guarantee"
_OF_PUSHES = frozenset({"R41-in-flight-not-written", "R42-in-flight-not-freed", "R43-in-flight-read"})
"""Whether a memory waits for its pushes has nothing to do with a failure before."""


def run_case(bench: Bench, case: Case, made: list[Trial] | None = None) -> Trial:
    """Run a case.

    Parameters
    ----------
    bench : Bench
    case : tuple of Step
    made : list, optional
        It gets the trial before the first step, for a caller who wants to know what was taken before a violation.
    """
    trial = Trial(bench)
    if made is not None:
        made.append(trial)
    try:
        for step in case:
            trial.take(step)
    except Violation as violation:
        raise _of_refused(bench, trial, violation) from None
    return trial


def _of_refused(bench: Bench, trial: Trial, violation: Violation) -> Violation:
    """The violation, as the fault of steps that were refused, if without them everything is as it must be."""
    suspects = trial.refused - {len(trial.done) - 1}
    if not suspects or _UNCHANGED not in bench.judged or REQUIREMENTS[violation.requirement].kind == "port":
        return violation
    other = Trial(bench)
    try:
        for number, step in enumerate(trial.done):
            if number not in suspects:
                other.take(step)
    except Violation:
        return violation
    message = f"after calls that were refused: {violation.requirement}: {violation.message}"
    return Violation(_UNCHANGED, message, violation.statements)


def shortened(bench: Bench, case: Case, violation: Violation) -> Violation:
    """The violation of the shortest case that breaks the same requirement."""
    return shortest(case, violation, partial(run_case, bench), simpler=plainer, program=bench.subject.program)


def plainer(step: Step) -> list[Step]:
    """Simpler steps to try in place of one, the simplest first."""
    if step.does == "new":
        if type(step.size) is not int:
            return []
        below = {1 << k for k in range(step.size.bit_length())} | {step.size - (step.size >> k) for k in range(1, 24)}
        return [step._replace(size=size) for size in sorted(below) if 0 < size < step.size]
    steps = [] if step.quiet else [step._replace(quiet=True)]
    if step.does == "call":
        usual = step._replace(write=None, fail=0, how="", quiet=True)
        steps = [usual, usual._replace(fail=step.fail, how=step.how), *steps]
        if step.argument is not None and step.argument.longer > 0:
            steps.append(step._replace(argument=step.argument._replace(longer=0)))
    return [simpler for simpler in steps if simpler != step]
