"""What one run found out of the model and of each device, and the same as data."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from syncedmem import __version__
from syncedmem.report.provenance import libraries
from syncedmem.spec.engine.checklist import Checklist
from syncedmem.spec.engine.merging import complete
from syncedmem.spec.engine.report import overall
from syncedmem.spec.requirements import requirements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.report import Verdict
    from syncedmem.spec import BlobCoverage, Conformance, Coverage, Violation
    from syncedmem.spec.engine.report import Status
    from syncedmem.spec.requirements import Kind

__all__ = ["KINDS", "DeviceVerdict", "ModelVerdict", "Verification", "surroundings"]

KINDS: tuple[Kind, ...] = ("memory", "blob", "buffer", "device allocator")
"""The kinds of requirements that are checked on a device, in the order of the report."""


def surroundings() -> dict[str, Any]:
    """Where and when a report is made: the date in UTC, the platform, Python, and the libraries that are installed."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "libraries": dict(libraries()),
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
    induction : str
        What became of the proofs by induction.
    """

    counts: dict[str, int]
    problems: list[str]
    induction: str = ""


@dataclass(frozen=True)
class DeviceVerdict:
    """What is known of one device.

    Attributes
    ----------
    name : str
    reason : str
        Why it is not available; empty if it is.
    parts : dict of str to Conformance
        The verdict on each part: ``"memories"``, ``"blobs"``, ``"buffers"``, ``"allocators"``.  Empty if
        the device is not available.
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
        return "passed" if all(it.passed for it in self.parts.values()) else "failed"

    @property
    def shortcomings(self) -> list[str]:
        """What was not taken of the parts without violations, although it had to be."""
        return [
            said
            for part, kit in self.parts.items()
            if not kit.violations
            for said in (
                f"{kit.coverage.missing} {kit.coverage.unit} of {part} were never taken"
                if kit.coverage.missing
                else "",
                kit.shortfall,
            )
            if said
        ]

    @property
    def violations(self) -> list[Violation]:
        """What was found, of memories first: a blob is made of them."""
        return [violation for verdict in self.parts.values() for violation in verdict.violations]

    @property
    def checks(self) -> int:
        """Checks of buffers and of allocators that were made."""
        return sum(it.coverage.taken for it in self.parts.values() if isinstance(it.coverage, Checklist))

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
    surroundings : dict
        What `surroundings` returns.
    steps : int
        The generated steps that were asked for on each device.
    requested : tuple of str
        The devices that were asked for by name; without them the report is incomplete.
    spread : dict
        With several seeds: the machines, with what each has done, as data; empty with one seed.
    """

    seed: int
    model: ModelVerdict
    devices: list[DeviceVerdict] = field(default_factory=list[DeviceVerdict])
    seconds: float = 0.0
    unchecked: str = ""
    surroundings: dict[str, Any] = field(default_factory=surroundings)
    steps: int = 0
    requested: tuple[str, ...] = ()
    spread: dict[str, Any] = field(default_factory=dict[str, Any])

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
        """The names of those that were asked for."""
        return [name for name in self.unavailable if name in self.requested]

    @property
    def verdict(self) -> Verdict:
        """Failed if something is wrong; incomplete if no device ran, or a device or a seed that was wanted did not."""
        if self.model.problems or any(device.status == "failed" for device in self.devices):
            return "failed"
        return "incomplete" if self.missing or not self.ran or not complete(self.spread) else "passed"

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong, and nothing that was asked for is missing."""
        return self.verdict == "passed"

    def requirement_status(self, requirement: str) -> Status:
        """A requirement's status over all devices: failed on one is failed."""
        return overall(device.requirement_status(requirement) for device in self.ran)

    def as_json(self) -> dict[str, Any]:
        """The report as data; format 1."""
        return {
            "format": 1,
            "syncedmem": __version__,
            **self.surroundings,
            "passed": self.passed,
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            **({"spread": self.spread} if self.spread else {}),
            "model": {**self.model.counts, "induction": self.model.induction, "problems": self.model.problems},
            "unchecked": self.unchecked,
            "devices": [_device_json(device) for device in self.devices],
            "requirements": [
                {
                    "id": it.id,
                    "profile": it.profile,
                    "status": self.requirement_status(it.id),
                    "text": it.text,
                    "source": it.source,
                }
                for it in requirements_of(*KINDS).values()
            ],
        }


def _device_json(device: DeviceVerdict) -> dict[str, Any]:
    found = device.memories
    if found is None:
        return {"name": device.name, "status": device.status, "reason": device.reason}
    return {
        "name": device.name,
        "status": device.status,
        "detail": device.detail,
        "limits": device.limits,
        "edition": found.coverage.edition,
        "cells": found.coverage.cells,
        "states": found.coverage.states,
        "transitions": found.coverage.transitions,
        "transitions_missing": found.coverage.missing,
        "walks": device.walks,
        "steps": device.steps,
        "seconds": round(device.seconds, 2),
        "generated": found.generated and found.generated.as_json(),
        "suites": _suites_json(found),
        "blobs": None if device.blobs is None else _blobs_json(device.blobs),
        **{part: _checks_json(device.parts[part]) for part in ("buffers", "allocators") if part in device.parts},
        "violations": [
            {"requirement": v.requirement, "message": v.message, "reproducer": v.reproducer} for v in device.violations
        ],
        "requirements": {it: device.requirement_status(it) for it in requirements_of(*KINDS)},
    }


def _blobs_json(found: Conformance[BlobCoverage]) -> dict[str, Any]:
    return {
        "cells": found.coverage.cells,
        "cells_missing": found.coverage.missing,
        "generated": found.generated and found.generated.as_json(),
        "suites": _suites_json(found),
    }


def _checks_json(found: Conformance[Checklist]) -> dict[str, Any]:
    return {"checks": found.coverage.taken, "checks_missing": found.coverage.missing, "suites": _suites_json(found)}


def _suites_json(found: Conformance[Any]) -> list[dict[str, Any]]:
    return [{"name": s.name, "cases": s.cases, "steps": s.steps, "seconds": round(s.seconds, 2)} for s in found.suites]
