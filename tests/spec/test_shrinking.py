"""The shrinker, on steps that are numbers."""

from __future__ import annotations

import pytest

from syncedmem.spec import Violation
from syncedmem.spec.engine.shrinking import shortest, shrink


def below(number: int) -> list[int]:
    """Smaller numbers, the smallest first."""
    return [0, number // 2] if number else []


def test_what_is_not_needed_is_left_out() -> None:
    """Steps that are not needed are left out at any place and in any number."""
    steps = (*range(40), 100, *range(40), 101, *range(40))

    assert (100, 101) == shrink(steps, lambda numbers: {100, 101} <= set(numbers))
    assert () == shrink(steps, lambda _: True)
    assert steps == shrink(steps, lambda _: False)


def test_steps_are_made_simpler_and_then_more_is_left_out() -> None:
    assert (5,) == shrink((40, 3, 7), lambda numbers: sum(numbers) >= 5, simpler=below)


def test_what_repeats_is_kept_as_often_as_it_takes() -> None:
    assert (1, 1, 1) == shrink((1,) * 50, lambda numbers: len(numbers) >= 3)


def test_when_time_is_up_the_shortest_so_far_is_returned() -> None:
    """If there is no time, all steps are kept."""
    assert (1, 2, 3) == shrink((1, 2, 3), lambda _: True, seconds=0)


def test_the_violation_is_that_of_the_shortest_steps() -> None:
    """Shorter steps that break another requirement are not used."""

    def run(steps: tuple[int, ...]) -> None:
        if 7 in steps:
            raise Violation("R11-head" if 3 in steps else "R31-size-constant", f"shown by {steps}")

    with pytest.raises(Violation) as caught:
        run((1, 3, 5, 7, 9))

    assert "shown by (3, 7)" == shortest((1, 3, 5, 7, 9), caught.value, run).message
