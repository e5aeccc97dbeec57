"""Runs examples that Hypothesis generates until one fails, and shortens that one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings

from .finding import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st

    from .subject import Subject

__all__ = ["hunt"]

Witness = TypeVar("Witness")
Seen = TypeVar("Seen")


def hunt(  # noqa: PLR0913 -- what to generate, how to run and shrink it, how often, and a callback
    subject: Subject,
    strategy: st.SearchStrategy[Witness],
    run: Callable[[Subject, Witness], Seen],
    shortened: Callable[[Subject, Witness, Violation], Violation],
    examples: int,
    number: int,
    on_passed: Callable[[Seen], None],
) -> Violation | None:
    """Run generated examples until one fails; return its violation, shrunk, or None.

    Parameters
    ----------
    subject : Subject
    strategy : SearchStrategy
    run : callable
        Runs an example, and raises its violation.
    shortened : callable
        Given an example and its violation, the violation of the shortest one that breaks the same requirement.
    examples, number : int
        How many examples, and the seed.
    on_passed : callable
        Called with the result of each run that passed.
    """
    found: list[tuple[Violation, Witness]] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        print_blob=False,
    )
    @given(strategy)
    def take(witness: Witness) -> None:
        try:
            on_passed(run(subject, witness))
        except Violation as violation:
            found.append((violation, witness))
            raise

    try:
        take()
    except Violation:
        violation, witness = found[-1]  # Hypothesis runs its shortest example last
        return shortened(subject, witness, violation)
    except Exception:
        # Hypothesis raises this if a failure did not repeat.  It was a failure all the same.
        if not found:
            raise
        return min((violation for violation, _ in found), key=lambda violation: len(violation.statements))
    return None
