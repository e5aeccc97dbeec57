"""Tests of a user, run by pytest in a fork: what pytest changes in a process, faulthandler say, is gone with it.

A fork is seven times as quick as another Python, because everything is imported already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from syncedmem.runtime.memory.copies import observed  # also because pytester forgets what its runs import first
from syncedmem.spec.engine.fork import in_fork
from syncedmem.spec.engine.supervisor import Limits

if TYPE_CHECKING:
    import pytest

__all__ = ["InnerRun", "run_tests"]


class InnerRun(NamedTuple):
    """What pytest printed, how many tests ended in which way, and how many observers of copies were left behind."""

    outcomes: dict[str, int]
    text: str
    observers: int


def run_tests(pytester: pytest.Pytester, *options: str) -> InnerRun:
    """Run the files that a pytester has made."""

    def job() -> Any:
        result = pytester.runpytest_inprocess("-p", "no:xdist", *options)
        return result.parseoutcomes(), result.stdout.str(), len(observed.get())

    answer: Any = in_fork(job, pytester.path / "answer", Limits())
    assert isinstance(answer, list), answer
    return InnerRun(*answer)
