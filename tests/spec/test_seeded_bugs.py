"""Every seeded bug is caught, under the requirement that it breaks; the table says by which suites."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pytest
from kill_table import known_kills, worse, write_kills
from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob
from mutants.memory import MEMORY_BUGS
from mutants.memory.handmade import HandmadeMemory
from mutants.registry import SeededBug, seeded_bug
from mutants.selftest import (
    BLOBS_QUICKEST_FIRST,
    QUICKEST_FIRST,
    Kill,
    kill_table,
    run_bug,
    wrong_subject,
)
from subjects import blob_device_subject, device_subject, host_subject, subject_for

from syncedmem.model import InvalidArgumentError, NoDeviceError, caffe, tour
from syncedmem.model.defaults import DEFAULT_STEPS
from syncedmem.runtime import CPUDeviceAllocator, SimulatedDeviceAllocator
from syncedmem.spec import (
    REQUIREMENTS,
    Violation,
    blob_suite_names,
    check_blobs,
    check_conformance,
    suite_names,
)
from syncedmem.spec.memory.suites import Case, run_case
from syncedmem.spec.requirements import PROFILES, Profile, requirements_of
from syncedmem.verification.checks import SEEDED, make_subject

if TYPE_CHECKING:
    from collections.abc import Callable

ALL = {**MEMORY_BUGS, **BLOB_BUGS}

_SHARES = 24
"""One bug of so many is in the sample."""


@pytest.mark.deep(quick=45)
@pytest.mark.parametrize("bug", ALL.values(), ids=ALL)
def test_the_kit_catches(
    bug: SeededBug,
    report_kill: Callable[[Kill], None],
    every_suite: bool,
    worse_than_known: Callable[[Kill], str],
) -> None:
    """Some suite refuses it and names the requirement that it breaks, and so do all suites that are known to do it."""
    kill = run_bug(bug, subject_for(bug), thorough=every_suite)
    report_kill(kill)

    assert kill.killed, f"{bug.name} ({bug.text}) should break {bug.requirement}, caught: {kill.caught}"
    assert "" == worse_than_known(kill)


def test_a_suite_that_catches_a_bug_no_more_is_said() -> None:
    bug = MEMORY_BUGS["ShadowBuffer"]
    kill = Kill(bug, {"cells": bug.requirement, "tour": "R01-lazy"}, ("hsi",))

    def told(**known: str) -> str:
        return worse(kill, {bug.name: known}, needed=True)

    assert "" == told(cells=bug.requirement, walks=bug.requirement)  # walks were not run
    assert "" == told(tour="R02-reuse", cells="R01-lazy")  # it never named the right one, or does so now
    assert "ShadowBuffer: hsi no longer catch it" == told(hsi="R01-lazy")
    assert f"ShadowBuffer: tour no longer name {bug.requirement}" == told(tour=bug.requirement)
    assert ("", "make kill-table BUG=ShadowBuffer") == (
        worse(kill, {}, needed=False),
        worse(kill, {}, needed=True).partition(": ")[2],
    )


def test_what_is_known_of_other_bugs_stays_when_one_is_written_down(tmp_path: Path) -> None:
    file = tmp_path / "kills.json"
    bug, other = MEMORY_BUGS["ShadowBuffer"], BLOB_BUGS["ScaleAllocates"]
    write_kills(file, {it.name: Kill(it, {"walks": it.requirement}) for it in (bug, other)})
    file.write_text(file.read_text(encoding="utf-8").replace("{\n", '{\n "GoneSince": {},\n', 1), encoding="utf-8")
    write_kills(file, {bug.name: Kill(bug, {"cells": bug.requirement})})

    assert {bug.name: {"cells": bug.requirement}, other.name: {"walks": other.requirement}} == known_kills(file)
    assert {} == known_kills(tmp_path / "nothing.json")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of `sampled` run for all bugs with ``--every-suite``, and otherwise for some, which the seed chooses."""
    if "sampled" in metafunc.fixturenames:
        seed = metafunc.config.getoption("--hypothesis-seed") or 0
        everyone = bool(metafunc.config.getoption("--every-suite"))
        chosen = [it for it in ALL.values() if everyone or crc32(f"{seed} {it.name}".encode()) % _SHARES == 0]
        metafunc.parametrize("sampled", chosen, ids=lambda bug: bug.name)


