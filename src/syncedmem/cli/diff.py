"""The command ``diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from syncedmem.model.errors import listed
from syncedmem.model.exports.declared import MACHINE, machine_named

from .display import table, widen
from .options import Force  # noqa: TC001 -- typer reads it
from .output import as_text, check_report, write_report

if TYPE_CHECKING:
    from syncedmem.model.difference import MachineDiff

__all__ = ["diff"]

_MOST = 20
"""How many cells are shown; all are in the JSON."""


def diff(
    one: Annotated[str, typer.Argument(metavar="MACHINE", help=f"Name of an edition, or {MACHINE}")],
    other: Annotated[str, typer.Argument(metavar="MACHINE", help="The machine to compare it with.")],
    *,
    json_path: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="Also write the result as JSON to this file; - is standard output."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Show where two machines differ, and by which calls.

    They may have other words: calls and actions are compared by what they do, and heads by what they say is fresh.
    Words that mean nothing are compared by their names. A shortest sequence of calls that tells them apart comes last.

    Exit status:
      0  nobody can tell them apart
      1  they differ
      2  the command line is wrong, or something is no machine
    """
    from syncedmem.model.difference import compare

    check_report("--json", json_path, force=force)
    differences = compare(machine_named(one), machine_named(other))
    console = Console(stderr=json_path == "-", highlight=False, soft_wrap=True)
    widen(console)
    _print(console, differences)
    write_report(json_path, as_text(differences.as_json()), force=force)
    if not differences.same:
        raise typer.Exit(1)


def _print(console: Console, differences: MachineDiff) -> None:
    names = [str(machine) for machine in differences.machines]
    if names[0] == names[1]:
        names = [f"the first {names[0]}", f"the second {names[1]}"]
    renamed = [f"{here} = {there}" for here, there in differences.shared.items() if here != there]
    if renamed:
        console.print(f"Calls that do the same: {', '.join(renamed)}", markup=False)
    for words, only in (("Calls", differences.calls), ("Heads", differences.heads)):
        for name, here in zip(names, only, strict=True):
            if here:
                console.print(f"{words} of {name} alone: {listed(here)}", markup=False)
    if not differences.cells:
        what = (
            "so nothing is left to compare"
            if not differences.compared
            else f"all {differences.compared} cells are the same"
        )
        console.print(f"Calls that both have: {len(differences.shared)}; {what}.")
        return
    console.print(f"{len(differences.cells)} of {differences.compared} cells differ:")
    rows = table("call", "in", *names)
    for cell in differences.cells[:_MOST]:
        heads = dict.fromkeys(cell.heads)
        rows.add_row(str(cell.call), " / ".join(heads), *cell.does)
    console.print(rows)
    if len(differences.cells) > _MOST:
        console.print(f"and {len(differences.cells) - _MOST} more, which --json has")
    first = differences.cells[0]
    console.print(f"Shortest: {listed(first.sequence)}", markup=False)
    for name, does in zip(names, first.does, strict=True):
        console.print(f"  {name}: {does}", markup=False)
