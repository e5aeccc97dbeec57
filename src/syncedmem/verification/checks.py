"""The main job: the model against what was observed of Caffe, then every device of this machine against the spec."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from syncedmem.model import (
    EDITIONS,
    InvalidArgumentError,
    MissingPackageError,
    NoDeviceError,
    configurations,
    hsi_suite,
    matrix,
    minimal_machine,
    space,
    tour,
)
from syncedmem.model.caffe import DEFAULT, edition_for
from syncedmem.model.states import stepper
from syncedmem.runtime import Blob, SimulatedDeviceAllocator, SyncedMemory, named_device
from syncedmem.runtime.devices.host import cpu_allocator
from syncedmem.runtime.devices.registry import DEVICE_NAMES, SEEDED, check_environment, parse_device, report_of, sibling
from syncedmem.spec import (
    REQUIREMENTS,
    BlobCoverage,
    Conformance,
    Coverage,
    Subject,
    SuiteResult,
    Violation,
    check_blobs,
    check_conformance,
    compare_model,
)
from syncedmem.spec.engine.checklist import Checklist
from syncedmem.spec.engine.report import check_steps
from syncedmem.spec.engine.supervisor import Death, Limits, side_by_side
from syncedmem.spec.memory.agreement import check_sides
from syncedmem.spec.memory.policy import POLICIES
from syncedmem.spec.proofs import SENTENCES, compare, summarise
from syncedmem.spec.requirements import requirements_of

from .allocators import check_allocators
from .verdicts import DeviceVerdict, ModelVerdict, Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from syncedmem.model import Machine
    from syncedmem.spec import Policy
    from syncedmem.spec.engine.report import Covering
    from syncedmem.spec.engine.supervisor import Progress, Watch
    from syncedmem.spec.requirements import Kind

__all__ = [
    "CHECKED",
    "PARTS",
    "SUBJECTS",
    "Part",
    "make_blob_subject",
    "make_subject",
    "verify",
    "verify_machine",
    "verify_model",
    "verify_part",
]

HOST = "cpu"

_PATIENCE = 900
"""In seconds; a process that makes no progress for so long hangs."""

Answers: TypeAlias = "Iterator[tuple[str, DeviceVerdict]]"

CHECKED = (HOST, "simulated", *(name for name in DEVICE_NAMES if name != "simulated"))
"""What `verify` goes through: host memory alone, then each device."""

SUBJECTS = (*CHECKED, SEEDED)
"""What can be named: also the simulated device with a seeded scheduler.  No seeded bug is found only with it."""


def verify_model() -> ModelVerdict:
    """Build every edition, compare with what was observed of Caffe, prove what always holds, and count."""
    for machine in EDITIONS.values():
        stepper(machine)
    proofs = summarise()
    cells = [entry for row in matrix(DEFAULT).values() for entry in row.values()]
    counts = {
        "configurations": len(configurations(DEFAULT)),
        "cells": len(cells),
        "refusals": sum(entry.refusal != "" for entry in cells),
        "pinned_states": len({(state.head, state.facts) for state in space(DEFAULT).steps}),
        **_counts(DEFAULT),
        "invariants": proofs.sentences,
        "proved_states": sum(proofs.states.values()),
    }
    return ModelVerdict(counts, [*compare_model(), *proofs.problems])


def verify_machine(machine: Machine, policy: Policy | None = None) -> ModelVerdict:
    """Compare the table of a machine with its policy, and count.

    Parameters
    ----------
    machine : Machine
    policy : Policy, optional
        Those of Caffe's editions are known.  Without one, nothing says what the table has to do.

    Raises
    ------
    DeclarationError
        If the machine is unsound.
    InvalidArgumentError, UnfitPolicyError
        If the policy is none for this machine.
    """
    counts = _counts(machine)
    if policy is None and machine in EDITIONS.values():
        policy = POLICIES[machine.name]
    if policy is None:
        return ModelVerdict(counts, [])
    check_sides(machine, policy)
    agreement = compare(machine, policy)
    counts |= {"invariants": len(SENTENCES), "proved_states": agreement.states}
    return ModelVerdict(counts, [str(difference) for difference in agreement.differences])


def _counts(machine: Machine) -> dict[str, int]:
    """Sizes of the state space and of the suites of a machine."""
    words = hsi_suite(machine)
    return {
        "states": len(space(machine).steps),
        "transitions": space(machine).transitions,
        "minimal_states": len(minimal_machine(machine).access),
        "tour_steps": sum(map(len, tour(machine))),
        "hsi_words": len(words),
        "hsi_steps": sum(map(len, words)),
    }


# The kit knows what every byte has to be, so nobody needs to check its views; and so it takes half the time.
_make = partial(SyncedMemory, checked=False)


def make_subject(name: str, seed: int) -> Subject:
    """The subject of a device of this machine.

    Raises
    ------
    NoDeviceError
        If it is not available; the message says why.
    """
    source = f"from syncedmem.verification import make_subject\nsubject = make_subject({name!r}, {seed})"
    if name == HOST:
        return Subject(name, _make, cpu_allocator(), None, source=source)
    # An allocator of its own: what its scheduler does depends on this subject's calls alone.
    device: Any = SimulatedDeviceAllocator(seed=seed) if _kind(name) == SEEDED else named_device(name)
    return Subject(name, _make, cpu_allocator(), device, "safe", sibling(device), check_device=True, source=source)


def _kind(name: str) -> str:
    """The one of `SUBJECTS` that a name names.

    Raises
    ------
    InvalidArgumentError
        If the name is unknown, or gives a seed: that of the kit is the scheduler's too.
    NoDeviceError
        If no number follows the colon.
    """
    kind, _, number = name.partition(":")
    if kind not in SUBJECTS or (number and kind in (HOST, SEEDED)):
        raise InvalidArgumentError("device", name, f"one of {', '.join(SUBJECTS)}")
    return parse_device(name)[0]


def make_blob_subject(name: str, seed: int) -> Subject:
    """The same for blobs."""
    source = f"from syncedmem.verification import make_blob_subject\nsubject = make_blob_subject({name!r}, {seed})"
    return replace(make_subject(name, seed), make=Blob, source=source)


@dataclass(frozen=True)
class Part:
    """A part of what is checked on each device.

    Attributes
    ----------
    kind : Kind
        Of its requirements.
    check : callable
        Called with a device's name, the numbers of steps and of the seed, and who is told of the progress.
    nothing : callable
        The coverage before anything was checked; called with whether there is a device.
    """

    kind: Kind
    check: Callable[[str, int, int, Progress | None], Conformance[Any]]
    nothing: Callable[[bool], Covering]


def _check_memories(name: str, steps: int, seed: int, progress: Progress | None) -> Conformance[Any]:
    return check_conformance(make_subject(name, seed), steps=steps, seed=seed, progress=progress)


def _check_blobs(name: str, steps: int, seed: int, progress: Progress | None) -> Conformance[Any]:
    return check_blobs(make_blob_subject(name, seed), steps=steps // 3, seed=seed, progress=progress)


def _check_allocators(name: str, steps: int, seed: int, progress: Progress | None) -> Conformance[Any]:
    del steps
    subject = make_subject(name, seed)
    side = "host" if subject.device is None else "device"
    return check_allocators(name, getattr(subject, side), f"{subject.source}\ndevice = subject.{side}", progress)


PARTS: Mapping[str, Part] = {
    "memories": Part("memory", _check_memories, lambda here: Coverage(edition_for(has_device=here))),
    "blobs": Part("blob", _check_blobs, BlobCoverage),
    "allocators": Part("device allocator", _check_allocators, lambda _: Checklist()),
}
"""What is checked on each device, in the order of the report.

