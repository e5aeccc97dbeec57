"""The contract of device allocators: every allocator of this package meets it, and every seeded bug is caught."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar
from unittest import SkipTest

import pytest
from adaptors import MAKERS, SAMPLE, stacked
from interop_fixtures import Heap
from mutants.device_allocator import DEVICE_ALLOCATOR_BUGS
from subjects import devices

from syncedmem.model import InvalidArgumentError
from syncedmem.runtime import CPUDeviceAllocator, DeviceType, MemcpyKind, SimulatedDeviceAllocator, using_device
from syncedmem.runtime.interop.foreign import ForeignHostAllocator
from syncedmem.runtime.interop.source import Source
from syncedmem.spec import Violation
from syncedmem.spec.contracts import AllocatorContract, check_allocator
from syncedmem.spec.contracts.device_allocator import AllocatorCase
from syncedmem.spec.engine.checklist import run_checks
from syncedmem.spec.requirements import requirements_of
from syncedmem.verification.allocators import check_allocators

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mutants.registry import SeededBug


def _pooled(cuda: Any) -> Any:
    """The allocator of the same GPU that takes its memory from CuPy's pools."""
    return type(cuda)(cuda.ordinal, pool=True)


REQUIREMENTS = requirements_of("device allocator")
DEVICES = {
    **{device.name: device for device in devices()},
    **{f"{device.name} with pools": _pooled(device) for device in devices() if device.device_type is DeviceType.CUDA},
}
UPSTREAMS = [CPUDeviceAllocator(), *devices()]
ALLOCATORS: dict[str, Any] = {
    "cpu:0": CPUDeviceAllocator(),
    **DEVICES,
    **{f"pinned memory of {name}": device.pinned_host() for name, device in DEVICES.items()},
    "foreign host memory": ForeignHostAllocator(Source("a heap", Heap().take)),
    **{f"{name} over {upstream.name}": make(upstream) for name, make in MAKERS.items() for upstream in UPSTREAMS},
    **{
        f"{' over '.join(order)} over {upstream.name}": stacked(order, upstream)
        for order in SAMPLE
        for upstream in UPSTREAMS
    },
}
"""All of these must meet it: host, page-locked and device memory, each adaptor over each, and stacks of adaptors."""

LATE = "D07-late-reader"
KEEPERS = {"pool", "guarding"}
"""A pool reuses old memory, and a guarding allocator overwrites it on purpose."""


@pytest.mark.parametrize("requirement", REQUIREMENTS)
@pytest.mark.parametrize("name", ALLOCATORS)
def test_the_contract_is_kept(name: str, requirement: str) -> None:
    """Allocators whose documentation says that they break D07 do break it."""
    if requirement == LATE and KEEPERS & set(name.split()):
        with pytest.raises(Violation, match=requirement):
            check_allocator(ALLOCATORS[name], requirement)
    else:
        check_allocator(ALLOCATORS[name], requirement)


@pytest.mark.parametrize("bug", DEVICE_ALLOCATOR_BUGS.values(), ids=DEVICE_ALLOCATOR_BUGS)
def test_every_seeded_bug_is_caught(bug: SeededBug, refuse: Callable[[str, str, str], None]) -> None:
    with using_device(0), pytest.raises(Violation) as caught:
        check_allocator(bug.make(SimulatedDeviceAllocator(1)), bug.requirement)
    refuse("device allocators", bug.name, caught.value.requirement)
    assert bug.requirement == caught.value.requirement


def test_a_bug_leaves_the_rest_of_the_allocator_right() -> None:
    """Null is refused, copies of bytes are made, and a device refuses what is no stream, also null."""
    for requirement in ("D09-copies", "D16-foreign-streams"):
        check_allocator(DEVICE_ALLOCATOR_BUGS["NullFirst"].make(SimulatedDeviceAllocator()), requirement)


def test_every_requirement_has_a_bug() -> None:
    """A check that no seeded bug has failed may check nothing."""
    assert set(REQUIREMENTS) == {bug.requirement for bug in DEVICE_ALLOCATOR_BUGS.values()}
    assert all(bug.text.endswith(".") and bug.source for bug in DEVICE_ALLOCATOR_BUGS.values())


def test_what_an_allocator_stumbles_over_is_a_violation() -> None:
    without: Any = SimulatedDeviceAllocator()
    without.overlaps = None
    with pytest.raises(Violation, match=r"^D17-overlaps: TypeError: "):
        check_allocator(without, "D17-overlaps")


