"""The report of a fuzzing run: a verdict on every requirement, and the findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..engine.report import SuiteResult, Verdict, junit
from ..requirements import REQUIREMENTS, requirements_of
from .c_program import c_program
from .causes import group_by_cause
from .finding import EngineError
from .loops import program_as_json
from .oracle import OF_CONTENTS
from .replay import Replay

if TYPE_CHECKING:
    from ..engine.violation import Violation
    from .c_program import CProgram
    from .capabilities import Capabilities
    from .finding import Finding
    from .replay import FuzzWanted

__all__ = ["Report"]


@dataclass
class Report:
    """The result of one run.

    Attributes
    ----------
    wanted : FuzzWanted
        What was asked for; ``reuse=no`` is among the promises also if the target was found to be an arena.
    kind : str
    capabilities : Capabilities
    protected : bool
        Whether a crash or a hang could be noticed.
    lost : bool
        Whether a process ended, so that its counts of checks were lost.
    violating : list of Finding
        All findings in the order in which they came, each with another key.
    suites : list of SuiteResult
        The result of each generator.
    checked : Counter
        How often each requirement was checked.
    unread : str
        Why contents were not checked.
    known : dict of str to str
        The keys of findings that are no failures, with reasons.
    functions : tuple of str
        Those of calloc and realloc that the target has.
    errors : list of str
        What ended a part of the run, and says nothing about the target: failures of the fuzzer itself, a full disk, or
        a target that could not be opened again.
    interrupted : str
        The name of the signal that ended the run early; empty if it came to its end.
    notes : list of str
        What else is to be said about the run, each in a line.
    parts : dict of str to str
        The symbol of each part of the convention of a library.
    planned : int
        The operations of the fast generator without half of which a run is incomplete, unless its calls take too long.
    smaller : str
        What the plan of a slow target came down to; empty if it has the whole plan.
    handles_forks : bool
        Whether the target is a library that registers what is to be done at forks.
    preload : str
        The file of a library that is meant for preloading, and was not; else empty.
    """

    wanted: FuzzWanted
    kind: str
    capabilities: Capabilities
    protected: bool
    violating: list[Finding] = field(default_factory=list["Finding"])
    suites: list[SuiteResult] = field(default_factory=list[SuiteResult])
    checked: Counter[str] = field(default_factory=Counter[str])
    unread: str = "nothing was allocated"
    lost: bool = False
    known: dict[str, str] = field(default_factory=dict[str, str])
    functions: tuple[str, ...] = ()
    errors: list[str] = field(default_factory=list[str])
    interrupted: str = ""
    notes: list[str] = field(default_factory=list[str])
    parts: dict[str, str] = field(default_factory=dict[str, str])
    planned: int = 0
    smaller: str = ""
    handles_forks: bool = False
    preload: str = ""

    def done(self, generator: str) -> SuiteResult:
        """What a generator has done until now."""
        return next(
            (suite for suite in self.suites if suite.name == generator), SuiteResult(generator, 0, 0, 0.0, None)
        )

    def ran(self, generator: str, rounds: int, steps: int, seconds: float) -> None:
        """Add to what a generator has done."""
        before, names = self.done(generator), [suite.name for suite in self.suites]
        now = SuiteResult(generator, before.cases + rounds, before.steps + steps, before.seconds + seconds, None)
        at = names.index(generator) if generator in names else len(names)
        self.suites[at : at + 1] = [now]

    @property
    def findings(self) -> list[Finding]:
        """One finding for each bug, with its consequences, as `group_by_cause` puts them in order."""
        return group_by_cause(self.violating)

    @property
    def with_consequences(self) -> list[Finding]:
        """Each finding, and after it its consequences."""
        return [other for finding in self.findings for other in (finding, *finding.consequences)]

    @property
    def passed(self) -> bool:
        """Whether there are no findings but known ones, the fuzzer itself did not fail, and it came to its end."""
        return not (self.failures or self.errors or self.incomplete or self.interrupted)

    @property
    def incomplete(self) -> str:
        """Why nothing can be said of a target in which nothing new was found; empty if enough was done."""
        return "" if self.failures or self.errors else self.undone

    @property
    def undone(self) -> str:
        """How little was done, whatever was found, because something else took the time; empty if it was enough."""
        done = self.done("fast")
        if 2 * done.steps >= self.planned or self.slow:
            return ""
        each = f", each in {1000 / done.rate:.1f} ms" if done.rate else ""
        return f"{done.steps:,} of {self.planned:,} planned operations of the fast generator were done{each}"

    @property
    def slow(self) -> str:
        """How little was done because its calls take long, so that even all of the time would not be enough."""
        done, lost = self.done("fast"), max(self.wanted.seconds - self.seconds, 0.0)
        if not done.steps or 2 * (done.steps + lost * done.rate) >= self.planned:
            return ""
        return f"{done.steps:,} operations, because each took {1000 / done.rate:.1f} ms"

    @property
    def failures(self) -> list[Finding]:
        """The findings that are not known, also what may follow from another one, which may be known."""
        return [finding for finding in self.with_consequences if finding.known is None]

    @property
    def unseen(self) -> list[str]:
        """The keys of known findings that were not found."""
        keys = {name for item in self.violating for name in (item.key, item.requirement)}
        return [key for key in self.known if key not in keys]

    @property
    def operations(self) -> int:
        """The number of steps of all generators."""
        return sum(suite.steps for suite in self.suites)

    @property
    def tested(self) -> bool:
        """Whether the target was asked for anything."""
        return bool(self.operations or self.violating)

    @property
    def seconds(self) -> float:
        """The time of all generators."""
        return sum(suite.seconds for suite in self.suites)

    @property
    def violations(self) -> list[Violation]:
        """The findings that are not known as violations, each with the program that shows it."""
        return [finding.violation(self.replay(finding).python()) for finding in self.failures]

    def require(self) -> None:
        """Raise the first violation, if there is one.

        Raises
        ------
        Violation
        EngineError
            If there is none, but the fuzzer itself failed, or the run was incomplete.
        """
        for violation in self.violations:
            raise violation
        for error in [*self.errors, *filter(None, [self.incomplete])]:
            raise EngineError(error)

    def expect_no_reuse(self) -> None:
        """Promise that the target is an arena, which was found: reuse is not asked of it any more."""
        self.wanted = replace(self.wanted, promises={**self.wanted.promises, "reuse": "no"})
        self.capabilities = self.capabilities.with_promises(self.wanted.promises)

    def replay(self, finding: Finding) -> Replay:
        """The replay of a finding; that the target is an arena shows only where that is not promised."""
        wanted = self.wanted
        promises = {name: text for name, text in wanted.promises.items() if name != "reuse" or not finding.is_arena}
        skip = tuple(dict.fromkeys((*wanted.skip, *finding.after)))
        seed = wanted.seed if finding.seed is None else finding.seed
        return Replay(replace(wanted, promises=promises, seed=seed, skip=skip), finding)

    def c_program(self, finding: Finding, file: str) -> CProgram | None:
        """The program of a finding in C, for a file of this name; None if it has no form in C."""
        return c_program(finding, self.wanted.target, self.parts, file)

    def verdicts(self) -> list[Verdict]:
        """A verdict on every requirement, in the order of the requirements."""
        found = self._found()
        return [self._verdict(name, found) for name in requirements_of("allocator")]

    def verdict(self, requirement: str) -> Verdict:
        """The verdict on a requirement."""
        return self._verdict(requirement, self._found())

    def _found(self) -> list[tuple[Finding, str]]:
        """All findings, each with what it may follow from."""
        return [
            (finding, "" if finding is cause else f"; it may follow from {cause.requirement}")
            for cause in self.findings
            for finding in (cause, *cause.consequences)
        ]

    def _verdict(self, requirement: str, found: list[tuple[Finding, str]]) -> Verdict:
        """What may follow from another finding is not hidden by it: nobody can prove that it has no other cause."""
        times = self.checked[requirement]
        if self.protected and requirement in {"A22-no-crash", "A23-no-hang"}:
            times = self.operations
        own = [item for item in found if item[0].requirement == requirement]
        more = f" (and {len(own) - 1} more like it)" if own[1:] else ""
        for finding, follows in sorted(own, key=lambda item: item[0].known is not None):
            if finding.known is None:
                return Verdict(requirement, "failed", times, finding.message + more + follows)
            reason = f"known, {finding.known}: " if finding.known else "known: "
            return Verdict(requirement, "not checked", times, reason + finding.message + more)
        if requirement in self.wanted.skip:
            return Verdict(requirement, "not checked", detail="it was to be skipped")
        if times:
            return Verdict(requirement, "passed", times)
        return Verdict(requirement, "not checked", detail=self._reason(requirement))

    def _reason(self, name: str) -> str:
        entry = REQUIREMENTS[name].needs
        unpromised = not self.capabilities.makes(entry)
        function = {"A13-zeroed": "calloc", "A14-resize-keeps": "realloc"}.get(name, "")
        lacking = bool(function) and function not in self.functions and not self.capabilities.zeroed
        ran = self.done("threads")
        if name == "A20-threads" and self.capabilities.thread_safe and not (ran.cases if self.lost else ran.steps):
            return (
                "say --threads N"
                if self.wanted.threads == 1
                else "the run ended before it was the turn of several threads"
            )
        if name == "A27-survives-fork" and unpromised and self.handles_forks:
            return "it registers handlers of forks: does it promise something? then --promise fork_safe=yes"
        if self.lost and not (unpromised or lacking):
            return "what was looked at was lost with the process"
        if name == "A04-contents-kept" or (name in OF_CONTENTS and self.unread and self.checked["A05-served"]):
            return self.unread
        if function in self.functions:
            times = self.checked[function]
            return f"its {function} refused every time, of {times:,}" if times else f"its {function} was not called"
        return _REASONS.get(name, f"{entry} is not promised" if unpromised else "nothing that shows it has happened")

    def as_json(self) -> dict[str, Any]:
        """The report as data; format 4."""
        return {
            "format": 4,
            "target": self.wanted.target,
            "kind": self.kind,
            "passed": self.passed,
            "incomplete": self.incomplete,
            "interrupted": self.interrupted,
            "errors": self.errors,
            "seed": self.wanted.seed,
            "steps": self.wanted.steps,
            "threads": self.wanted.threads,
            "capabilities": self.capabilities.as_json(),
            "skipped": list(self.wanted.skip),
            "known": self.known,
            "generators": [
                {
                    "generator": suite.name,
                    "operations": suite.steps,
                    "seconds": round(suite.seconds, 3),
                    "rate": round(suite.rate),
                }
                for suite in self.suites
            ],
            "notes": self.notes,
            "requirements": [
                {**verdict._asdict(), "text": REQUIREMENTS[verdict.requirement].text} for verdict in self.verdicts()
            ],
            "findings": [self._finding(finding) for finding in self.findings],
        }

    def _finding(self, finding: Finding) -> dict[str, Any]:
        replay = self.replay(finding)
        program = {"program": program_as_json(finding.program)}
        return {
            **finding.as_json(),
            **program,
            "consequences": [self._finding(consequence) for consequence in finding.consequences],
            "key": finding.key,
            "python": replay.python(),
            "replay": replay.as_json(),
        }

    def as_junit(self) -> str:
        """The report as JUnit XML: a requirement is a test case."""
        title = f"syncedmem fuzz {self.wanted.target}"
        return junit(title, "syncedmem.fuzz", self.verdicts(), self.violations, self.seconds)


_REASONS = {
    "A01-distinct-pointers": "blocks do not say where they are",
    "A02-no-overlap": "blocks do not say where they are",
    "A03-aligned": "no alignment is promised: --promise alignment=N",
    "A08-size-known": "blocks do not say how large they are",
    "A10-wrong-size": "undefined: nothing is promised of it",
    "A11-foreign-free": "undefined: nothing is promised of it",
    "A12-double-free": "undefined: nothing is promised of it",
    "A13-zeroed": "it has no calloc, and does not promise zeros",
    "A14-resize-keeps": "it has no realloc",
    "A15-copies": "it has no memcpy",
    "A17-statistics": "it reports no statistics",
    "A18-limit": "it has no limit: --promise limit=BYTES",
    "A21-device-kept": "it does not say which device is current",
    "A22-no-crash": "it runs in this process",
    "A23-no-hang": "it runs in this process",
    "A24-closes": "it has no close, or was not made for this run",
    "A26-c-contracts": "it is no set of C's functions",
    "A25-no-starvation": "no request was refused while a larger one was met",
}