@pytest.mark.deep
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_judges_its_requirements_and_nothing_else(sampled: SeededBug, profile: Profile) -> None:
    """Whatever is wrong, no violation names a requirement that the verdict did not check; with a device and without."""
    memory = sampled.name in MEMORY_BUGS
    suites = ("cells", "contracts", "walks") if memory else ("rules", "shapes", "tables", "types")
    for subject in (device_subject(), host_subject()):
        wrong = wrong_subject(sampled, replace(subject, profile=profile))
        verdict = (check_conformance if memory else check_blobs)(wrong, steps=1, suites=suites, shorten=False)
        assert {found.requirement for found in verdict.violations} <= set(verdict.checked), verdict.violations


def test_profile_caffe_kills_what_it_claims(sampled: SeededBug, every_suite: bool) -> None:
    """A bug that breaks a requirement of Caffe's is caught in this profile too, or is listed with the reason."""
    claimed = REQUIREMENTS[sampled.requirement].profile == "caffe"
    subject = replace(subject_for(sampled), profile="caffe")
    steps = DEFAULT_STEPS if every_suite else 1
    killed = claimed and run_bug(sampled, subject, steps=steps).killed

    assert killed == (claimed and not sampled.out_of_reach)


@pytest.mark.parametrize("name", [SEEDED, "opencl", pytest.param("cuda", marks=pytest.mark.deep)])
def test_a_push_that_overtakes_work_is_found_on_every_device(name: str) -> None:
    """On hostcuda only if its operations lag, as in `make deep`: without a lag nothing is ever queued."""
    try:
        subject = make_subject(name, seed=0)
    except NoDeviceError as missing:
        pytest.skip(str(missing))
    bug = MEMORY_BUGS["OvertakesWork"]
    verdict = check_conformance(wrong_subject(bug, subject), suites=("contracts",), shorten=False)

    assert {bug.requirement} == {found.requirement for found in verdict.violations}


def test_only_bugs_of_caffes_requirements_are_listed_as_out_of_reach() -> None:
    listed = [bug for bug in ALL.values() if bug.out_of_reach]

    assert listed
    assert {"caffe"} == {REQUIREMENTS[bug.requirement].profile for bug in listed}


def test_every_requirement_has_a_bug() -> None:
    """A requirement without a seeded bug is not tested."""
    broken = {bug.requirement for bug in ALL.values()}
    wanted = set(requirements_of("memory", "blob"))
    assert not wanted - broken, "seed a bug that breaks each of them"
    assert not broken - wanted, "no such requirement in spec/requirements"
    assert {"memory"} == {REQUIREMENTS[bug.requirement].kind for bug in MEMORY_BUGS.values()}
    assert {"blob"} == {REQUIREMENTS[bug.requirement].kind for bug in BLOB_BUGS.values()}
    assert len(ALL) == len(MEMORY_BUGS) + len(BLOB_BUGS)
    assert len(MEMORY_BUGS) >= 45


@pytest.mark.parametrize("page", ["README.md", "docs/design.md"])
def test_pages_say_how_many_bugs_there_are_at_least(page: str) -> None:
    """The numbers on the pages are written by hand, so they are compared."""
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    said = [int(number) for number in re.findall(r"more than (\d+)\s(?:seeded bugs|others)", text)]

    assert [150, 100] == said
    assert len(MEMORY_BUGS) > said[0]
    assert len(BLOB_BUGS) > said[1]


def test_a_name_is_taken_once() -> None:
    """Pages name a bug without its kind, so a blob and a memory may not have one name."""
    name = next(iter(MEMORY_BUGS))

    with pytest.raises(InvalidArgumentError, match=f"a name that no other has, got .{name}"):
        seeded_bug("B01-empty", "nowhere")(type(name, (), {}))
    assert name not in BLOB_BUGS