def test_what_goes_wrong_in_a_thread_is_a_violation() -> None:
    """Both wrong bytes and exceptions are found."""

    class Wiping(SimulatedDeviceAllocator):
        def memcpy(self, src: Any, dest: Any, byte_size: int, *rest: Any, **named: Any) -> None:
            super().memcpy(src, dest, byte_size, *rest, **named)
            if MemcpyKind.CPU2CUDA in rest:
                self.memset_zero(dest, byte_size)

    broken: Any = SimulatedDeviceAllocator()
    broken.memcpy = None
    for allocator, message in ((Wiping(), "a block has bytes of another thread"), (broken, "TypeError: ")):
        with pytest.raises(Violation, match=f"^D21-threads: {message}"):
            check_allocator(allocator, "D21-threads")


def test_threads_that_never_end_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    here, opened = threading.get_ident(), threading.Event()

    class Waiting(CPUDeviceAllocator):
        def allocate(self, byte_size: int) -> Any:
            if threading.get_ident() != here:
                opened.wait()
            return super().allocate(byte_size)

    monkeypatch.setattr(AllocatorCase, "patience", 0.01)
    with pytest.raises(Violation, match=r"^D21-threads: threads wait for each other"):
        check_allocator(Waiting(), "D21-threads")
    opened.set()


def test_a_requirement_of_another_contract_is_refused() -> None:
    """It is no violation: what it is about, this subject is not."""
    for requirement in ("R10-same-bytes", "A01-distinct-pointers", "D01"):
        with pytest.raises(InvalidArgumentError, match="a requirement of this contract"):
            check_allocator(CPUDeviceAllocator(), requirement)


def test_a_requirement_has_one_check() -> None:
    with pytest.raises(InvalidArgumentError, match="a requirement that has no check yet, got 'D01-zero-bytes'"):
        AllocatorCase.checks("D01-zero-bytes")


def test_what_is_not_counted_is_not_checked() -> None:
    class Uncounted(CPUDeviceAllocator):
        """Does not say how many blocks are live."""

        live_blocks: Any = None

    with pytest.raises(SkipTest, match="it has no live_blocks"):
        check_allocator(Uncounted(), "D08-counts")


class TestHost(AllocatorContract):
    """The published class, used as in another project."""

    def make(self) -> CPUDeviceAllocator:
        return CPUDeviceAllocator()


class Exempt(TestHost):
    """Not collected by pytest, because every skip must be on the list of allowed skips."""

    exempt: ClassVar[Mapping[str, str]] = {LATE: "a pool cannot keep old bytes"}


def test_the_class_has_a_test_for_every_requirement() -> None:
    """The docstring of each test is its requirement. A class without make() says that it has none."""
    tests = {name: test for name, test in vars(AllocatorContract).items() if name.startswith("test_")}

    assert [requirement.text for requirement in REQUIREMENTS.values()] == [test.__doc__ for test in tests.values()]
    with pytest.raises(SkipTest, match="D07-late-reader: a pool cannot keep old bytes"):
        Exempt().check(LATE)
    with pytest.raises(NotImplementedError, match=r"AllocatorContract has no make\(\)"):
        AllocatorContract().check(LATE)


def test_a_check_that_a_case_has_no_use_for_is_not_counted() -> None:
    """A violation stops the checks of its requirement, and what was not checked then is missing."""

    def skipped() -> None:
        raise SkipTest("it has none")

    def broken() -> None:
        raise Violation("D14-zeros", "wrong")

    def unprinted(_requirement: str, _case: str) -> tuple[str, ...]:
        return ()

    checks = {"D01-zero-bytes": {"one": skipped, "two": lambda: None}, "D14-zeros": {"one": broken, "two": skipped}}
    found = run_checks("a subject", checks, unprinted)

    assert (1, 2) == (found.coverage.count, found.coverage.missing)
    assert [("D14-zeros", "one: wrong")] == [
        (violation.requirement, violation.message) for violation in found.violations
    ]


def test_a_wrong_allocator_is_reported_with_a_program_that_shows_it() -> None:
    class LeavesBytes(CPUDeviceAllocator):
        def memset_zero(self, *_: Any, **__: Any) -> None:
            pass

    found = check_allocators("wrong", LeavesBytes(), "device = DEVICE")
    violation = next(violation for violation in found.violations if violation.requirement == "D14-zeros")

    with pytest.raises(Violation, match="D14-zeros"):
        exec("\n".join(violation.statements), {"DEVICE": LeavesBytes()})  # noqa: S102 -- the program is ours
    assert not found.passed
