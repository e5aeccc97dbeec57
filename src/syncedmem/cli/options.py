"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["JsonFile", "JunitFile"]

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
