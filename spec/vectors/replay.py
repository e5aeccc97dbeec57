"""Runs a vector against what it is for, memories or blobs, and judges by the vector alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blob_replay import replay_blobs
from .memory_replay import replay_memories
from .programs import OWN

if TYPE_CHECKING:
    from ..engine.subject import RemoteProgram, Subject
    from .memory_replay import Difference

__all__ = ["is_of_blobs", "left_out", "replay"]


def is_of_blobs(vector: dict[str, Any]) -> bool:
    """Whether a vector is for blobs; the others are for memories."""
    return "shapes" in vector


def left_out(subject: Subject, vector: dict[str, Any]) -> str:
    """Why a vector is left out: a subject does not show what it is about; empty if it can be judged by it.

    A program may be of another edition, fail on request only from L3 on, and have a largest size.
    """
    if subject.program is None:
        return ""
    if is_of_blobs(vector) and "blobs" not in subject.program.offers:
        return "they are of blobs, and the port has none"
    if vector["edition"] != subject.machine.name:
        return f"they are of edition {vector['edition']}, and the port is of {subject.machine.name}"
    return "" if is_of_blobs(vector) else _beyond(subject, subject.program, vector)


def _beyond(subject: Subject, program: RemoteProgram, vector: dict[str, Any]) -> str:
    """What of a vector of its edition a program cannot show."""
    if max(vector["sizes"]) > subject.largest:
        return f"they have memories of more than {subject.largest} bytes, the largest size of the port"
    steps = vector["steps"]
    if subject.level < _FAILURES_FROM and any("fail" in step for step in steps):
        return f"their actions fail on request: a port does so from {_FAILURES_FROM} on, and this is {subject.level}"
    if "own_buffer" not in program.offers and any(step.get("argument") == OWN for step in steps):
        return "they adopt the memory's own pointer, and the port does not answer the request own_buffer"
    return ""


_FAILURES_FROM = "L3"


def replay(subject: Subject, vector: dict[str, Any]) -> Difference | None:
    """Run a vector against new memories or blobs, until something is wrong.

    Parameters
    ----------
    subject : Subject
        Of memories or of blobs, as the vector; without a device for vectors of ``cpu_only``, with a device for others.
    vector : dict
        The data of one line in a file of vectors.

    Returns
    -------
    Difference or None
        The first difference; None if there is none.
    """
    return (replay_blobs if is_of_blobs(vector) else replay_memories)(subject, vector)
