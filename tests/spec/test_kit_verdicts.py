"""The verdicts of the conformance kit: the shortest reproducer of a failure, and what counts as a failure."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import pytest
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from subjects import ADOPT, PUSH, READ, WRITE, device_subject, host_subject

from syncedmem.model import caffe
from syncedmem.spec import Violation, check_conformance
from syncedmem.spec.cases.writing import Writer
from syncedmem.spec.engine.contents import contrasted, pattern
from syncedmem.spec.kit.trial import bench_of, run_case
from syncedmem.spec.record.steps import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncedmem.model import SyncedHead
    from syncedmem.spec.requirements import Level


def test_a_failure_is_shortened_to_the_calls_that_show_it() -> None:
    """The reproducer is Python, and nothing can be left out of it."""
    verdict = check_conformance(device_subject(MEMORY_BUGS["FourthPushSkipped"].make), suites=["counters"])
    violation = verdict.violations[0]

    assert "R21-push" == violation.requirement
    assert 4 == sum("async_gpu_push" in line for line in violation.statements)
    assert "memory = subject.make(1, host=host, device=device)" in violation.statements
    assert not verdict.passed
    assert ("failed", "not checked") == (verdict.verdict("R21-push").status, verdict.verdict("R01-lazy").status)
    with pytest.raises(Violation, match="R21-push: saw nothing, expected push gpu"):
        verdict.require()


def test_too_little_coverage_is_a_failure() -> None:
    """A subject that passes all checks still fails if too few transitions were taken."""
    verdict = check_conformance(device_subject(), suites=["counters"])

    assert ([], False) == (verdict.violations, verdict.passed)
    with pytest.raises(Violation, match="transitions were not taken"):
        verdict.require()


def test_progress_is_told_of_every_case() -> None:
    seen: list[tuple[str, int]] = []
    check_conformance(host_subject(), suites=["tour"], progress=lambda name, cases: seen.append((name, cases)))

    assert [("tour", k) for k in range(len(seen))] == seen
    assert seen


def test_a_push_that_fails_later_is_found_when_it_is_waited_for() -> None:
    """The device catches a memory that frees without the recording allocator."""

    class Sneaky(HandmadeMemory):
        def push(self, pointer: Any, stream: Any) -> None:
            super().push(pointer, stream)
            self.device.inner.release(pointer)

    with pytest.raises(Violation, match="R42-in-flight-not-freed: the push failed"):
        run_case(bench_of(device_subject(Sneaky)), Writer(caffe.CAFFE, safe=True).add(WRITE, PUSH).wait().done())


def test_a_memory_whose_head_cannot_be_read_is_refused() -> None:
    class Stumbles(HandmadeMemory):
        @property
        def head(self) -> Any:
            raise ZeroDivisionError

        @head.setter
        def head(self, head: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride] -- wrong on purpose
            del head

    assert check_conformance(device_subject(Stumbles), suites=["forms"]).violations


def test_an_error_inside_of_a_maker_is_the_memorys() -> None:
    def broken(size: int, host: Any, device: Any) -> Any:
        raise TypeError(size, host, device)

    assert "R01-lazy" == check_conformance(device_subject(broken), suites=["cells"]).violations[0].requirement


def test_a_subject_that_raises_system_exit_is_refused() -> None:
    """SystemExit counts like any other exception of a call."""

    class Exits(HandmadeMemory):
        def gpu_data(self) -> Any:
            raise SystemExit(3)

    found = check_conformance(device_subject(Exits), suites=["cells"]).violations[0]

    assert "SystemExit: 3" in found.message


# --- heads of other implementations


class Foreign(Enum):
    """The heads of another implementation."""

    UNINITIALIZED = "u"
    HEAD_AT_CPU = "c"
    HEAD_AT_GPU = "g"
    SYNCED = "s"


def headed(shown: Callable[[SyncedHead], object]) -> Any:
    """Return a memory class that shows its head in the given form."""

    class Headed:
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            self._port = HandmadeMemory(*arguments, **keywords)

        @property
        def head(self) -> object:
            return shown(self._port.head)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._port, name)

    return Headed


@pytest.mark.parametrize("form", ["itself", "foreign", "name", "value"])
def test_a_head_may_be_a_name_or_a_number(form: str) -> None:
    """A port may have its own enumeration."""

    def shown(head: SyncedHead) -> object:
        return {"itself": head, "foreign": Foreign[head.name], "name": head.name, "value": head.value}[form]

    assert check_conformance(device_subject(headed(shown)), suites=["cells"]).violations == []


@pytest.mark.parametrize("shown", ["SYNCED", 7, None, Foreign.SYNCED])
def test_a_wrong_head_is_wrong_in_any_form(shown: object) -> None:
    found = check_conformance(device_subject(headed(lambda _: shown)), suites=["cells"]).violations[0]

    assert "R02-uninitialized" == found.requirement
    assert f"the head is {getattr(shown, 'name', shown)}, expected UNINITIALIZED" == found.message


class LosesALateByte(HandmadeMemory):
    """What it shows of the host side is wrong at one byte."""

    def cpu_data(self) -> Any:
        shown = bytearray(super().cpu_data())
        shown[1020] ^= 0xFF
        return memoryview(shown).toreadonly()


def test_of_long_contents_the_bytes_that_differ_are_shown() -> None:
    content = pattern(1, 4097)[1020:1036]
    wrong = bytes([content[0] ^ 0xFF]) + content[1:]

    with pytest.raises(Violation) as found:
        run_case(bench_of(device_subject(LosesALateByte)), Writer(caffe.CAFFE, 4097, safe=True).add(WRITE, READ).done())
    assert f"cpu_data shows {wrong.hex()}, expected {content.hex()} from byte 1020 of 4097" == found.value.message
    assert ("0000", "00, 1 bytes") == contrasted(bytes(2), bytes(1))


class SpoilsWhatItRefuses(HandmadeMemory):
    """After a buffer that was refused it shows zeros."""

    refused = False

    def set_cpu_data(self, data: Any) -> None:
        try:
            super().set_cpu_data(data)
        except Exception:
            self.refused = True
            raise

    def cpu_data(self) -> Any:
        shown = super().cpu_data()
        return memoryview(bytes(len(shown))) if self.refused else shown


@pytest.mark.parametrize(("level", "requirement"), [("L1", "R10-same-bytes"), ("L4", "R32-strong-guarantee")])
def test_what_a_refused_call_spoils_is_named_as_far_as_the_level_shows(level: Level, requirement: str) -> None:
    subject = replace(device_subject(SpoilsWhatItRefuses), level=level)
    small = Buffer("small", "cpu", 1, -1)
    case = Writer(caffe.CAFFE, safe=True).add(WRITE).add(ADOPT, argument=small).add(READ).done()

    with pytest.raises(Violation) as found:
        run_case(bench_of(subject), case)
    assert requirement == found.value.requirement
