"""What a job came to, as data: the same of each job, whichever engine does it, and wherever."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from .finding import Finding

if TYPE_CHECKING:
    from ..engine.supervisor import Death
    from .journal import Journal

__all__ = ["FROM_OUTSIDE", "Outcome", "finding_of"]

FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals that come from another process: if they do not come again, they say nothing about the target."""


@dataclass
class Outcome:
    """What a job came to.

    Attributes
    ----------
    finding : Finding or None
        What was wrong, also with the end of its process.
    death : Death or None
        How its process ended, if that was not the end of the job.
    operations, rounds : int
        What it has done.
    seconds, busy : float
        The time for this, and that of processors, if it is known.
    last : int
        The position in the steps where the last round begins.
    checked : Counter
        How often each requirement was checked.
    unread : str or None
        Why contents were not checked; None if there were none.
    spoilt : bool
        Whether the target has overwritten the record of its steps.
    notes : list of str
        What was not done, and says nothing about the target.
    described : dict or None
        What the target is, if the job was to describe it.
    """

    finding: Finding | None = None
    death: Death | None = None
    operations: int = 0
    rounds: int = 0
    seconds: float = 0.0
    busy: float = 0.0
    last: int = 0
    checked: Counter[str] = field(default_factory=Counter[str])
    unread: str | None = None
    spoilt: bool = False
    notes: list[str] = field(default_factory=list[str])
    described: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether something was wrong, or the process did not come to its end."""
        return self.finding is not None or self.death is not None

    @property
    def stood(self) -> bool:
        """Whether its process did not come to its end: a call hung, or the time of the job was over."""
        return self.death is not None and self.death.kind in {"hang", "late"}

    def as_json(self) -> dict[str, Any]:
        """The outcome as data; who can say it has not died."""
        fields = {name: value for name, value in vars(self).items() if name != "death"}
        return fields | {"finding": self.finding and self.finding.as_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The outcome from JSON."""
        found = data["finding"] and Finding.from_json(data["finding"])
        fields: dict[str, Any] = {"finding": found, "checked": Counter(data["checked"])}
        return cls(**data | fields)


def finding_of(death: Death, journal: Journal) -> Finding | None:
    """What the end of a process says of its target, whose steps are in a journal; None if only its time was over."""
    if death.kind == "late":
        return None
    calls, begun = journal.last_calls(), any(count.steps for count in journal.counts())
    unknown = "before the first step" if journal.sound else "in a step that is not known"
    steps = journal.steps() if journal.threads == 1 else ()
    if death.kind == "hang":
        where = f"after {calls[journal.standing()]}" if begun else unknown
        others = f"; the last calls were {', '.join(calls)}" if journal.threads > 1 else ""
        return Finding("A23-no-hang", f"{death.detail} seconds {where} nothing had happened{others}", steps)
    how = death.detail if death.kind == "crash" else f"exit status {death.detail}"
    where = f"in {', '.join(calls)}" if begun else unknown
    last_line = f" ({death.last_line})" if death.last_line else ""
    return Finding("A22-no-crash", f"the process ended with {how} {where}{last_line}", steps)
