"""Making what breaks a requirement shorter, until nothing can be left out of it.

The shorter one must break the same requirement: a sequence that fails for another reason is no shorter witness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .finding import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .subject import Subject

__all__ = ["shrink"]

Witness = TypeVar("Witness")


def shrink(
    subject: Subject,
    witness: Witness,
    violation: Violation,
    run: Callable[[Subject, Witness], object],
    shorter: Callable[[Witness, int], Iterable[Witness] | None],
) -> Violation:
    """The violation of the shortest witness that can be had by leaving out one thing after the other.

    Parameters
    ----------
    subject : Subject
    witness : object
        What was run.
    violation : Violation
        What came of it.
    run : callable
        Runs a witness, and raises the violation.
    shorter : callable
        Given a witness and a position, the witnesses with something left out there; None behind the last position.
    """
    changed = True
    while changed:
        changed, position = False, 0
        while (candidates := shorter(witness, position)) is not None:
            for candidate in candidates:
                found = _violation(subject, candidate, run)
                if found is not None and found.requirement == violation.requirement:
                    witness, violation, changed = candidate, found, True
                    break
            else:
                position += 1
    return violation


def _violation(subject: Subject, witness: Witness, run: Callable[[Subject, Witness], object]) -> Violation | None:
    try:
        run(subject, witness)
    except Violation as found:
        return found
    return None
