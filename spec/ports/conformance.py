"""The verdict on a port: which level it reaches, and what is missing of the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from syncedmem.model.caffe import DEFAULT, EDITIONS

from ..blob.cells import BlobCoverage
from ..blob.kit import check_blobs
from ..conformance import check_conformance
from ..engine.report import Conformance, Tolerance, Verdict, junit
from ..engine.violation import UnfitError, Violation
from ..memory.coverage import Coverage
from ..requirements import LEVELS
from .protocol import PortError
from .targets import subject_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.subject import Subject
    from ..engine.supervisor import Limits, Progress
    from ..kit.shared import Shared
    from ..requirements import Level, Profile
    from .targets import ProgramTarget

__all__ = ["Claim", "PortReport", "claim_of_safe", "conform", "conform_program"]


@dataclass(frozen=True)
class Claim:
    """What a port is said to conform to, and how that is tested.

    Attributes
    ----------
    profile : {"caffe", "safe"}
    level : str
        The level; if empty, the highest that it reaches.
    edition : str
        The edition of the model; if empty, the port's own.
    steps, seed : int
        As for `syncedmem.spec.check_conformance`.
    keep_going : bool
        Whether a suite goes on after a violation.
    first : bool
        Whether the first violation ends the test.
    excepted : tuple of str
        Requirements whose violations are not counted.
    blobs : bool
        Whether the port makes blobs, and not memories.
    shorten : bool
        Whether to look for the shortest program of each violation.
    shared : Shared or None
        Of a claim to caffe, where what is also found out about safe goes; of the claim to safe after it, where it is.
    """

    profile: Profile
    level: str = ""
    edition: str = ""
    steps: int = 0
    seed: int = 0
    keep_going: bool = False
    first: bool = False
    excepted: tuple[str, ...] = ()
    blobs: bool = False
    shorten: bool = True
    shared: Shared | None = None


Result = Conformance[Coverage] | Conformance[BlobCoverage]

_CLASS = "syncedmem.conform"


@dataclass(frozen=True)
class PortReport:
    """The verdict on a port, as far as it is known.

    Attributes
    ----------
    name : str
        What the port calls itself.
    edition : str
    claim : Claim
    results : tuple of Conformance
        One for each level, the highest first.
    unfinished : tuple of Violation
        What was found at the level that is being tested now.
    named : str
        The level that the port names: the highest that it says it can show.
    by_table : bool
        Whether it was judged by its machine's own table, because it has no policy.
    safe : str
        What the profile safe says of a port that conforms to the profile caffe; empty if that was not tried.
    """

    name: str
    edition: str
    claim: Claim
    results: tuple[Result, ...] = ()
    unfinished: tuple[Violation, ...] = ()
    named: str = ""
    by_table: bool = False
    safe: str = ""

    @property
    def reached(self) -> Result | None:
        """The highest level at which the port conforms."""
        return next((result for result in self.results if result.passed), None)

    @property
    def judged(self) -> Result | None:
        """What is known at the level that the port reaches, or else at the last one that was tried."""
        return self.reached or (self.results[-1] if self.results else None)

    @property
    def passed(self) -> bool:
        """Whether it conforms at the level that was claimed, or else at the one that it names."""
        return self.reached is not None and self.reached is self.results[0]

    @property
    def reasons(self) -> dict[str, list[Violation]]:
        """What keeps the port from each level, the next one first; each requirement once, as the highest level saw it.

        The highest level sees most, so its message tells most.  What is being tested now comes last, without a level.
        """
        failed = [result for result in self.results if not result.passed]
        latest: dict[str, Violation] = {}
        for violation in (*(violation for result in failed for violation in result.violations), *self.unfinished):
            latest.setdefault(violation.requirement, violation)
        levels = [(str(result.level), result.violations) for result in reversed(failed)]
        return {
            level: first
            for level, violations in (*levels, ("", self.unfinished))
            if (
                first := [
                    latest.pop(violation.requirement) for violation in violations if violation.requirement in latest
                ]
            )
        }

    @property
    def violations(self) -> list[Violation]:
        """What keeps the port from the level that was claimed, or that it names; see `reasons`."""
        return [violation for violations in self.reasons.values() for violation in violations]

    @property
    def line(self) -> str:
        """The verdict in one line."""
        profile, last = self.claim.profile, self.judged
        kind = "edition" if self.edition in EDITIONS else "the machine"
        edition = "" if self.edition == DEFAULT.name else f" of {kind} {self.edition}"
        edition += ", by its table alone" if self.by_table else ""
        if last is None:
            broken = ", ".join(dict.fromkeys(violation.requirement for violation in self.unfinished))
            return f"does not conform to {profile}{edition}: {broken or 'nothing was tested'}"
        if self.reached is None:
            broken = ", ".join(violation.requirement for violation in last.violations) or self._incomplete(last)
            return f"does not conform{last.exceptions} to {profile}/{last.level}{edition}: {broken}"
        kept = f"{last.counted} requirements, {last.covered}"
        if self.passed:
            return f"conforms{last.exceptions} to {profile}/{last.level}{edition}: {kept}"
        return f"conforms{last.exceptions} to {profile}/{last.level} only{edition}: {kept}; the port names {self.named}"

    @staticmethod
    def _incomplete(last: Result) -> str:
        behind = f", behind violations of {', '.join(last.excepted)}" if last.excepted else ""
        untaken = f"{last.coverage.missing} {last.coverage.unit} were not taken{behind}"
        return untaken if last.coverage.missing else last.shortfall

    @property
    def safe_line(self) -> str:
        """The verdict of the profile safe on a port that conforms to the profile caffe, in one line."""
        if self.passed:
            return "to safe: yes"
        broken = ", ".join(violation.requirement for violation in self.violations)
        untaken = self._incomplete(self.results[-1]) if self.results else "nothing was tested"
        return f"to safe: no, {broken or untaken}"

    def as_json(self) -> dict[str, Any]:
        """The report as data."""
        return {
            "name": self.name,
            "profile": self.claim.profile,
            "edition": self.edition,
            "steps": self.claim.steps,
            "seed": self.claim.seed,
            "excepted": [*self.claim.excepted],
            "verdict": self.line,
            "passed": self.passed,
            "safe": self.safe or None,
            "reached": self.reached.level if self.reached else None,
            "named": self.named or None,
            "levels": [result.as_json() for result in self.results],
            "unfinished": [violation.as_json() for violation in self.unfinished],
        }

    def as_junit(self) -> str:
        """The report as JUnit XML, on the level that was claimed, or that the port names."""
        title = f"{self.name}: {self.claim.profile}"
        if not self.results:
            failed = [
                Verdict(violation.requirement, "failed", detail=violation.message) for violation in self.unfinished
            ]
            return junit(title, _CLASS, failed, self.unfinished, 0)
        result = self.results[0]
        verdicts, violations = result.verdicts, result.violations
        if not (result.passed or violations):
            violations = [Violation("coverage", self._incomplete(result))]
            verdicts.append(Verdict("coverage", "failed", detail=violations[0].message))
        return junit(f"{title}/{result.level}", _CLASS, verdicts, violations, result.seconds)


def _is_tested(level: str, top: str, claim: Claim) -> bool:
    return level == claim.level if claim.level else level <= top


def conform(
    subject_at: Callable[[Level], Subject],
    top: str,
    claim: Claim,
    *,
    progress: Callable[[str, int], None] | None = None,
    on_change: Callable[[PortReport], None] | None = None,
) -> PortReport:
    """Test a port at the level that is claimed, or from the highest that it can show down to one that it reaches.

    Parameters
    ----------
    subject_at : callable
        Makes the subject of a level.
    top : str
        The highest level that the port can show.
    claim : Claim
    progress : callable, optional
        Called with the level and the suite, and with the number of its cases until now.
    on_change : callable, optional
        Called with the report until now, after each violation and after each level.
    """
    results: list[Result] = []
    explained: set[str] = set()
    levels: list[Level] = [level for level in reversed(LEVELS) if _is_tested(level, top, claim)]
    report = PortReport("", claim.edition, claim, named=top)
    for level in levels:
        subject = subject_at(level)

        def report_on(*violations: Violation, subject: Subject = subject) -> PortReport:
            latest = PortReport(
                subject.name, subject.machine.name, claim, tuple(results), violations, top, subject.by_table
            )
            if on_change is not None:
                on_change(latest)
            return latest

        def advance(suite: str, cases: int, level: str = level) -> None:
            if progress is not None:
                progress(f"{level}: {suite}", cases)

        tolerance = Tolerance(
            claim.excepted, keep_going=claim.keep_going, first=claim.first, explained=explained, on_found=report_on
        )
        shared = None if results else claim.shared  # safe is tested at the first of the levels
        check: Callable[..., Any] = check_blobs if claim.blobs else partial(check_conformance, shared=shared)
        verdict = check(
            subject,
            steps=claim.steps,
            seed=claim.seed,
            progress=advance,
            tolerance=tolerance,
            shorten=claim.shorten,
        )
        results.append(verdict)
        report = report_on()
        if report.reached or tolerance.is_over(subject):
            break
    return report


def claim_of_safe(claim: Claim, report: PortReport) -> Claim | None:
    """What is tried after a port was found to conform to the profile caffe: all of safe; None if nothing is."""
    if claim.profile != "caffe" or claim.blobs or report.reached is None or not report.passed:
        return None
    safe = replace(claim, profile="safe", level=report.reached.level, keep_going=True, first=False, shorten=False)
    return replace(safe, shared=report.claim.shared)


def conform_program(
    target: ProgramTarget,
    claim: Claim,
    limits: Limits,
    *,
    progress: Progress | None = None,
    on_change: Callable[[PortReport], None] | None = None,
) -> PortReport:
    """Test a program; see `conform`."""
    policy = target.own.chosen_policy()
    with target.connect(limits, claim.edition) as port:
        if claim.blobs and not port.hello.get("blobs"):
            raise PortError(f"{target.name} has no blobs")
        top, name = port.hello["level"], port.hello["name"]
        if claim.level > top:
            raise PortError(f"{target.name} shows {top} at most, not {claim.level}")

        def subject_at(level: Level) -> Subject:
            return subject_of(port, name, claim.profile, level, policy=policy)

        try:
            return conform(subject_at, top, claim, progress=progress, on_change=on_change)
        except UnfitError as error:
            raise PortError(str(error)) from error
