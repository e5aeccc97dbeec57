"""A scenario: blobs of one type, and the steps done to them.  Here scenarios are run, and shortened.

Enumerated tests, rules and generated tests are all scenarios, so every failure is shrunk and shown in the same
way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from ..engine.shrinking import shortest
from .driver import BlobDriver
from .elements import USUAL
from .moves import Extents, Fail, Prepare, Refusal, Shows, Unchanged
from .reference import IntReferenceBlob, ReferenceBlob
from .steps import SCALES, BlobCall, unmoved
from .tables import cell_of

if TYPE_CHECKING:
    from syncedmem.model import Mode

    from ..engine.subject import Subject
    from ..engine.violation import Violation
    from .moves import Move
    from .oracle import Shape
    from .steps import Numbers
    from .tables import Row

__all__ = ["Scenario", "TableRow", "in_mode", "run_scenario", "shortened"]

_ABOUT = {
    "update": "B29-update-side",
    "copy_from": "B40-copy-by-mode",
    **dict.fromkeys(SCALES, "B36-scale-side"),
}
"""The requirement that the table of each call checks."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Blobs and the steps done to them.

    Attributes
    ----------
    shapes : tuple
        The shape of each blob; None for a blob without a shape.
    steps : tuple of Move
    dtype : str
    """

    shapes: tuple[Shape | None, ...]
    steps: tuple[Move, ...]
    dtype: str = USUAL


class TableRow(NamedTuple):
    """A call with its row of a table."""

    row: Row

    def renumbered(self, numbers: Numbers) -> TableRow:
        """The same row, if its blobs keep their numbers."""
        for n in self.row.step.blobs:
            unmoved(n, numbers)
        return self

    def take(self, driver: BlobDriver) -> None:
        """Make the call, and compare it with the oracle and, if this is the row's cell, with the table.

        Raises
        ------
        Violation
        """
        row = self.row
        start, known = len(driver.log.calls), _ABOUT.get(row.step.call, "B34-norm-side")
        its_cell = cell_of(driver.world, row.step) == row.cell  # not so if shrinking has removed a step before it
        driver.perform(row.step)
        if not its_cell:
            return
        wanted = tuple(head for effect in row.effects for head in effect.heads) or row.cell.heads
        found = tuple(getattr(driver.blob(n), f"{part}_memory").head for n, part in row.parts)
        driver.run.require(found == wanted, known, f"the heads are {found}, the table has {wanted}")
        if not driver.run.sees_actions:
            return
        seen = [f"{it.operation} {it.side}" for it in driver.log.calls[start:] if it.operation != "clone"]
        orders = [[action for effect in order for action in effect.actions] for order in permutations(row.effects)]
        sentence = f"saw {', '.join(seen) or 'nothing'}, the table has {orders}"
        driver.run.require(seen in (orders or [[]]), known, sentence)


def run_scenario(subject: Subject, scenario: Scenario) -> BlobDriver:
    """Run a scenario, drop all blobs, and check that nothing is left.

    Raises
    ------
    Violation
    """
    subject.mark()
    driver = BlobDriver(subject, scenario.dtype)
    for shape in scenario.shapes:
        driver.make(shape)
    for step in scenario.steps:
        step.take(driver)
    driver.finish()
    return driver


def in_mode(mode: Mode) -> BlobCall:
    """The step that changes Caffe's mode."""
    return BlobCall(0, "mode", (mode,))


# --- shortening


def shortened(subject: Subject, scenario: Scenario, violation: Violation) -> Violation:
    """The violation of the shortest scenario that breaks the same requirement.

    A step may depend on earlier steps.  So a shorter scenario counts only if the reference passes
    it; otherwise the scenario itself would be wrong.
    """
    made = tuple(_Made(n, shape) for n, shape in enumerate(scenario.shapes))
    whole: tuple[Move | _Made, ...] = (*made, *scenario.steps)

    def run(steps: tuple[Move | _Made, ...]) -> None:
        shorter = _scenario_of(steps, scenario.dtype)
        if shorter is None:
            return
        if any(isinstance(step, _EXPECTING) for step in steps) and not _is_sound(subject, steps, whole, shorter):
            return
        run_scenario(subject, shorter)

    def simpler(step: Move | _Made) -> tuple[Move, ...]:
        return (step.step,) if isinstance(step, Fail) else ()

    return shortest(whole, violation, run, simpler=simpler, program=subject.program)


def _is_sound(
    subject: Subject, steps: tuple[Move | _Made, ...], whole: tuple[Move | _Made, ...], shorter: Scenario
) -> bool:
    """Whether a shorter scenario is right: the reference passes it, or nothing that a step expects was left out."""
    if subject.program is not None:  # the reference has no allocators there
        return _ready(steps) <= _ready(whole)
    reference = replace(subject, make=ReferenceBlob if subject.profile == "safe" else IntReferenceBlob)
    try:
        run_scenario(reference, shorter)
    except Exception:  # noqa: BLE001 -- any error of a scenario that lacks a needed step
        return False
    return True


def _ready(steps: tuple[Move | _Made, ...]) -> set[tuple[object, ...]]:
    """Each step with an expectation of its own, after the steps that change something before it."""
    found, before = set[tuple[object, ...]](), list[object]()
    for step in steps:
        if isinstance(step, _EXPECTING):
            found.add((*before, step))
        if not isinstance(step, _PURE):
            before.append(step)
    return found


class _Made(NamedTuple):
    """The step that makes a blob, with the blob's number in the whole scenario."""

    number: int
    shape: Shape | None


_EXPECTING = (Refusal, Unchanged, Shows, Prepare, Extents)
"""Steps that have their own expectation; all others leave it to the oracle."""

_PURE = (Refusal, Unchanged, Shows)
"""Those of them that must change nothing."""


def _scenario_of(steps: tuple[Move | _Made, ...], dtype: str) -> Scenario | None:
    """The scenario of some steps, with its blobs counted from 0; None if a step uses a blob that is not made."""
    made = [step for step in steps if isinstance(step, _Made)]
    numbers = {it.number: n for n, it in enumerate(made)}
    try:
        renumbered = tuple(step.renumbered(numbers) for step in steps if not isinstance(step, _Made))
    except KeyError:
        return None
    return Scenario(tuple(it.shape for it in made), renumbered, dtype)
