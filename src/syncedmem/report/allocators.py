"""The result of the fuzzer as a report."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from syncedmem.spec.requirements import REQUIREMENTS

from .document import Document, Failure, Judged, Numbers, Unchecked
from .provenance import Provenance
from .seeds import machines, option_of, seeds_of, unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from syncedmem.spec.fuzz import Finding, Report

    from .document import Verdict

__all__ = ["fuzz_document"]


def fuzz_document(report: Report) -> Document:
    """The report of a run of the fuzzer."""
    return Document(
        "fuzz",
        report.target,
        _verdict(report),
        _headline(report),
        _provenance(report),
        tuple(_checked(report)),
        tuple(_unchecked(report)),
        tuple(_failure(report, it) for it in report.failures),
        tuple(_numbers(report)),
        (_judged(report),),
    )


def _verdict(report: Report) -> Verdict:
    if report.failures:
        return "failed"
    return "incomplete" if report.errors or report.interrupted else "passed"


def _headline(report: Report) -> str:
    ended = "".join(
        f" {said}"
        for said in (
            report.interrupted and f"It was interrupted by {report.interrupted}: this is what was done until then.",
            *(f"It ended early: {error}." for error in report.errors),
        )
        if said
    )
    statuses = [it.status for it in report.verdicts()]
    left = statuses.count("not checked")
    done = f"Checked {len(statuses) - left} of {len(statuses)} requirements, in {report.operations:,} operations."
    return f"{_bugs(report)} {done}{ended}"


def _bugs(report: Report) -> str:
    names = ", ".join(dict.fromkeys(it.requirement for it in report.failures))
    number = len(report.failures)
    if not number:
        return "No bug was found."
    return f"1 bug was found: {names}." if number == 1 else f"{number} bugs were found: {names}."


def _provenance(report: Report) -> Provenance:
    options = [f"--steps {report.steps}", option_of(report.spread, report.seed), f"--threads {report.threads}"]
    options += [f"--promise {shlex.quote(f'{name}={value}')}" for name, value in report.promises.items()]
    options += [f"--skip {name.partition('-')[0]}" for name in report.skipped]
    settings = {
        "operations asked for": f"{report.steps:,} of the fast generator",
        "threads": str(report.threads),
        "promises": ", ".join(f"{name}={value}" for name, value in report.promises.items()) or "those of the target",
        "process": "a process of its own" if report.protected else "this process: a crash ends the run",
    }
    again = " ".join(("syncedmem fuzz", shlex.quote(report.target), *options))
    return Provenance(seeds_of(report.spread, report.seed), settings, again if report.named else "", report.seconds)


def _checked(report: Report) -> Iterator[str]:
    yield f"{report.target}: {report.kind}."
    for it in report.suites:
        yield f"The generator {it.name}: {it.steps:,} operations."
    if report.spread:
        yield f"{report.spread['line']}."
    yield from report.notes


def _unchecked(report: Report) -> Iterator[Unchecked]:
    left: dict[str, list[str]] = {}
    for it in report.verdicts():
        if it.status == "not checked":
            left.setdefault(it.detail, []).append(it.requirement)
    for why, names in left.items():
        yield Unchecked(", ".join(names), why)
    yield from unfinished(report.spread)
    for key in report.unseen:
        yield Unchecked(key, "it is a known finding, and was not found this time")


def _failure(report: Report, finding: Finding) -> Failure:
    it = REQUIREMENTS[finding.requirement]
    return Failure(
        report.target,
        finding.requirement,
        finding.message,
        it.text,
        it.source,
        report.replay(finding).python(),
        notes=tuple(_notes(report, finding)),
    )


def _notes(report: Report, finding: Finding) -> Iterator[str]:
    times = f", and {finding.times - 1:,} times more" if finding.times > 1 else ""
    seed = f" with seed {report.seeds[finding.key]}" if finding.key in report.seeds else ""
    yield f"Found by the generator {finding.generator}{seed}, at operation {finding.operations:,}{times}."
    if not report.named:
        yield "The target was given as an object. In the program, `target` stands for it."
    if not report.replay(finding).shows_steps:
        yield "The program makes the whole run again; the steps are in the replay file."
    if not finding.repeats:
        yield "Its steps, taken again from the start, did not show it."
    if finding.after:
        yield f"Its program breaks {' and '.join(finding.after)} before. This may be a consequence."
    if finding.report:
        yield finding.report


def _numbers(report: Report) -> Iterator[Numbers]:
    rows = tuple(
        (it.name, {"operations": it.steps, "operations a second": round(it.rate), "seconds": round(it.seconds, 1)}, "")
        for it in report.suites
    )
    if rows:
        yield Numbers("Generators", "generator", rows)
    yield from machines(report.spread)


def _judged(report: Report) -> Judged:
    """The verdicts; failures first."""
    verdicts = sorted(report.verdicts(), key=lambda it: it.status != "failed")
    return Judged(
        "Allocators (A)", tuple((it.requirement, {"verdict": it.status}, it.detail, it.times) for it in verdicts)
    )
