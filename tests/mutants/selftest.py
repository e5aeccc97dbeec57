"""The test of the kit itself: it must catch every seeded bug, for the right reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.spec import check_conformance, suite_names
from syncedmem.spec.blob import blob_suite_names, check_blobs
from syncedmem.spec.requirements import REQUIREMENTS

from .blob.handmade import IntHandmadeBlob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from syncedmem.spec.engine.subject import Subject

    from .registry import SeededBug

__all__ = ["BLOBS_QUICKEST_FIRST", "QUICKEST_FIRST", "Kill", "quickest_first", "run_bug", "wrong_subject"]


QUICKEST_FIRST = (
    "cells", "forms", "arguments", "elsewhere", "refused", "lent", "lifetimes", "again", "dropped", "flights", "tour",
    "several", "streams", "stumbles", "counters", "hsi", "sizes", "failures", "walks",
)  # fmt: skip
"""The suites, ordered by their cost for each bug that they are the first to catch."""

BLOBS_QUICKEST_FIRST = ("rules", "tables", "shapes", "types", "sequences", "failures", "walks")
"""The suites of blobs, in the same order."""


def quickest_first(bug: SeededBug) -> tuple[str, ...]:
    """The suites for a bug, ordered by their cost."""
    return BLOBS_QUICKEST_FIRST if _is_blob(bug) else QUICKEST_FIRST


def _is_blob(bug: SeededBug) -> bool:
    return REQUIREMENTS[bug.requirement].kind == "blob"


class Kill(NamedTuple):
    """The result for one bug.

    Attributes
    ----------
    bug : SeededBug
    caught : dict
        The suites that caught it, each with the requirement that it reported.
    missed : tuple of str
        The suites that did not catch it.
    """

    bug: SeededBug
    caught: dict[str, str]
    missed: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether some suite caught it and reported the requirement that it breaks."""
        return self.bug.requirement in self.caught.values()


def wrong_subject(bug: SeededBug, subject: Subject) -> Subject:
    """The subject with a wrong memory or blob; with the profile ``caffe`` a blob also has Caffe's limit of counts."""
    limited = _is_blob(bug) and subject.profile == "caffe" and bug.shows_on != "caffe profile"
    make: Any = type(bug.name, (bug.make, IntHandmadeBlob), {}) if limited else bug.make
    return replace(subject, name=bug.name, make=make)


def run_bug(
    bug: SeededBug, subject: Subject, *, steps: int = 300, suites: Iterable[str] | None = None, thorough: bool = False
) -> Kill:
    """Test one wrong memory or blob with the suites, the quickest first, until one reports what is wrong.

    Parameters
    ----------
    bug : SeededBug
    subject : Subject
        A subject of the kind on which the bug can be seen; its maker is replaced by the bug.
    steps : int
        The number of generated steps.
    suites : iterable of str, optional
        Run only these suites.
    thorough : bool
        Whether to run all suites, to see which others catch the bug.
    """
    wrong = wrong_subject(bug, subject)
    check, names = (check_blobs, blob_suite_names) if _is_blob(bug) else (check_conformance, suite_names)
    offered = set(names(wrong) if suites is None else suites)
    kill = Kill(bug, {})
    for name in (name for name in quickest_first(bug) if name in offered):
        if kill.killed and not thorough:
            break
        violation = check(wrong, steps=steps, suites=[name], shorten=False).suites[0].violation
        if violation is None:
            kill = kill._replace(missed=(*kill.missed, name))
        else:
            kill.caught[name] = violation.requirement
    return kill
