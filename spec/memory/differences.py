"""The requirement that a difference breaks: missing or needless allocator calls, refusals and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncedmem.model import Input, SyncedHead

if TYPE_CHECKING:
    from ..engine.call_log import AllocatorCall
    from .oracle import Expected, Oracle

__all__ = ["difference", "head_requirement", "refusal_requirement", "success_requirement"]

_MISSING = {
    ("allocate", "cpu"): "R03-allocate-when-needed",
    ("allocate", "gpu"): "R03-allocate-when-needed",
    ("zero", "cpu"): "R05-zeroed-first",
    ("zero", "gpu"): "R05-zeroed-first",
    ("copy", "cpu"): "R07-copy-down",
    ("copy", "gpu"): "R08-copy-up",
    ("push", "gpu"): "R21-push",
}
_ADOPTED = {"cpu": "R14-adopt-host", "gpu": "R15-adopt-device"}
_EXTRA = {
    "zero": "R06-zero-only-first",
    "copy": "R09-no-needless-copy",
    "clone": "R09-no-needless-copy",
    "push": "R21-push",
}


def difference(
    entry: Input, expected: Expected, seen: Sequence[AllocatorCall], before: Oracle
) -> tuple[str, str] | None:
    """Compare the allocator calls of one call with those that the oracle expects.

    Returns
    -------
    (str, str) or None
        A requirement and a sentence, or None if there is no difference.
    """
    if not before.size:
        return ("R44-size-zero", f"zero bytes, but it called {_listed(seen)}") if seen else None
    wrong = [call for call in seen if call.byte_size != before.size]
    if wrong:
        return "R04-exact-size", f"{wrong[0].operation} of {wrong[0].byte_size} bytes, the size is {before.size}"
    wanted = [(call.operation, call.side) for call in expected.calls]
    found = [(call.operation, call.side) for call in seen]
    sentence = f"saw {_listed(seen)}, expected {', '.join(' '.join(call) for call in wanted) or 'nothing'}"
    if requirement := _counted(entry, expected, wanted, found, before):
        return requirement, sentence
    pinned = [call.pinned for call in expected.calls if call.operation == "allocate"]
    if pinned != [call.pinned for call in seen if call.operation == "allocate"]:
        kinds = ("pageable", "page-locked")
        return "R24-pinned-by-mode", f"the host memory is {kinds[not pinned[0]]}, expected {kinds[pinned[0]]}"
    return None


Kinds = Sequence[tuple[str, str]]


def _counted(entry: Input, expected: Expected, wanted: Kinds, found: Kinds, before: Oracle) -> str:
    """The requirement that a missing, needless or misplaced allocator call breaks; empty if there is none."""
    if wanted == found:
        return ""
    if missing := list((Counter(wanted) - Counter(found)).elements()):
        return _missing_requirement(entry, missing[0])
    if extra := list((Counter(found) - Counter(wanted)).elements()):
        return _extra_requirement(entry, extra[0], expected, before)
    return "R26-release-order" if entry.ends else "R03-allocate-when-needed"


def _missing_requirement(entry: Input, call: tuple[str, str]) -> str:
    if call[0] == "free":
        return "R27-release-frees-owned" if entry.ends else "R17-adopt-frees-owned"
    return _MISSING[call]


def _extra_requirement(entry: Input, call: tuple[str, str], expected: Expected, before: Oracle) -> str:
    operation, side = call
    if expected.refused:
        return refusal_requirement(entry, before)
    if entry.does == "adopt" and (operation == "copy" or entry.side != side):
        return "R16-adopt-keeps-other"
    if operation == "allocate":
        return "R29-allocated-once" if before.copy(side).owner == "memory" else "R03-allocate-when-needed"
    return _EXTRA.get(operation, "R28-freed-once")


def refusal_requirement(entry: Input, before: Oracle) -> str:
    """The requirement for which a call is refused."""
    if before.released:
        return "R48-released-refuses"
    if not before.has(entry.side):
        return "R30-no-gpu"
    return "R22-push-refused" if entry.does == "push" else "R20-null-refused"


def success_requirement(entry: Input, expected: Expected) -> str:
    """The requirement that a call breaks if it raises although it should not."""
    if entry.does == "adopt":
        return _ADOPTED[entry.side]
    for call in expected.calls:
        requirement = _MISSING.get((call.operation, call.side))
        if requirement and call.operation != "allocate":
            return requirement
    return {"push": "R21-push", "release": "R27-release-frees-owned"}.get(entry.does, "R10-same-bytes")


def head_requirement(entry: Input, before: SyncedHead, *, has_device: bool) -> str:
    """The requirement that a wrong head after a call breaks."""
    if not has_device and (entry.side == "gpu" or entry.does != "adopt"):
        return "R30-no-gpu" if entry.side == "gpu" else "R11-head"
    if entry.does == "read" and before is not SyncedHead.UNINITIALIZED:
        return "R12-read-keeps"
    named = {
        "write": "R13-write-makes-stale",
        "adopt": _ADOPTED.get(entry.side, "") if entry.data else "R20-null-refused",
        "push": "R21-push" if before is SyncedHead.HEAD_AT_CPU else "R22-push-refused",
    }
    return named.get(entry.does, "R11-head")


def _listed(calls: Sequence[AllocatorCall]) -> str:
    return ", ".join(f"{call.operation} {call.side}" for call in calls) or "nothing"
