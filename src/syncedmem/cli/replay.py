"""The command ``replay``."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path  # noqa: TC003 -- typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from syncedmem.model import FileFormatError, InvalidArgumentError
from syncedmem.model.exports.declared import machine_named

from .machines import named_port
from .options import MEMORY, OwnMachine, limits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from syncedmem.spec import Subject
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
            "what the file names. For test vectors: module:maker, which makes memories, or ./libport.so, a "
            "library with the C ABI of ports; without it, ours.",
            show_default=False,
        ),
    ] = None,
    *,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="For test vectors: start this program, which speaks the protocol of ports."
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="For test vectors: with caffe, leave out those of the profile safe.")
    ] = "safe",
    machine: OwnMachine = None,
) -> None:
    """Repeat the steps of a finding of fuzz, or run test vectors.

    The target is imported and run. So you have to name it: a target that only the file names is never run. Each vector
    that fails is printed with its id, the step, what was expected and what was seen. What the level of a port does not
    show is not judged. Vectors that are left out are counted, with the reason.

    Exit status:
      0  the finding does not occur any more; or every vector passed
      1  it still occurs; or nobody can know: the fuzzer itself failed or did too
         little, or it has never occurred twice, so that a run without it proves
         nothing; or a vector failed, or all were left out
      2  it cannot be replayed
    """
    from syncedmem.spec.fuzz import EngineError, Replay, TargetError
    from syncedmem.spec.vectors.reading import holds_requests, holds_vectors

    if holds_vectors(file):
        _run_vectors(file, target, command, profile, machine)
        return
    for option, value in {"--command": command, "--machine": machine}.items():
        if value is not None:
            raise InvalidArgumentError(option, value, "left out, because the file is a replay of fuzz")
    if holds_requests(file):
        raise FileFormatError(str(file), "these are requests to a port: start it with this file as its input")
    found = Replay.read(file)
    if target is None:
        raise TargetError(_unnamed(file, found))
    found = found.aimed_at(target)
    try:
        finding = found.run()
    except EngineError as error:
        typer.echo(f"It is not known whether {found.wanted.target} breaks {found.finding.requirement}: {error}")
        raise typer.Exit(1) from None
    if finding is None and not found.finding.repeats:
        typer.echo(
            f"{found.wanted.target} did not break {found.finding.requirement} this time. That says little: "
            "it has never been seen twice."
        )
        raise typer.Exit(1)
    if finding is None:
        typer.echo(f"{found.wanted.target} no longer breaks {found.finding.requirement}")
        return
    still = "still" if finding.requirement == found.finding.requirement else "now"
    typer.echo(f"{found.wanted.target} {still} breaks {finding.requirement}: {finding.message}")
    raise typer.Exit(1)


def _run_vectors(file: Path, target: str | None, command: str | None, profile: str, machine: str | None) -> None:
    from syncedmem.spec.requirements import PROFILES
    from syncedmem.spec.vectors import replay as run
    from syncedmem.spec.vectors.reading import read_vectors
    from syncedmem.spec.vectors.replay import left_out

    if profile not in PROFILES:
        raise InvalidArgumentError("--profile", profile, f"one of {', '.join(PROFILES)}")
    every = read_vectors(file, None if machine is None else machine_named(machine))
    vectors = [vector for vector in every if profile == "safe" or vector["profile"] == profile]
    failed, beyond, others = 0, 0, Counter[str]()
    with _subjects(target, command, machine) as subject_for:
        for vector in vectors:
            subject = subject_for(vector)
            if why := left_out(subject, vector):
                others[why] += 1
                continue
            difference = run(subject, vector)
            if difference is not None:
                failed += 1
                beyond += vector["profile"] == "safe"
                typer.echo(f"{vector['id']}: {difference}")
    for why, number in others.items():
        typer.echo(f"{number} left out: {why}")
    left = others.total()
    typer.echo(f"{len(vectors)} vectors, {failed} failed" + (f", {left} left out" if left else ""))
    if beyond:
        typer.echo(f"{beyond} of them promise more than Caffe does: --profile caffe leaves those out")
    if failed or (vectors and left == len(vectors)):
        raise typer.Exit(1)


@contextmanager
def _subjects(
    target: str | None, command: str | None, machine: str | None
) -> Generator[Callable[[dict[str, Any]], Subject]]:
    """What gives the subject for a vector."""
    from syncedmem.spec.ports.targets import ProgramTarget, maker_of, subject_of
    from syncedmem.verification import make_subject

    ours = target is None and command is None and machine is None
    named = None if ours else named_port(target, command, machine)
    if isinstance(named, ProgramTarget):
        with named.connect(limits_of(None, MEMORY), "") as port:
            subject = subject_of(port, named.name, "safe", port.hello["level"])
            yield lambda _: subject
        return
    if named is not None and machine is not None:
        own = named.subject("safe", named.top(), "")
        yield lambda _: own
        return
    made = None if target is None else maker_of(target)
    yield partial(_made, target, made, {name: make_subject(name, 0) for name in ("cpu", "simulated")})


def _made(
    target: str | None,
    made: Any,  # noqa: ANN401 -- a maker of the user
    subjects: dict[str, Subject],
    vector: dict[str, Any],
) -> Subject:
    """The subject for a vector: our memories, or those of a maker in Python."""
    from syncedmem.spec import Subject

    if isinstance(made, Subject):
        return made
    there = subjects["cpu" if vector["edition"] == "cpu_only" else "simulated"]
    return Subject(target or there.name, made or there.make, there.host, there.device)


def _unnamed(file: Path, found: Replay) -> str:
    """Why nothing is run without a target, and what to say if what the file names is to be trusted."""
    why = "a replay imports and runs its target, so you have to name it"
    if not found.wanted.named:
        return f"{why} after the file: it came from an object in a program, {found.wanted.target!r:.{_LONGEST}}"
    if not found.wanted.target.isprintable() or len(found.wanted.target) > _LONGEST:
        return f"{why} after the file, which names {found.wanted.target!r:.{_LONGEST}}"
    return (
        f"{why}; the file names {found.wanted.target!r}, and if you trust that: {replaying(file, found.wanted.target)}"
    )


def replaying(file: Path, target: str) -> str:
    """The command that takes the steps of a file again, as a shell reads it."""
    return f"syncedmem replay {shlex.quote(str(file))} {shlex.quote(target)}"
