"""A scenario: blobs of one type, and what is done to them; run, and made shorter.

What is enumerated and what is generated are scenarios, so that whatever fails is shrunk and shown in one way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING

from .driver import BlobDriver
from .elements import USUAL
from .steps import SCALES, BlobCall, Other
from .tables import cell_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Mode

    from ..engine.subject import Subject
    from .oracle import Shape
    from .tables import Row

__all__ = ["Scenario", "in_mode", "run_scenario", "shorter_scenario"]

_ABOUT = {
    "update": "B29-update-side",
    "copy_from": "B40-copy-by-mode",
    **dict.fromkeys(SCALES, "B36-scale-side"),
}
"""The requirement that a table is about."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What to do.

    Attributes
    ----------
    shapes : tuple
        Of each blob that is made; None for one that is given no shape.
    steps : tuple of BlobCall
    dtype : str
    row : Row or None
        The last step, with what a table says of it.
    failing : int
        Which allocator call of the last step fails, from 1; 0 for none.
    """

    shapes: tuple[Shape | None, ...]
    steps: tuple[BlobCall, ...]
    dtype: str = USUAL
    row: Row | None = None
    failing: int = 0


def run_scenario(subject: Subject, scenario: Scenario) -> BlobDriver:
    """Run a scenario, let go of all blobs, and look for what is left.

    Raises
    ------
    Violation
    """
    driver = BlobDriver.of(subject, *scenario.shapes, dtype=scenario.dtype)
    for step in scenario.steps[:-1] if scenario.failing else scenario.steps:
        driver.perform(step)
    if scenario.row is not None:
        _take_row(driver, scenario.row)
    if scenario.failing:
        driver.perform_failing(scenario.steps[-1], scenario.failing)
    else:
        driver.finish()
    return driver


def _take_row(driver: BlobDriver, row: Row) -> None:
    """Make the call of a row, and compare with the table besides the oracle, if this is its cell."""
    if cell_of(driver.world, row.step) != row.cell:  # something was left out to make the scenario shorter
        driver.perform(row.step)
        return
    start, known = len(driver.log.calls), _ABOUT.get(row.step.call, "B34-norm-side")
    driver.perform(row.step)
    seen = [f"{it.operation} {it.side}" for it in driver.log.calls[start:] if it.operation != "clone"]
    orders = [[action for effect in order for action in effect.actions] for order in permutations(row.effects)]
    driver.require(seen in (orders or [[]]), known, f"saw {', '.join(seen) or 'nothing'}, the table has {orders}")
    wanted = tuple(head for effect in row.effects for head in effect.heads) or row.cell.heads
    found = tuple(getattr(driver.blob(n), f"{part}_memory").head for n, part in row.parts)
    driver.require(found == wanted, known, f"the heads are {found}, the table has {wanted}")


def shorter_scenario(scenario: Scenario, position: int) -> Iterator[Scenario] | None:
    """A scenario with a blob left out that takes part in nothing, or a step, or a mode made the usual one."""
    blobs, steps = len(scenario.shapes), len(scenario.steps) - bool(scenario.failing)
    if position < blobs:
        return _without_blob(scenario, position)
    if position >= blobs + steps:
        return None
    at = position - blobs
    return iter((replace(scenario, steps=(*scenario.steps[:at], *scenario.steps[at + 1 :])),))


def _without_blob(scenario: Scenario, number: int) -> Iterator[Scenario]:
    last = () if scenario.row is None else (scenario.row.step,)
    used = {n for step in (*scenario.steps, *last) if step.call != "mode" for n in step.blobs}
    if number not in used and len(scenario.shapes) > 1 and scenario.row is None:
        shapes = scenario.shapes[:number] + scenario.shapes[number + 1 :]
        yield replace(scenario, shapes=shapes, steps=tuple(_renumbered(step, number) for step in scenario.steps))


def _renumbered(step: BlobCall, gone: int) -> BlobCall:
    """The step when one blob is gone."""
    arguments = tuple(Other(it.blob - (it.blob > gone)) if isinstance(it, Other) else it for it in step.arguments)
    return step._replace(blob=step.blob - (step.blob > gone), arguments=arguments)


def in_mode(mode: Mode) -> BlobCall:
    """The step that changes Caffe's mode."""
    return BlobCall(0, "mode", (mode,))
