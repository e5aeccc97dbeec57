"""The verification as a page: one file, no script, readable on a phone and in the dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from syncedmem import __version__
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.spec.requirements import requirements_of

from .glossary import GLOSSARY
from .verdicts import KINDS, MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syncedmem.spec import Requirement
    from syncedmem.spec.requirements import Kind

    from .verdicts import DeviceVerdict, Verification

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --back: #ffffff;
        --good: #00664a; --bad: #b3261e; --shade: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9da7b1; --line: #3a424b; --back: #0d1117;
        --good: #4ac99b; --bad: #ff8a80; --shade: #161b22; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 62rem; font: 16px/1.5 system-ui, sans-serif;
       color: var(--text); background: var(--back); }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); } .small { font-size: .8rem; }
.passed { color: var(--good); } .failed, .incomplete { color: var(--bad); font-weight: 600; }
.unavailable { color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { vertical-align: bottom; }
th { font-weight: 600; } th.kind { padding-top: 1.2rem; color: var(--soft); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
td.name { white-space: nowrap; } td.mark { text-align: center; } td.wide { min-width: 16rem; }
@media (max-width: 40rem) { td.wide { min-width: 9rem; } th, td { padding: .35rem .4rem; } }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin: .8rem 0; }
dl div { background: var(--shade); border-radius: .5rem; padding: .6rem .8rem; }
dt { color: var(--soft); font-size: .8rem; } dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
pre { background: var(--shade); padding: .8rem; border-radius: .5rem; overflow-x: auto; font-size: .8rem; }
figure { margin: 0; } figure svg { max-width: 100%; height: auto; }
"""


_KINDS: Mapping[Kind, str] = {
    "memory": "Memories (R)",
    "blob": "Blobs (B)",
    "device allocator": "Allocators and adaptors (D)",
}


