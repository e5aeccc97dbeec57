"""The main job: the model against what was observed of Caffe, then every device of this machine against the spec."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from . import __version__
from .model import (
    EDITIONS,
    InvalidArgumentError,
    NoDeviceError,
    configurations,
    head_machine,
    hsi_suite,
    matrix,
    minimal_machine,
    space,
    tour,
)
from .runtime import Blob, SimulatedDeviceAllocator, SyncedMemory, named_device
from .runtime.devices import DEVICE_NAMES, sibling
from .runtime.host import cpu_allocator
from .spec import REQUIREMENTS, Bench, check_blobs, check_conformance, compare_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .spec import BlobCoverage, Conformance, Coverage, Violation

__all__ = ["BENCHES", "DeviceVerdict", "ModelVerdict", "Verification", "verify", "verify_device", "verify_model"]

SEEDED = "simulated-seeded"

BENCHES = ("cpu", "simulated", SEEDED, *(name for name in DEVICE_NAMES if name != "simulated"))
"""What `verify` goes through: host memory alone, then each device; the simulated one also with a seeded scheduler."""


@dataclass(frozen=True)
class ModelVerdict:
    """What is known of the model.

    Attributes
    ----------
    counts : dict
        Sizes of the state space and of the suites.
    problems : list of str
        Differences from what was observed of Caffe.
    """

    counts: dict[str, int]
    problems: list[str]


@dataclass(frozen=True)
class DeviceVerdict:
    """What is known of one device.

    Attributes
    ----------
    name : str
    reason : str
        Why it is not available; empty if it is.
    conformance : Conformance or None
        Of memories.
    blobs : Conformance or None
        Of blobs.
    """

    name: str
    reason: str
    conformance: Conformance[Coverage] | None
    blobs: Conformance[BlobCoverage] | None = None

    @property
    def verdicts(self) -> tuple[Conformance[Any], ...]:
        """Those that there are."""
        return tuple(it for it in (self.conformance, self.blobs) if it is not None)

    @property
    def status(self) -> str:
        """``"passed"``, ``"failed"`` or ``"unavailable"``."""
        if self.conformance is None:
            return "unavailable"
        return "passed" if all(it.passed for it in self.verdicts) else "failed"

    @property
    def violations(self) -> list[Violation]:
        """What was found, of memories first: a blob is made of them."""
        return [violation for verdict in self.verdicts for violation in verdict.violations]

    @property
    def walks(self) -> int:
        """Generated walks taken."""
        return sum(verdict.walks for verdict in self.verdicts)

    @property
    def steps(self) -> int:
        """Calls made."""
        return sum(verdict.steps for verdict in self.verdicts)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(verdict.seconds for verdict in self.verdicts)

    def requirement_status(self, requirement: str) -> str:
        """``"passed"``, ``"failed"`` or ``"not checked"``."""
        found = {verdict.status(requirement) for verdict in self.verdicts}
        return next((status for status in ("failed", "passed") if status in found), "not checked")


@dataclass
class Verification:
    """Everything one run found out."""

    seed: int
    model: ModelVerdict
    devices: list[DeviceVerdict] = field(default_factory=list[DeviceVerdict])
    seconds: float = 0.0

    @property
    def ran(self) -> list[DeviceVerdict]:
        """The devices that are here."""
        return [device for device in self.devices if device.conformance is not None]

    @property
    def passed(self) -> bool:
        """Whether the model agrees, no device failed, and at least one ran."""
        statuses = [device.status for device in self.devices]
        return not self.model.problems and "failed" not in statuses and "passed" in statuses

    def requirement_status(self, requirement: str) -> str:
        """A requirement's status over all devices: failed on one is failed."""
        found = {device.requirement_status(requirement) for device in self.ran}
        return next((status for status in ("failed", "passed") if status in found), "not checked")

    def as_json(self) -> dict[str, Any]:
        """The report as data; format 1."""
        return {
            "format": 1,
            "syncedmem": __version__,
            "passed": self.passed,
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "model": {**self.model.counts, "problems": self.model.problems},
            "devices": [_device_json(device) for device in self.devices],
            "requirements": [
                {
                    "id": it.id,
                    "profile": it.profile,
                    "status": self.requirement_status(it.id),
                    "text": it.text,
                    "source": it.source,
                }
                for it in REQUIREMENTS.values()
            ],
        }


