"""Every seeded bug is caught, under the requirement that it breaks; the table says by which suites."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from mutants.blob import BLOB_BUGS
from mutants.blob.handmade import HandmadeBlob
from mutants.memory import MEMORY_BUGS
from mutants.selftest import (
    BLOBS_QUICKEST_FIRST,
    QUICKEST_FIRST,
    Kill,
    run_bug,
    wrong_subject,
)
from subjects import device_subject, host_subject, subject_for

from syncedmem.model import NoDeviceError
from syncedmem.model.defaults import DEFAULT_STEPS
from syncedmem.spec import (
    REQUIREMENTS,
    blob_suite_names,
    check_blobs,
    check_conformance,
    suite_names,
)
from syncedmem.spec.requirements import PROFILES, Profile, requirements_of
from syncedmem.verification.checks import make_subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutants.registry import SeededBug

ALL = {**MEMORY_BUGS, **BLOB_BUGS}

_SHARES = 24
"""One bug of so many is in the sample."""


@pytest.mark.deep(quick=30)
@pytest.mark.parametrize("bug", ALL.values(), ids=ALL)
def test_the_kit_catches(
    bug: SeededBug,
    report_kill: Callable[[Kill], None],
    every_suite: bool,
    worse_than_known: Callable[[Kill], str],
    refuse: Callable[[str, str, str], None],
) -> None:
    """Some suite refuses it and names the requirement that it breaks, and so do all suites that are known to do it."""
    kill = run_bug(bug, subject_for(bug), thorough=every_suite)
    report_kill(kill)
    named = [bug.requirement] if kill.killed else [*kill.caught.values(), "nothing"]
    refuse("memories" if bug.name in MEMORY_BUGS else "blobs", bug.name, named[0])

    assert kill.killed, f"{bug.name} ({bug.text}) should break {bug.requirement}, caught: {kill.caught}"
    assert "" == worse_than_known(kill)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of `sampled` run for all bugs with ``--every-suite``, and otherwise for some, which the seed chooses."""
    if "sampled" in metafunc.fixturenames:
        seed = metafunc.config.getoption("--hypothesis-seed") or 0
        everyone = bool(metafunc.config.getoption("--every-suite"))
        chosen = [bug for bug in ALL.values() if everyone or crc32(f"{seed} {bug.name}".encode()) % _SHARES == 0]
        metafunc.parametrize("sampled", chosen, ids=lambda bug: bug.name)


@pytest.mark.deep
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_judges_its_requirements_and_nothing_else(sampled: SeededBug, profile: Profile) -> None:
    """Whatever is wrong, no violation names a requirement that the verdict did not check; with a device and without."""
    memory = sampled.name in MEMORY_BUGS
    of_blobs = ["rules", "shapes", "tables", "types"]
    of_memories = ("cells", "forms", "refused", "lent", "lifetimes", "elsewhere", "dropped", "walks")
    for subject in (device_subject(), host_subject()):
        wrong = wrong_subject(sampled, replace(subject, profile=profile))
        suites = [name for name in of_memories if name in suite_names(wrong)] if memory else of_blobs
        verdict = (check_conformance if memory else check_blobs)(wrong, steps=1, suites=suites, shorten=False)
        assert {found.requirement for found in verdict.violations} <= set(verdict.checked), verdict.violations


def test_profile_caffe_kills_what_it_claims(sampled: SeededBug, every_suite: bool) -> None:
    """A bug that breaks a requirement of Caffe's is caught in this profile too, or is listed with the reason."""
    claimed = REQUIREMENTS[sampled.requirement].profile == "caffe"
    subject = replace(subject_for(sampled), profile="caffe")
    steps = DEFAULT_STEPS if every_suite else 1
    killed = claimed and run_bug(sampled, subject, steps=steps).killed

    assert killed == (claimed and not sampled.out_of_reach)


@pytest.mark.parametrize("name", ["simulated-seeded", "opencl", pytest.param("cuda", marks=pytest.mark.deep)])
def test_a_push_that_overtakes_work_is_found_on_every_device(name: str) -> None:
    """On hostcuda only if its operations lag, as in `make deep`: without a lag nothing is ever queued."""
    try:
        subject = make_subject(name, seed=0)
    except NoDeviceError as missing:
        pytest.skip(str(missing))
    bug = MEMORY_BUGS["OvertakesWork"]
    verdict = check_conformance(wrong_subject(bug, subject), suites=("arguments",), shorten=False)

    assert {bug.requirement} == {found.requirement for found in verdict.violations}


def test_only_bugs_of_caffes_requirements_are_listed_as_out_of_reach() -> None:
    listed = [bug for bug in ALL.values() if bug.out_of_reach]

    assert listed
    assert {"caffe"} == {REQUIREMENTS[bug.requirement].profile for bug in listed}


def test_every_requirement_has_a_bug() -> None:
    """A requirement without a seeded bug is not tested."""
    broken = {bug.requirement for bug in ALL.values()}
    wanted = set(requirements_of("memory", "blob"))
    assert not wanted - broken, f"seed a bug that breaks each of {sorted(wanted - broken)}"
    assert not broken - wanted, f"no such requirement in spec/requirements: {sorted(broken - wanted)}"
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


def test_every_bug_says_what_is_wrong_and_where_it_comes_from() -> None:
    assert all(bug.text.endswith(".") and bug.source for bug in ALL.values())


def test_every_suite_is_tried_on_a_bug() -> None:
    assert set(suite_names(device_subject())) == set(QUICKEST_FIRST)
    assert set(blob_suite_names(device_subject(HandmadeBlob))) == set(BLOBS_QUICKEST_FIRST)
