"""What a fuzzing run found out: a verdict for every property, and the findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from .capabilities import Capabilities
from .finding import Finding, Wrong
from .properties import PROPERTIES
from .replay import Replay

__all__ = ["EngineRun", "Report", "Verdict"]

Status = Literal["passed", "failed", "not checked"]


class Verdict(NamedTuple):
    """What is known of one property.

    Attributes
    ----------
    property_id : str
    status : {"passed", "failed", "not checked"}
    times : int
        How often it was looked at.
    detail : str
        What was wrong, or why it was not checked.
    """

    property_id: str
    status: Status
    times: int
    detail: str


class EngineRun(NamedTuple):
    """What one engine did."""

    engine: str
    operations: int
    seconds: float

    @property
    def rate(self) -> float:
        """Operations a second, the oracle's work included."""
        return self.operations / self.seconds if self.seconds else 0.0


@dataclass
class Report:
    """Everything one run found out.

    Attributes
    ----------
    target, kind : str
    capabilities : Capabilities
    promises : dict
        What the capability record was told to say otherwise.
    seed, steps, threads : int
    protected : bool
        Whether a crash or a hang could be seen.
    lost : bool
        Whether a process ended, and what it had looked at was lost with it.
    named : bool
        Whether `target` names the target, so that another process can look it up.
    findings : list of Finding
        At most one for a property.
    """

    target: str
    kind: str
    capabilities: Capabilities
    promises: dict[str, str]
    seed: int
    steps: int
    threads: int
    hang: float
    protected: bool
    findings: list[Finding] = field(default_factory=list[Finding])
    runs: list[EngineRun] = field(default_factory=list[EngineRun])
    checked: Counter[str] = field(default_factory=Counter[str])
    unread: str = "nothing was allocated"
    named: bool = True
    lost: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def operations(self) -> int:
        """How many steps were taken, by all engines."""
        return sum(run.operations for run in self.runs)

    def require(self) -> None:
        """Raise the first finding, if there is one.

        Raises
        ------
        Wrong
        """
        for finding in self.findings:
            raise Wrong(finding.property_id, f"{finding.message}\n\n{self.replay(finding).python()}")

    def replay(self, finding: Finding) -> Replay:
        """A finding with all that it takes to see it again."""
        chosen = self.seed, self.steps, self.threads, self.hang
        return Replay(self.target, self.promises, finding, *chosen, named=self.named)

    def verdicts(self) -> list[Verdict]:
        """A verdict for every property, in their order."""
        return [self._verdict(name) for name in PROPERTIES]

    def _verdict(self, name: str) -> Verdict:
        times = self.checked[name]
        for finding in self.findings:
            if finding.property_id == name:
                return Verdict(name, "failed", times, finding.message)
        if times:
            return Verdict(name, "passed", times, "")
        return Verdict(name, "not checked", 0, self._reason(name))

    def _reason(self, name: str) -> str:
        entry = _PROMISED_BY.get(name)
        unpromised = entry is not None and getattr(self.capabilities, entry) == getattr(Capabilities(), entry)
        if self.lost and not unpromised:
            return "what was looked at was lost with the process"
        if name == "A04-contents-kept":
            return self.unread
        if name == "A20-threads" and self.capabilities.thread_safe:
            return "say --threads N"
        return _REASONS.get(name, "nothing that shows it has happened")

    def as_json(self) -> dict[str, Any]:
        """The report as data; format 1."""
        return {
            "format": 1,
            "target": self.target,
            "kind": self.kind,
            "passed": self.passed,
            "seed": self.seed,
            "steps": self.steps,
            "threads": self.threads,
            "capabilities": self.capabilities.as_json(),
            "engines": [
                {**run._asdict(), "seconds": round(run.seconds, 3), "rate": round(run.rate)} for run in self.runs
            ],
            "properties": [
                {**verdict._asdict(), "text": PROPERTIES[verdict.property_id].text} for verdict in self.verdicts()
            ],
            "findings": [
                {**finding.as_json(), "python": self.replay(finding).python(), "replay": self.replay(finding).as_json()}
                for finding in self.findings
            ],
        }

    def as_junit(self) -> str:
        """The report as JUnit XML: a property is a test case."""
        verdicts = self.verdicts()
        suite = Element("testsuite", name=f"syncedmem fuzz {self.target}", tests=str(len(verdicts)))
        statuses = Counter(verdict.status for verdict in verdicts)
        suite.set("failures", str(statuses["failed"]))
        suite.set("errors", "0")
        suite.set("skipped", str(statuses["not checked"]))
        suite.set("time", f"{sum(run.seconds for run in self.runs):.3f}")
        for verdict in verdicts:
            case = SubElement(suite, "testcase", classname="syncedmem.fuzz", name=verdict.property_id, time="0")
            if verdict.status == "failed":
                finding = next(it for it in self.findings if it.property_id == verdict.property_id)
                SubElement(case, "failure", message=verdict.detail).text = self.replay(finding).python()
            elif verdict.status == "not checked":
                SubElement(case, "skipped", message=verdict.detail)
        indent(suite)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suite, encoding="unicode")}\n'


_PROMISED_BY = {
    "A03-aligned": "alignment",
    "A10-wrong-size": "wrong_size",
    "A11-foreign-free": "foreign_free",
    "A12-double-free": "double_free",
    "A19-stream-order": "stream_ordered",
    "A20-threads": "thread_safe",
}
"""Without that entry of the record the property is not looked at."""

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
    "A19-stream-order": "no order of streams is promised",
    "A20-threads": "thread safety is not promised",
    "A21-device-kept": "it does not say which device is current",
    "A22-no-crash": "it runs in this process",
    "A23-no-hang": "it runs in this process",
    "A24-closes": "it has no close, or was not made for this run",
}
