"""The requirements of a port that is a program: that it answers, and in the format of the protocol."""

from __future__ import annotations

from .levels import by_level

__all__ = ["PORT", "PORT_LEVELS", "PORT_NEEDS"]

PORT: tuple[tuple[str, str, str], ...] = (
    ("P01-answers", "Every request is answered in time: no call crashes, ends or blocks the program.", "H4"),
    ("P02-one-answer", "A request has one answer: one line, in the format of the protocol.", "docs/port-protocol.md"),
    ("P03-fails-when-told", "An action that is told to fail, fails.", "docs/port-protocol.md"),
    ("P04-dropped-freed", "A memory that is dropped frees everything that it still owns.", "docs/port-abi.md"),
)

PORT_NEEDS = {"P04": "drop"}
"""What a program must offer for a requirement."""

PORT_LEVELS = by_level(L0="P01 P02", L2="P04", L3="P03")
"""The lowest level at which a requirement can be judged, by its number."""
