"""The interrupter finds code that is not safe, and reports no code that is safe."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from interruption import INTERRUPTS, interrupt_everywhere, interrupt_with_signals


class Pair:
    """Two numbers that must be equal."""

    def __init__(self) -> None:
        self.first = self.second = 0
        self.lock = threading.Lock()

    def in_one_step(self) -> None:
        value = abs(-1)
        self.first, self.second = value, value

    def with_a_call_between(self) -> None:
        self.first = 1
        self.second = abs(-1)

    def with_an_object_made_between(self) -> None:
        self.first = 1
        self.second = [1][0]

    def with_an_undo(self) -> None:
        try:
            self.first = 1
            self.second = abs(-1)
        except BaseException:
            self.first = self.second = 0
            raise

    def locked(self) -> None:
        with self.lock:
            self.first = self.second = abs(-1)

    def locked_around_a_call(self) -> int:
        with self.lock:
            return abs(-1)

    def with_a_call_at_the_end(self) -> int:
        self.first = 1
        try:
            return abs(-1)
        finally:
            self.first = 0

    def with_a_call_at_the_end_of_a_block(self) -> None:
        with self.lock:
            self.first = 1
            abs(-1)
        self.second = 1

    def locked_carelessly(self) -> None:
        self.lock.acquire()
        try:
            self.first = self.second = 1
        finally:
            self.lock.release()


def equal(pair: Pair, _raised: BaseException | None) -> None:
    assert pair.first == pair.second
    assert not pair.lock.locked()


@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize(
    "call",
    [
        Pair.in_one_step,
        Pair.with_an_undo,
        Pair.locked,
        Pair.locked_around_a_call,
        Pair.with_a_call_at_the_end,
    ],
)
def test_what_is_safe_is_not_accused(call: Any, error: type[BaseException]) -> None:
    interrupt_everywhere(Pair, call, equal, error).require(at_least=2)


@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize(
    "call",
    [
        Pair.with_a_call_between,
        Pair.with_an_object_made_between,
        Pair.with_a_call_at_the_end_of_a_block,
        Pair.locked_carelessly,
    ],
)
def test_what_is_not_safe_is_found(call: Any, error: type[BaseException]) -> None:
    report = interrupt_everywhere(Pair, call, equal, error)

    assert report.broken
    with pytest.raises(AssertionError, match=f"points broken:\n{error.__name__} at .*test_interruption.py"):
        report.require()


def test_a_call_without_points_is_not_taken_for_a_safe_one() -> None:
    report = interrupt_everywhere(Pair, Pair.in_one_step, equal)

    with pytest.raises(AssertionError, match=str(report.points)):
        report.require(at_least=report.points + 1)


def test_real_signals_come_and_what_they_break_is_found() -> None:
    pair = Pair()

    def act() -> None:
        for _ in range(20_000):
            pair.first += 1
            pair.second = int(abs(pair.second)) + 1

    def check(raised: BaseException | None) -> None:
        different = pair.first != pair.second
        pair.first = pair.second = 0
        assert raised is None or not different

    report = interrupt_with_signals(act, check, times=60, microseconds=2_000)

    assert report.points > 0
    assert report.broken
