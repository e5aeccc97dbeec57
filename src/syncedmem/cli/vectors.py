"""The command ``vectors``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from syncedmem import __version__
from syncedmem.model import EDITIONS, InvalidArgumentError, InvalidExportError
from syncedmem.model.exports.declared import MACHINE, machine_named

from .output import named, place
from .output import write as write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from syncedmem.model import Declaration

__all__ = ["vectors"]


def vectors(  # noqa: PLR0913 -- the options of the command
    *,
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the files, which are replaced if they exist. Missing folders are created.",
        ),
    ],
    edition: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=f"Write only vectors of this edition: caffe, early or cpu_only. Or {MACHINE}"
        ),
    ] = "",
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Write only this suite, for example tour or caffe/tour. Repeat the option for more, or separate the "
            "suites by commas. The manifest always lists all suites.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", metavar="", help="Write nothing. Compare the files with what would be written to them."
        ),
    ] = False,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive",
            metavar="",
            help="Write everything as one file, syncedmem-vectors-FORMAT-VERSION.tar.gz. One version gives the same "
            "bytes each time.",
        ),
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            metavar="",
            help="Write only kills.json: which seeded bugs each vector finds. This takes minutes.",
        ),
    ] = False,
    kept: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="With --measure: folder that keeps the measurements, so that only what has changed is measured again.",
        ),
    ] = None,
) -> None:
    """Write test vectors for ports to other languages.

    A test vector is a sequence of calls, with what must be seen after each of them. docs/vectors.md describes the
    format, and docs/own-machine.md that of a machine of your own.

    Exit status:
      0  the files were written, or with --check they are up to date
      1  with --check, a file is missing or not up to date
      2  the command line is wrong, or a file cannot be read or written
    """
    from syncedmem.spec.vectors import write

    folder = place("--out", out, "folder")
    if measure and check:
        raise InvalidExportError("--measure and --check exclude each other: leave one of them out")
    if archive and (measure or check or suite):
        raise InvalidExportError(
            "--archive has every suite, and excludes --suite, --check and --measure: leave them out"
        )
    if kept is not None and not measure:
        raise InvalidExportError("--kept needs --measure: leave it out, or add --measure")
    wanted = tuple(name for text in suite or () for name in text.replace(",", " ").split() or [text])
    if edition:
        if archive or measure:
            raise InvalidExportError("--archive and --measure are about all editions: leave --edition out")
        machine = machine_named(edition)
        if not isinstance(machine, str):
            _own(folder, machine, wanted, check=check)
            return
        wanted = tuple(name if "/" in name else f"{machine}/{name}" for name in wanted or _suites())
    _check_names(wanted, edition)
    if archive:
        _archive(folder)
    elif measure:
        _measure(folder, wanted, None if kept is None else place("--kept", kept, "folder"))
    elif check:
        _compare(folder, wanted)
    else:
        with named(out):
            files = write(folder, wanted)
        typer.echo(f"{len(files)} files in {folder}")


def _own(folder: Path, machine: Declaration, wanted: Sequence[str], *, check: bool) -> None:
    """Write or compare the vectors of somebody's own machine."""
    from syncedmem.spec.vectors.files import differing, write_files
    from syncedmem.spec.vectors.own_vectors import OWN_SUITES, own_files

    for name in wanted:
        if name not in OWN_SUITES:
            raise InvalidArgumentError("suite", name, f"one of {', '.join(OWN_SUITES)}")
    files = [*own_files(machine, wanted or OWN_SUITES)]
    with named(str(folder)):
        if not check:
            typer.echo(f"{len(write_files(folder, files))} files in {folder}")
        elif different := differing(folder, files):
            _say_old(folder, different)


def _archive(folder: Path) -> None:
    from hashlib import sha256

    from syncedmem.spec.vectors.files import archive

    name, content = archive(__version__)
    write_file(folder / name, content)
    typer.echo(f"{folder / name}, SHA-256 {sha256(content).hexdigest()}")


def _compare(folder: Path, wanted: Sequence[str]) -> None:
    from syncedmem.spec.vectors import compare

    with named(str(folder)):
        different = compare(folder, wanted)
    if different:
        _say_old(folder, different)


def _say_old(folder: Path, different: Sequence[str]) -> NoReturn:
    for path in different:
        typer.echo(f"{folder / path} is not up to date: write it again without --check", err=True)
    raise typer.Exit(1)


def _suites() -> Sequence[str]:
    from syncedmem.spec.vectors import ALL_SUITES

    return tuple(ALL_SUITES)


def _check_names(wanted: Sequence[str], edition: str) -> None:
    suites = _suites()
    pairs = {f"{name}/{suite}" for name in ([edition] if edition else EDITIONS) for suite in suites}
    known = pairs if edition else {*suites, *pairs}
    for name in wanted:
        if name not in known:
            forms = f"alone or as {edition or 'EDITION'}/NAME"
            raise InvalidArgumentError("suite", name, f"one of {', '.join(suites)}, {forms}")


def _measure(out: Path, wanted: Sequence[str], kept: Path | None) -> None:
    from syncedmem.spec.engine.supervisor import processors
    from syncedmem.spec.mutants.measurement import measure as measure_kills
    from syncedmem.spec.vectors import ALL_SUITES
    from syncedmem.verification import make_subject

    found = measure_kills(
        partial(make_subject, "simulated", 0),
        partial(make_subject, "cpu", 0),
        only=wanted or ALL_SUITES,
        kept=kept,
        processes=processors(),
        progress=lambda name: typer.echo(name, err=True),
    )
    write_file(out / "kills.json", found.as_text())
