"""The verdict on a port as a report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from syncedmem.model.diagrams.diamond import diamond_svg
from syncedmem.spec.engine.showing import showing
from syncedmem.spec.memory.coverage import Coverage
from syncedmem.spec.ports.targets import ProgramTarget

from .document import Document, Failure, Figure, Judged, Numbers, Unchecked
from .provenance import Provenance
from .seeds import machines, option_of, seeds_of, unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.spec import Violation
    from syncedmem.spec.ports.conformance import LevelResult, PortReport
    from syncedmem.spec.ports.targets import MakerTarget

    from .document import JudgedRow, Verdict

__all__ = ["port_document", "spelt"]


def spelt(target: ProgramTarget | MakerTarget) -> str:
    """The target, as a command line has it."""
    of_command = isinstance(target, ProgramTarget) and tuple(shlex.split(target.name)) == target.arguments
    return f"{'--command ' if of_command else ''}{shlex.quote(target.name)}"


def port_document(report: PortReport, target: ProgramTarget | MakerTarget, seconds: float) -> Document:
    """The report of a port.

    Parameters
    ----------
    report : PortReport
    target : ProgramTarget or MakerTarget
        What was tested.
    seconds : float
        How long it took.
    """
    return Document(
        "conform",
        f"{report.name} as {spelt(target)}" if report.name and report.name != target.name else spelt(target),
        _verdict(report),
        _headline(report),
        _provenance(report, target, seconds),
        tuple(_checked(report)),
        tuple(_unchecked(report)),
        tuple(_failures(report, target)),
        tuple(_numbers(report)),
        tuple(_judged(report)),
        tuple(_figures(report)),
    )


def _verdict(report: PortReport) -> Verdict:
    if report.passed:
        return "passed"
    return "failed" if report.violations else "incomplete"


def _headline(report: PortReport) -> str:
    """The verdict, and how many requirements it is not about."""
    last = _last(report)
    left = len(last.left) if last else 0
    more = f" Not judged: {left} requirement{'' if left == 1 else 's'}." if left else ""
    return f"{report.line[0].upper()}{report.line[1:]}.{more}"


def _provenance(report: PortReport, target: ProgramTarget | MakerTarget, seconds: float) -> Provenance:
    wanted = report.wanted
    told = {"profile": wanted.profile, "level": wanted.level, "edition": wanted.edition}
    options = [f"--{name} {value}" for name, value in told.items() if value]
    options += [f"--steps {wanted.steps}", option_of(report.spread, wanted.seed)]
    options += [f"--except {name.partition('-')[0]}" for name in wanted.excepted]
    options += [f"--{name}" for name, is_on in (("blobs", wanted.blobs), ("keep-going", wanted.keep_going)) if is_on]
    settings = {
        "generated steps": f"{wanted.steps:,} at each level",
        "profile": wanted.profile,
        "level": wanted.level or f"the highest that it reaches; it names {report.named or 'none'}",
        "edition": report.edition,
    }
    again = " ".join(("syncedmem conform", spelt(target), *options))
    return Provenance(seeds_of(report.spread, wanted.seed), settings, again, seconds)


def _last(report: PortReport) -> LevelResult | None:
    """The level that the verdict is about."""
    return report.reached or (report.results[-1] if report.results else None)


def _checked(report: PortReport) -> Iterator[str]:
    for result in report.results:
        verdict = "conforms" if result.passed else "does not conform"
        told = f"{result.counted} requirements, {result.covered}"
        yield f"{report.wanted.profile}/{result.level}: {verdict}; {told}, {result.found.steps:,} steps."
    if report.spread:
        yield f"{report.spread['line']}."


def _unchecked(report: PortReport) -> Iterator[Unchecked]:
    yield from unfinished(report.spread)
    last = _last(report)
    if last is None:
        yield Unchecked("every level", "the port ended before a level was tested to its end")
        return
    for name in last.met:
        yield Unchecked(name, "it is broken, and excepted with --except")
    left: dict[str, list[str]] = {}
    for name, why in last.left.items():
        left.setdefault(why, []).append(name.partition("-")[0])
    for why, names in left.items():
        yield Unchecked(", ".join(sorted(names)), why)
    stopped = [it for it in last.verdicts if it.status == "not checked" and it.requirement not in last.met]
    if stopped:
        yield Unchecked(f"{len(stopped)} more requirements", "a suite stops at its first failure; see --keep-going")
    if not (last.passed or last.found.violations):
        yield Unchecked("all transitions" if isinstance(last.found.coverage, Coverage) else "all cells", _short(last))


def _short(last: LevelResult) -> str:
    found = last.found
    return found.shortfall or f"{found.coverage.missing} {found.coverage.unit} were not taken"


def _failures(report: PortReport, target: ProgramTarget | MakerTarget) -> Iterator[Failure]:
    for level, violations in report.reasons.items():
        keeps = f"This keeps it from {report.wanted.profile}/{level}." if level and not report.wanted.level else ""
        for found in violations:
            vector = f"The same as a test vector is in {found.requirement}.vector.jsonl, for syncedmem replay."
            notes = [it for it in (keeps, vector if found.vector else "") if it]
            program = _program(found, target)
            yield Failure.of(report.name, found, program, *notes, sh=isinstance(target, ProgramTarget))


def _program(found: Violation, target: ProgramTarget | MakerTarget) -> str:
    if not found.statements:  # a maker in Python that cannot even be imported
        return ""
    if isinstance(target, ProgramTarget):
        command = " ".join(map(_word, target.arguments))
        return "\n".join((f"{command} <<'END'", *found.statements, "END"))
    return showing(found)


def _word(text: str) -> str:
    """A word of a shell; the home folder is written as a variable, so that it names no user."""
    home = str(Path("~").expanduser())
    if home in ("~", "/") or home not in text:
        return shlex.quote(text)
    return '"$HOME"'.join(shlex.quote(it) if it else "" for it in text.split(home))


def _numbers(report: PortReport) -> Iterator[Numbers]:
    rows = tuple((f"{report.wanted.profile}/{it.level}", _counted(it), "") for it in report.results)
    if rows:
        yield Numbers("Levels" if rows[1:] else f"Level {rows[0][0]}", "level", rows)
    yield from machines(report.spread)


def _counted(result: LevelResult) -> dict[str, int | float | str]:
    return {
        "requirements": result.counted,
        "covered": result.covered,
        "walks": result.found.walks,
        "steps": result.found.steps,
        "seconds": round(result.found.seconds, 1),
    }


def _judged(report: PortReport) -> Iterator[Judged]:
    """At the highest level that was tested, which sees most; failures first."""
    if report.results:
        top = report.results[0]
        name = f"{report.wanted.profile}/{top.level}"
        rows: list[JudgedRow] = [(it.requirement, {name: it.status}, it.detail, 0) for it in top.verdicts]
        yield Judged(f"Judged at {name}", tuple(sorted(rows, key=lambda row: row[1][name] != "failed")))


def _figures(report: PortReport) -> Iterator[Figure]:
    if report.results and isinstance(coverage := report.results[0].found.coverage, Coverage):
        svg = diamond_svg(coverage.edition, covered=coverage.identifiers())
        yield Figure(f"The machine, as the port took it at {report.results[0].level}", svg)
