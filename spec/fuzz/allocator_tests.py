"""The suite as a test class: write a subclass with a target, and run pytest.

pytest is not imported here: a requirement that cannot be checked is skipped by ``unittest.SkipTest``, which pytest
knows.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest import SkipTest

from ..requirements import requirements_of
from .capabilities import check_names
from .finding import TargetError
from .kit import fuzz
from .mask import read_known

if TYPE_CHECKING:
    from collections.abc import Callable

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
    skips, xfails : path or None
        Files with the name of a requirement on each line, and comments after ``#``: those to skip, and those that are
        known to fail.  If one of the latter passes, that is a failure too, so the list stays right.
    """

    target: ClassVar[Any] = None
    promises: ClassVar[dict[str, str]] = {}
    steps: ClassVar[int] = 20_000
    seed: ClassVar[int] = 0
    threads: ClassVar[int] = 1
    skips: ClassVar[str | Path | None] = None
    xfails: ClassVar[str | Path | None] = None

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
        if name in _listed(self.skips):
            raise SkipTest(f"{name} is listed in {self.skips}")
        verdict = self.report().verdict(name)
        known = name in _listed(self.xfails)
        if verdict.status == "failed":
            if known:
                raise SkipTest(f"known to fail: {verdict.detail}")
            raise next(it for it in self.report().violations if it.requirement == name)
        if known:
            raise AssertionError(f"{name} is listed in {self.xfails} as known to fail, and it is {verdict.status}")
        if verdict.status == "not checked":
            raise SkipTest(f"not checked: {verdict.detail}")


@cache
def _report(tests: Any) -> Report:
    if tests.target is None:
        raise TargetError(f"{tests.__qualname__} says no target")
    target = tests.__dict__.get("target", tests.target)
    target = target.__func__ if isinstance(target, staticmethod) else target
    return fuzz(target, promises=tests.promises, steps=tests.steps, seed=tests.seed, threads=tests.threads)


def _listed(path: str | Path | None) -> set[str]:
    """The requirements that a file lists."""
    return set() if path is None else set(read_known(Path(path)))


def _test_of(requirement: Requirement) -> Callable[[AllocatorTests], None]:
    def test(self: AllocatorTests) -> None:
        self.check(requirement.id)

    test.__doc__ = requirement.text
    return test


for _name, _requirement in requirements_of("allocator").items():
    setattr(AllocatorTests, f"test_{_name.replace('-', '_')}", _test_of(_requirement))
