"""The second generator: a Hypothesis state machine with the same oracle, which shrinks its findings.

What it draws depends on what it has drawn, and never on what a target answers: a target that refuses at random, or
that keeps its state from one example to the next, would otherwise look to Hypothesis like a machine that is flaky.  So
a step may name a block that is not there; the driver does not take it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ..engine.violation import Violation
from .campaign import Outcome
from .driver import Driver
from .finding import Step, TargetError
from .mask import Mask
from .recognition import Source
from .rounds import TOO_MANY, TOO_MUCH

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from .capabilities import Capabilities
    from .journal import Journal

__all__ = ["AllocatorMachine", "allocator_machine", "search"]

_STEPS, _EXAMPLES = 30, 60
_NO_MASK = Mask()
_SIZES = st.one_of(
    st.integers(1, 64), st.sampled_from([(1 << k) + d for k in range(7, 22) for d in (-1, 0, 1)]), st.integers(0, 5000)
)
_ANY = st.integers(0, 15)
_STREAM = st.integers(1, 3)


class AllocatorMachine(RuleBasedStateMachine):
    """Every operation as a rule; `allocator_machine` makes one for a target.

    Attributes
    ----------
    driver : Driver
        The driver of this example.
    """

    def __init__(self) -> None:
        super().__init__()
        self.driver: Driver = self.make_driver()
        self._over = False
        self._next = 0
        self._asked: list[int] = []
        self._gone: list[int] = []

    @staticmethod
    def make_driver() -> Driver:
        """The driver of one example; a machine without a target has none."""
        raise TargetError("AllocatorMachine has no target: make one with allocator_machine(target)")

    def take(self, operation: str, *numbers: int) -> None:
        """Take a step; after a violation the example ends."""
        try:
            self.driver.perform(Step(operation, numbers))
        except Violation:
            self._over = True
            raise

    def _live(self, pick: int) -> int:
        return self._asked[pick % len(self._asked)]

    def _leaving(self, pick: int) -> int:
        number = self._asked.pop(pick % len(self._asked))
        self._gone.append(number)
        return number

    def _new(self) -> int:
        self._asked.append(self._next)
        self._next += 1
        return self._next - 1

    def _has_blocks(self) -> bool:
        return bool(self._asked)

    @rule(size=_SIZES)
    def allocate(self, size: int) -> None:
        """Allocate."""
        self.take("allocate", self._new(), size)

    @precondition(_has_blocks)
    @rule(pick=_ANY)
    def free(self, pick: int) -> None:
        """Free a block."""
        self.take("free", self._leaving(pick))

    @precondition(_has_blocks)
    @rule(pick=_ANY)
    def check(self, pick: int) -> None:
        """Check a block."""
        self.take("check", self._live(pick))

    @rule()
    def compare(self) -> None:
        """Compare with the shadow heap."""
        self.take("compare")

    @rule(size=st.sampled_from(TOO_MUCH))
    def request_too_much(self, size: int) -> None:
        """Request more memory than can exist."""
        self.take("request_too_much", size)

    @precondition(lambda self: self.driver.target.take_many is not None)
    @rule(request=st.sampled_from(TOO_MANY))
    def request_too_many(self, request: tuple[int, int]) -> None:
        """Request so many blocks that their total size overflows."""
        self.take("request_too_many", *request)

    @precondition(lambda self: self.driver.target.take_aligned is not None)
    @rule(size=_SIZES, power=st.integers(4, 12))
    def aligned(self, size: int, power: int) -> None:
        """Allocate with an alignment."""
        self.take("allocate", self._new(), size, 1 << power)

    @precondition(lambda self: self.driver.target.take_zeroed is not None)
    @rule(size=_SIZES)
    def calloc(self, size: int) -> None:
        """Allocate memory that must be zero."""
        self.take("calloc", self._new(), size)

    @precondition(lambda self: self._has_blocks() and self.driver.target.resize is not None)
    @rule(pick=_ANY, size=_SIZES)
    def resize(self, pick: int, size: int) -> None:
        """Change the size of a block."""
        self.take("resize", self._live(pick), size)

    @precondition(lambda self: self._has_blocks() and self.driver.target.resize is not None)
    @rule(pick=_ANY, size=st.sampled_from(TOO_MUCH))
    def resize_too_much(self, pick: int, size: int) -> None:
        """Request an impossible size for a block."""
        self.take("resize_too_much", self._live(pick), size)

    @precondition(lambda self: self._has_blocks() and self.driver.target.usable_size is not None)
    @rule(pick=_ANY)
    def use_all(self, pick: int) -> None:
        """Write all of a block that is usable."""
        self.take("use_all", self._live(pick))

    @precondition(lambda self: self._has_blocks() and self.driver.target.copy is not None)
    @rule(pick=_ANY, other=_ANY)
    def copy(self, pick: int, other: int) -> None:
        """Copy from one block to another."""
        self.take("copy", self._live(pick), self._live(other))

    @precondition(lambda self: bool(self._gone) and self.driver.capabilities.double_free != "undefined")
    @rule(pick=_ANY)
    def free_again(self, pick: int) -> None:
        """Free a block a second time."""
        self.take("free_again", self._gone[pick % len(self._gone)])

    @precondition(lambda self: self.driver.capabilities.foreign_free != "undefined")
    @rule()
    def free_foreign(self) -> None:
        """Free memory that was never allocated."""
        self.take("free_foreign")

    @precondition(lambda self: self._has_blocks() and self.driver.capabilities.wrong_size != "undefined")
    @rule(pick=_ANY, size=_SIZES)
    def free_wrong_size(self, pick: int, size: int) -> None:
        """Free a block with a wrong size."""
        self.take("free_wrong_size", self._live(pick), size)

    @precondition(lambda self: self.driver.capabilities.stream_ordered)
    @rule(size=_SIZES, stream=_STREAM)
    def allocate_on(self, size: int, stream: int) -> None:
        """Allocate on a stream."""
        self.take("allocate", self._new(), size, 0, stream)

    @precondition(lambda self: self._has_blocks() and self.driver.capabilities.stream_ordered)
    @rule(pick=_ANY, stream=_STREAM)
    def work_and_free(self, pick: int, stream: int) -> None:
        """Queue work on a block, and free it before the work is done."""
        number = self._leaving(pick)
        self.take("work", number, stream)
        self.take("free", number, stream)

    @precondition(lambda self: self.driver.capabilities.stream_ordered)
    @rule(stream=_STREAM)
    def finish(self, stream: int) -> None:
        """Let the work of a stream happen."""
        self.take("finish", stream)

    def teardown(self) -> None:
        """Free everything."""
        if not self._over:
            self.driver.end()


def allocator_machine(
    target: object, promises: Mapping[str, str] | None = None, journal: Journal | None = None, mask: Mask | None = None
) -> type[AllocatorMachine]:
    """A state machine for a target; its ``TestCase`` is a test for unittest and pytest.

    Its ``TestCase.settings`` take 60 examples of 30 steps and report one bug; you can set others.

    Parameters
    ----------
    target : object or str
        As for `Source`; give a class or a factory, so that every example begins with a new target.
    promises : mapping of str to str or None
        Entries that replace those of the capability record.
    journal : Journal or None
        Records the steps.
    mask : Mask or None
        What is left unjudged or left out.

    Raises
    ------
    TargetError
        If the target or the record cannot be used.
    """
    source = target if isinstance(target, Source) else Source(target)
    first = source.open()
    record = first.capabilities.with_promises(promises or {})

    def make_driver() -> Driver:
        if journal is not None:
            journal.begin()
        return Driver(source.open() if source.makes_fresh else first, record, journal, mask=mask)

    machine: Any = type("AllocatorMachine", (AllocatorMachine,), {"make_driver": staticmethod(make_driver)})
    machine.TestCase.settings = _settings(_EXAMPLES)
    return cast("type[AllocatorMachine]", machine)


def search(  # noqa: PLR0913 -- as campaign
    source: Source,
    capabilities: Capabilities,
    journal: Journal,
    *,
    number: int,
    seconds: float,
    examples: int = _EXAMPLES,
    mask: Mask = _NO_MASK,
) -> tuple[Outcome, tuple[Step, ...]]:
    """Take examples; return the outcome, and the shrunk steps of a violation.

    Parameters
    ----------
    source : Source
    capabilities : Capabilities
    journal : Journal
    number : int
        The seed.
    seconds : float
        The time after which no more steps are taken, so that examples and shrinking end.
    examples : int
    mask : Mask

    Raises
    ------
    Exception
        What Hypothesis raises, unless that is only that something did not come again.
    """
    deadline = time.perf_counter() + seconds
    outcome, wrongs = Outcome(), list[tuple[Violation, tuple[Step, ...]]]()
    base = allocator_machine(source, _all(capabilities), journal, mask)

    class Watched(base):  # type: ignore[valid-type, misc]  # a class made just above
        def take(self, operation: str, *numbers: int) -> None:
            if time.perf_counter() < deadline and not self._over:
                with _noted(wrongs, journal, mask):
                    super().take(operation, *numbers)

        def teardown(self) -> None:
            outcome.add(self.driver, 0.0)
            with _noted(wrongs, journal, mask):
                super().teardown()

    start = time.perf_counter()
    try:
        run_state_machine_as_test(seed(number)(Watched), settings=_settings(examples))
    except Violation:
        outcome.wrong, steps = wrongs[-1]
    except Exception as error:
        # Hypothesis raises this if a failure did not repeat.  It was a failure all the same.
        if wrongs:
            outcome.wrong, steps = min(wrongs, key=lambda it: len(it[1]))
        elif isinstance(error, Flaky):  # a target that answers differently each time is no failure, of nobody
            steps = ()
        else:
            raise
    else:
        steps = ()
    outcome.seconds = time.perf_counter() - start
    return outcome, steps


@contextmanager
def _noted(wrongs: list[tuple[Violation, tuple[Step, ...]]], journal: Journal, mask: Mask) -> Generator[None]:
    """Record a violation with the steps that led to it; one that is left unjudged passes."""
    try:
        yield
    except Violation as wrong:
        if mask.judged(wrong) is None:
            return
        wrongs.append((wrong, journal.steps()))
        raise


def _all(capabilities: Capabilities) -> dict[str, Any]:
    return capabilities.as_json()


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=_STEPS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
            HealthCheck.filter_too_much,
        ],
        print_blob=False,
    )
