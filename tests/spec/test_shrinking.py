"""The shrinker, on steps that are numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from syncedmem.spec import Violation
from syncedmem.spec.engine.shrinking import shortest, shrink


def below(number: int) -> list[int]:
    """Smaller numbers, the smallest first."""
    return [0, number // 2] if number else []


def test_what_is_not_needed_is_left_out() -> None:
    """Steps that are not needed are left out at any place and in any number."""
    steps = (*range(40), 100, *range(40), 101, *range(40))

    assert (100, 101) == shrink(steps, lambda it: {100, 101} <= set(it))
    assert () == shrink(steps, lambda _: True)
    assert steps == shrink(steps, lambda _: False)


def test_steps_are_made_simpler_and_then_more_is_left_out() -> None:
    assert (5,) == shrink((40, 3, 7), lambda it: sum(it) >= 5, simpler=below)


def test_what_repeats_is_kept_as_often_as_it_takes() -> None:
    assert (1, 1, 1) == shrink((1,) * 50, lambda it: len(it) >= 3)


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


# --- programs


@dataclass
class Counting:
    """A program that only counts: the first process has a bad start, and later ones have a bad end."""

    bad: dict[int, str]
    requested: list[str] = field(default_factory=list[str])
    largest: int = 1 << 16
    offers: tuple[str, ...] = ()
    hung: bool = False

    def run(self, steps: tuple[int, ...]) -> None:
        """Make a request for each step."""
        for step in steps:
            self.requested.append(str(step))
            if requirement := self.bad.get(len(self.requested), ""):
                raise Violation(requirement, "shown")

    def mark(self) -> None:
        """Do nothing."""

    def requests(self, *, whole: bool = False) -> tuple[str, ...]:
        """All requests of the process."""
        assert whole
        return tuple(self.requested)

    def renew(self) -> None:
        """Start again."""
        self.requested = []


def found_in_an_old_process(bad: dict[int, str]) -> Violation:
    """The violation R11 of a process that has had 50 requests, when its last step is shortened."""
    program = Counting(bad, ["0"] * 50)
    return shortest((1, 2), Violation("R11-head", "shown"), program.run, program=program)


def test_steps_that_fail_when_they_are_repeated_are_repeated() -> None:
    found = found_in_an_old_process({5: "R11-head"})

    assert "shown (in run 3 of the same steps, in one process)" == found.message
    assert ("1", "2", "1", "2", "1") == found.statements


@pytest.mark.parametrize("bad", [{}, {5: "R31-size-constant", 7: "R11-head"}])
def test_steps_that_do_not_fail_so_again_have_all_requests(bad: dict[int, str]) -> None:
    found = found_in_an_old_process(bad)

    assert "shown (it takes all these requests, in one process)" == found.message
    assert ("0",) * 50 == found.statements