Blobs are given a third of the steps.  Allocators need no generated steps.
"""


def verify_part(job: str, *, steps: int, seed: int, progress: Progress | None = None) -> DeviceVerdict:
    """Check one part of one device, as in ``"cuda:1 blobs"``, or say why the device is not available."""
    name, part = job.split(" ")
    try:
        verdict = PARTS[part].check(name, steps, seed, progress)
    except NoDeviceError as error:
        return DeviceVerdict(name, str(error))
    known = report_of(name) if _kind(name) in DEVICE_NAMES else None
    return DeviceVerdict(name, "", {part: verdict}, *((known.limits, known.detail) if known else ()))


def verify(
    devices: Sequence[str] = CHECKED,
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
        How many parts of devices are checked at a time, each in a process of its own; with 1 all are checked in this
        one.  A process that ends without an answer loses only its part.
    watch : callable
        Given a device and a part, as in ``"cuda blobs"``, a context for the time of the check, which gives who is told
        of its progress, or None.

    Raises
    ------
    InvalidArgumentError
        If a name is unknown, a number is out of range, or an environment variable has a value without meaning.
    NoDeviceError
        If ``SYNCEDMEM_DEVICE`` names no device at all.
    """
    check_environment()
    for name in devices:
        _kind(name)
    check_steps(steps)
    if type(processes) is not int or processes < 1:
        raise InvalidArgumentError("processes", processes, "an integer, 1 or more")
    start = time.perf_counter()
    model = verify_model()
    answers: dict[str, DeviceVerdict | Death] = {}
    jobs = _jobs(devices, answers)
    job = partial(verify_part, steps=steps, seed=seed)
    beside = partial(side_by_side, processes=processes, watch=watch, limits=Limits(seconds=_PATIENCE))
    answers.update(_one_by_one(job, jobs, watch) if processes == 1 else beside(job, jobs))
    verdicts = [_whole(name, {part: answers[f"{name} {part}"] for part in PARTS}) for name in devices]
    return Verification(seed, model, verdicts, time.perf_counter() - start, _unchecked())


