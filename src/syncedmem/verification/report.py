"""The verification as a page: one file, no script, readable on a phone and in the dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from syncedmem import __version__
from syncedmem.model.diagrams.diagram import diagram_svg
from syncedmem.spec.requirements import requirements_of

from .verdicts import KINDS, LEGEND, MARKS

if TYPE_CHECKING:
    from syncedmem.spec.requirements import Kind

    from .verdicts import DeviceVerdict, Verification

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d8dde3; --paper: #ffffff;
  --box: #f3f5f7; --good: #00664a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #a0aab5; --line: #303842; --paper: #12161c;
  --box: #1b212a; --good: #4ac99b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { margin: 0 0 .5rem; font-size: 2rem; line-height: 1.2; } h2 { margin: 2.5rem 0 .75rem; font-size: 1.25rem; }
h3 { margin: 0; font-size: 1rem; display: flex; justify-content: space-between; gap: .5rem; }
p { margin: .25rem 0; overflow-wrap: anywhere; }
.passed { color: var(--good); } .failed, .incomplete { color: var(--bad); }
.soft, .unavailable { color: var(--soft); } .small, article p, figcaption, table { font-size: .875rem; }
.boxes { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .75rem; }
article, pre { padding: .9rem 1rem; border-radius: .6rem; background: var(--box); }
pre { margin: .5rem 0 1.5rem; overflow-x: auto; font-size: .8125rem; }
.drawings { display: grid; grid-template-columns: 3fr 2fr; gap: 1.5rem 2rem; margin-top: 1.5rem; }
figure { min-width: 0; margin: 0; overflow-x: auto; } figcaption { color: var(--soft); }
figure svg { display: block; width: 100%; height: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--paper); vertical-align: bottom; }
th[scope=rowgroup] { padding-top: 1.5rem; color: var(--soft); }
th[scope=row] { font-weight: normal; padding-left: 14rem; text-indent: -14rem; }
b { display: inline-block; min-width: 14rem; text-indent: 0; }
thead th + th, td { width: 5.5rem; text-align: center; }
@media (max-width: 48rem) {
  body { padding-top: 1.25rem; } h1 { font-size: 1.6rem; } .drawings { grid-template-columns: 1fr; }
  figure svg { min-width: 34rem; } figure + figure svg { min-width: 23rem; }
  th[scope=row] { padding-left: 0; text-indent: 0; } b { display: block; }
  thead th + th, td { width: 1.75rem; } thead th + th span { writing-mode: vertical-rl; } }
"""

_EDITIONS = {"caffe": "Taken by the devices", "cpu_only": "Taken by memory without a device"}
_KINDS = {"memory": "Memories", "blob": "Blobs", "device allocator": "Allocators and adaptors"}


def page(result: Verification) -> str:
    """The whole report."""
    here, verdict = result.surroundings, result.verdict if result.ran else "nothing could be checked"
    versions = ", ".join(f"{name} {version}" for name, version in here["libraries"].items())
    when = f"Version {__version__}, seed {result.seed}, {result.seconds:.1f} seconds, {here['date']}"
    where = f"{here['host']}: {here['processor']}, {here['platform']}, Python {here['python']}, {versions}"
    model = [_line(problem, "failed") for problem in result.model.problems]
    if not model:
        model = [_line("✓ It agrees with what was observed of Caffe.", "passed"), _line(result.model.proved)]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>syncedmem: {verdict}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>syncedmem: <span class="{result.verdict}">{verdict}</span></h1>
{_line(_absent(result), "incomplete" if result.missing else "soft")}
{_line(when, "soft small")}
{_line(where, "soft small")}
{"".join(_failures(device) for device in result.devices if device.violations)}
<h2>Devices</h2>
<div class="boxes">{"".join(map(_device, result.devices))}</div>
<h2>Model</h2>
{_line(result.model.sizes)}
{"".join(model)}
<div class="drawings">{_drawings(result)}</div>
<h2>Requirements</h2>
{_line(LEGEND, "soft small")}
{_line(result.unchecked, "soft small")}
{_requirements(result.ran)}
</body>
</html>
"""


def _line(text: str, of: str = "") -> str:
    """A paragraph; nothing if there is no text."""
    return f'<p class="{of}">{escape(text)}</p>' if text else ""


def _absent(result: Verification) -> str:
    if result.missing:
        return f"You asked for {', '.join(result.missing)}, and it is not here."
    return f"Not available, so not checked: {', '.join(result.unavailable)}" if result.unavailable else ""


def _failures(device: DeviceVerdict) -> str:
    shown = (
        f"{_line(violation.sentence, 'failed')}<pre>{escape(violation.reproducer)}</pre>"
        for violation in device.violations
    )
    return f"<h2>Failures of {escape(device.name)}</h2>{''.join(shown)}"


def _device(device: DeviceVerdict) -> str:
    """A box: what it is, what was covered of each part, and what is missing."""
    coverage = [f"{part.capitalize()}: {conformance.covered}" for part, conformance in device.parts.items()]
    spent = f"{device.walks:,} walks, {device.steps:,} steps, {device.seconds:.1f} seconds" if device.parts else ""
    lines = [*map(_line, [*coverage, spent]), *(_line(shortfall, "failed") for shortfall in device.shortfalls)]
    remarks = (_line(limit, "soft") for limit in (device.detail, device.limits, device.reason))
    status = f'<span class="{device.status}">{device.status}</span>'
    return f"<article><h3>{escape(device.name)} {status}</h3>{''.join((*remarks, *lines))}</article>"


def _drawings(result: Verification) -> str:
    """A drawing of each edition that ran, with the edges that any device took."""
    edges: dict[str, set[str]] = {}
    for coverage in (device.memories.coverage for device in result.devices if device.memories):
        edges.setdefault(coverage.machine.name, set()).update(coverage.identifiers())
    return "".join(
        f"<figure><figcaption>{title}</figcaption>{diagram_svg(edition, covered=edges[edition])}</figure>"
        for edition, title in _EDITIONS.items()
        if edition in edges
    )


def _requirements(devices: list[DeviceVerdict]) -> str:
    heads = "".join(f'<th scope="col"><span>{escape(device.name)}</span>' for device in devices)
    rows = "".join(
        f'<tr><th scope="rowgroup" colspan="{len(devices) + 1}">{_KINDS[kind]}{_rows(kind, devices)}' for kind in KINDS
    )
    return f'<table><thead><tr><th scope="col">Requirement{heads}</thead><tbody>{rows}</tbody></table>'


def _rows(kind: Kind, devices: list[DeviceVerdict]) -> str:
    return "".join(
        f'<tr><th scope="row"><b>{name}</b> {escape(rule.text)}{"".join(_mark(name, device) for device in devices)}'
        for name, rule in requirements_of(kind).items()
    )


def _mark(requirement: str, device: DeviceVerdict) -> str:
    status = device.requirement_status(requirement)
    return f'<td class="{status}" title="{status}">{MARKS[status]}'