def verify_model() -> ModelVerdict:
    """Build every edition, compare with what was observed of Caffe, and count."""
    for edition in EDITIONS:
        head_machine(edition)
    cells = [entry for row in matrix().values() for entry in row.values()]
    counts = {
        "configurations": len(configurations()),
        "cells": len(cells),
        "refusals": sum(entry.refusal is not None for entry in cells),
        "pinned_states": len({state.packed for state in space().steps}),
        "states": len(space().steps),
        "transitions": space().transitions,
        "minimal_states": len(minimal_machine().access),
        "tour_steps": sum(map(len, tour())),
        "hsi_words": len(hsi_suite()),
        "hsi_steps": sum(map(len, hsi_suite())),
    }
    return ModelVerdict(counts, compare_model())


def make_bench(name: str, seed: int) -> Bench:
    """The bench of a device of this machine.

    Raises
    ------
    NoDeviceError
        If it is not available; the message says why.
    """
    source = f"from syncedmem.verification import make_bench\nbench = make_bench({name!r}, {seed})"
    if name == "cpu":
        return Bench(name, SyncedMemory, cpu_allocator(), None, source=source)
    device: Any = SimulatedDeviceAllocator(seed=seed) if name == SEEDED else named_device(name)
    return Bench(name, SyncedMemory, cpu_allocator(), device, "safe", sibling(device), check_device=True, source=source)


def make_blob_bench(name: str, seed: int) -> Bench:
    """The same for blobs.

    Raises
    ------
    NoDeviceError
    """
    source = f"from syncedmem.verification import make_blob_bench\nbench = make_blob_bench({name!r}, {seed})"
    return replace(make_bench(name, seed), make=Blob, source=source)


def verify_device(
    name: str, *, steps: int, seed: int, progress: Callable[[str, int], None] | None = None
) -> DeviceVerdict:
    """Put one device to every check, or say why it is not available; blobs take half as many generated steps."""
    try:
        bench, blobs = make_bench(name, seed), make_blob_bench(name, seed)
    except NoDeviceError as error:
        return DeviceVerdict(name, str(error), None)
    return DeviceVerdict(
        name,
        "",
        check_conformance(bench, steps=steps, seed=seed, progress=progress),
        check_blobs(blobs, steps=steps // 2, seed=seed, progress=progress),
    )


def verify(
    devices: Sequence[str] = BENCHES,
    *,
    steps: int,
    seed: int,
    on_device: Callable[[str], Callable[[str, int], None] | None] = lambda _: None,
) -> Verification:
    """Check the model, then each device.

    Parameters
    ----------
    devices : sequence of str
        Names from `BENCHES`.
    steps : int
        Generated steps on each device.
    seed : int
    on_device : callable
        Told of each device as it starts; returns who is told of its progress, or None.

    Raises
    ------
    InvalidArgumentError
        If a name is unknown.
    """
    for name in devices:
        if name not in BENCHES:
            raise InvalidArgumentError("device", name, f"one of {', '.join(BENCHES)}")
    start = time.perf_counter()
    result = Verification(seed, verify_model())
    for name in devices:
        result.devices.append(verify_device(name, steps=steps, seed=seed, progress=on_device(name)))
    result.seconds = time.perf_counter() - start
    return result


def _device_json(device: DeviceVerdict) -> dict[str, Any]:
    found = device.conformance
    if found is None:
        return {"name": device.name, "status": device.status, "reason": device.reason}
    return {
        "name": device.name,
        "status": device.status,
        "edition": found.bench.edition,
        "cells": found.coverage.cells,
        "states": found.coverage.states,
        "transitions": found.coverage.transitions,
        "transitions_missing": found.coverage.missing,
        "walks": device.walks,
        "steps": device.steps,
        "seconds": round(device.seconds, 2),
        "suites": _suites_json(found),
        "blobs": None if device.blobs is None else _blobs_json(device.blobs),
        "violations": [
            {"requirement": v.requirement, "message": v.message, "script": v.reproducer} for v in device.violations
        ],
        "requirements": {it: device.requirement_status(it) for it in REQUIREMENTS},
    }


def _blobs_json(found: Conformance[BlobCoverage]) -> dict[str, Any]:
    return {"cells": found.coverage.cells, "cells_missing": found.coverage.missing, "suites": _suites_json(found)}


def _suites_json(found: Conformance[Any]) -> list[dict[str, Any]]:
    return [{"name": s.name, "cases": s.cases, "steps": s.steps, "seconds": round(s.seconds, 2)} for s in found.suites]
