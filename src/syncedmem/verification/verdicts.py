"""What one run found out of the model and of each device, and the same as data."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

from syncedmem import __version__
from syncedmem.model.packages import LIBRARIES
from syncedmem.spec.engine.checklist import Checklist
from syncedmem.spec.engine.report import overall
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.spec import BlobCoverage, Conformance, Coverage, Violation
    from syncedmem.spec.engine.report import Status
    from syncedmem.spec.requirements import Kind

__all__ = ["KINDS", "LEGEND", "MARKS", "DeviceVerdict", "ModelVerdict", "Verification"]

MARKS: Mapping[str, str] = {"passed": "✓", "failed": "✗", "not checked": "–", "not applicable": "·"}
"""What stands for the status of a requirement in a report."""

LEGEND = "✓ passed, ✗ failed, – not checked (a package is missing, or a suite stopped before), · not applicable"
"""What the marks mean."""

KINDS: tuple[Kind, ...] = ("memory", "blob", "device allocator")
"""The kinds of requirements that are checked on a device, in the order of the report."""


def surroundings() -> dict[str, Any]:
    """Where and when a report is made: the date in UTC, the host, and the versions of Python and of our libraries."""
    ours = {"numpy", "transitions", *(name.partition("[")[0] for names in LIBRARIES.values() for name in names)}
    libraries: dict[str, str] = {}
    for name in sorted(ours):
        with suppress(metadata.PackageNotFoundError):
            libraries[name] = metadata.version(name)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "processor": platform.processor() or platform.machine(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "libraries": libraries,
    }


@dataclass(frozen=True)
class ModelVerdict:
    """What is known of the model.

    Attributes
    ----------
    counts : dict
        Sizes of the state space, of the suites and of the proofs.
    problems : list of str
        Differences from what was observed of Caffe, and what does not hold.
    """

    counts: dict[str, int]
    problems: list[str]

    @property
    def sizes(self) -> str:
        """The sizes of the state space, in words."""
        return (
            "{configurations} configurations, {cells} cells ({refusals} refused), {states} states, "
            "{transitions} transitions"
        ).format_map(self.counts)

    @property
    def proved(self) -> str:
        """What the proofs show, in a sentence."""
        return (
            f"The table does what the oracle expects, by {self.counts['invariants']} invariants in "
            f"{self.counts['proved_states']} states, for all bytes and sequences of calls."
        )


@dataclass(frozen=True)
class DeviceVerdict:
    """What is known of one device.

    Attributes
    ----------
    name : str
    reason : str
        Why it is not available; empty if it is.
    parts : dict of str to Conformance
        The verdict on each part: ``"memories"``, ``"blobs"``, ``"allocators"``.  Empty if the device is not available.
    limits : str
        What the device cannot do, such as compile kernels; empty if nothing is missing.
    detail : str
        What it is, by the name that its driver gives it; empty for host memory.
    """

    name: str
    reason: str
    parts: Mapping[str, Conformance[Any]] = field(default_factory=dict[str, "Conformance[Any]"])
    limits: str = ""
    detail: str = ""

    @property
    def memories(self) -> Conformance[Coverage] | None:
        """The verdict on memories."""
        return self.parts.get("memories")

    @property
    def blobs(self) -> Conformance[BlobCoverage] | None:
        """The verdict on blobs."""
        return self.parts.get("blobs")

    @property
    def status(self) -> str:
        """``"passed"``, ``"failed"`` or ``"unavailable"``."""
        if not self.parts:
            return "unavailable"
        return "passed" if all(part.passed for part in self.parts.values()) else "failed"

    @property
    def violations(self) -> list[Violation]:
        """What was found, of memories first: a blob is made of them."""
        return [violation for verdict in self.parts.values() for violation in verdict.violations]

    @property
    def shortfalls(self) -> list[str]:
        """What was not taken, of the parts in which nothing is wrong."""
        return [
            sentence
            for part, kit in self.parts.items()
            if not kit.violations
            for sentence in (
                f"{kit.coverage.missing} {kit.coverage.unit} of {part} were never taken" * bool(kit.coverage.missing),
                kit.shortfall,
            )
            if sentence
        ]

    @property
    def checks(self) -> int:
        """Checks of allocators that were made."""
        return sum(part.coverage.count for part in self.parts.values() if isinstance(part.coverage, Checklist))

    @property
    def walks(self) -> int:
        """Distinct generated walks."""
        return sum(verdict.walks for verdict in self.parts.values())

    @property
    def steps(self) -> int:
        """Calls made."""
        return sum(verdict.steps for verdict in self.parts.values())

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(verdict.seconds for verdict in self.parts.values())

    def requirement_status(self, requirement: str) -> Status:
        """``"passed"``, ``"failed"``, ``"not checked"`` or ``"not applicable"``."""
        return overall(verdict.verdict(requirement).status for verdict in self.parts.values())

    def as_json(self) -> dict[str, Any]:
        """The verdict as data; each part as the kit's own report has it."""
        if not self.parts:
            return {"name": self.name, "status": self.status, "reason": self.reason}
        return {
            "name": self.name,
            "status": self.status,
            "detail": self.detail,
            "limits": self.limits,
            "edition": self.memories.coverage.machine.name if self.memories else "",
            "parts": {part: conformance.as_json() for part, conformance in self.parts.items()},
            "requirements": {kind: self.requirement_status(kind) for kind in requirements_of(*KINDS)},
        }


