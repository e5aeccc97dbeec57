"""Which vectors a port can be judged by; `replay` runs one against a subject, and judges by the vector alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .memory_replay import replay
from .programs import OWN

if TYPE_CHECKING:
    from ..engine.subject import RemoteProgram, Subject

__all__ = ["left_out", "replay"]


def left_out(subject: Subject, vector: dict[str, Any]) -> str:
    """Why a vector is left out: a subject does not show what it is about; empty if it can be judged by it.

    A program may be of another edition, fail on request only from L3 on, and have a largest size.
    """
    if subject.program is None:
        return ""
    if vector["edition"] != subject.machine.name:
        return f"they are of edition {vector['edition']}, and the port is of {subject.machine.name}"
    return _beyond(subject, subject.program, vector)


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
