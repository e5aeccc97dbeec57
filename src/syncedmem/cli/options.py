"""Options that several commands have, and their defaults."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["FIRST", "MEMORY", "TIMEOUT", "Command", "Edition", "JsonFile", "JunitFile", "Memory", "Timeout"]

JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Also write the report as JSON to this file; - is standard output."),
]
JunitFile = Annotated[
    str | None,
    typer.Option(
        "--junit", metavar="FILE", help="Also write the report as JUnit XML to this file; - is standard output."
    ),
]

# --- of ports

TIMEOUT, FIRST, MEMORY = 10.0, 60.0, 4096
"""The limits of a port: seconds for a request, seconds for its first one, and MiB of address space."""

Command = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Start this program, which speaks the protocol of ports, as the target."),
]
Edition = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The edition of the model: caffe, early or cpu_only. Default: what the port says."
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", help=f"Time after which a call that has no answer hangs. The first has {FIRST:.0f} seconds."
    ),
]
Memory = Annotated[int, typer.Option(metavar="MEGABYTES", help="Size of the address space of the port.")]
