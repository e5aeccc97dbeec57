"""Options that several commands have, and their defaults."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncedmem.model import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Collection

    from syncedmem.spec.engine.supervisor import Limits

__all__ = [
    "FIRST",
    "MEMORY",
    "Command",
    "Edition",
    "Force",
    "JsonFile",
    "JunitFile",
    "Memory",
    "OwnMachine",
    "ReportFolder",
    "Target",
    "Timeout",
    "limits_of",
    "one_of",
]

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

Force = Annotated[
    bool,
    typer.Option(
        "--force",
        metavar="",
        help="Replace also files that this command did not write, and symbolic links. Default: they are refused.",
    ),
]

# --- of ports

TIMEOUT, FIRST, MEMORY = 10.0, 60.0, 4096
"""The limits of a port: seconds for a request, seconds for its first one, and MiB of private memory."""

Target = Annotated[str | None, typer.Argument(metavar="TARGET", help="The port, in one of the forms above.")]
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
OwnMachine = Annotated[
    str | None,
    typer.Option(metavar="MACHINE", help="Memories of another machine than Caffe's: FILE.py:NAME or FILE.json."),
]
ReportFolder = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Folder for report.json and the other files above. Missing folders are created.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Time after which a call that has no answer hangs, also the first. "
        f"Default: {TIMEOUT:.0f}, and {FIRST:.0f} for the first.",
    ),
]
Memory = Annotated[int, typer.Option(metavar="MEGABYTES", help="The most private memory that the port may have.")]


def one_of(option: str, value: str | None, known: Collection[str]) -> None:
    """Refuse a value of an option that is not known; None is not looked at."""
    if value is not None and value not in known:
        raise InvalidArgumentError(option, value, f"one of {', '.join(known)}")


def limits_of(timeout: float | None, memory: float) -> Limits:
    """The limits of a port; the first answer has longer, unless a time is given."""
    from syncedmem.spec.engine.supervisor import Limits

    for option, value in (("--timeout", timeout), ("--memory", memory)):
        if value is not None and not 0 < value < inf:
            raise InvalidArgumentError(option, value, "more than 0")
    first, later = (FIRST, TIMEOUT) if timeout is None else (timeout, timeout)
    return Limits(seconds=later, first=first, memory=int(memory) << 20)
