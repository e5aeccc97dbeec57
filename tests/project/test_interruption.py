"""The interrupter finds code that is not safe, and reports no code that is safe."""

from __future__ import annotations

from typing import Any

import pytest
from interruption import interrupt_everywhere


class Pair:
    """Two numbers that must be equal."""

    first = second = 0

    def in_one_step(self) -> None:
        value = abs(-1)
        self.first, self.second = value, value

    def with_an_undo(self) -> None:
        try:
            self.first = 1
            self.second = abs(-1)
        except BaseException:
            self.first = self.second = 0
            raise

    def with_a_call_between(self) -> None:
        self.first = 1
        self.second = abs(-1)

    def with_an_object_made_between(self) -> None:
        self.first = 1
        self.second = [1][0]


@pytest.mark.parametrize("call", [Pair.in_one_step, Pair.with_an_undo])
def test_what_is_safe_is_not_accused(call: Any) -> None:
    interrupt_everywhere(Pair, call, equal, MemoryError).require(at_least=2)


@pytest.mark.parametrize("call", [Pair.with_a_call_between, Pair.with_an_object_made_between])
def test_what_is_not_safe_is_found(call: Any) -> None:
    with pytest.raises(AssertionError, match=r"points broken:\nMemoryError at .*test_interruption\.py"):
        interrupt_everywhere(Pair, call, equal, MemoryError).require()


def equal(pair: Pair, _raised: BaseException | None) -> None:
    assert pair.first == pair.second
