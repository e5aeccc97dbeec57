"""Groups findings by their cause: one bug is one finding, and what may follow from it is listed under it.

A bug that damages memory, serves what it should refuse, or miscounts breaks several requirements, each in other rounds.
Nobody can prove that two programs fail for the same reason.  But if one of them needs no other operations than the
other, and what it breaks can cause what the other one breaks, then you have to mend it first anyway.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from .finding import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .finding import Finding, HeapStep

__all__ = ["group_by_cause"]


class _Family(NamedTuple):
    """Requirements, by their numbers, whose violation can cause each other, and what else can follow from them."""

    causes: frozenset[str]
    others: frozenset[str] = frozenset()


_FAMILIES = (
    # Memory is not what the allocator or its user takes it for.
    _Family(
        frozenset({"A01", "A02", "A04", "A07", "A10", "A11", "A12"}),
        frozenset({"A05", "A08", "A09", "A13", "A14", "A15", "A16", "A17", "A22", "A23", "A24"}),
    ),
    _Family(frozenset({"A14"}), frozenset({"A04", "A22", "A23"})),  # a resized block is not where it seems to be
    _Family(frozenset({"A05", "A06", "A18"}), frozenset({"A16"})),  # a request is answered wrongly
    _Family(frozenset({"A16", "A17", "A18", "A25"})),  # the allocator counts wrongly
)
_ENDS = {"A22", "A23"}
"""A process that ends in a call, and one that hangs in the same call, have one bug."""
_CAUSES = frozenset(chain.from_iterable(family.causes for family in _FAMILIES))

_AS_OPERATIONS = {
    "free": (), "check": (), "compare": (),  # every program ends with them
    "reset": (), "fill": ("allocate",), "reuse": ("allocate",), "request_too_much": ("allocate",),
    "request_too_many": ("calloc",), "resize_too_much": ("allocate", "resize"),
}  # fmt: skip
_AS_CYCLES = (("allocate",), ("allocate", "resize"), ("calloc",), ("allocate", "resize"), ("allocate",), ("allocate",))
"""What a cycle does, for each of its ways to allocate."""


def group_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each bug, with its consequences.

    Of those that belong together the one with the shortest program that repeats stands for all, whatever it breaks: it
    is where to look first; but none whose program breaks something before that stands here too.  So are the groups in
    order.  That a target is an arena comes last.
    """
    groups: list[list[Finding]] = []
    for finding in findings:
        group = next((group for group in groups if any(_explains(cause, finding) for cause in group)), None)
        if group is not None:
            group.append(finding)
            continue
        explained = [group for group in groups if _explains(finding, group[0])]
        groups = [group for group in groups if group not in explained]
        groups.append([finding, *chain.from_iterable(explained)])
    headed = [_in_order(group) for group in groups]
    headed.sort(key=lambda group: (group[0].is_arena, group[0].effort))
    return [replace(first, consequences=tuple(others)) for first, *others in headed]


def _in_order(group: list[Finding]) -> list[Finding]:
    """The findings of one bug: where to look first, and then the others."""
    broken = {finding.requirement for finding in group}
    first = min(group, key=lambda finding: (not broken.isdisjoint(finding.after), finding.effort))
    return [first, *sorted((item for item in group if item is not first), key=lambda finding: finding.effort)]


def _explains(cause: Finding, effect: Finding) -> bool:
    """Whether a finding may be a consequence of another one."""
    broken, later = cause.requirement[:3], _broken(effect)
    if broken == "A20":
        return False  # one thread alone has shown the other
    needed, also_needed = _operations(cause), _operations(effect)
    mutual = broken == later or any({broken, later} <= family.causes for family in _FAMILIES)
    if {broken, later} == _ENDS and _last_call(cause) == _last_call(effect) != "":
        return True
    if mutual and also_needed <= needed:
        return True
    if not (needed <= also_needed or not also_needed):
        return False
    follows = any(broken in family.causes and later in family.others for family in _FAMILIES)
    return mutual or follows or (broken in _CAUSES and cause.requirement in effect.after)


def _broken(finding: Finding) -> str:
    """The number of the broken requirement; of a finding of several threads, the number of what they have broken."""
    return (finding.message if finding.requirement == "A20-threads" else finding.requirement)[:3]


def _last_call(finding: Finding) -> str:
    """The kind of the last step; empty if the program is not known."""
    return kind_of(finding.program[-1]) if finding.program and finding.repeats else ""


def _operations(finding: Finding) -> frozenset[str]:
    """The operations that the program of a finding needs; none if its program is not known."""
    steps = finding.program if finding.repeats else ()
    return frozenset(chain.from_iterable(map(_operations_of, steps)))


def _operations_of(step: HeapStep) -> tuple[str, ...]:
    if step.operation == "cycle":
        return _AS_CYCLES[step.numbers[2]]
    return _AS_OPERATIONS.get(step.operation, (step.operation,))
