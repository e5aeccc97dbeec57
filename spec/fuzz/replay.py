"""Replays of findings, as a few lines of Python and as a JSON file."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self, cast

from syncedmem.model import FileAccessError, FileFormatError
from syncedmem.model.defaults import FUZZ
from syncedmem.model.errors import shown
from syncedmem.model.files import parsed_json, read_text

from ..engine.fields import FLAG, INTEGER, NUMBER, TEXT, Type, array_of, mismatch, one_of
from ..requirements import requirements_of
from .driver import Driver
from .finding import EngineError, Finding, TargetError
from .jobs import Isolated
from .loops import Repeat, folded, items_from_json, program_as_json
from .mask import Mask, requirement_named
from .recognition import TargetSource

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from pathlib import Path

    from .jobs import Job
    from .loops import Item

__all__ = ["MOST_STEPS", "FuzzWanted", "Replay", "driver_of"]

FORMAT = 4
_FORMATS = (1, 2, 3, FORMAT)
"""Format 1 has no loops, and nothing to skip; format 3 may have rounds in place of steps: the seed takes them again."""
_WANTED = "a replay of fuzz"
MOST_STEPS = 64
"""The most steps that are shown."""
_MOST_LINES = 7
_LONGEST_HANG = 86_400
"""The longest time limit of a call, in seconds: a day."""
_REQUIREMENT: Type = one_of(requirements_of("allocator"))
_FIELDS: dict[str, Type] = {
    "target": TEXT,
    "promises": {"type": "object", "additionalProperties": TEXT},
    "property": _REQUIREMENT,
    "message": TEXT,
    "repeats": FLAG,
    "program": array_of({}),
    "seed": INTEGER,
    "steps": NUMBER,
    "threads": {**NUMBER, "minimum": 1},
    "hang": {"type": "number", "minimum": 0.001, "maximum": _LONGEST_HANG},
    "seconds": {"type": "number", "minimum": 1e-300, "maximum": 1e15},
    "named": FLAG,
    "skip": array_of(_REQUIREMENT),
}
"""The fields of a file."""


@contextmanager
def driver_of(target: object, /, *, skip: Iterable[str] = (), **promises: str) -> Generator[Driver]:
    """A driver for steps by hand; at the end everything is freed and compared.

    Parameters
    ----------
    target : object or str
        As for `TargetSource`.
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
    opened = TargetSource(target).open()
    mask = Mask.of(map(requirement_named, skip))
    driver = Driver(opened, opened.capabilities.with_promises(promises), mask=mask)
    yield driver
    driver.end()


