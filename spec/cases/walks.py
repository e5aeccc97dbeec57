"""Generated cases: short walks of several memories, from every state.

Long walks from a new memory rarely test ownership, because ownership never returns once it is given up.  So there are
walks from each state of the machine, which an access sequence reaches.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, precondition, rule

from syncedmem.model.states import stepper
from syncedmem.model.suites import access_sequences

from ..engine.search import Generated, Taken, Walking, WalkSearch
from ..kit.trial import Trial, shortened
from ..record.steps import Step
from .writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from syncedmem.model import Input

    from ..engine.report import SuiteRun
    from ..engine.violation import Violation
    from ..kit.trial import Bench
    from ..record.steps import Case, How

__all__ = ["Walked", "search", "state_machine"]

LONGEST = 14
_MOST = 3
_STARTS = 14
"""How many states some walks start in; then others are next."""
# Hypothesis tries the first size first, and shrinks to it, so it must not be zero.
_SIZES = (3, 1, 64, 0, 255, 4096, 4097)
_LARGE = (1 << 20, (2 << 20) + 1, 5 << 20)


class _Move(NamedTuple):
    """A move of one memory: an input, perhaps with an action that fails, and again afterwards; or a wait."""

    entry: Input | None = None
    fail: int = 0
    how: How = ""
    again: bool = False


class Walked:
    """Memories that live at the same time, and what was done with them."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.trial: Trial = Trial(bench)
        self.writers: list[Writer] = []
        self.kinds: Counter[str] = Counter()
        self.start: Hashable = None

    def make(self, size: int) -> None:
        """Make a memory."""
        bench, number = self._bench, len(self.writers)
        fitting = int(min(max(size, bench.subject.smallest), bench.subject.largest))
        machine, drops = bench.world.machine, any(requirement.startswith("P04") for requirement in bench.judged)
        level = bench.subject.level
        self.writers.append(Writer(machine, fitting, number, safe=bench.world.safe, level=level, drops=drops))
        for setting in machine.settings.values():  # a machine begins with these
            if self.trial.world.settings[setting.name] != setting.initial:
                self.trial.take(Step("set", number, setting.name, value=setting.initial))
        self.trial.take(self.writers[-1].steps[0])

    def move_and_count(self, number: int, move: _Move) -> None:
        """Make a move, and count it, unless it was left out."""
        if kind := self.move(number, move):
            self.kinds[kind] += 1

    def move(self, number: int, move: _Move) -> str:
        """Make a move of one memory, and look at the others; return its kind, empty if it was left out."""
        writer = self.writers[number]
        if move.entry is None:
            steps = [Step("wait", number)]
        else:
            steps = writer.written(move.entry, fail=move.fail, how=move.how)
            steps += writer.written(move.entry) if move.again else []
        meant = [self.trial.take(step) for step in steps]
        if not any(meant):
            return ""
        for other in range(len(self.writers)):
            if other != number:
                self.trial.take(Step("look", other))
        return "wait" if move.entry is None else "failure" if move.fail else "call" if move.entry.call else "mode"

    @property
    def walk(self) -> Case:
        """What was done."""
        return tuple(self.trial.done)

    def finish(self) -> None:
        """End every memory, and check that nothing is left."""
        for writer in self.writers:
            for step in writer.ends():
                self.trial.take(step)

    def taken(self) -> Taken:
        """The walk that has passed."""
        return Taken(self.walk, (self.trial,), self.kinds, self.start)


class MemoryWalk(Walking):
    """A walk of up to three memories; `state_machine` adds a rule for each input of a machine."""

    bench: Bench

    def __init__(self) -> None:
        self._memories = Walked(self.bench)
        super().__init__(self._memories)

    @classmethod
    def let_go(cls) -> None:
        super().let_go()
        del cls.bench

    def begin(self, size: int, way: tuple[Input, ...]) -> int:
        """Make a memory, and bring it into the state that a sequence reaches."""
        memories = self._memories
        number = len(memories.writers)
        self.act(partial(memories.make, size))
        for entry in way:
            self.act(partial(memories.move, number, _Move(entry)))
        if number == 0:
            memories.start = way
        return number

    def move(self, number: int, move: _Move) -> None:
        """Make a move of one memory."""
        self.act(partial(self._memories.move_and_count, number, move))


