"""A finding as something to run again: a few lines of Python, and a file of JSON."""

from __future__ import annotations

import json
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from .finding import Finding, Step, TargetError, Wrong
from .isolation import Isolated
from .properties import PROPERTIES
from .recognition import Source
from .trial import Trial

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from .jobs import Answer, Job

__all__ = ["Replay", "trial_of"]

FORMAT = 1
_MOST_LINES = 8
_WIDTH = 110


@contextmanager
def trial_of(target: object, /, **promises: str) -> Generator[Trial]:
    """A trial to take steps on by hand; at the end everything is given back and compared.

    Parameters
    ----------
    target : object or str
        As `Source` takes it.
    **promises : str
        What the capability record should say otherwise: ``double_free="detect"``.

    Raises
    ------
    Wrong
        At the first step that shows something wrong, or at the end.
    TargetError
        If the target or a promise cannot be used.
    """
    opened = Source(target).open()
    trial = Trial(opened, opened.capabilities.with_promises(promises))
    yield trial
    trial.end()


@dataclass(frozen=True)
class Replay:
    """A finding with all that it takes to see it again.

    Attributes
    ----------
    target : str
    promises : mapping of str to str
        What the capability record said otherwise.
    finding : Finding
    seed, steps, threads : int
        Of the campaign; they replay a finding of several threads, which has no program.
    hang : float
        The time limit for a call, in seconds.
    """

    target: str
    promises: Mapping[str, str]
    finding: Finding
    seed: int = 0
    steps: int = 0
    threads: int = 1
    hang: float = 5.0

    def as_json(self) -> dict[str, Any]:
        """The replay as data."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "kind": "syncedmem allocator replay",
            "target": self.target,
            "promises": dict(self.promises),
            "property": self.finding.property_id,
            "message": self.finding.message,
            "program": [step.as_json() for step in self.finding.program],
        }
        return data | {"seed": self.seed, "steps": self.steps, "threads": self.threads, "hang": self.hang}

    def text(self) -> str:
        """The replay as a file, one step a line."""
        return json.dumps(self.as_json(), indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """A replay from a file.

        Raises
        ------
        TargetError
            If it is none.
        OSError
            If it cannot be read.
        """
        try:
            data: Any = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise TargetError(f"{path} is no replay: {error}") from None
        if not hasattr(data, "get") or data.get("format") != FORMAT:
            raise TargetError(f"{path} is no replay of format {FORMAT}")
        try:
            program = tuple(map(Step.from_json, data["program"]))
            finding = Finding(PROPERTIES[data["property"]].id, str(data["message"]), program)
            chosen: dict[str, Any] = {name: data[name] for name in ("seed", "steps", "threads", "hang")}
            return cls(str(data["target"]), dict(data["promises"]), finding, **chosen)
        except (KeyError, TypeError) as error:
            raise TargetError(f"{path} is no replay: {error!r} is missing or wrong") from None

    def run(self) -> Finding | None:
        """Take the steps again, in a worker; what is wrong now, or None.

        Raises
        ------
        TargetError
            If the target or the record cannot be used.
        """
        with Isolated(self.target, self.hang) as place:
            promises = dict(self.promises)
            if self.finding.program:
                job: Job = {"job": "program", "program": [step.as_json() for step in self.finding.program]}
            else:
                job = {"job": "campaign", "seed": self.seed, "steps": self.steps, "seconds": 60.0, "first_round": 0}
                job["threads"] = self.threads
            answer = place.perform({**job, "promises": promises})
            return died(answer, place.steps()) or _finding(answer)

    def python(self) -> str:
        """At most ten lines of Python that show it."""
        promises = "".join(f", {name}={text!r}" for name, text in self.promises.items())
        if not self.finding.program:
            return (
                "from syncedmem.spec.fuzz import fuzz\n\n"
                f"fuzz({self.target!r}, seed={self.seed}, steps={self.steps}, threads={self.threads}, "
                f"promises={dict(self.promises)!r}).require()\n"
            )
        lines = _packed([f"trial.{step}" for step in self.finding.program])
        head = f"from syncedmem.spec.fuzz import trial_of\nwith trial_of({self.target!r}{promises}) as trial:\n"
        return head + textwrap.indent("\n".join(lines), "    ") + "\n"


def _packed(statements: list[str]) -> list[str]:
    """Statements one a line where there is room, else as many on a line as it takes."""
    if len(statements) <= _MOST_LINES:
        return statements
    each = -(-len(statements) // _MOST_LINES)
    return ["; ".join(statements[at : at + each]) for at in range(0, len(statements), each)]


def died(answer: Answer, steps: tuple[Step, ...]) -> Finding | None:
    """The finding of a target that ended its process, or would not return; with the steps that it took."""
    if "hang" in answer:
        last = f"after {steps[-1]}" if steps else "before the first step"
        return Finding("A23-no-hang", f"{answer['hang']:g} seconds {last} nothing had happened", steps)
    if "crash" not in answer:
        return None
    said = f" ({answer['said']})" if answer.get("said") else ""
    last = f"in {steps[-1]}" if steps else "before the first step"
    return Finding("A22-no-crash", f"the process ended with {answer['crash']} {last}{said}", steps)


def _finding(answer: Answer) -> Finding | None:
    return None if answer["finding"] is None else Finding.from_json(answer["finding"])


def replay(path: Path) -> None:
    """Run a replay file here and now.

    Raises
    ------
    Wrong
        If it still fails.
    """
    found = Replay.read(path).run()
    if found is not None:
        raise Wrong(found.property_id, found.message)