@dataclass(frozen=True)
class FuzzWanted:
    """What is fuzzed, and how.

    Attributes
    ----------
    target : str
    promises : mapping of str to str
        Entries that replace those of the capability record.
    seed, steps, threads : int
    hang : float
        The time limit for a call, in seconds.
    seconds : float
        The most time for all generators together.
    named : bool
        Whether another process can look the target up by `target`; if not, it is only a description.
    skip : tuple of str
        Requirements that are left unjudged.
    """

    target: str
    promises: Mapping[str, str] = field(default_factory=dict[str, str])
    seed: int = FUZZ.seed
    steps: int = 0
    threads: int = FUZZ.threads
    hang: float = FUZZ.hang
    seconds: float = FUZZ.seconds
    named: bool = True
    skip: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """A finding with everything that is needed to show it again.

    Attributes
    ----------
    wanted : FuzzWanted
        Its numbers replay a finding of several threads, because that has no program.
    finding : Finding
    """

    wanted: FuzzWanted
    finding: Finding

    def as_json(self) -> dict[str, Any]:
        """The replay as data."""
        return {
            "format": FORMAT,
            "kind": "syncedmem allocator replay",
            **vars(self.wanted),
            "promises": dict(self.wanted.promises),
            "skip": list(self.wanted.skip),
            "property": self.finding.requirement,
            "message": self.finding.message,
            "repeats": self.finding.repeats,
            "program": program_as_json(self.finding.program),
        }

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
            read: Any = parsed_json(str(path), read_text(path, _WANTED))
        except FileAccessError:
            raise
        except FileFormatError as error:
            raise TargetError(f"{path} is no replay: {error.reason}") from None
        data = cast("dict[str, Any]", read if isinstance(read, dict) else {})
        if data.get("format") not in _FORMATS:
            raise TargetError(f"{path} is no replay of format 1 to {FORMAT}; wanted is {_WANTED}")
        data.setdefault("skip", [])
        data.setdefault("seconds", FUZZ.seconds)
        if fault := mismatch({"type": "object", "properties": _FIELDS, "required": _FIELDS}, data):
            raise TargetError(f"{path} is no replay: it {fault}; wanted is {_WANTED}")
        program = items_from_json(data["program"])
        finding = Finding(data["property"], data["message"], program, repeats=data["repeats"])
        wanted: dict[str, Any] = {field.name: data[field.name] for field in fields(FuzzWanted)}
        wanted["skip"] = tuple(wanted["skip"])
        return cls(FuzzWanted(**wanted), finding)

    def aimed_at(self, target: str) -> Self:
        """The same steps for another target, for example if the target has moved or had no name."""
        return replace(self, wanted=replace(self.wanted, target=target, named=True))

    def run(self) -> Finding | None:
        """Take the steps again in a worker; return the finding, or None.

        If the steps did not repeat, or were not kept, the whole run is repeated.

        Raises
        ------
        TargetError
            If the target or the record cannot be used.
        EngineError
            If it is not known whether it still shows the finding: the fuzzer itself failed, or did too little.
        """
        wanted = self.wanted
        if not wanted.named:
            raise TargetError(
                f"{shown(wanted.target)} was an object in a program, and has no name to find it by: name it, or "
                "replay it there"
            )
        if not self.finding.repeats or not self.finding.program:
            return self._run_again()
        with Isolated(wanted.target, wanted.hang) as place:
            program, mask = program_as_json(self.finding.program), Mask.of(wanted.skip).as_json()
            job: Job = {"job": "program", "program": program, "promises": dict(wanted.promises), "mask": mask}
            finding = place.perform(job).finding
            if finding is not None and finding.requirement == self.finding.requirement:
                return finding
            return place.perform(job).finding if self._preloads(place) else finding

    def _preloads(self, place: Isolated) -> bool:
        """Load a library that defines malloc as a run does that finds something in it; False for all others.

        It is preloaded, or bound to its own functions if it cannot be.
        """
        described = place.perform({"job": "describe", "promises": {}}).described
        library: str = described["preload"] if described else ""
        if not library:
            return False
        place.preload(library)
        try:
            opened = place.perform({"job": "describe", "promises": {}}).described
        except EngineError:
            opened = None
        if opened is None or opened["preload"]:
            place.deep = True
            place.preload("")
        return True

    def _run_again(self) -> Finding | None:
        """Repeat the run, and return its finding about the same requirement."""
        from .kit import fuzz  # noqa: PLC0415 -- it imports this module

        report = fuzz(**{name: value for name, value in vars(self.wanted).items() if name != "named"})
        found = next((item for item in report.violating if item.requirement == self.finding.requirement), None)
        reasons = [*report.errors, *filter(None, [report.undone, report.smaller])]
        if found is None and reasons:
            raise EngineError(reasons[0])
        return found

    @property
    def shows_steps(self) -> bool:
        """Whether `python` shows the steps; if not, it repeats the whole run."""
        return self.finding.repeats and self._lines is not None

    @cached_property
    def _lines(self) -> list[str] | None:
        """The steps as lines of Python; None if they are too many."""
        items = folded(self.finding.program)
        lines = _packed([_statement(item) for item in items]) if len(items) <= MOST_STEPS else []
        return lines if lines and len(lines) <= _MOST_LINES else None

    def python(self) -> str:
        """At most ten lines of Python: the steps, or the whole run if the steps do not repeat or are too many."""
        wanted = self.wanted
        target = repr(wanted.target) if wanted.named else "target"
        lines = [] if wanted.named else [f"# target: {wanted.target}, as it was given to fuzz"]
        skip = f", skip={wanted.skip!r}" if wanted.skip else ""
        if not self.shows_steps or self._lines is None:
            call = f"seed={wanted.seed}, steps={wanted.steps}, threads={wanted.threads}"
            call += f", promises={dict(wanted.promises)!r}"
            limits = ("hang", wanted.hang, FUZZ.hang), ("seconds", wanted.seconds, FUZZ.seconds)
            call += "".join(f", {name}={limit:g}" for name, limit, usual in limits if limit != usual)
            lines += ["from syncedmem.spec.fuzz import fuzz", "", f"fuzz({target}, {call}{skip}).require()"]
        else:
            promises = "".join(f", {name}={text!r}" for name, text in wanted.promises.items())
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
    lines = [list(group) for _, group in groupby(statements, lambda text: text if text.startswith("for ") else "")]
    each = 1
    while each < len(statements) and sum(-(-len(line) // each) for line in lines) > _MOST_LINES:
        each += 1
    return ["; ".join(line[at : at + each]) for line in lines for at in range(0, len(line), each)]