def _jobs(devices: Sequence[str], answers: dict[str, DeviceVerdict | Death]) -> Iterator[str]:
    """The parts of each device, in the order in which they start; not those of one that its first part did not find.

    The last devices and the first parts take longest, and what takes longest should not begin last.
    """
    first = next(iter(PARTS))
    for part, name in product(PARTS, devices[::-1]):
        answer = answers.get(f"{name} {first}")
        if isinstance(answer, DeviceVerdict) and answer.reason:
            answers[f"{name} {part}"] = answer
        else:
            yield f"{name} {part}"


def _unchecked() -> str:
    """Which requirements are checked nowhere for want of a package, and how to install it; empty if none."""
    try:
        Blob((1,), device=None).to_proto()
    except MissingPackageError as error:
        numbers = [
            requirement.id.partition("-")[0] for requirement in REQUIREMENTS.values() if requirement.needs == "messages"
        ]
        return f"{numbers[0]} to {numbers[-1]} are not checked: {error}"
    return ""


def _one_by_one(job: Callable[..., DeviceVerdict], jobs: Iterable[str], watch: Watch) -> Answers:
    for name in jobs:
        with watch(name) as progress:
            yield name, job(name, progress=progress)


def _whole(name: str, answers: Mapping[str, DeviceVerdict | Death]) -> DeviceVerdict:
    """The verdict on a device, from those on its parts."""
    parts: dict[str, Conformance[Any]] = {}
    reasons: dict[str, str] = {}
    limits = detail = ""
    for part, answer in answers.items():
        if isinstance(answer, Death):
            parts[part] = _lost(name, part, answer.stage, answer.cases, f"the process {answer.how}")
        elif answer.reason:
            reasons[part] = answer.reason
        else:
            parts[part], limits, detail = answer.parts[part], answer.limits, answer.detail
    if not parts:
        return DeviceVerdict(name, next(iter(reasons.values())))
    for part, reason in reasons.items():  # it was available to other parts
        parts[part] = _lost(name, part, "its start", 0, f"the device was not available: {reason}")
    return DeviceVerdict(name, "", {part: parts[part] for part in answers}, limits, detail)


def _lost(name: str, part: str, stage: str, cases: int, how: str) -> Conformance[Any]:
    """A verdict on a part whose check did not come to its end."""
    violation = Violation("crash", f"{part}: {how}; done last: {cases} of {stage}")
    suite = SuiteResult(stage, cases, 0, 0.0, violation)
    checked = tuple(requirements_of(PARTS[part].kind))
    return Conformance(name, (suite,), PARTS[part].nothing(name != HOST), 0.0, checked)
