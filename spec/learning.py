"""Learning: the machine of a port is found out from outside, by calls alone, while each call is judged as in a kit.

AALpy has the algorithm.  An answer is the record's observation, but of the bytes of a view only whether they are the
newest, zeros or others, so that there are finitely many.  What was learned is drawn like any other machine.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.model import Input, InvalidArgumentError, Machine, MissingPackageError, Row, space
from syncedmem.model.diagrams.diagram import painted
from syncedmem.model.diagrams.drawing import Detail, drawing_of
from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences, complete_words, counter_sequences, minimise, tour

from .cases.writing import SIZE, Writer
from .engine.call_log import action_of
from .engine.violation import Violation
from .kit.trial import bench_of
from .ports.makers import Last, asked_apart, died
from .ports.protocol import PortError
from .ports.targets import MakerTarget, subject_of
from .record.observation import NOTHING, Observation
from .record.steps import content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .engine.subject import Subject
    from .engine.supervisor import Limits, Progress, Reporter
    from .ports.targets import ProgramTarget
    from .record.steps import Step
    from .requirements import Level

__all__ = ["LearnReport", "LearnWanted", "learn", "learn_subject"]

Word = tuple[Input, ...]
Answer = tuple[str, ...]
Rows = dict[Any, dict[Input, tuple[Answer, Any]]]
"""A machine: for each state and input the answer and the next state; the first state is that of a new memory."""

MOST_EXTRA = 3
"""Tests for more states than that beyond those that were learned would not end."""
_LONG, _TIMES, _SHOWN, _HANGS = 40, 4, 8, 3
_PINNED, _DEAD = " (page-locked)", "the port ended"
_GONE: Answer = ("the memory is gone",)


class LearnWanted(NamedTuple):
    """How a port is learned.

    Attributes
    ----------
    level, edition : str
        What is looked at: L0, L1 or L2, and the edition of the model; if empty, those that the port itself names.
    extra : int
        The tests are complete for ports with at most so many states more than are learned.
    steps, seed : int
        The number of random inputs after these tests, and their seed.
    """

    level: str = ""
    edition: str = ""
    extra: int = 0
    steps: int = 0
    seed: int = 0


@dataclass(frozen=True)
class LearnReport:
    """The result of learning a port.

    Attributes
    ----------
    name, edition, level : str
        The port, its declared machine, and what was looked at.
    states, right : int
        The number of states that were learned; the machine is right if the port has at most `right` states.
    calls, cells, judged : int
        How many calls were made; how many cells are declared, and were reached without a difference before.
    stopped : str
        Why no machine was learned; empty if one was.
    findings : mapping of str to Violation
        By their cells, each a call in a configuration, with the shortest program to it; the shortest programs first.
    picture : str
        The learned machine as SVG; what breaks a requirement has a ✗.
    """

    name: str
    edition: str
    level: str
    states: int = 0
    right: int = 0
    calls: int = 0
    cells: int = 0
    judged: int = 0
    stopped: str = ""
    findings: Mapping[str, Violation] = field(default_factory=dict[str, Violation])
    picture: str = ""

    @property
    def passed(self) -> bool:
        """Whether the machine was learned, and is the declared one."""
        return not self.stopped and not self.findings

    @property
    def line(self) -> str:
        """The result in one line."""
        about = f"{self.edition}/{self.level}"
        if self.stopped:
            return f"not learned: {about}, {self.stopped}"
        if self.passed:
            limit = f"if the port has at most {self.right} states"
            return f"as declared: {about}, {self.judged} of {self.cells} cells, {limit}"
        names = [*self.findings][:_SHOWN] + ["..."] * (len(self.findings) > _SHOWN)
        return f"not as declared: {about}, {len(self.findings)} of {self.cells} cells differ: {', '.join(names)}"

    def as_json(self) -> dict[str, Any]:
        """The report as data, without the picture."""
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "picture"}
        findings = [{"cell": cell, **finding.as_json()} for cell, finding in self.findings.items()]
        return {**shown, "verdict": self.line, "passed": self.passed, "findings": findings}


class _StoppedError(Exception):
    """Learning cannot go on."""


class _Learner:
    """A subject as AALpy wants it: it answers words, and looks for a word that a machine answers otherwise.

    `cells` are those that are declared; `judged` has those that were reached without a difference before, each with the
    difference in it; `wrong` the heads and the calls of differences.
    """

    def __init__(self, subject: Subject, wanted: LearnWanted, progress: Progress | None) -> None:
        self.judged: dict[str, Violation | None] = {}
        self.wrong: set[tuple[str, Input]] = set()
        self.learned: Rows = {}
        self.calls = self.hangs = 0
        self.num_queries = self.num_steps = 0  # AALpy reads them
        self.cached: Any = import_module("aalpy.base.SUL").CacheSUL(self)
        self._subject, self._wanted, self._progress = subject, wanted, progress
        self._bench = bench_of(subject)
        self.machine: Machine = self._bench.world.machine
        self.inputs: tuple[Input, ...] = stepper(self.machine).inputs(end=True)
        self._answers: set[Answer] = set()
        states = space(self.machine, null=True, end=True)
        places = ((states.configuration(state), row) for state, row in states.steps.items())
        self.cells: set[str] = {f"{entry} in {place}" for place, row in places for entry in row if entry.call}
        self._begin()

    def _begin(self) -> None:
        """Let there be no memory, and nothing wrong."""
        self._bench.begin()
        self._world = self._bench.world
        self._wrong: Violation | None = None

    def query(self, word: Word) -> list[Answer]:
        """The answers of a new memory to a word; nothing is asked after its end, or after that of the port."""
        self._begin()
        answers = list[Answer]()
        writer = Writer(self.machine, safe=False, level=self._subject.level, used=False)
        answer = self._answer(writer.steps)
        self._note("a new memory")
        if self._wrong is not None and answer[0] in ("refused", _DEAD):
            raise _StoppedError("no memory can be made")
        for entry in word:
            state, before = self._world.state(0), self._wrong
            answers.append(self._answer(writer.written(entry)))
            if before is None and entry.call:
                self._note(f"{entry} in {space(self.machine).configuration(state)}")
                self.wrong |= {(state.head, entry)} if self._wrong else set()
            if entry.ends or answers[-1][0] == _DEAD:
                break
        else:
            with suppress(Violation):  # whether the memory can be ended is not asked here
                for step in writer.ends():
                    self._bench.performer.perform(step._replace(quiet=True), self._world.settings, (), ())
        self.calls += len(answers)
        self._answers.update(answers)
        if self._progress is not None:
            self._progress(f"{max(len(self.learned), 1)} states", self.calls)
        if len(self._answers) > (most := _TIMES * len(self.cells)):
            raise _StoppedError(f"the port gives more than {most} different answers, or no end of them")
        return answers + [_GONE] * (len(word) - len(answers))

    def _take(self, step: Step) -> tuple[Observation, Observation]:
        """Do a step; return what must be seen and what is, which is judged until something is wrong."""
        found = self._world.after(step)
        if found is None:
            return NOTHING, NOTHING
        due, after = found
        seen = self._bench.performer.perform(step, self._world.settings, due.sides, due.buffers)
        if self._wrong is None and (difference := self._bench.comparison.after(step, due, seen)):
            self._wrong = self._bench.performer.violation(*difference)
        self._world = after
        return due, seen

    def _answer(self, steps: list[Step]) -> Answer:
        """Do the steps of an input, and say what is seen of the first."""
        try:
            (due, seen), *_ = [self._take(step) for step in steps]
        except Violation as death:  # without its last words, which are different each time
            self._wrong = self._wrong or death
            how = death.message.partition(": ")[2].partition(";")[0]
            self.hangs += "without progress" in how
            if self.hangs >= _HANGS:
                raise _StoppedError(f"{_HANGS} calls were not answered: {how}") from death
            return _DEAD, how
        shown = seen.at(self._subject.level)
        parts = ["refused" if shown.refused else "done"]
        if shown.actions is not None:
            ways = (
                (action_of(self.machine, action.does, action.side, action.source), bool(action.pinned))
                for action in shown.actions
            )
            parts.append(f"actions: {', '.join(name + _PINNED * pinned for name, pinned in ways) or 'none'}")
        if due.viewed and shown.view is not None:
            parts.append(f"view: {_view(due.view, shown.view)}")
        parts += [f"head: {shown.head}"] * (shown.head is not None)
        return (*parts, *(f"{name}: {'yes' if holds else 'no'}" for name, holds in shown.flags.items()))

    def _note(self, cell: str) -> None:
        """Keep what is wrong in a cell, if it is the first of it or its program is shorter."""
        known, wrong = self.judged.setdefault(cell, None), self._wrong
        if wrong is not None and (known is None or len(wrong.statements) < len(known.statements)):
            self.judged[cell] = wrong

    def find_cex(self, hypothesis: Any) -> Word | None:
        """The beginning of a word that a machine answers otherwise; None if there is none."""
        states = dict.fromkeys((hypothesis.initial_state, *hypothesis.states))
        self.learned = {
            state: {e: (state.output_fun[e], state.transitions[e]) for e in self.inputs} for state in states
        }
        if len(states) > (most := _TIMES * len(space(self.machine).steps)):
            raise _StoppedError(f"the port has more than {most} states, or no end of them")
        return next(filter(None, map(self._differing, self._words())), None)

    def _words(self) -> Iterator[Word]:
        """Words that are complete for so many states; then each cell, long words, and random ones."""
        yield from complete_words(minimise(self.learned), self._wanted.extra)
        yield from ((*way, entry) for way in access_sequences(self.machine).values() for entry in self.inputs)
        yield from chain(tour(self.machine), counter_sequences(self.machine))
        chance = random.Random(self._wanted.seed)  # noqa: S311 -- tests
        lasting = [entry for entry in self.inputs if not entry.ends]
        yield from (tuple(chance.choices(lasting, k=_LONG)) for _ in range(-(-self._wanted.steps // _LONG)))

    def _differing(self, word: Word) -> Word | None:
        state = next(iter(self.learned))
        for number, (entry, answer) in enumerate(zip(word, self.cached.query(word), strict=True), 1):
            expected, state = self.learned[state][entry]
            if answer != expected:
                return word[:number]
        return None


def _view(due: int | None, shown: bytes) -> str:
    """What a view shows; nobody says what is in memory that is not zeroed."""
    if due is None or shown == content(due, SIZE):
        return "any bytes" if due is None else "the newest bytes"
    return f"{len(shown)} {'other bytes' if any(shown) else 'zeros'}"


def learn_subject(subject: Subject, wanted: LearnWanted, progress: Progress | None = None) -> LearnReport:
    """Learn the machine of the memories of a subject; see `learn`."""
    aalpy, learner, stopped = _aalpy(), _Learner(subject, wanted, progress), ""
    try:
        aalpy.run_KV([*learner.inputs], learner.cached, learner, "mealy", cache_and_non_det_check=False, print_level=0)
    except _StoppedError as why:
        stopped = str(why)
    except SystemExit:  # AALpy's way to say it
        *before, call = map(str, learner.cached.cache.inputs)
        stopped = f"{call} is answered in two ways after {', '.join(before) or 'nothing'}"
    findings = ((cell, wrong) for cell, wrong in learner.judged.items() if wrong is not None)
    return LearnReport(
        subject.name,
        learner.machine.name,
        subject.level,
        states=len(learner.learned),
        right=0 if stopped else len(learner.learned) + wanted.extra,
        calls=learner.calls,
        cells=len(learner.cells),
        judged=len(learner.judged.keys() & learner.cells),
        stopped=stopped,
        findings=dict(sorted(findings, key=lambda finding: len(finding[1].statements))),
        picture="" if stopped else _picture(subject, learner.learned, learner.wrong),
    )


def _picture(subject: Subject, learned: Rows, wrong: set[tuple[str, Input]]) -> str:
    """The learned machine between its heads, or its states if it shows no heads; each input is a call."""
    machine, names, rows = subject.machine, {next(iter(learned)): subject.machine.initial.name}, dict[Row, None]()
    for number, (state, row) in enumerate(learned.items()):
        for entry, (answer, after) in row.items():
            about = dict(part.split(": ", 1) for part in answer if ": " in part)
            if answer[:1] in (_GONE, (_DEAD,)):
                continue
            if not entry.ends:
                names.setdefault(after, about.get("head", f"state {number}" if entry.call else names[state]))
            if entry.call is None:
                continue
            call = replace(entry.call, name="✗ " * ((names[state], entry) in wrong) + str(entry), takes="")
            did = [action.removesuffix(_PINNED) for action in about.get("actions", "").split(", ")]
            refused = "and nothing happens" if answer[0] == "refused" else ""
            dest = None if refused or entry.ends else names[after]
            do = [action for action in did if action in machine.actions and not refused]
            rows[Row(call, names[state], dest, do=do, refused=refused)] = None
    heads = (*machine.heads.values(), *dict.fromkeys(name for name in names.values() if name not in machine.heads))
    title = f"Learned: {subject.name}; ✗ is not as {machine.name} declares it"
    known: dict[str, Any] = {"actions": machine.actions.values(), "settings": machine.settings.values()}
    shown = Machine(subject.name, rows, title=title, sides=machine.sides, heads=heads, **known)
    return painted(drawing_of(shown), Detail.HEADS)


def learn(
    target: ProgramTarget | MakerTarget, wanted: LearnWanted, limits: Limits, *, progress: Progress | None = None
) -> LearnReport:
    """Learn the machine of a port; a maker in Python is asked in a process of its own.

    Raises
    ------
    MissingPackageError
        If AALpy is not installed.
    InvalidArgumentError
        If the tests for so many states would not end.
    PortError
        If the port cannot be asked, is of another edition, or does not show the level.
    """
    _aalpy()
    if not 0 <= wanted.extra <= MOST_EXTRA:
        raise InvalidArgumentError("extra", wanted.extra, f"between 0 and {MOST_EXTRA}")
    if isinstance(target, MakerTarget):
        return _learned_apart(target, wanted, limits, progress)
    with target.connect(limits, wanted.edition) as port:
        level = _level(target.name, wanted.level, port.hello["level"])
        return learn_subject(subject_of(port, port.hello["name"], "caffe", level), wanted, progress)


def _learned_apart(target: MakerTarget, wanted: LearnWanted, limits: Limits, progress: Progress | None) -> LearnReport:
    """Learn a maker in Python in a process of its own; if that ends, its journal has the program."""
    report, done = asked_apart(_learn, (target, wanted), limits, progress=progress)
    if isinstance(report, LearnReport):
        return report
    level = _level(target.name, wanted.level, target.top())
    subject = partial(target.subject, "caffe", level, wanted.edition)
    findings = {"learning": died(Last(subject, False, report, limits, done), "learn")}
    stopped = f"the process {report.how}"
    return LearnReport(target.name, subject().machine.name, level, stopped=stopped, findings=findings)


def _learn(
    target: MakerTarget, wanted: LearnWanted, note: Callable[[list[Any]], None], progress: Reporter
) -> LearnReport:
    subject = target.subject("caffe", _level(target.name, wanted.level, target.top()), wanted.edition)
    return learn_subject(replace(subject, journal=note), wanted, progress)


def _level(name: str, level: str, top: Level) -> Level:
    """The level that is wanted: at most L2, because failures and pushes in flight are not among the inputs."""
    if level > top:
        raise PortError(f"{name} shows {top} at most, not {level}")
    wanted: Any = level or top
    return min(wanted, "L2")


def _aalpy() -> Any:
    try:
        return import_module("aalpy")
    except Exception as error:
        raise MissingPackageError("learning a machine", "aalpy", "learn", error) from error
