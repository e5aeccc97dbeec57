"""Every planted fault is caught, for the reason it was planted; the table says by what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from subjects import blob_device_subject, device_subject, host_subject, subject_for

from syncedmem.model import tour
from syncedmem.spec import (
    BLOB_FAULTS,
    FAULTS,
    REQUIREMENTS,
    Kill,
    ReferenceBlob,
    ReferenceMemory,
    Violation,
    blob_suite_names,
    kill_table,
    run_fault,
    suite_names,
)
from syncedmem.spec.memory.suites import Case, run_case
from syncedmem.spec.mutants.registry import Fault
from syncedmem.spec.mutants.selftest import BLOBS_QUICKEST_FIRST, QUICKEST_FIRST

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS_000 = ("000:35", "000:36", "000:57", "000:59", "000:125", "000:127", "000:142", "000:236", "000:249")
SEEDS_001 = ("001:63", "001:97", "001 never")


ALL = {**FAULTS, **BLOB_FAULTS}


@pytest.mark.parametrize("fault", ALL.values(), ids=ALL)
def test_the_kit_catches(fault: Fault, report_kill: Callable[[Kill], None], every_suite: bool) -> None:
    """Some suite refuses it and names the requirement it breaks."""
    kill = run_fault(fault, subject_for(fault), thorough=every_suite)
    report_kill(kill)

    assert kill.killed, f"{fault.name} ({fault.text}) should break {fault.requirement}, caught: {kill.caught}"


def test_every_requirement_has_a_fault() -> None:
    """A requirement without one is not tested."""
    assert set(REQUIREMENTS) == {fault.requirement for fault in ALL.values()}
    assert {"memory"} == {REQUIREMENTS[fault.requirement].kind for fault in FAULTS.values()}
    assert {"blob"} == {REQUIREMENTS[fault.requirement].kind for fault in BLOB_FAULTS.values()}
    assert len(ALL) == len(FAULTS) + len(BLOB_FAULTS)
    assert len(FAULTS) >= 45


@pytest.mark.parametrize("line", SEEDS_000 + SEEDS_001)
def test_every_behavioural_erratum_of_the_seeds_is_planted(line: str) -> None:
    """What can be wrong in a running memory; misspelt names and missing guards cannot."""
    assert any(line in fault.source for fault in FAULTS.values())


@pytest.mark.parametrize("page", ["README.md", "docs/design.md"])
def test_pages_say_how_many_faults_there_are(page: str) -> None:
    """A number that is written by hand is compared."""
    text = (Path(__file__).parent.parent / page).read_text(encoding="utf-8")

    assert f"{len(FAULTS)} " in text
    assert f"{len(BLOB_FAULTS)} " in text


def test_every_fault_says_what_is_wrong_and_where_it_comes_from() -> None:
    assert all(fault.text.endswith(".") and fault.source for fault in ALL.values())


def test_every_suite_is_tried_on_a_fault() -> None:
    """And a fault that one has named is put to the others only on request."""
    fault = FAULTS["ShadowBuffer"]
    quick, thorough = (run_fault(fault, device_subject(), steps=60, thorough=wanted) for wanted in (False, True))

    assert set(suite_names(device_subject())) == set(QUICKEST_FIRST)
    assert ({"cells": fault.requirement}, ()) == (quick.caught, quick.missed)
    assert set(QUICKEST_FIRST) == {*thorough.caught, *thorough.missed}


def test_every_suite_of_blobs_is_tried_on_a_fault() -> None:
    """As for memories."""
    fault = BLOB_FAULTS["ScaleAllocates"]
    quick, thorough = (run_fault(fault, blob_device_subject(), steps=60, thorough=wanted) for wanted in (False, True))

    assert set(blob_suite_names(blob_device_subject())) == set(BLOBS_QUICKEST_FIRST)
    assert ({"tables": fault.requirement}, ("rules",)) == (quick.caught, quick.missed)
    assert set(BLOBS_QUICKEST_FIRST) == {*thorough.caught, *thorough.missed}


def test_a_fault_is_a_wrong_memory_and_not_a_broken_class() -> None:
    """At zero bytes or at one, in both modes, the kit finds what is wrong and never a slip in the fault itself."""
    words = [word for word in tour() if len(word) > 1]
    slips: list[str] = []
    for fault in FAULTS.values():
        subject = device_subject(fault.make) if fault.bench == "device" else host_subject(fault.make)
        for number, word in enumerate(words if fault.bench == "device" else tour("cpu_only")):
            try:
                run_case(subject, Case(word, number % 2))
            except Violation as found:
                if "AttributeError" in found.message or "NameError" in found.message:
                    slips.append(fault.name)

    assert {"CudaFreeWithoutDevice"} == set(slips)  # for which that is the point


def test_a_memory_without_a_fault_is_not_caught() -> None:
    """The table can say no."""
    healthy = Fault("Healthy", "R01-lazy", "a control", "device", ReferenceMemory)
    kill = run_fault(healthy, device_subject(), steps=60, suites=["cells", "contracts"])

    assert ({}, False) == (kill.caught, kill.killed)


def test_a_blob_without_a_fault_is_not_caught() -> None:
    healthy = Fault("Healthy", "B01-empty", "a control", "device", ReferenceBlob)
    kill = run_fault(healthy, blob_device_subject(), steps=60, suites=["rules", "tables"])

    assert ({}, False) == (kill.caught, kill.killed)


def test_the_table_goes_through_all_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each on a subject of the kind it shows on."""
    few = {name: FAULTS[name] for name in ("InitiallySynced", "CudaFreeWithoutDevice")}
    monkeypatch.setattr("syncedmem.spec.mutants.selftest.FAULTS", few)
    kills = list(kill_table(device_subject, host_subject, steps=0))

    assert list(few) == [kill.fault.name for kill in kills]
    assert all(kill.killed for kill in kills)
