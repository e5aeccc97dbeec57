"""An excerpt: a rule without the actions that a violation does not need, so that its program is short.

A rule cannot be taken apart as a scenario can, because it is a function.  It is run again instead, and some of its
actions are not taken.  What is left is a witness only if the reference gets through the very same excerpt: otherwise
the rule would be what is wrong with it, since it goes on expecting what was left out.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..engine.shrinking import shrink
from .reference import IntReferenceBlob, ReferenceBlob

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from ..engine.finding import Violation
    from ..engine.subject import Subject
    from .driver import BlobDriver

    Rule = Callable[[Subject], Iterator[BlobDriver]]

__all__ = ["Actions", "Enough", "now", "shortened", "watched"]


class Enough(Exception):
    """The last action of an excerpt was taken, and nothing was found."""


class Actions:
    """The actions of a rule, counted from 0 on over all its drivers, and which of them are taken.

    Parameters
    ----------
    left_out : frozenset of int
    last : int, optional
        After which one the rule is at its end.

    Attributes
    ----------
    count : int
        How many there were so far.
    first : int
        The first of the present driver.
    """

    def __init__(self, left_out: frozenset[int] = frozenset(), last: int | None = None) -> None:
        self.count = self.first = 0
        self._left_out, self._last = left_out, last

    def begin_driver(self) -> None:
        """Another driver begins."""
        self.first = self.count

    def take(self) -> bool:
        """Whether the action that is next is taken.

        Raises
        ------
        Enough
        """
        if self._last is not None and self.count > self._last:
            raise Enough
        self.count += 1
        return self.count - 1 not in self._left_out


_NOW: ContextVar[Actions | None] = ContextVar("_NOW", default=None)


def now() -> Actions:
    """The actions of the rule that is run; those of nothing in particular are all taken."""
    return _NOW.get() or Actions()


@contextmanager
def watched(actions: Actions) -> Generator[None]:
    """While a rule is run: its actions are these."""
    token = _NOW.set(actions)
    try:
        yield
    finally:
        _NOW.reset(token)


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """What is run of a rule.

    Attributes
    ----------
    rule : Rule
    actions : range
        Those that led to the violation, in its own driver.
    left_out : frozenset of int
    """

    rule: Rule
    actions: range
    left_out: frozenset[int] = frozenset()


def shortened(subject: Subject, rule: Rule, violation: Violation, actions: Actions) -> Violation:
    """The violation with a program from which no action can be left out."""
    excerpt = _Excerpt(rule, range(actions.first, actions.count))
    return shrink(subject, excerpt, violation, _run, _shorter)


def _run(subject: Subject, excerpt: _Excerpt) -> None:
    """Run an excerpt: first with the small blob, which must get through.

    Raises
    ------
    Violation
    """
    small = ReferenceBlob if subject.profile == "safe" else IntReferenceBlob
    try:
        _take(replace(subject, make=small), excerpt)
    except Exception:  # noqa: BLE001 -- whatever the rule stumbles over without what was left out
        return
    _take(subject, excerpt)


def _take(subject: Subject, excerpt: _Excerpt) -> None:
    with watched(Actions(excerpt.left_out, excerpt.actions[-1])), suppress(Enough):
        for _ in excerpt.rule(subject):
            pass


def _shorter(excerpt: _Excerpt, position: int) -> Iterator[_Excerpt] | None:
    """The excerpt without a run of its actions: all of them, each half, each quarter, and so on down to each one."""
    size, actions = len(excerpt.actions), excerpt.actions
    runs = [actions]
    while size > 1:
        size = -(-size // 2)
        runs += (actions[start : start + size] for start in range(0, len(actions), size))
    if position >= len(runs):
        return None
    more = excerpt.left_out.union(runs[position])
    return iter(() if more == excerpt.left_out else (replace(excerpt, left_out=more),))
