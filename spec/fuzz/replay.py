"""Replays of findings, as a few lines of Python and as a JSON file."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self, cast

from syncedmem.model import FileAccessError, FileFormatError
from syncedmem.model.defaults import FUZZ
from syncedmem.model.errors import shown
from syncedmem.model.files import parsed_json, read_text

from ..engine.violation import Violation
from ..requirements import requirements_of
from .campaign import Stage
from .driver import Driver
from .finding import Finding, TargetError
from .isolation import Isolated
from .jobs import finding_of
from .loops import Repeat, folded, items_as_json, items_from_json
from .mask import Mask, requirement_named
from .recognition import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from .jobs import Job
    from .loops import Item

__all__ = ["MOST_STEPS", "Replay", "driver_of"]

FORMAT = 3
_FORMATS = (1, 2, FORMAT)
"""Format 1 has no loops, and nothing to skip; format 2 has no rounds."""
_WANTED = "a replay of fuzz"
MOST_STEPS = 64
"""The most steps that are shown."""
_MOST_LINES = 7
_LONGEST = 600.0
"""The most seconds for rounds that are taken again."""
_MOST_THREADS = 1 << 10
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "target": lambda it: isinstance(it, str),
    "promises": lambda it: isinstance(it, dict) and all(isinstance(text, str) for text in cast("Any", it).values()),
    "property": lambda it: isinstance(it, str) and it in requirements_of("allocator"),
    "message": lambda it: isinstance(it, str),
    "repeats": lambda it: isinstance(it, bool),
    "program": lambda it: isinstance(it, list),
    "seed": lambda it: type(it) is int,
    "steps": lambda it: type(it) is int and it >= 0,
    "threads": lambda it: type(it) is int and 0 < it <= _MOST_THREADS,
    "hang": lambda it: type(it) in (int, float) and 0 < it < math.inf,
    "named": lambda it: isinstance(it, bool),
    "skip": lambda it: isinstance(it, list) and all(name in requirements_of("allocator") for name in cast("Any", it)),
    "rounds": lambda it: it is None or _is_rounds(it),
}
"""The fields of a file, each with a check of its value."""


def _is_rounds(data: Any) -> bool:
    """Whether these are values of `Finding.rounds`."""
    numbers = ("seed", "first_round", "count")
    if not isinstance(data, dict) or not all(type(cast("Any", data).get(name)) is int for name in numbers):
        return False
    stage: dict[str, Any] = {name: cast("Any", data).get(name) for name in (*Stage._fields, "generator")}
    if stage["generator"] != "fast":
        return isinstance(stage["generator"], str)
    return stage["kind"] in ("fixed", "drawn") and type(stage["steps"]) is int and isinstance(stage["ages"], bool)


@contextmanager
def driver_of(target: object, /, *, skip: Iterable[str] = (), **promises: str) -> Generator[Driver]:
    """A driver for steps by hand; at the end everything is freed and compared.

    Parameters
    ----------
    target : object or str
        As for `Source`.
    skip : iterable of str
        Requirements that are left unjudged.
    **promises : str
        Entries that replace those of the capability record: ``double_free="detect"``.

    Raises
    ------
    Violation
        At the first step that shows a bug, or at the end.
    TargetError
        If the target or a promise cannot be used.
    """
    opened = Source(target).open()
    mask = Mask.of(map(requirement_named, skip))
    driver = Driver(opened, opened.capabilities.with_promises(promises), mask=mask)
    yield driver
    driver.end()


@dataclass(frozen=True)
class Replay:
    """A finding with everything that is needed to show it again.

    Attributes
    ----------
    target : str
    promises : mapping of str to str
        Entries that replaced those of the capability record.
    finding : Finding
    seed, steps, threads : int
        Values of the campaign, which replay a finding of several threads, because it has no program.
    hang : float
        The time limit for a call, in seconds.
    named : bool
        Whether another process can look the target up by `target`; if not, it is only a description.
    skip : tuple of str
        Requirements that are left unjudged.
    """

    target: str
    promises: Mapping[str, str]
    finding: Finding
    seed: int = FUZZ.seed
    steps: int = 0
    threads: int = FUZZ.threads
    hang: float = FUZZ.hang
    named: bool = True
    skip: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The replay as data."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "kind": "syncedmem allocator replay",
            "target": self.target,
            "promises": dict(self.promises),
            "property": self.finding.requirement,
            "message": self.finding.message,
            "repeats": self.finding.repeats,
            "program": items_as_json(folded(self.finding.program)),
            "rounds": self.finding.rounds,
        }
        chosen = {"seed": self.seed, "steps": self.steps, "threads": self.threads, "hang": self.hang}
        return data | chosen | {"named": self.named, "skip": list(self.skip)}

    def text(self) -> str:
        """The text of a file, with one step on each line."""
        data = self.as_json()
        steps = ",\n".join(f"  {json.dumps(step)}" for step in data["program"])
        lines = json.dumps(data | {"program": []}, indent=1)
        return lines.replace('"program": []', f'"program": [\n{steps}\n ]' if steps else '"program": []') + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a replay from a file, without importing its target.

        Raises
        ------
        TargetError
            If it is not a replay.
        FileAccessError
            If it cannot be read.
        """
        try:
            data: Any = parsed_json(str(path), read_text(path, _WANTED))
        except FileAccessError:
            raise
        except FileFormatError as error:
            raise TargetError(f"{path} is no replay: {error.reason}") from None
        if not hasattr(data, "get") or data.get("format") not in _FORMATS:
            raise TargetError(f"{path} is no replay of format 1 to {FORMAT}; wanted is {_WANTED}")
        data.setdefault("skip", [])
        data.setdefault("rounds", None)
        wrong = [name for name, fits in _FIELDS.items() if not fits(data.get(name))]
        if wrong:
            raise TargetError(f"{path} is no replay: {wrong[0]!r} is missing or wrong; wanted is {_WANTED}")
        values: dict[str, Any] = {name: data.get(name) for name in _FIELDS}
        program = items_from_json(values["program"])
        chosen = {name: values[name] for name in ("repeats", "rounds")}
        finding = Finding(values["property"], values["message"], program, **chosen)
        chosen = {name: values[name] for name in ("seed", "steps", "threads", "hang", "named")}
        return cls(values["target"], values["promises"], finding, skip=tuple(values["skip"]), **chosen)

    def aimed_at(self, target: str) -> Self:
        """The same steps for another target, for example if the target has moved or had no name."""
        return replace(self, target=target, named=True)

    def run(self) -> Finding | None:
        """Take the steps again in a worker; return the finding, or None.

        If the steps did not repeat, or only the native driver takes them, the whole run is repeated.

        Raises
        ------
        TargetError
            If the target or the record cannot be used.
        """
        if not self.named:
            raise TargetError(
                f"{shown(self.target)} was an object in a program, and has no name to find it by: name the target, or "
                "replay it there"
            )
        rounds = self.finding.rounds
        if not self.finding.repeats or (rounds is not None and rounds["generator"] != "fast"):
            return self._run_again()
        with Isolated(self.target, self.hang) as place:
            job: Job = {"job": "program", "program": [step.as_json() for step in self.finding.program]}
            if rounds is not None:
                job = {"job": "campaign", "seconds": _LONGEST, **rounds}
            mask = Mask.of(self.skip).as_json()
            answer = place.perform({**job, "promises": dict(self.promises), "mask": mask})
            return finding_of(answer, place.journal.steps())

    def _run_again(self) -> Finding | None:
        """Repeat the run, and return its finding about the same requirement."""
        from .kit import fuzz  # noqa: PLC0415 -- it imports this module

        report = fuzz(
            self.target,
            seed=self.seed,
            steps=self.steps,
            threads=self.threads,
            promises=self.promises,
            hang=self.hang,
            skip=self.skip,
        )
        return next((it for it in report.findings if it.requirement == self.finding.requirement), None)

    @property
    def shows_steps(self) -> bool:
        """Whether `python` shows the steps; if not, it repeats the whole run."""
        return self.finding.repeats and self._lines is not None

    @cached_property
    def _lines(self) -> list[str] | None:
        """The steps as lines of Python; None if they are too many."""
        items = folded(self.finding.program)
        lines = _packed([_statement(it) for it in items]) if len(items) <= MOST_STEPS else []
        return lines if lines and len(lines) <= _MOST_LINES else None

    def python(self) -> str:
        """At most ten lines of Python: the steps, or the whole run if the steps do not repeat or are too many."""
        target = repr(self.target) if self.named else "target"
        lines = [] if self.named else [f"# target: {self.target}, as it was given to fuzz"]
        skip = f", skip={self.skip!r}" if self.skip else ""
        if not self.shows_steps or self._lines is None:
            call = f"seed={self.seed}, steps={self.steps}, threads={self.threads}, promises={dict(self.promises)!r}"
            lines += ["from syncedmem.spec.fuzz import fuzz", "", f"fuzz({target}, {call}{skip}).require()"]
        else:
            promises = "".join(f", {name}={text!r}" for name, text in self.promises.items())
            lines += ["from syncedmem.spec.fuzz import driver_of"]
            lines += [f"with driver_of({target}{skip}{promises}) as driver:"]
            lines += [f"    {line}" for line in self._lines]
            lines += ["    # this does not return"] if self.finding.requirement == "A23-no-hang" else []
        return "\n".join(lines) + "\n"


def _statement(item: Item) -> str:
    """A step or a loop as a statement."""
    if not isinstance(item, Repeat):
        return f"driver.{item}"
    index = "i" if item.stride else "_"
    return f"for {index} in range({item.times}): {'; '.join(f'driver.{call}' for call in item.calls())}"


def _packed(statements: list[str]) -> list[str]:
    """The statements, spread evenly over the lines; a loop has a line of its own."""
    lines = [list(them) for _, them in groupby(statements, lambda it: it if it.startswith("for ") else "")]
    each = 1
    while each < len(statements) and sum(-(-len(line) // each) for line in lines) > _MOST_LINES:
        each += 1
    return ["; ".join(line[at : at + each]) for line in lines for at in range(0, len(line), each)]


def replay(path: Path, target: str) -> None:
    """Run a replay file on a target."""
    finding = Replay.read(path).aimed_at(target).run()
    if finding is not None:
        raise Violation(finding.requirement, finding.message)
