"""A Hypothesis state machine over the driver of the fuzzer, for tests of unittest and pytest.

What it draws depends on what it has drawn, and never on what a target answers: a target that refuses at random, or
that keeps its state from one example to the next, would otherwise look to Hypothesis like a machine that is flaky.  So
a step may name a block that is not there; the driver does not take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ..engine.violation import Violation
from .driver import Driver
from .finding import Step, TargetError
from .recognition import Source
from .rounds import TOO_MANY, TOO_MUCH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["AllocatorMachine", "allocator_machine"]

_STEPS, _EXAMPLES = 30, 60


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
        self._live: list[int] = []
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

    def offers(self, operation: Operation) -> bool:
        """Whether an operation can be taken now."""
        blocks = {"live": self._live, "leaving": self._live, "gone": self._gone}
        return bool(blocks.get(operation.block, (0,))) and operation.offered(self.driver)

    def choose(self, operation: Operation, pick: int) -> tuple[int, ...]:
        """The number of the block that an operation is about; nothing if it is about none."""
        if operation.block == "new":
            self._live.append(len(self._live) + len(self._gone))
            return (self._live[-1],)
        if operation.block == "leaving":
            self._gone.append(self._live.pop(pick % len(self._live)))
            return (self._gone[-1],)
        blocks = {"live": self._live, "gone": self._gone}.get(operation.block)
        return () if blocks is None else (blocks[pick % len(blocks)],)

    def teardown(self) -> None:
        """Free everything."""
        if not self._over:
            self.driver.end()


def _always(_: Driver) -> bool:
    return True


class Operation(NamedTuple):
    """A rule: a step of the driver, the block that it is about, and what is drawn for it."""

    name: str
    block: Literal["new", "live", "leaving", "gone", ""] = ""
    numbers: st.SearchStrategy[tuple[int, ...]] = st.just(())
    offered: Callable[[Driver], bool] = _always


_SIZES = st.one_of(
    st.integers(1, 64), st.sampled_from([(1 << k) + d for k in range(7, 22) for d in (-1, 0, 1)]), st.integers(0, 5000)
)
_SIZE, _STREAM = st.tuples(_SIZES), st.tuples(st.integers(1, 3))
_IMPOSSIBLE = st.tuples(st.sampled_from(TOO_MUCH))


def _on_streams(driver: Driver) -> bool:
    return driver.capabilities.stream_ordered


def _has(function: str) -> Callable[[Driver], bool]:
    """Whether a target has a function."""

    def offered(driver: Driver) -> bool:
        return getattr(driver.target, function) is not None

    return offered


def _says(promise: str) -> Callable[[Driver], bool]:
    """Whether the record says what a target does then."""

    def offered(driver: Driver) -> bool:
        return bool(getattr(driver.capabilities, promise) != "undefined")

    return offered


RULES: tuple[Operation, ...] = (
    Operation("allocate", "new", _SIZE),
    Operation("allocate", "new", st.tuples(_SIZES, st.sampled_from([1 << power for power in range(4, 13)])),
              _has("take_aligned")),
    Operation("allocate", "new", st.tuples(_SIZES, st.just(0), st.integers(1, 3)), _on_streams),
    Operation("calloc", "new", _SIZE, _has("take_zeroed")),
    Operation("free", "leaving"),
    Operation("free", "leaving", _STREAM, _on_streams),
    Operation("check", "live"),
    Operation("compare"),
    Operation("request_too_much", "", _IMPOSSIBLE),
    Operation("request_too_many", "", st.sampled_from(TOO_MANY), _has("take_many")),
    Operation("resize", "live", _SIZE, _has("resize")),
    Operation("resize_too_much", "live", _IMPOSSIBLE, _has("resize")),
    Operation("use_all", "live", offered=_has("usable_size")),
    # The other block has nearly always a small number, and one that is not there is left out.
    Operation("copy", "live", st.tuples(st.integers(0, 15)), _has("copy")),
    Operation("free_again", "gone", offered=_says("double_free")),
    Operation("free_foreign", offered=_says("foreign_free")),
    Operation("free_wrong_size", "live", _SIZE, _says("wrong_size")),
    Operation("work", "live", _STREAM, _on_streams),
    Operation("finish", "", _STREAM, _on_streams),
)  # fmt: skip
"""Every rule."""


def _rule(number: int, operation: Operation) -> Any:
    def take(self: AllocatorMachine, pick: int, numbers: tuple[int, ...]) -> None:
        self.take(operation.name, *self.choose(operation, pick), *numbers)

    # Hypothesis leaves out some rules of an example, by their names.
    take.__name__ = f"{operation.name}_{number}"
    offered = precondition(lambda self: self.offers(operation))
    return rule(pick=st.integers(0, 15), numbers=operation.numbers)(offered(take))


def allocator_machine(target: object, promises: Mapping[str, str] | None = None) -> type[AllocatorMachine]:
    """A state machine for a target; its ``TestCase`` is a test for unittest and pytest.

    Its ``TestCase.settings`` take 60 examples of 30 steps and report one bug; you can set others.

    Parameters
    ----------
    target : object or str
        As for `Source`; give a class or a factory, so that every example begins with a new target.
    promises : mapping of str to str or None
        Entries that replace those of the capability record.

    Raises
    ------
    TargetError
        If the target or the record cannot be used.
    """
    source = target if isinstance(target, Source) else Source(target)
    first = source.open()
    record = first.capabilities.with_promises(promises or {})

    def make_driver() -> Driver:
        return Driver(source.open() if source.makes_fresh else first, record)

    rules = {f"rule_{number}": _rule(number, it) for number, it in enumerate(RULES)}
    machine: Any = type("AllocatorMachine", (AllocatorMachine,), {"make_driver": staticmethod(make_driver), **rules})
    machine.TestCase.settings = settings(
        max_examples=_EXAMPLES,
        stateful_step_count=_STEPS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
            HealthCheck.filter_too_much,
        ],
        print_blob=False,
    )
    return cast("type[AllocatorMachine]", machine)
