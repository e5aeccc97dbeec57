"""Runs a vector against what it is for, memories or blobs, and judges by the vector alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blob_replay import replay_blobs
from .memory_replay import replay_memories

if TYPE_CHECKING:
    from ..engine.subject import Subject
    from .memory_replay import Difference

__all__ = ["is_of_blobs", "replay"]


def is_of_blobs(vector: dict[str, Any]) -> bool:
    """Whether a vector is for blobs; the others are for memories."""
    return "shapes" in vector


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
