"""The command ``vectors``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from syncedmem.model import EDITIONS, InvalidArgumentError, InvalidExportError

from .output import named, place
from .output import write as write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["vectors"]


def vectors(
    *,
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="Where the files go, over what is there. Folders that are missing are made."
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this suite, as tour or caffe/tour; repeat it for more, or separate them by commas. The manifest "
            "tells of all in any case.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Write nothing; exit with 1 if a file is not what it should be.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            metavar="",
            help="Write only kills.json: replay every vector on every seeded bug of memories, which takes minutes.",
        ),
    ] = False,
    kept: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="With --measure: where measurements are kept, so that only what has changed is measured again.",
        ),
    ] = None,
) -> None:
    """Write test vectors for ports: programs of calls, and what must be seen of each (docs/vectors.md).

    Exit status 0: they are written, or as they should be.

    Exit status 1: with --check, a file is missing or different.

    Exit status 2: there is no such suite, the options contradict each other, or a file cannot be written.
    """
    from syncedmem.spec.vectors import write

    folder = place("--out", out, "folder")
    if measure and check:
        raise InvalidExportError("--measure compares nothing: leave --check out, or --measure")
    if kept is not None and not measure:
        raise InvalidExportError("--kept is for --measure: leave it out, or add --measure")
    wanted = tuple(name for text in suite or () for name in text.replace(",", " ").split() or [text])
    _check_names(wanted)
    if measure:
        _measure(folder, wanted, None if kept is None else place("--kept", kept, "folder"))
    elif check:
        _compare(folder, wanted)
    else:
        with named(out):
            files = write(folder, wanted)
        typer.echo(f"{len(files)} files in {folder}")


def _compare(folder: Path, wanted: Sequence[str]) -> None:
    from syncedmem.spec.vectors import compare

    with named(str(folder)):
        different = compare(folder, wanted)
    for path in different:
        typer.echo(f"{folder / path} is not up to date: write it again without --check", err=True)
    if different:
        raise typer.Exit(1)


def _check_names(wanted: Sequence[str]) -> None:
    from syncedmem.spec.vectors import SUITES

    known = {*SUITES, *(f"{edition}/{name}" for edition in EDITIONS for name in SUITES)}
    for name in wanted:
        if name not in known:
            raise InvalidArgumentError("suite", name, f"one of {', '.join(SUITES)}, alone or as EDITION/NAME")


def _measure(out: Path, wanted: Sequence[str], kept: Path | None) -> None:
    from syncedmem.spec.engine.supervisor import processors
    from syncedmem.spec.mutants.measurement import measure as measure_kills
    from syncedmem.spec.vectors import SUITES
    from syncedmem.verification import make_subject

    found = measure_kills(
        partial(make_subject, "simulated", 0),
        partial(make_subject, "cpu", 0),
        only=wanted or SUITES,
        kept=kept,
        processes=processors(),
        progress=lambda name: typer.echo(name, err=True),
    )
    write_file(out / "kills.json", found.as_text())
