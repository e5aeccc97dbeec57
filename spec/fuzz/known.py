"""Findings that are known: a file with a finding on each line, and the reason after ``#``.

A line has the key of a finding, as a report prints it, or only its requirement, for all findings about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncedmem.model.files import read_text

from ..requirements import requirements_of
from .finding import OPERATIONS, TargetError

if TYPE_CHECKING:
    from pathlib import Path

    from .finding import Finding

__all__ = ["named", "read_known", "reason_of"]

_WANTED = "a list of known findings"


def named(text: str) -> str:
    """The requirement of allocators with this name or number: ``A22-no-crash`` or ``A22``."""
    for name in requirements_of("allocator"):
        if text in {name, name.partition("-")[0]}:
            return name
    raise TargetError(f"there is no requirement {text!r} of allocators; a name is like A22-no-crash, or A22")


def read_known(path: Path) -> dict[str, str]:
    """The keys in a file, each with its reason."""
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path, _WANTED).splitlines(), 1):
        key, _, reason = line.partition("#")
        if not key.strip():
            continue
        requirement, colon, kinds = key.strip().partition(":")
        try:
            name = named(requirement)
        except TargetError as error:
            raise TargetError(f"{path}, line {number}: {error}") from None
        wrong = [kind for kind in kinds.split("+") if kind.partition("-")[0] not in OPERATIONS] if colon else []
        if wrong:
            raise TargetError(f"{path}, line {number}: there is no operation {wrong[0]!r}")
        found[name + colon + kinds] = reason.strip()
    return found


def reason_of(known: dict[str, str], finding: Finding) -> str | None:
    """Why a finding is known; None if it is not."""
    return known.get(finding.key, known.get(finding.requirement))