def test_every_bug_says_what_is_wrong_and_where_it_comes_from() -> None:
    assert all(bug.text.endswith(".") and bug.source for bug in ALL.values())


def test_every_suite_is_tried_on_a_bug() -> None:
    """After one suite has caught the bug, the others run only on request."""
    bug = MEMORY_BUGS["ShadowBuffer"]
    quick, thorough = (run_bug(bug, device_subject(), steps=60, thorough=wanted) for wanted in (False, True))

    assert set(suite_names(device_subject())) == set(QUICKEST_FIRST)
    assert ({"cells": bug.requirement}, ()) == (quick.caught, quick.missed)
    assert set(QUICKEST_FIRST) == {*thorough.caught, *thorough.missed}


@pytest.mark.deep
def test_every_suite_of_blobs_is_tried_on_a_bug() -> None:
    """It is the same as for memories."""
    bug = BLOB_BUGS["ScaleAllocates"]
    quick, thorough = (run_bug(bug, blob_device_subject(), steps=60, thorough=wanted) for wanted in (False, True))

    assert set(blob_suite_names(blob_device_subject())) == set(BLOBS_QUICKEST_FIRST)
    assert ({"tables": bug.requirement}, ("rules",)) == (quick.caught, quick.missed)
    assert set(BLOBS_QUICKEST_FIRST) == {*thorough.caught, *thorough.missed}


@pytest.mark.deep
def test_a_bug_is_a_wrong_memory_and_not_a_broken_class() -> None:
    """With zero bytes or one byte, the kit finds the seeded error and never a programming mistake in the class."""
    sequences = [sequence for sequence in tour(caffe.CAFFE) if len(sequence) > 1]
    slips: list[str] = []
    for bug in MEMORY_BUGS.values():
        subject = device_subject(bug.make) if bug.shows_on == "device" else host_subject(bug.make)
        for number, sequence in enumerate(sequences if bug.shows_on == "device" else tour(caffe.CPU_ONLY)):
            try:
                run_case(subject, Case(sequence, number % 2))
            except Violation as found:
                if "AttributeError" in found.message or "NameError" in found.message:
                    slips.append(bug.name)

    assert {"CudaFreeWithoutDevice"} == set(slips)  # in which it is the seeded error


def test_a_memory_without_a_bug_is_not_caught() -> None:
    """The table can also say that nothing was caught."""
    healthy = SeededBug("Healthy", "R01-lazy", "a control", HandmadeMemory)
    kill = run_bug(healthy, device_subject(), steps=60, suites=["cells", "contracts"])

    assert ({}, False) == (kill.caught, kill.killed)


def test_a_blob_without_a_bug_is_not_caught() -> None:
    healthy = SeededBug("Healthy", "B01-empty", "a control", HandmadeBlob)
    kill = run_bug(healthy, blob_device_subject(), steps=60, suites=["rules", "tables"])

    assert ({}, False) == (kill.caught, kill.killed)


def test_the_table_goes_through_all_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bug runs on a subject of the kind on which it shows."""
    few = {name: MEMORY_BUGS[name] for name in ("InitiallySynced", "CudaFreeWithoutDevice")}
    monkeypatch.setattr("mutants.selftest.MEMORY_BUGS", few)
    kills = list(kill_table(device_subject, host_subject, steps=0))

    assert list(few) == [kill.bug.name for kill in kills]
    assert all(kill.killed for kill in kills)


def test_a_bug_is_right_where_nothing_is_wrong() -> None:
    """Numbers that nobody has written are scaled, equal shapes are shared, and a buffer is adopted."""
    host, device = CPUDeviceAllocator(), SimulatedDeviceAllocator()
    scaled, sharing, adopting = (
        BLOB_BUGS[name].make(2, 3, dtype="float32", host=host, device=device)
        for name in ("ScalesTheFirst", "SharesOneShape", "IgnoresNull")
    )
    scaled.scale_data(2.0)
    sharing.share_data(scaled)
    adopting.set_cpu_data(np.ones(6, np.float32))

    assert sharing.data_memory is scaled.data_memory
    assert [0.0, 1.0] == [scaled.data_at(0, 0), adopting.data_at(1, 2)]