@dataclass
class Verification:
    """Everything that one run found out.

    Attributes
    ----------
    seed : int
    model : ModelVerdict
    devices : list of DeviceVerdict
    seconds : float
    unchecked : str
        Which requirements are checked on no device for want of a package, and how to install it; empty if none.
    named : tuple of str
        The devices that were asked for by their names.
    surroundings : dict
        What `surroundings` returns.
    """

    seed: int
    model: ModelVerdict
    devices: list[DeviceVerdict] = field(default_factory=list[DeviceVerdict])
    seconds: float = 0.0
    unchecked: str = ""
    named: tuple[str, ...] = ()
    surroundings: dict[str, Any] = field(default_factory=surroundings)

    @property
    def ran(self) -> list[DeviceVerdict]:
        """The devices that are here."""
        return [device for device in self.devices if device.parts]

    @property
    def unavailable(self) -> list[str]:
        """The names of the other devices."""
        return [device.name for device in self.devices if not device.parts]

    @property
    def missing(self) -> list[str]:
        """The devices that were asked for by their names and are not here."""
        return [name for name in self.named if name in self.unavailable]

    @property
    def verdict(self) -> str:
        """``"failed"`` if the model or a device is wrong, or none ran; else ``"incomplete"`` if one is missing."""
        statuses = [device.status for device in self.devices]
        if self.model.problems or "failed" in statuses or "passed" not in statuses:
            return "failed"
        return "incomplete" if self.missing else "passed"

    @property
    def passed(self) -> bool:
        """Whether the model agrees, no device failed, at least one ran, and none that was named is missing."""
        return self.verdict == "passed"

    def requirement_status(self, requirement: str) -> Status:
        """A requirement's status over all devices: failed on one is failed."""
        return overall(device.requirement_status(requirement) for device in self.ran)

    def as_json(self) -> dict[str, Any]:
        """The report as data; format 3."""
        return {
            "format": 3,
            "syncedmem": __version__,
            **self.surroundings,
            "verdict": self.verdict,
            "passed": self.passed,
            "missing": self.missing,
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "model": {**self.model.counts, "problems": self.model.problems},
            "unchecked": self.unchecked,
            "devices": [device.as_json() for device in self.devices],
            "requirements": [
                {
                    "id": kind.id,
                    "profile": kind.profile,
                    "status": self.requirement_status(kind.id),
                    "text": kind.text,
                    "source": kind.source,
                }
                for kind in requirements_of(*KINDS).values()
            ],
        }
