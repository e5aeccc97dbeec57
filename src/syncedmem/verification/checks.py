"""The main job: the model against what was observed of Caffe, then every device of this machine against the spec."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from syncedmem.model import (
    EDITIONS,
    InvalidArgumentError,
    MissingPackageError,
    NoDeviceError,
    configurations,
    head_machine,
    hsi_suite,
    matrix,
    minimal_machine,
    space,
    tour,
)
from syncedmem.runtime import Blob, SimulatedDeviceAllocator, SyncedMemory, named_device
from syncedmem.runtime.devices.compilers import check_switch
from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.runtime.devices.registry import DEVICE_NAMES, check_environment, parse_device, report_of, sibling
from syncedmem.spec import (
    REQUIREMENTS,
    Conformance,
    Coverage,
    Subject,
    SuiteResult,
    Violation,
    check_blobs,
    check_conformance,
    compare_model,
)
from syncedmem.spec.engine.report import check_steps
from syncedmem.spec.engine.subject import edition_of
from syncedmem.spec.engine.supervisor import Death, side_by_side
from syncedmem.spec.proofs import summarise
from syncedmem.spec.requirements import requirements_of

from .verdicts import DeviceVerdict, ModelVerdict, Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from syncedmem.spec.engine.supervisor import Watch

__all__ = ["SUBJECTS", "make_blob_subject", "make_subject", "verify", "verify_device", "verify_model"]

HOST, SEEDED = "cpu", "simulated-seeded"

Verdicts: TypeAlias = "Iterator[tuple[str, DeviceVerdict]]"

SUBJECTS = (HOST, "simulated", SEEDED, *(name for name in DEVICE_NAMES if name != "simulated"))
"""What `verify` goes through: host memory alone, then each device; the simulated one also with a seeded scheduler."""


def verify_model() -> ModelVerdict:
    """Build every edition, compare with what was observed of Caffe, prove what always holds, and count."""
    for edition in EDITIONS:
        head_machine(edition)
    proofs = summarise()
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
        "invariants": proofs.invariants,
        "proved_states": sum(proofs.states.values()),
    }
    return ModelVerdict(counts, [*compare_model(), *proofs.problems], proofs.induction)


def make_subject(name: str, seed: int) -> Subject:
    """The subject of a device of this machine.

    Raises
    ------
    NoDeviceError
        If it is not available; the message says why.
    """
    source = f"from syncedmem.verification import make_subject\nsubject = make_subject({name!r}, {seed})"
    if name == HOST:
        return Subject(name, SyncedMemory, cpu_allocator(), None, source=source)
    kind, ordinal = _parsed(name)
    device: Any = SimulatedDeviceAllocator(ordinal, seed=seed) if kind == SEEDED else named_device(name)
    return Subject(
        name, SyncedMemory, cpu_allocator(), device, "safe", sibling(device), check_device=True, source=source
    )


def _parsed(name: str) -> tuple[str, int]:
    """The one of `SUBJECTS` that a name names, and the number of the device.

    Raises
    ------
    InvalidArgumentError
        If the name is unknown.
    NoDeviceError
        If no number follows the colon.
    """
    kind, _, number = name.partition(":")
    if kind not in SUBJECTS or (number and kind == HOST):
        raise InvalidArgumentError("device", name, f"one of {', '.join(SUBJECTS)}")
    return kind, parse_device(name.replace(SEEDED, "simulated"))[1]


def make_blob_subject(name: str, seed: int) -> Subject:
    """The same for blobs.

    Raises
    ------
    NoDeviceError
    """
    source = f"from syncedmem.verification import make_blob_subject\nsubject = make_blob_subject({name!r}, {seed})"
    return replace(make_subject(name, seed), make=Blob, source=source)


def verify_device(
    name: str, *, steps: int, seed: int, progress: Callable[[str, int], None] | None = None
) -> DeviceVerdict:
    """Run every check on one device, or say why it is not available; blobs are given a third of the steps."""
    try:
        subject, blobs = make_subject(name, seed), make_blob_subject(name, seed)
    except NoDeviceError as error:
        return DeviceVerdict(name, str(error), None)
    known = report_of(name) if _parsed(name)[0] in DEVICE_NAMES else None
    return DeviceVerdict(
        name,
        "",
        check_conformance(subject, steps=steps, seed=seed, progress=progress),
        check_blobs(blobs, steps=steps // 3, seed=seed, progress=progress),
        *((known.limits, known.detail) if known else ()),
    )


def verify(
    devices: Sequence[str] = SUBJECTS,
    *,
    steps: int,
    seed: int,
    processes: int = 1,
    watch: Watch = lambda _: nullcontext(),
) -> Verification:
    """Check the model, then each device.

    Parameters
    ----------
    devices : sequence of str
        Names from `SUBJECTS`; a number says which one of its kind, as in ``"cuda:1"``.
    steps : int
        Generated steps on each device.
    seed : int
    processes : int
        How many devices are checked at a time, each in a process of its own; with 1 all are checked in this one.
    watch : callable
        Given a device's name, a context for the time it is checked, which gives who is told of its progress, or None.

    Raises
    ------
    InvalidArgumentError
        If a name is unknown, a number is out of range, or an environment variable has a value without meaning.
    NoDeviceError
        If ``SYNCEDMEM_DEVICE`` names no device at all.
    """
    check_environment()
    check_switch()
    for name in devices:
        _parsed(name)
    check_steps(steps)
    if type(processes) is not int or processes < 1:
        raise InvalidArgumentError("processes", processes, "an integer, 1 or more")
    start = time.perf_counter()
    model = verify_model()
    job = partial(verify_device, steps=steps, seed=seed)
    found = dict(_one_by_one(job, devices, watch) if processes == 1 else _at_once(job, devices, processes, watch))
    return Verification(seed, model, [found[name] for name in devices], time.perf_counter() - start, _unchecked())


def _unchecked() -> str:
    """Which requirements are checked nowhere for want of a package, and how to install it; empty if none."""
    try:
        Blob((1,), device=None).to_proto()
    except MissingPackageError as error:
        numbers = [it.id.partition("-")[0] for it in REQUIREMENTS.values() if it.needs == "messages"]
        return f"{numbers[0]} to {numbers[-1]} are not checked: {error}"
    return ""


def _one_by_one(job: Callable[..., DeviceVerdict], devices: Sequence[str], watch: Watch) -> Verdicts:
    for name in devices:
        with watch(name) as progress:
            yield name, job(name, progress=progress)


def _at_once(job: Callable[..., DeviceVerdict], devices: Sequence[str], processes: int, watch: Watch) -> Verdicts:
    # The last take longest, and what takes longest should not begin last.
    for name, answer in side_by_side(job, devices[::-1], processes=processes, watch=watch):
        yield name, _dead(name, answer) if isinstance(answer, Death) else answer


def _dead(name: str, death: Death) -> DeviceVerdict:
    """A verdict on a device whose checks took their process with them."""
    violation = Violation("crash", f"the process {death.how}; done last: {death.cases} of {death.stage}")
    suite = SuiteResult(death.stage, death.cases, 0, 0.0, violation)
    coverage = Coverage(edition_of(has_device=name != HOST))
    checked = tuple(requirements_of("memory", "blob"))
    return DeviceVerdict(name, "", Conformance(name, (suite,), coverage, 0.0, checked))
