"""The verification as a report: what `syncedmem.report` shows and keeps."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from syncedmem import report
from syncedmem.model.diagrams.diamond import diamond_svg
from syncedmem.report import Document, Failure, Figure, Judged, Numbers, Provenance, Unchecked
from syncedmem.report.seeds import machines, option_of, seeds_of, unfinished
from syncedmem.spec.engine.showing import showing
from syncedmem.spec.requirements import requirements_of

from .verdicts import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from syncedmem.report.document import JudgedRow
    from syncedmem.spec.requirements import Kind

    from .verdicts import DeviceVerdict, Verification

__all__ = ["document", "page"]

_KINDS: Mapping[Kind, str] = {
    "memory": "Memories (R)",
    "blob": "Blobs (B)",
    "buffer": "Buffers (F)",
    "device allocator": "Allocators and adaptors (D)",
}

_MODEL = {
    "configurations": "configurations",
    "cells": "cells",
    "refusals": "refusals",
    "states": "states",
    "transitions": "transitions",
    "minimal_states": "minimised states",
    "tour_steps": "tour steps",
    "hsi_steps": "HSI steps",
    "invariants": "invariants",
    "proved_states": "proved states",
}
"""The counts of the model, with their terms in the glossary."""

_NAMED = 3
"""How many broken requirements a headline names."""


def page(result: Verification) -> str:
    """The report as a page."""
    return report.page(document(result))


def document(result: Verification) -> Document:
    """The report of a verification."""
    failures = tuple(_failures(result))
    return Document(
        "verify",
        "the model and the devices of this machine",
        result.verdict,
        _headline(result, failures),
        _provenance(result),
        tuple(_checked(result)),
        tuple(_unchecked(result)),
        failures,
        tuple(_numbers(result)),
        tuple(_judged(result)),
        tuple(_figures(result)),
    )


def _headline(result: Verification, failures: tuple[Failure, ...]) -> str:
    """What was checked, with what result, and what was asked for and is missing."""
    names = [device.name for device in result.ran]
    sentences = [f"Checked the model and {_devices(len(names))}" + (f" ({', '.join(names)})." if names else ".")]
    broken = list(dict.fromkeys(f"{it.requirement} on {it.subject}" for it in failures))
    if broken:
        sentences.append(
            f"Broken: {', '.join(broken[:_NAMED])}{f' and {len(broken) - _NAMED} more' * (len(broken) > _NAMED)}."
        )
    else:
        sentences.append("Nothing is wrong.")
    if result.missing:
        sentences.append(f"Asked for and not available, so not checked: {', '.join(result.missing)}.")
    left = [name for name in result.unavailable if name not in result.missing]
    left += ["some requirements, for want of a package"] if result.unchecked else []
    if left:
        sentences.append(f"Not checked: {', '.join(left)}.")
    return " ".join(sentences)


def _devices(number: int) -> str:
    return f"{number or 'no'} device{'s' if number > 1 else ''}"


def _provenance(result: Verification) -> Provenance:
    devices = " ".join(f"--device {shlex.quote(name)}" for name in result.requested)
    told = f"--steps {result.steps} {option_of(result.spread, result.seed)}"
    return Provenance(
        seeds_of(result.spread, result.seed),
        {"generated steps": f"{result.steps:,} on each device", "devices": ", ".join(result.requested) or "all"},
        f"syncedmem verify {devices} {told}" if devices else f"syncedmem verify {told}",
        result.seconds,
    )


def _checked(result: Verification) -> Iterator[str]:
    counts = result.model.counts
    agreed = f"{len(result.model.problems)} differences" if result.model.problems else "the same in every cell"
    yield f"The model, with what was observed of Caffe: {counts['cells']} cells, {agreed}."
    yield f"{counts['invariants']} invariants, in {counts['proved_states']} states."
    for device in result.ran:
        statuses = [device.requirement_status(name) for name in requirements_of(*KINDS)]
        told = [f"{statuses.count(it)} {it}" for it in ("failed", "passed") if it in statuses]
        yield f"{device.name}: {device.status}. Of its requirements, {', '.join(told) or 'none'}."
    if result.spread:
        yield f"{result.spread['line']}."


def _unchecked(result: Verification) -> Iterator[Unchecked]:
    """What was not checked: what was asked for comes first."""
    yield from unfinished(result.spread)
    for device in sorted(result.devices, key=lambda it: it.name not in result.requested):
        if not device.parts:
            yield Unchecked(device.name, device.reason)
    if result.unchecked:
        what, _, why = result.unchecked.partition(" are not checked: ")
        yield Unchecked(f"requirements {what}", why)
    if result.model.induction.startswith("not checked"):
        why = result.model.induction.partition(", ")[2]
        yield Unchecked("the invariants once more by induction", why or "no reason is known")
    for device in result.ran:
        statuses = [device.requirement_status(name) for name in requirements_of(*KINDS)]
        if device.violations and "not checked" in statuses:
            number = statuses.count("not checked")
            yield Unchecked(f"{number} requirements on {device.name}", "a suite stops at its first failure")
        if device.limits:
            yield Unchecked(f"what {device.name} cannot do", device.limits)


def _failures(result: Verification) -> Iterator[Failure]:
    for problem in result.model.problems:
        yield Failure("the model", "model", problem)
    for device in result.devices:
        for found in device.violations:
            vector = f"{device.name}-{found.requirement}.vector.jsonl"
            notes = [f"The same as a test vector is in {vector}, for syncedmem replay."] if found.vector else []
            yield Failure.of(device.name, found, showing(found) if found.statements else "", *notes)
        for said in device.shortcomings:
            yield Failure(
                device.name, "coverage", said, notes=("No program can show this: the run did not get there.",)
            )


def _numbers(result: Verification) -> Iterator[Numbers]:
    rows = tuple(map(_row, result.devices))
    if result.ran:
        yield Numbers("Devices", "device", rows)
    yield from machines(result.spread)
    counts = {term: result.model.counts[name] for name, term in _MODEL.items()}
    yield Numbers("Model", "model", (("caffe", counts, f"Proofs by induction: {result.model.induction}."),))


def _row(device: DeviceVerdict) -> tuple[str, dict[str, int | float | str], str]:
    found = device.memories
    if found is None:
        return device.name, {}, f"not available: {device.reason}"
    covered = found.coverage
    numbers: dict[str, int | float | str] = {
        "cells": covered.cells,
        "states": covered.states,
        "transitions": f"{covered.transitions} of {covered.transitions + covered.missing}",
        **({} if device.blobs is None else {"cells of blobs": device.blobs.coverage.cells}),
        **{
            f"checks of {part}": device.parts[part].coverage.taken
            for part in ("buffers", "allocators")
            if part in device.parts
        },
        "walks": device.walks,
        "steps": device.steps,
        "seconds": round(device.seconds, 1),
    }
    return device.name, numbers, "; ".join(filter(None, (device.detail, device.limits)))


def _judged(result: Verification) -> Iterator[Judged]:
    if not result.ran:
        return
    for kind in KINDS:
        rows: list[JudgedRow] = [
            (name, {device.name: device.requirement_status(name) for device in result.ran}, "", 0)
            for name in requirements_of(kind)
        ]
        # Failures first; else the order of the requirements.
        yield Judged(_KINDS[kind], tuple(sorted(rows, key=lambda row: "failed" not in row[1].values())))


def _figures(result: Verification) -> Iterator[Figure]:
    """One drawing for each edition that ran, with the rows that any device took."""
    covered: dict[str, set[str]] = {}
    for device in result.devices:
        if device.memories is not None:
            coverage = device.memories.coverage
            covered.setdefault(coverage.edition, set()).update(coverage.identifiers())
    titles = {
        "caffe": "The machine, as the devices took it",
        "cpu_only": "The machine, as memory without a device took it",
    }
    for edition, title in titles.items():
        if edition in covered:
            yield Figure(title, diamond_svg(edition, covered=covered[edition]))
