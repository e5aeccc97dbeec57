"""The conformance kit with every kind of subject: which pass, which requirements apply, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from mutants.memory import MEMORY_BUGS
from subjects import device_subject, devices, host_subject

from syncedmem.model import InvalidArgumentError
from syncedmem.model.interface import DeviceType
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator, SyncedMemory
from syncedmem.spec import (
    REQUIREMENTS,
    ReferenceMemory,
    Subject,
    check_blobs,
    check_conformance,
    requirements_for,
    state_machine,
    suite_names,
)
from syncedmem.spec.engine.violation import UnfitMakerError


@pytest.mark.deep
@pytest.mark.parametrize(
    "allocator",
    [device for device in devices() if device.device_type is not DeviceType.CUDA],
    ids=lambda allocator: str(allocator.device_type.name),
)
def test_the_runtime_meets_every_requirement_on_every_device(allocator: Any) -> None:
    """All suites pass, and every state, cell and transition is taken.  For CUDA this is `test_the_gpu_conforms`."""
    subject = replace(device_subject(), device=allocator, elsewhere=None)
    verdict = check_conformance(subject, steps=1500, seed=3)
    verdict.require()
    covered = verdict.coverage

    assert (17 * 9, 62, 558, 0) == (covered.cells, covered.states, covered.count, covered.missing)
    assert verdict.passed


def test_the_runtime_without_a_device_meets_every_requirement() -> None:
    verdict = check_conformance(host_subject(), steps=600)
    verdict.require()

    assert (24, 6, 48) == (verdict.coverage.cells, verdict.coverage.states, verdict.coverage.count)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_the_runtime_passes_on_a_device_with_a_seeded_scheduler(seed: int) -> None:
    """Queued copies run at arbitrary moments, and the results that a caller sees stay the same."""
    subject = replace(device_subject(), device=SimulatedDeviceAllocator(seed=seed))

    check_conformance(subject, steps=400, seed=seed).require()


@pytest.mark.deep
def test_the_reference_without_a_bug_passes() -> None:
    """So the violation of a seeded bug comes from the bug, not from the reference."""
    check_conformance(device_subject(ReferenceMemory), steps=300).require()
    check_conformance(host_subject(ReferenceMemory), steps=100).require()


@pytest.mark.deep
def test_a_subject_of_the_caffe_profile_is_not_asked_for_more() -> None:
    """A memory that keeps only Caffe's rules passes in the Caffe profile and fails in the safe profile."""
    unsafe = MEMORY_BUGS["WriteableReadView"].make
    verdict = check_conformance(replace(device_subject(unsafe), profile="caffe"), steps=300)

    assert verdict.passed
    assert "not applicable" == verdict.verdict("R47-read-only-view").status
    assert not check_conformance(device_subject(unsafe), suites=["cells"]).passed


@pytest.mark.deep
@pytest.mark.parametrize("bug", ["WritesInFlight", "FreesInFlight", "AdoptsInFlight", "ReadsInFlight"])
def test_in_the_caffe_profile_waiting_for_a_push_is_the_callers_duty(bug: str) -> None:
    """In Caffe the only caller waits itself, so a memory that does not wait passes in this profile."""
    careless = MEMORY_BUGS[bug].make

    check_conformance(replace(device_subject(careless), profile="caffe"), steps=300).require()


@pytest.mark.deep
@pytest.mark.parametrize(("steps", "seed"), [(200, 0), (500, 1), (930, 2), (931, 3), (5000, 4)])
def test_the_memory_of_the_page_passes_the_caffe_profile(steps: int, seed: int) -> None:
    """It does what Caffe does, so no number of steps and no seed may find anything; the page runs all suites."""
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 -- the first block of our own page
    mirror = replace(device_subject(names["Mirror"]), profile="caffe")
    verdict = check_conformance(mirror, steps=steps, seed=seed, suites=["lent", "several", "walks"])

    assert [] == verdict.violations
    assert verdict.generated
    assert verdict.generated.moves.total() >= steps
    assert {"call", "mode", "wait"} == set(verdict.generated.moves)


def test_every_requirement_can_be_checked_on_some_subject() -> None:
    """Each subject leaves out only the requirements that do not apply to it."""
    device, host = set(requirements_for(device_subject())), set(requirements_for(host_subject()))

    memories = {name for name, requirement in REQUIREMENTS.items() if requirement.kind == "memory"}

    assert memories == device | host
    assert {"R30-no-gpu"} == memories - device
    assert {"R51-device-check"} == set(requirements_for(device_subject())) - set(
        requirements_for(replace(device_subject(), check_device=False))
    )