def page(result: Verification) -> str:
    """The whole report."""
    verdict = result.verdict
    drawn = "".join(
        f"<h2>The machine, as {title}</h2><figure>{diagram_svg(edition, covered=covered)}</figure>"
        for title, edition, covered in _drawings(result)
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>syncedmem: {verdict}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>syncedmem verification: <span class="{verdict}">{verdict}</span></h1>
<p class="soft">version {escape(__version__)}, seed {result.seed}, {result.seconds:.1f} seconds</p>
{_surroundings(result)}
{_unavailable(result)}
{"".join(map(_violations, result.devices))}
{_model(result)}
<h2>Devices</h2>
{_devices(result)}
{drawn}
<h2>Requirements</h2>
<p class="soft">✓ passed. ✗ failed. – not checked: a package is missing, or
a suite stopped before. · not applicable: the device does not need it, or it belongs to another profile.</p>
<p class="soft">{escape(result.unchecked)}</p>
{_requirements(result)}
<h2>What the words mean</h2>
{_glossary()}
</body>
</html>
"""


def _unavailable(result: Verification) -> str:
    if result.missing:
        return f'<p class="incomplete">You asked for {escape(", ".join(result.missing))}, and it is not here.</p>'
    names = escape(", ".join(result.unavailable))
    return f'<p class="soft">Not available, so not checked: {names}</p>' if names else ""


def _surroundings(result: Verification) -> str:
    it = result.surroundings
    libraries = ", ".join(f"{name} {version}" for name, version in it["libraries"].items())
    commit = f"commit {it['commit']}, " if it["commit"] else ""
    when = f"{it['date']}, {commit}host {it['host']}: {it['processor']}"
    where = f"{it['platform']}, Python {it['python']}"
    lines = (("soft", when), ("soft", where), ("soft small", libraries))
    return "".join(f'<p class="{kind}">{escape(line)}</p>' for kind, line in lines)


def _model(result: Verification) -> str:
    names = {
        "configurations": "configurations",
        "cells": "cells",
        "refusals": "of them refused",
        "states": "states",
        "transitions": "transitions",
        "minimal_states": "states, minimised",
        "tour_steps": "steps in the tour",
        "hsi_steps": "steps in the HSI suite",
        "invariants": "invariants",
        "proved_states": "states of the proofs",
    }
    boxes = "".join(
        f"<div><dt>{title}</dt><dd>{result.model.counts[name]:,}</dd></div>" for name, title in names.items()
    )
    problems = "".join(f'<p class="failed">{escape(problem)}</p>' for problem in result.model.problems)
    agreed = "" if problems else '<p class="passed">✓ agrees cell by cell with what was observed of Caffe</p>'
    proved = f'<p class="soft">{escape(result.model.proved)}</p>'
    return f"<h2>Model</h2>{agreed}{problems}{proved}<dl>{boxes}</dl>"


def _devices(result: Verification) -> str:
    rows = "".join(map(_device, result.devices))
    numbers = (
        *("cells", "states", "transitions", "cells of blobs", "checks of allocators"),
        *("walks", "steps", "seconds"),
    )
    heads = "<th>device<th>status" + "".join(f'<th class="number">{name}' for name in numbers)
    return f'<div class="scroll"><table><thead><tr>{heads}</thead><tbody>{rows}</tbody></table></div>'


def _device(device: DeviceVerdict) -> str:
    found = device.memories
    start = f'<tr><td class="name">{escape(device.name)}<td class="{device.status}">{device.status}'
    if found is None:
        return f'{start}<td colspan="8" class="soft wide">{escape(device.reason)}'
    covered = found.coverage
    total = covered.count + covered.missing
    transitions = f"{covered.count} of {total}"
    blobs = "–" if device.blobs is None else f"{device.blobs.coverage.count}"
    checks = f"{device.parts['allocators'].coverage.count}" if "allocators" in device.parts else "–"
    numbers = (
        f"{covered.cells}",
        f"{covered.states}",
        transitions,
        blobs,
        checks,
        f"{device.walks:,}",
        f"{device.steps:,}",
    )
    cells = "".join(f'<td class="number">{number}' for number in (*numbers, f"{device.seconds:.1f}"))
    said = filter(None, (device.detail, device.limits))
    return start + cells + "".join(f'<tr><td><td colspan="9" class="soft wide">{escape(line)}' for line in said)


def _violations(device: DeviceVerdict) -> str:
    if not device.violations:
        return ""
    shown = "".join(
        f'<p class="failed">{escape(found.sentence)}</p><pre>{escape(found.reproducer)}</pre>'
        for found in device.violations
    )
    return f"<h2>Failures of {escape(device.name)}</h2>{shown}"


def _drawings(result: Verification) -> list[tuple[str, str, set[str]]]:
    """One drawing for each edition that ran, with the rows that any device took."""
    covered: dict[str, set[str]] = {}
    for device in result.devices:
        if device.memories is not None:
            coverage = device.memories.coverage
            covered.setdefault(coverage.machine.name, set()).update(coverage.identifiers())
    titles = {"caffe": "the devices took it", "cpu_only": "memory without a device took it"}
    return [(titles[edition], edition, covered[edition]) for edition in titles if edition in covered]


def _requirements(result: Verification) -> str:
    heads = "".join(f"<th>{escape(device.name)}" for device in result.ran)
    width = len(result.ran) + 3
    rows = "".join(
        f'<tr><th class="kind" colspan="{width}" scope="rowgroup">{_KINDS[kind]}'
        + "".join(_requirement(it, result.ran) for it in requirements_of(kind).values())
        for kind in KINDS
    )
    return (
        f'<div class="scroll"><table><thead><tr><th>requirement{heads}<th>profile<th>source</thead>'
        f"<tbody>{rows}</tbody></table></div>"
        '<p class="soft">Sources: syncedmem.cpp:42-47 is lines 42 to 47 of Caffe\'s file of that name (BVLC/caffe '
        "9b8915401); H1 to H20 are known hazards of Caffe; #1234 is an issue of BVLC/caffe.</p>"
    )


def _glossary() -> str:
    rows = "".join(f'<tr><th>{escape(word)}<td class="wide">{escape(text)}' for word, text in GLOSSARY.items())
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'


def _requirement(it: Requirement, ran: list[DeviceVerdict]) -> str:
    statuses = [device.requirement_status(it.id) for device in ran]
    marks = "".join(f'<td class="mark {status}" title="{status}">{MARKS[status]}' for status in statuses)
    return (
        f'<tr><td class="wide"><strong>{escape(it.id)}</strong> {escape(it.text)}{marks}<td>{it.profile}'
        f'<td class="soft">{escape(it.source)}'
    )
