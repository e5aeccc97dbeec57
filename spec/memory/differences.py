"""The requirement that a difference breaks: missing or needless allocator calls, refusals and errors.

It follows from what a call does, on the host or on a device, and from what differs; not from what the call is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncedmem.model import Input

    from ..engine.call_log import AllocatorCall
    from ..engine.subject import Subject
    from .oracle import Expected, Oracle, Wanted

__all__ = ["FLAGS", "STRAY", "Differences"]

_MISSING = {
    "allocate": "R03-allocate-when-needed",
    "zero": "R05-zeroed-first",
    "copy": "R08-copy-up",
    "free": "R17-adopt-frees-owned",
    "push": "R21-push",
}
_EXTRA = {
    "allocate": "R03-allocate-when-needed",
    "zero": "R06-zero-only-first",
    "copy": "R09-no-needless-copy",
    "clone": "R09-no-needless-copy",
    "push": "R21-push",
}
_REFUSED = {
    "released": "R48-released-refuses",
    "absent": "R30-no-gpu",
    "null": "R20-null-refused",
    "push": "R22-push-refused",
    "untouched": "R05-zeroed-first",
}
_DONE = {"adopt": "R15-adopt-device", "push": "R21-push", "pull": "R21-push", "release": "R27-release-frees-owned"}
"""The requirement of a call that does this, and raises although it should not."""
_HEAD = {"write": "R13-write-makes-stale", "overwrite": "R13-write-makes-stale", "adopt": "R15-adopt-device"}
_ON_HOST = {"R08-copy-up": "R07-copy-down", "R15-adopt-device": "R14-adopt-host"}
"""The requirement for the host in place of the one for a device."""

STRAY = {"external": "R18-external-not-freed", "pinned": "R25-pinned-frozen", "stray": "R28-freed-once"}
"""The requirement of each kind of wrong free."""
FLAGS = {"owned": "R23-own-flags", "pointer": "R23-own-flags", "pinned": "R24-pinned-by-mode"}
"""The requirement of a flag, by what it means."""


class Differences:
    """The requirements that the differences of one subject break.

    Parameters
    ----------
    subject : Subject
    """

    def __init__(self, subject: Subject) -> None:
        self._sides = len(subject.machine.sides)
        self._devices = {side for side in subject.machine.sides if not subject.is_host(side)}

    def on(self, side: str, requirement: str) -> str:
        """A requirement about a device, or the one about the host, if the side is there."""
        return requirement if side in self._devices else _ON_HOST.get(requirement, requirement)

    def of_calls(
        self, entry: Input, expected: Expected, seen: Sequence[AllocatorCall], before: Oracle
    ) -> tuple[str, str] | None:
        """Compare the allocator calls of one call with those that the oracle expects.

        Returns
        -------
        (str, str) or None
            A requirement and a sentence, or None if there is no difference.
        """
        if not before.size:
            return ("R44-size-zero", f"zero bytes, but it called {self._listed(seen)}") if seen else None
        wrong = [call for call in seen if call.byte_size != before.size]
        if wrong:
            return "R04-exact-size", f"{wrong[0].operation} of {wrong[0].byte_size} bytes, the size is {before.size}"
        wanted, found = _kinds(expected.calls), _kinds(seen)
        if wanted != found:
            requirement = self._counted(entry, expected, wanted, found, before)
            return requirement, f"saw {self._listed(seen)}, expected {self._listed(expected.calls)}"
        pinned = [call.pinned for call in expected.calls if call.operation == "allocate"]
        if pinned != [call.pinned for call in seen if call.operation == "allocate"]:
            kinds = ("pageable", "page-locked")
            return "R24-pinned-by-mode", f"the host memory is {kinds[not pinned[0]]}, expected {kinds[pinned[0]]}"
        return None

    def _counted(self, entry: Input, expected: Expected, wanted: Kinds, found: Kinds, before: Oracle) -> str:
        """The requirement that a missing, needless or misplaced allocator call breaks."""
        if missing := list((Counter(wanted) - Counter(found)).elements()):
            operation, side, _ = missing[0]
            freed = operation == "free" and entry.ends
            return "R27-release-frees-owned" if freed else self.on(side, _MISSING[operation])
        if extra := list((Counter(found) - Counter(wanted)).elements()):
            return self._extra(entry, extra[0], expected, before)
        return "R26-release-order" if entry.ends else "R03-allocate-when-needed"

    def _extra(self, entry: Input, call: tuple[str, str, str], expected: Expected, before: Oracle) -> str:
        operation, side, _ = call
        if expected.refused:
            return self.of_refusal(expected)
        if entry.does == "adopt" and (operation == "copy" or entry.side != side):
            return "R16-adopt-keeps-other"
        if operation == "allocate" and before.copy(side).owner == "memory":
            return "R29-allocated-once"
        return _EXTRA.get(operation, "R28-freed-once")

    def of_refusal(self, expected: Expected) -> str:
        """The requirement for which a call is refused."""
        return _REFUSED[expected.refused]

    def of_error(self, entry: Input, expected: Expected) -> str:
        """The requirement that a call breaks if it raises although it should not."""
        if entry.does == "adopt":
            return self.on(entry.side, _DONE["adopt"])
        worked = (call for call in expected.calls if call.operation not in ("allocate", "free"))
        if call := next(worked, None):
            return self.on(call.side, _MISSING[call.operation])
        return _DONE.get(entry.does, "R10-same-bytes")

    def of_head(self, entry: Input, expected: Expected, before: Oracle) -> str:
        """The requirement that a wrong head after a call breaks."""
        if expected.refused:
            return self.of_refusal(expected)
        if before.policy.absent and entry.does != "adopt":
            return "R11-head"
        if entry.does == "read" and before.fresh:
            return "R12-read-keeps"
        return self.on(entry.side, _HEAD.get(entry.does, "R21-push" if entry.queues else "R11-head"))

    def _listed(self, calls: Sequence[Wanted | AllocatorCall]) -> str:
        """Calls as a part of a sentence; between two sides it is clear from where a copy comes."""
        many = self._sides > _PAIR
        ways = (f"{call.source} to {call.side}" if many and call.source else call.side for call in calls)
        return ", ".join(f"{call.operation} {way}" for call, way in zip(calls, ways, strict=True)) or "nothing"


Kinds = Sequence[tuple[str, str, str]]
"""The operation, the side and the source of calls."""
_PAIR = 2


def _kinds(calls: Sequence[Wanted | AllocatorCall]) -> Kinds:
    return [(call.operation, call.side, call.source) for call in calls]
