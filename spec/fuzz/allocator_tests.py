"""The suite as a test class: write a subclass with a target, and run pytest.

pytest is not imported here: a requirement that cannot be checked is skipped by ``unittest.SkipTest``, which pytest
knows.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest import SkipTest

from ..requirements import requirements_of
from .capabilities import check_names
from .finding import TargetError
from .kit import fuzz

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..requirements import Requirement
    from .report import Report

__all__ = ["AllocatorTests"]


class AllocatorTests:
    """One test for every requirement.

    Attributes
    ----------
    target : object or str
        As for `fuzz`; a subclass must set it.
    promises : dict
        Entries that replace those of the capability record.
    steps, seed, threads : int
        As for `fuzz`.
    skip, known : tuple of str, path or None
        As for `fuzz`.  A known finding that is not found any more is a failure too, so the list stays right.
    """

    target: ClassVar[Any] = None
    promises: ClassVar[dict[str, str]] = {}
    steps: ClassVar[int] = 20_000
    seed: ClassVar[int] = 0
    threads: ClassVar[int] = 1
    skip: ClassVar[tuple[str, ...]] = ()
    known: ClassVar[str | Path | None] = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuse unknown promises, once for the class.

        Raises
        ------
        TargetError
        """
        super().__init_subclass__(**arguments)
        check_names(cls.promises)

    @classmethod
    def report(cls) -> Report:
        """The report of one run; the run is made once for a class."""
        return _report(cast("Any", cls))

    def check(self, name: str) -> None:
        """Check the verdict on one requirement."""
        report = self.report()
        verdict = report.verdict(name)
        if verdict.status == "failed":
            raise next(violation for violation in report.violations if violation.requirement == name)
        gone = [key for key in report.unseen if key.partition(":")[0] == name]
        if gone:
            raise AssertionError(
                f"{self.known} lists {gone[0]} as known, and it was not found: {name} {verdict.status}"
            )
        if verdict.status == "not checked":
            raise SkipTest(f"not checked: {verdict.detail}")


@cache
def _report(tests: Any) -> Report:
    if tests.target is None:
        raise TargetError(f"{tests.__qualname__} says no target")
    target = tests.__dict__.get("target", tests.target)
    target = target.__func__ if isinstance(target, staticmethod) else target
    options = {name: getattr(tests, name) for name in ("promises", "steps", "seed", "threads", "skip", "known")}
    return fuzz(target, **options)


def _test_of(requirement: Requirement) -> Callable[[AllocatorTests], None]:
    def test(self: AllocatorTests) -> None:
        self.check(requirement.id)

    test.__doc__ = requirement.text
    return test


for _name, _requirement in requirements_of("allocator").items():
    setattr(AllocatorTests, f"test_{_name.replace('-', '_')}", _test_of(_requirement))
