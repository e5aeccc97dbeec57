"""The command ``replay``."""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from syncedmem.model import InvalidArgumentError

if TYPE_CHECKING:
    from syncedmem.spec.fuzz import Replay

__all__ = ["replay", "replaying"]

_LONGEST = 1000
"""Of the names of targets that are quoted, in characters."""


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Replay file that fuzz wrote, or a file of test vectors.")
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="For a replay of fuzz: the allocator, in a form that fuzz takes; without it, the command only shows "
            "what the file names. For test vectors: module:maker, which makes memories or blobs; without it, ours.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Repeat the steps of a finding of fuzz, or run test vectors.

    The target is imported and run. So you have to name it: a target that only the file names is never run. Each vector
    that fails is printed with its id, the step, what was expected and what was seen.

    Exit status:
      0  the finding does not occur any more; or every vector passed
      1  it still occurs; or it has never occurred twice, so that a run without it
         proves nothing; or a vector failed
      2  it cannot be replayed
    """
    from syncedmem.spec.fuzz import Replay, TargetError
    from syncedmem.spec.vectors.reading import holds_vectors

    if holds_vectors(file):
        _run_vectors(file, target)
        return
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


def _run_vectors(file: Path, target: str | None) -> None:
    from syncedmem import Blob, SyncedMemory
    from syncedmem.spec import Subject
    from syncedmem.spec.vectors import replay as run
    from syncedmem.spec.vectors.reading import read_vectors
    from syncedmem.spec.vectors.replay import is_of_blobs
    from syncedmem.verification import make_subject

    made: Any = None if target is None else _maker(target)
    failed, found = 0, read_vectors(file)
    subjects = {name: make_subject(name, 0) for name in ("cpu", "simulated")}
    for vector in found:
        ours: Any = Blob if is_of_blobs(vector) else SyncedMemory
        there = subjects["cpu" if vector["edition"] == "cpu_only" else "simulated"]
        subject = Subject(target or there.name, made or ours, there.host, there.device)
        difference = run(subject, vector)
        if difference is not None:
            failed += 1
            typer.echo(f"{vector['id']}: {difference}")
    typer.echo(f"{len(found)} vectors, {failed} failed")
    if failed:
        raise typer.Exit(1)


def _maker(target: str) -> Any:  # noqa: ANN401 -- a maker of the user
    """The object that ``module:name`` names."""
    place, _, name = target.partition(":")
    here = str(Path.cwd())
    sys.path[:0] = [] if here in sys.path else [here]  # as Python has it there
    try:
        return getattr(import_module(place), name)
    except Exception as error:  # whatever the module raises while it is imported
        raise InvalidArgumentError("target", target, f"module:maker ({type(error).__name__}: {error})") from error


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
