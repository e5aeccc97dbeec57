"""What a report has, whatever command made it: the verdict, what was checked and what was not, failures, and numbers.

The page shows the data of `Document.as_json`, and nothing else but drawings.  So both say the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from syncedmem.spec.requirements import REQUIREMENTS

from .glossary import GLOSSARY, glossary_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.spec import Violation
    from syncedmem.spec.engine.report import Status

    from .provenance import Provenance

    JudgedRow = tuple[str, Mapping[str, Status], str, int]

__all__ = ["FORMAT", "Document", "Failure", "Figure", "Judged", "Numbers", "Unchecked", "Verdict", "homeless"]

FORMAT = 1

Verdict = Literal["passed", "failed", "incomplete"]
"""Failed: something is wrong.  Incomplete: nothing is wrong, but something that was asked for was not checked."""


@dataclass(frozen=True)
class Unchecked:
    """Something that was not checked.

    Attributes
    ----------
    what : str
    why : str
        The reason, and how to have it checked, if that is known.
    """

    what: str
    why: str


@dataclass(frozen=True)
class Failure:
    """Something that is wrong.

    Attributes
    ----------
    subject : str
        What was tested.
    requirement : str
        The requirement that is broken; another word if it is none, such as ``"coverage"``.
    message : str
        What was seen, and what was expected.
    required : str
        The sentence of the requirement; empty if it is none.
    source : str
        Where that sentence comes from.
    program : str
        A program that shows it, which runs as it is; empty if there is none.
    language : {"python", "sh"}
        What runs the program: ``python3 -``, or ``sh``.
    notes : tuple of str
        What else is to be said of it.
    """

    subject: str
    requirement: str
    message: str
    required: str = ""
    source: str = ""
    program: str = ""
    language: Literal["python", "sh"] = "python"
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, subject: str, violation: Violation, program: str, *notes: str, sh: bool = False) -> Failure:
        """A violation as a failure, with its requirement."""
        known = REQUIREMENTS.get(violation.requirement)
        said = (known.text, known.source) if known else ("", "")
        return cls(
            subject, violation.requirement, violation.message, *said, program, "sh" if sh else "python", tuple(notes)
        )


@dataclass(frozen=True)
class Numbers:
    """A table of numbers.

    Attributes
    ----------
    title : str
    of : str
        The heading of the first column.
    rows : tuple of (str, dict, str)
        The name of a row, its numbers by their terms, and what else is to be said of it.  A number that is a text is
        shown as it is.
    """

    title: str
    of: str
    rows: tuple[tuple[str, Mapping[str, int | float | str], str], ...]

    def __post_init__(self) -> None:
        unknown = [term for term in self.terms if term not in GLOSSARY]
        if unknown:
            raise KeyError(f"the glossary has no {', '.join(unknown)}")

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of the columns."""
        return tuple(dict.fromkeys(term for _, numbers, _ in self.rows for term in numbers))

    def as_json(self) -> dict[str, Any]:
        """The table as data."""
        rows = [{"name": name, "numbers": dict(numbers), "note": note} for name, numbers, note in self.rows]
        return {"title": self.title, "of": self.of, "terms": list(self.terms), "rows": rows}


@dataclass(frozen=True)
class Judged:
    """The verdicts on requirements.

    Attributes
    ----------
    title : str
    rows : tuple of (str, dict, str, int)
        A requirement, its status by what was tested, the reason, and how often it was checked, if that is counted.
    """

    title: str
    rows: tuple[JudgedRow, ...]

    def as_json(self) -> dict[str, Any]:
        """The verdicts as data."""
        return {"title": self.title, "rows": [_judged(*row) for row in self.rows]}


def _judged(name: str, statuses: Mapping[str, Status], detail: str, times: int) -> dict[str, Any]:
    it = REQUIREMENTS[name]
    known = {"id": name, "text": it.text, "profile": it.profile, "source": it.source}
    return {**known, "statuses": dict(statuses), "detail": detail, "times": times}


@dataclass(frozen=True)
class Figure:
    """A drawing, which only the page has.

    Attributes
    ----------
    title : str
    svg : str
    """

    title: str
    svg: str


@dataclass(frozen=True)
class Document:
    """The report of a run.

    Attributes
    ----------
    command : {"verify", "conform", "fuzz"}
    subject : str
        What was tested.
    verdict : Verdict
    headline : str
        The verdict in a sentence or two.
    provenance : Provenance
    checked : tuple of str
        What was checked, with the result.
    unchecked : tuple of Unchecked
    failures : tuple of Failure
    numbers : tuple of Numbers
    judged : tuple of Judged
    figures : tuple of Figure
    """

    command: Literal["verify", "conform", "fuzz"]
    subject: str
    verdict: Verdict
    headline: str
    provenance: Provenance
    checked: tuple[str, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    failures: tuple[Failure, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    judged: tuple[Judged, ...] = ()
    figures: tuple[Figure, ...] = field(default=(), repr=False)

    def as_json(self) -> dict[str, Any]:
        """The report as data; docs/report.schema.json describes it.  The home folder is written as ``~``."""
        statuses = {status for table in self.judged for _, them, *_ in table.rows for status in them.values()}
        counted = ["checked N times"] if any(times for table in self.judged for *_, times in table.rows) else []
        terms = {term for table in self.numbers for term in table.terms} | statuses | {self.verdict, *counted}
        data: dict[str, Any] = homeless(
            {
                "format": FORMAT,
                "command": self.command,
                "subject": self.subject,
                "verdict": self.verdict,
                "headline": self.headline,
                "checked": list(self.checked),
                "not_checked": [asdict(it) for it in self.unchecked],
                "failures": [{**asdict(it), "notes": list(it.notes)} for it in self.failures],
                "provenance": self.provenance.as_json(),
                "numbers": [it.as_json() for it in self.numbers],
                "requirements": [it.as_json() for it in self.judged],
                "glossary": glossary_of(terms),
            }
        )
        return data


def homeless(data: Any) -> Any:  # noqa: ANN401 -- any JSON
    """The same data with the path of the home folder written as ``~``, because it names the user."""
    home = str(Path("~").expanduser())
    if home in ("~", "/"):  # there is none, or it names nobody
        return data
    return _replaced(data, home)


def _replaced(data: Any, home: str) -> Any:  # noqa: ANN401 -- as above
    if isinstance(data, str):
        return data.replace(home, "~")
    if isinstance(data, dict):
        return {name: _replaced(it, home) for name, it in cast("dict[str, Any]", data).items()}
    return [_replaced(it, home) for it in cast("list[object]", data)] if isinstance(data, list) else data
