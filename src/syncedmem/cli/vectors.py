"""The command ``vectors``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from syncedmem.model import EDITIONS, InvalidArgumentError, InvalidExportError
from syncedmem.model.exports.declared import MACHINE

from .machines import POLICY, machine_and_policy
from .options import Force  # noqa: TC001 -- typer reads it
from .output import check_place, named, place, write_over

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from syncedmem.model import Machine
    from syncedmem.spec import Policy

__all__ = ["vectors"]


def vectors(  # noqa: PLR0913 -- the options of the command
    *,
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the files, which replace those of an earlier run. Missing folders are created.",
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Write only this suite, for example tour or caffe/tour. Repeat the option for more, or separate the "
            "suites by commas.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", metavar="", help="Write nothing. Compare the files with what would be written to them."
        ),
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="MACHINE", help=f"Write the vectors of one machine only: the name of an edition. Or {MACHINE}"
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help=f"{POLICY} Without one, what is expected follows from its table."),
    ] = None,
    force: Force = False,
) -> None:
    """Write test vectors for ports to other languages.

    A test vector is a sequence of calls, with what must be seen after each of them. docs/vectors.md describes the
    format.

    Exit status:
      0  the files were written, or with --check they are up to date
      1  with --check, a file is missing or not up to date
      2  the command line is wrong, or a file cannot be read or written
    """
    from syncedmem.spec.engine.violation import UnfitPolicyError
    from syncedmem.spec.vectors import suite_files

    folder = place("--out", out, "folder")
    of = machine_and_policy("--machine", machine, policy)
    wanted = tuple(name for text in suite or () for name in text.replace(",", " ").split() or [text])
    _check_names(wanted, of[0])
    try:
        if check:
            _compare(folder, wanted, *of)
        else:
            _check_places(folder, wanted, of[0], force=force)
            files = {folder / path: text.encode() for path, text in suite_files(*of, wanted)}
            write_over(files, force=force, within=folder)
            typer.echo(f"{len(files)} files in {folder}")
    except UnfitPolicyError as error:
        raise InvalidExportError(str(error)) from error


def _check_places(folder: Path, wanted: Sequence[str], machine: Machine | None, *, force: bool) -> None:
    """Refuse a folder in which something else is in the place of a file, before vectors are computed."""
    from syncedmem.spec.vectors.files import SCHEMA, is_chosen

    check_place(folder / SCHEMA, force=force, within=folder)
    for name in _names(machine):
        if is_chosen(f"{name}.jsonl", wanted):
            check_place(folder / f"{name}.jsonl", force=force, within=folder)


def _compare(folder: Path, wanted: Sequence[str], machine: Machine | None, policy: Policy | None) -> None:
    from syncedmem.spec.vectors import compare

    with named(str(folder)):
        different = compare(folder, wanted, machine, policy)
    for path in different:
        advice = "is not up to date: write it again" if (folder / path).exists() else "does not exist: write it"
        typer.echo(f"{folder / path} {advice} without --check", err=True)
    if different:
        raise typer.Exit(1)


def _check_names(wanted: Sequence[str], machine: Machine | None) -> None:
    from syncedmem.spec.vectors import SUITES

    known = {*SUITES, *_names(machine)}
    for name in wanted:
        if name not in known:
            raise InvalidArgumentError("suite", name, f"one of {', '.join(SUITES)}, alone or as EDITION/NAME")


def _names(machine: Machine | None) -> list[str]:
    """All suites with their folders, as in ``caffe/tour``."""
    from syncedmem.spec.vectors import SUITES
    from syncedmem.spec.vectors.files import folder_of

    folders = EDITIONS if machine is None else (folder_of(machine),)
    return [f"{folder}/{name}" for folder in folders for name in SUITES]
