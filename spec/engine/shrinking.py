"""Making what breaks a requirement shorter, until nothing can be left out of it.

The shorter one must break the same requirement: a word that fails for another reason is no shorter witness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .finding import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .subject import Bench

__all__ = ["shrink"]

Witness = TypeVar("Witness")


def shrink(
    bench: Bench,
    witness: Witness,
    violation: Violation,
    run: Callable[[Bench, Witness], object],
    shorter: Callable[[Witness, int], Iterable[Witness] | None],
) -> Violation:
    """The violation of the shortest witness that can be had by leaving out one thing after the other.

    Parameters
    ----------
    bench : Bench
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
                found = _violation(bench, candidate, run)
                if found is not None and found.requirement == violation.requirement:
                    witness, violation, changed = candidate, found, True
                    break
            else:
                position += 1
    return violation


def _violation(bench: Bench, witness: Witness, run: Callable[[Bench, Witness], object]) -> Violation | None:
    try:
        run(bench, witness)
    except Violation as found:
        return found
    return None
