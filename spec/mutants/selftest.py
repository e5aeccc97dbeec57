"""The kit itself is tested: every seeded bug must be caught, for what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..blob import blob_suite_names, check_blobs
from ..memory.kit import check_conformance, suite_names
from ..requirements import REQUIREMENTS
from .memory import MEMORY_BUGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..engine.subject import Subject
    from .registry import SeededBug

__all__ = ["BLOBS_QUICKEST_FIRST", "QUICKEST_FIRST", "Kill", "kill_table", "quickest_first", "run_bug"]


QUICKEST_FIRST = ("cells", "contracts", "flights", "stumbles", "tour", "counters", "hsi", "sizes", "failures", "walks")
"""The suites by what they cost for each bug that they catch first."""

BLOBS_QUICKEST_FIRST = ("rules", "tables", "shapes", "types", "sequences", "failures", "walks")
"""The same for blobs."""


def quickest_first(bug: SeededBug) -> tuple[str, ...]:
    """The suites for a bug, by what they cost."""
    return BLOBS_QUICKEST_FIRST if _is_blob(bug) else QUICKEST_FIRST


def _is_blob(bug: SeededBug) -> bool:
    return REQUIREMENTS[bug.requirement].kind == "blob"


class Kill(NamedTuple):
    """What became of one bug.

    Attributes
    ----------
    bug : SeededBug
    caught : dict
        The suites that caught it, each with the requirement it named.
    missed : tuple of str
        The suites that saw nothing wrong.
    """

    bug: SeededBug
    caught: dict[str, str]
    missed: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether some suite caught it, and named the requirement that it breaks."""
        return self.bug.requirement in self.caught.values()


def run_bug(
    bug: SeededBug, subject: Subject, *, steps: int = 300, suites: Iterable[str] | None = None, thorough: bool = False
) -> Kill:
    """Put one wrong memory or blob to the suites until one names what is wrong, the quickest first.

    Parameters
    ----------
    bug : SeededBug
    subject : Subject
        Its maker is replaced by the bug's; of the kind that the bug shows on.
    steps : int
        Generated steps.
    suites : iterable of str, optional
        Only these.
    thorough : bool
        Put it to all of them, to see which others would have caught it.
    """
    wrong = replace(subject, name=bug.name, make=bug.make)
    check, names = (check_blobs, blob_suite_names) if _is_blob(bug) else (check_conformance, suite_names)
    offered = set(names(wrong) if suites is None else suites)
    kill = Kill(bug, {})
    for name in (name for name in quickest_first(bug) if name in offered):
        if kill.killed and not thorough:
            break
        violation = check(wrong, steps=steps, suites=[name]).suites[0].violation
        if violation is None:
            kill = kill._replace(missed=(*kill.missed, name))
        else:
            kill.caught[name] = violation.requirement
    return kill


def kill_table(device: Callable[[], Subject], no_device: Callable[[], Subject], *, steps: int = 300) -> Iterator[Kill]:
    """Every seeded bug, each on a subject of its own of the kind it shows on."""
    for bug in MEMORY_BUGS.values():
        subject = device() if bug.shows_on == "device" else no_device()
        yield run_bug(bug, subject, steps=steps, thorough=True)
