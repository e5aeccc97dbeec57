"""The kit of blobs at lower levels, and with an excepted requirement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob

from syncedmem import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import Subject, check_blobs
from syncedmem.spec.blob.kit import blob_suite_names
from syncedmem.spec.engine.report import Tolerance

if TYPE_CHECKING:
    from syncedmem.spec.requirements import Level

LAZY = "B67-shape-lazy"


def subject(make: Any = HandmadeBlob, level: Level = "L4") -> Subject:
    return Subject("blobs", make, CPUDeviceAllocator(), SimulatedDeviceAllocator(), level=level)


def test_failures_are_tried_from_their_level_on() -> None:
    assert "failures" not in blob_suite_names(subject(level="L2"))
    assert "failures" in blob_suite_names(subject(level="L3"))


def test_the_tables_are_judged_by_heads_alone() -> None:
    assert not check_blobs(subject(level="L1"), suites=["tables"]).violations
    wrong = check_blobs(subject(BLOB_BUGS["UpdateByMode"].make, "L0"), suites=["tables"], shorten=False)
    assert [it.requirement for it in wrong.violations] == ["B29-update-side"]


def test_extents_that_are_excepted_hide_nothing() -> None:
    eager = subject(BLOB_BUGS["ShapeAllocatedAtOnce"].make)
    tolerance = Tolerance([LAZY])
    assert not check_blobs(eager, suites=["tables"], tolerance=tolerance).violations
    assert tolerance.met == {LAZY}
    found = check_blobs(eager, suites=["tables"], shorten=False).violations
    assert [it.requirement for it in found] == [LAZY]