def test_requirements_are_numbered_once_and_have_a_source() -> None:
    numbers = [name.partition("-")[0] for name in REQUIREMENTS]
    by_kind = {kind: sorted(number for number in numbers if number.startswith(kind)) for kind in "RBADP"}

    for kind, found in by_kind.items():
        assert found, kind
        assert [f"{kind}{k:02}" for k in range(1, len(found) + 1)] == found
    assert len(numbers) == sum(map(len, by_kind.values()))
    assert all(requirement.text.endswith(".") and requirement.source for requirement in REQUIREMENTS.values())


def test_the_suites_fit_the_subject() -> None:
    assert "flights" in suite_names(device_subject())
    assert "flights" not in suite_names(host_subject())
    assert not {"failures", "stumbles", "flights"} & set(suite_names(replace(device_subject(), profile="caffe")))


def test_no_steps_means_no_walks() -> None:
    verdict = check_conformance(host_subject(), steps=0)

    assert (0, True) == (verdict.walks, verdict.passed)
    assert verdict.steps > 0


@pytest.mark.parametrize("profile", ["Safe", "", None, 1])
def test_an_unknown_profile_is_refused(profile: Any) -> None:
    """Otherwise a misspelt profile would silently check less."""
    with pytest.raises(InvalidArgumentError, match="profile must be one of caffe, safe, got"):
        replace(device_subject(), profile=profile)


@pytest.mark.parametrize("steps", [-1, "a", 1.5, None, True])
@pytest.mark.parametrize("check", [check_conformance, check_blobs])
def test_what_is_no_number_of_steps_is_refused(check: Any, steps: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="steps must be an integer from 0 to 1,000,000,000, got"):
        check(device_subject(), steps=steps)


@pytest.mark.parametrize(("check", "last"), [(check_conformance, "counters, walks"), (check_blobs, "walks")])
def test_an_unknown_suite_is_refused(check: Any, last: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"suites must be a list of some of .*{last}, got 'walk'"):
        check(device_subject(), suites=["walks", "walk"])
    with pytest.raises(InvalidArgumentError, match=r"suites must be a list of some of .*, got 'walks'"):
        check(device_subject(), suites="walks")


def three(*shape: object, **named: object) -> int:
    del shape, named
    return 3


@pytest.mark.parametrize("make", [lambda: None, three])
@pytest.mark.parametrize("check", [check_conformance, check_blobs])
def test_a_maker_of_something_else_is_not_judged(check: Any, make: Any) -> None:
    with pytest.raises(
        UnfitMakerError, match=r"^the maker .* (cannot be called with \(|returned 3, which has none of )"
    ):
        check(device_subject(make), steps=0)


@pytest.mark.parametrize("edition", ["caffe", "early"])
def test_an_edition_with_a_device_needs_one(edition: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        replace(host_subject(), edition=edition)

    assert ("device", None) == (caught.value.argument, caught.value.value)


@pytest.mark.parametrize("check", [check_conformance, check_blobs, state_machine])
def test_what_is_no_subject_is_refused(check: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="subject must be a Subject, got 7"):
        check(7)


def test_a_maker_that_asks_is_told_of_page_locked_memory() -> None:
    """A maker with the parameter gets the pinned allocator, or None without a device; a maker in C is left as it is."""
    told: list[dict[str, Any]] = []

    def asks(_: int, *, host: Any, device: Any, pinned: Any = None) -> None:
        told.append({"host": host, "device": device, "pinned": pinned})

    host, device = CPUDeviceAllocator(), SimulatedDeviceAllocator()
    for there in (device, None):
        make: Any = Subject("asks", cast("Any", asks), host, there).make
        make(4, host=host, device=there)
    written_in_c: Any = max

    assert [device.pinned_host(), None] == [options["pinned"] for options in told]
    assert Subject("in C", written_in_c, host, device).make is written_in_c


def test_a_maker_that_cannot_be_a_key_is_asked_each_time() -> None:
    class Maker:
        __hash__ = None  # type: ignore[assignment] # the point of the test

        def __call__(self, size: int, *, host: Any, device: Any) -> Any:
            return SyncedMemory(size, host=host, device=device)

    maker = Maker()

    assert maker is Subject("mine", maker, CPUDeviceAllocator(), None).make


class WithoutCurrent(SimulatedDeviceAllocator):
    """A device of a library that has no current device, as OpenCL has none, also where it has two devices."""

    def current_ordinal(self) -> int:
        """Its own, whichever is used."""
        return self.ordinal


@pytest.mark.deep
def test_the_device_check_is_judged_where_a_device_is_current() -> None:
    none = replace(device_subject(), device=WithoutCurrent(), elsewhere=WithoutCurrent(1))

    assert "R51-device-check" in requirements_for(device_subject())
    assert "R51-device-check" not in requirements_for(none)
    assert "R50-device-restored" in requirements_for(none)
    check_conformance(none).require()
