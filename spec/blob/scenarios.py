"""A story: blobs of one type, and what is done to them; run, and made shorter.

What is enumerated and what is generated are stories, so that whatever fails is shrunk and shown in one way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING

from .driver import BlobTrial
from .elements import USUAL
from .steps import SCALES, Other, Step
from .tables import cell_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.model import Mode

    from ..engine.subject import Bench
    from .oracle import Shape
    from .tables import Row

__all__ = ["Story", "in_mode", "run_story", "shorter_story"]

_ABOUT = {
    "update": "B29-update-side",
    "copy_from": "B40-copy-by-mode",
    **dict.fromkeys(SCALES, "B36-scale-side"),
}
"""The requirement that a table is about."""


@dataclass(frozen=True, slots=True)
class Story:
    """What to do.

    Attributes
    ----------
    shapes : tuple
        Of each blob that is made; None for one that is given no shape.
    steps : tuple of Step
    dtype : str
    row : Row or None
        The last step, with what a table says of it.
    failing : int
        Which allocator call of the last step fails, from 1; 0 for none.
    """

    shapes: tuple[Shape | None, ...]
    steps: tuple[Step, ...]
    dtype: str = USUAL
    row: Row | None = None
    failing: int = 0


def run_story(bench: Bench, story: Story) -> BlobTrial:
    """Run a story, let go of all blobs, and look for what is left.

    Raises
    ------
    Violation
    """
    trial = BlobTrial.of(bench, *story.shapes, dtype=story.dtype)
    for step in story.steps[:-1] if story.failing else story.steps:
        trial.perform(step)
    if story.row is not None:
        _take_row(trial, story.row)
    if story.failing:
        trial.perform_failing(story.steps[-1], story.failing)
    else:
        trial.finish()
    return trial


def _take_row(trial: BlobTrial, row: Row) -> None:
    """Make the call of a row, and compare with the table besides the oracle, if this is its cell."""
    if cell_of(trial.world, row.step) != row.cell:  # something was left out to make the story shorter
        trial.perform(row.step)
        return
    start, known = len(trial.ledger.entries), _ABOUT.get(row.step.call, "B34-norm-side")
    trial.perform(row.step)
    seen = [f"{it.operation} {it.side}" for it in trial.ledger.entries[start:] if it.operation != "clone"]
    orders = [[action for effect in order for action in effect.actions] for order in permutations(row.effects)]
    trial.require(seen in (orders or [[]]), known, f"saw {', '.join(seen) or 'nothing'}, the table has {orders}")
    wanted = tuple(head for effect in row.effects for head in effect.heads) or row.cell.heads
    found = tuple(getattr(trial.blob(n), f"{part}_memory").head for n, part in row.parts)
    trial.require(found == wanted, known, f"the heads are {found}, the table has {wanted}")


def shorter_story(story: Story, position: int) -> Iterator[Story] | None:
    """A story with a blob left out that takes part in nothing, or a step, or a mode made the usual one."""
    blobs, steps = len(story.shapes), len(story.steps) - bool(story.failing)
    if position < blobs:
        return _without_blob(story, position)
    if position >= blobs + steps:
        return None
    at = position - blobs
    return iter((replace(story, steps=(*story.steps[:at], *story.steps[at + 1 :])),))


def _without_blob(story: Story, number: int) -> Iterator[Story]:
    last = () if story.row is None else (story.row.step,)
    used = {n for step in (*story.steps, *last) if step.call != "mode" for n in step.blobs}
    if number not in used and len(story.shapes) > 1 and story.row is None:
        shapes = story.shapes[:number] + story.shapes[number + 1 :]
        yield replace(story, shapes=shapes, steps=tuple(_renumbered(step, number) for step in story.steps))


def _renumbered(step: Step, gone: int) -> Step:
    """The step when one blob is gone."""
    arguments = tuple(Other(it.blob - (it.blob > gone)) if isinstance(it, Other) else it for it in step.arguments)
    return step._replace(blob=step.blob - (step.blob > gone), arguments=arguments)


def in_mode(mode: Mode) -> Step:
    """The step that changes Caffe's mode."""
    return Step(0, "mode", (mode,))
