"""The time that one finding may take: a fifth of the run, whatever its target does in it."""

from __future__ import annotations

from typing import Any

import pytest

from syncedmem.spec.engine.supervisor import Death
from syncedmem.spec.fuzz import Capabilities, Finding, FuzzWanted, HeapStep, Report
from syncedmem.spec.fuzz.examiner import Examiner
from syncedmem.spec.fuzz.journal import Journal
from syncedmem.spec.fuzz.loops import items_from_json
from syncedmem.spec.fuzz.mask import Mask
from syncedmem.spec.fuzz.outcome import Outcome

HANG, CALLS = 5.0, 299
PROGRAM = tuple(HeapStep("allocate", (number, 64 + number, 0, 0)) for number in range(CALLS))


class Place:
    """Does jobs on a target that does what it does at its 299th call, and moves a clock by what each takes."""

    def __init__(self, requirement: str, each: float, load: float) -> None:
        self.now = 0.0
        self.ends: list[float] = []
        """The time at which each job has to end."""
        self.journal = Journal()
        self._requirement, self._each, self._load = requirement, each, load

    def clock(self) -> float:
        """The time."""
        return self.now

    def perform(self, job: dict[str, Any]) -> Outcome:
        """Do a job."""
        self.ends.append(self.now + job["whole"])
        shows = len(items_from_json(job["program"])) >= CALLS
        hangs = shows and self._requirement == "A23-no-hang"
        limit = job.get("hang", HANG)
        takes = self._each + (max(limit, self._load * job.get("busy", limit)) if hangs else 0.0)
        self.now += min(takes, job["whole"])
        if takes > job["whole"]:
            return Outcome(death=Death("late", f"{job['whole']:g}"))
        message = f"{limit:g} seconds after it nothing had happened" if hangs else "wrong"
        death = Death("hang", "5") if hangs else None
        return Outcome(Finding(self._requirement, message, ()) if shows else None, death)


def examined(requirement: str, seconds: float, each: float = 0.01, load: float = 0.0) -> tuple[Finding, Place]:
    """A finding after its examination, and the place of this; with load, a hang that works gets a part of a machine."""
    place: Any = Place(requirement, each, load)
    report = Report(FuzzWanted("a:b", steps=9, hang=HANG), "", Capabilities(), protected=False)
    examiner = Examiner(place, report, seconds, lambda *_: None, fresh=False, clock=place.clock)
    found = examiner.examined(Finding(requirement, "wrong", PROGRAM), Outcome(), Mask())

    assert found is not None, report.errors
    return found, place


@pytest.mark.parametrize("requirement", ["A01-distinct-pointers", "A22-no-crash", "A23-no-hang"])
@pytest.mark.parametrize("seconds", [1.0, 20.0, 60.0, 600.0])
@pytest.mark.parametrize("each", [0.01, 1.5, 7.0])
def test_no_finding_takes_more_than_its_fifth(requirement: str, seconds: float, each: float) -> None:
    """Whether a hang is only slow is asked before; that took a fifth of 20 seconds, and shortening it 8 seconds."""
    _, place = examined(requirement, seconds, each)
    slow = HANG + each if requirement == "A23-no-hang" else 0.0

    assert place.now <= slow + seconds / 5
    assert max(place.ends[bool(slow) :], default=0.0) <= slow + seconds / 5


@pytest.mark.parametrize("load", [0.0, 2.0])
@pytest.mark.parametrize(
    ("requirement", "seconds", "shrunk"),
    [
        ("A01-distinct-pointers", 20.0, True),
        ("A22-no-crash", 20.0, True),
        ("A23-no-hang", 20.0, False),
        ("A23-no-hang", 60.0, True),
    ],
)
def test_what_cannot_be_looked_at_in_time_stays_as_it_was_found(
    requirement: str, seconds: float, shrunk: bool, load: float
) -> None:
    """A hang of five seconds does not fit into four; that it comes again is known all the same.

    One that works took ten seconds beside other work, so what was short was thrown away.
    """
    found, _ = examined(requirement, seconds, load=load)

    assert (shrunk, True) == (found.shrunk, found.repeats)
    assert shrunk or found.program == PROGRAM


def test_a_hang_that_is_short_is_shown_with_the_whole_limit() -> None:
    found, _ = examined("A23-no-hang", 60.0)

    assert f"{HANG:g} seconds after " in found.message
    assert "nothing had happened" in found.message


class Again:
    """A place where a program, and the rounds of a process, come to what they are told to."""

    def __init__(self, alone: Outcome, old: Outcome) -> None:
        self.journal = Journal()
        self._outcomes = {"program": alone, "campaign": old}

    def perform(self, job: dict[str, Any]) -> Outcome:
        """Do a job."""
        self.journal.note(1)
        return self._outcomes[job["job"]]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("requirement", "death"), [("A22-no-crash", Death("crash", "SIGSEGV")), ("A01-distinct-pointers", None)]
)
def test_a_hang_that_is_something_else_with_more_time_is_not_slow(
    requirement: str, death: Death | None, alone: bool
) -> None:
    """It was once dropped with a note, and the run passed."""
    shown = Outcome(Finding(requirement, "worse", PROGRAM), death)
    place: Any = Again(shown if alone else Outcome(), shown)
    report = Report(FuzzWanted("a:b", steps=9), "", Capabilities(), protected=False)
    examiner = Examiner(place, report, 60.0, lambda *_: None, fresh=False)
    examiner.rounds = {"job": "campaign", "seconds": 1.0}, Mask()
    generator = "native" if alone else "fast"
    found = examiner.examined(Finding("A23-no-hang", "no end", PROGRAM, generator), Outcome(), Mask())

    assert found is not None
    assert (requirement, alone, generator) == (found.requirement, found.repeats, found.generator)
    assert [] == report.notes
