"""The command ``replay``."""

from __future__ import annotations

import shlex
from pathlib import Path  # noqa: TC003 -- typer reads the types of the options
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from syncedmem.spec.fuzz import Replay

__all__ = ["replay", "replaying"]

_LONGEST = 1000
"""Of the names of targets that are quoted, in characters."""


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Replay file that fuzz wrote.")],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="The allocator, in a form that fuzz takes. Without it, the command only shows what the file names.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Repeat the steps of a finding of fuzz.

    The target is imported and run. So you have to name it: a target that only the file names is never run.

    Exit status:
      0  the finding does not occur any more
      1  it still occurs; or it has never occurred twice, so that a run without it
         proves nothing
      2  it cannot be replayed
    """
    from syncedmem.spec.fuzz import Replay, TargetError

    found = Replay.read(file)
    if target is None:
        raise TargetError(_unnamed(file, found))
    found = found.aimed_at(target)
    finding = found.run()
    if finding is None and not found.finding.repeats:
        typer.echo(
            f"{found.target} did not break {found.finding.requirement} this time. That says little: "
            "it has never been seen twice."
        )
        raise typer.Exit(1)
    if finding is None:
        typer.echo(f"{found.target} no longer breaks {found.finding.requirement}")
        return
    still = "still" if finding.requirement == found.finding.requirement else "now"
    typer.echo(f"{found.target} {still} breaks {finding.requirement}: {finding.message}")
    raise typer.Exit(1)


def _unnamed(file: Path, found: Replay) -> str:
    """Why nothing is run without a target, and what to say if what the file names is to be trusted."""
    why = "a replay imports and runs its target, so you have to name it"
    if not found.named:
        return f"{why} after the file: it came from an object in a program, {found.target!r:.{_LONGEST}}"
    if not found.target.isprintable() or len(found.target) > _LONGEST:
        return f"{why} after the file, which names {found.target!r:.{_LONGEST}}"
    return f"{why}; the file names {found.target!r}, and if you trust that: {replaying(file, found.target)}"


def replaying(file: Path, target: str) -> str:
    """The command that takes the steps of a file again, as a shell reads it."""
    return f"syncedmem replay {shlex.quote(str(file))} {shlex.quote(target)}"