def state_machine(bench: Bench, ways: Sequence[tuple[Input, ...]] = ()) -> type[MemoryWalk]:
    """A `hypothesis.stateful.RuleBasedStateMachine` over memories, with a rule for each input of their machine.

    A memory starts in a state of the machine that Hypothesis draws.  Every step is compared.  Actions are made to fail
    only if the profile and the level say what holds then.

    Parameters
    ----------
    bench : Bench
    ways : sequence of tuple of Input
        The sequences by which the first memory starts; if there are none, one for each state of the machine.
    """
    machine = bench.world.machine
    failures, objects = bench.world.safe and bench.subject.level >= "L3", bench.subject.program is None
    every = tuple(access_sequences(machine).values())
    small = st.sampled_from(_SIZES)
    # A large memory takes a thousand times as long as a small one, and suites have large ones too.
    size = st.one_of(small, small, small, st.integers(1, 300), st.sampled_from((*_SIZES * 2, *_LARGE)))
    memories: Bundle[int] = Bundle("memories")
    rules: dict[str, object] = {
        "bench": bench,
        "memories": memories,
        "begin_first": initialize(target=memories, size=size, way=st.sampled_from(ways or every))(MemoryWalk.begin),
        "begin_another": rule(target=memories, size=small, way=st.sampled_from(every))(
            precondition(lambda self: len(self._memories.writers) < _MOST)(MemoryWalk.begin)
        ),
    }
    for entry in stepper(machine).inputs(end=True):
        name = re.sub(r"\W+", "_", f"rule {len(rules)} {entry}")
        moves = st.sampled_from(_moves(entry, failures=failures, objects=objects))
        rules[name] = rule(number=memories, move=moves)(_named(name))
    return type("MemoryWalk", (MemoryWalk,), rules)


def _named(name: str) -> Callable[[MemoryWalk, int, _Move], None]:
    """The method that makes a move, under another name: Hypothesis leaves out some rules of a walk, by their names."""

    def move(self: MemoryWalk, number: int, move: _Move) -> None:
        self.move(number, move)

    move.__name__ = name
    return move


def _moves(entry: Input, *, failures: bool, objects: bool) -> list[_Move]:
    """An input as it is, before a wait, and with failures of actions."""
    plain = [*[_Move(entry)] * 4, _Move()]
    if not (failures and entry.call):
        return plain
    # After a release that failed in the middle, only another release is allowed.
    again = (True,) if entry.ends else (True, False)
    ways: tuple[How, ...] = ("", "half")
    failing = [_Move(entry, k, how, repeats) for k in (1, 2) for how in ways for repeats in again]
    stumbling = [_Move(entry, k, "other") for k in (1, 2, 3)] if objects else []
    return [*plain, *plain, *failing, *stumbling]


def search(bench: Bench, suite: SuiteRun, steps: int, seed: int, *, share: int = 1) -> Violation | None:
    """Take walks with at least `steps` moves, from all states; return the violation of the first that fails.

    Parameters
    ----------
    bench : Bench
    suite : SuiteRun
        It gets what is generated.
    steps : int
        The number of moves of all walks, without access sequences.
    seed : int
        The same seed gives the same walks.
    share : int
        Take only one of so many moves, and start only in one of so many states.
    """
    ways = tuple(access_sequences(bench.world.machine).values())[::share]
    generated = suite.generated = Generated(-(-steps // share), len(ways))

    def walking() -> type[Walking]:
        rarest = sorted(ways, key=lambda way: generated.starts[way])[:_STARTS]
        return state_machine(bench, rarest)

    return WalkSearch(generated, LONGEST, partial(shortened, bench), suite).search(walking, str(seed))
