"""A state machine over the driver of the fuzzer, for tests of unittest and pytest.

What it draws depends on what it has drawn, and never on what a target answers: a target that refuses at random, or
that keeps its state from one example to the next, would otherwise look to Hypothesis like a machine that is flaky.  So
a step may name a block that is not there; the driver does not take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ..engine.search import SEARCH
from ..engine.violation import Violation
from .driver import Driver
from .finding import HeapStep, TargetError
from .recognition import TargetSource
from .rounds import DRAWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rounds import Drawn

__all__ = ["AllocatorMachine", "allocator_machine"]

_STEPS, _EXAMPLES = 30, 60
_SIZES = (*range(65), *((1 << k) + d for k in range(7, 22) for d in (-1, 0, 1)), *range(65, 5000, 97))
_OTHERS = 16
"""The other block of a step has nearly always a small number."""


class AllocatorMachine(RuleBasedStateMachine):
    """Every operation as a rule; `allocator_machine` makes one for a target.

    Attributes
    ----------
    driver : Driver
        The driver of this example.
    """

    def __init__(self) -> None:
        self.driver: Driver = self.make_driver()
        super().__init__()
        self._over = False
        self._blocks: dict[str, list[int]] = {"live": [], "gone": []}

    @staticmethod
    def make_driver() -> Driver:
        """The driver of one example; a machine without a target has none."""
        raise TargetError("AllocatorMachine has no target: make one with allocator_machine(target)")

    def offers(self, row: Drawn) -> bool:
        """Whether a step can be taken now."""
        blocks = self._blocks.get("live" if row.block == "leaving" else row.block, [0])
        return bool(blocks) and row.is_offered(self.driver)

    def take(self, row: Drawn, rng: Any) -> None:
        """Take a step; after a violation the example ends."""
        live, gone = self._blocks["live"], self._blocks["gone"]
        number: tuple[int, ...] = ()
        if row.block == "new":
            number = (len(live) + len(gone),)
            live += number
        elif row.block == "leaving":
            number = (live.pop(rng.randrange(len(live))),)
            gone += number
        elif row.block:
            number = (rng.choice(self._blocks[row.block]),)
        numbers = row.draw(rng, _SIZES, range(_OTHERS))
        try:
            self.driver.perform(HeapStep(row.operation, (*number, *numbers)))
        except Violation:
            self._over = True
            raise

    def teardown(self) -> None:
        """Free everything."""
        if not self._over:
            self.driver.end()


def _rule(number: int, row: Drawn) -> Any:
    def take(self: AllocatorMachine, rng: Any) -> None:
        self.take(row, rng)

    take.__name__ = f"{row.operation}_{number}"  # Hypothesis leaves out some rules of an example, by their names
    return rule(rng=st.randoms(use_true_random=False))(precondition(lambda self: self.offers(row))(take))


def allocator_machine(target: object, promises: Mapping[str, str] | None = None) -> type[AllocatorMachine]:
    """A state machine for a target; its ``TestCase`` is a test for unittest and pytest.

    Its ``TestCase.settings`` take 60 examples of 30 steps and report one bug; you can set others.

    Parameters
    ----------
    target : object or str
        As for `TargetSource`; give a class or a factory, so that every example begins with a new target.
    promises : mapping of str to str or None
        Entries that replace those of the capability record.

    Raises
    ------
    TargetError
        If the target or the record cannot be used.
    """
    source = target if isinstance(target, TargetSource) else TargetSource(target)
    first = source.open()
    record = first.capabilities.with_promises(promises or {})

    def make_driver() -> Driver:
        return Driver(source.open() if source.makes_fresh else first, record)

    rules = {f"rule_{number}": _rule(number, item) for number, item in enumerate(DRAWN)}
    machine: Any = type("AllocatorMachine", (AllocatorMachine,), {"make_driver": staticmethod(make_driver), **rules})
    machine.TestCase.settings = settings(
        SEARCH, max_examples=_EXAMPLES, stateful_step_count=_STEPS, phases=tuple(Phase)
    )
    return cast("type[AllocatorMachine]", machine)
