"""The command ``check-trace``."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import Annotated

import typer

from syncedmem.model.caffe import DEFAULT
from syncedmem.model.exports.declared import MACHINE, machine_named

from .output import printable

__all__ = ["check_trace"]


def check_trace(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Recorded run, in JSON lines.")],
    edition: Annotated[
        str,
        typer.Option(
            "--machine",
            "--edition",
            metavar="MACHINE",
            help=f"The machine of a run that does not name one: caffe, early or cpu_only. Or {MACHINE}",
        ),
    ] = DEFAULT.name,
) -> None:
    """Check whether a recorded run is one of the machine's.

    A line is a call with what was seen of it, or only the actions that were seen. docs/vectors.md describes the lines.

    Exit status:
      0  it is one of the machine's
      1  it is not; the line where it stops is printed
      2  it cannot be read, or it is no recorded run
    """
    from syncedmem.spec.vectors.traces import Stop
    from syncedmem.spec.vectors.traces import check_trace as check

    machine = machine_named(edition)
    end = check(log, machine)
    if isinstance(end, Stop):
        typer.echo(printable(f"{log} is not a run of {machine} from {end}", in_one_line=True))
        raise typer.Exit(1)
    typer.echo(f"{log} is a run of {machine}: {end} lines")
