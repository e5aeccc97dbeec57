"""What is left out: a mask, so that one bug does not hide the others; and findings that are known.

A line of a file of known findings has the key of a finding, as a report prints it, or only its requirement, for all
findings about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncedmem.model.files import read_text

from ..requirements import requirements_of
from .finding import OPERATIONS, TargetError, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .finding import Finding, HeapStep

__all__ = ["DAMAGED", "NEEDED", "NO_MASK", "Mask", "read_known", "reason_of", "requirement_named"]

NEEDED = frozenset({"allocate", "free", "check", "compare"})
"""What every round needs."""

_ONLY_FOR: dict[str, tuple[str, ...]] = {
    "A06-out-of-memory": ("request_too_much", "request_too_many", "resize_too_much"),
    "A09-zero-size": ("allocate-nothing", "calloc-nothing"),
    "A15-copies": ("copy", "copy_nothing"),
}
"""Operations that are left out with a requirement: after a violation the shadow heap would no longer be right."""

DAMAGED = frozenset({
    "A01-distinct-pointers", "A02-no-overlap", "A07-free-accepts", "A09-zero-size", "A15-copies", "A16-no-leaks",
})  # fmt: skip
"""After a violation of one of these a round ends: nothing after it could be judged."""


@dataclass(frozen=True)
class Mask:
    """What a round leaves out."""

    unjudged: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, requirements: Iterable[str]) -> Mask:
        """The mask for requirements."""
        unjudged = frozenset(requirements)
        return cls(unjudged, frozenset(kind for name in unjudged for kind in _ONLY_FOR.get(name, ())))

    @classmethod
    def after(cls, findings: Iterable[Finding]) -> Mask:
        """The mask that lets through what is not yet known; a crash or a hang is left out with its operations."""
        mask = cls()
        for finding in findings:
            mask |= cls.of([finding.requirement])
            if finding.repeats and finding.requirement in {"A22-no-crash", "A23-no-hang"}:
                mask |= cls(without=frozenset(map(kind_of, finding.program)) - NEEDED)
        return mask

    @classmethod
    def from_json(cls, data: dict[str, list[str]] | None) -> Mask:
        """The mask from JSON; None leaves nothing out."""
        return cls() if data is None else cls(frozenset(data["unjudged"]), frozenset(data["without"]))

    def as_json(self) -> dict[str, list[str]]:
        """The mask as data."""
        return {"unjudged": sorted(self.unjudged), "without": sorted(self.without)}

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.unjudged | other.unjudged, self.without | other.without)

    @property
    def passed_over(self) -> frozenset[str]:
        """What an oracle lets pass, because it can go on afterwards."""
        return self.unjudged - DAMAGED

    def leaves_out(self, step: HeapStep) -> bool:
        """Whether a step is left out: a kind without marks stands for all kinds of its operation."""
        kind = kind_of(step)
        return any(kind == item or kind.startswith(f"{item}-") for item in self.without)


NO_MASK = Mask()
"""Leaves nothing out."""


# --- findings that are known: a file with a key on each line, and the reason after #

_WANTED = "a list of known findings"


def requirement_named(text: str) -> str:
    """The requirement of allocators with this name or number: ``A22-no-crash`` or ``A22``."""
    for name in requirements_of("allocator"):
        if text in {name, name.partition("-")[0]}:
            return name
    raise TargetError(f"there is no requirement {text!r} of allocators; a name is like A22-no-crash, or A22")


def read_known(path: Path) -> dict[str, str]:
    """The keys in a file, each with its reason."""
    reasons: dict[str, str] = {}
    for number, line in enumerate(read_text(path, _WANTED).splitlines(), 1):
        key, _, reason = line.partition("#")
        if not key.strip():
            continue
        requirement, colon, kinds = key.strip().partition(":")
        try:
            name = requirement_named(requirement)
        except TargetError as error:
            raise TargetError(f"{path}, line {number}: {error}") from None
        wrong = [kind for kind in kinds.split("+") if kind.partition("-")[0] not in OPERATIONS] if colon else []
        if wrong:
            raise TargetError(f"{path}, line {number}: there is no operation {wrong[0]!r}")
        reasons[name + colon + kinds] = reason.strip()
    return reasons


def reason_of(known: dict[str, str], finding: Finding) -> str | None:
    """Why a finding is known; None if it is not."""
    return known.get(finding.key, known.get(finding.requirement))
