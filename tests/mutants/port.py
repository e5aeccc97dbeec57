"""Seeded bugs of ports that are programs: each names the way of ``tests/support/wrong_port.py`` that has it."""

from __future__ import annotations

from typing import ClassVar

from .registry import PORT_BUGS, seeded_bug

__all__ = ["PORT_BUGS", "WrongPort"]


class WrongPort:
    """A port that is right but for its way."""

    way: ClassVar[str]


@seeded_bug("P01-answers", "a CHECK that fails ends the process (H4)")
class AbortsInACopy(WrongPort):
    """A call that copies to the device ends the program."""

    way = "abort"


@seeded_bug("P01-answers", "exit in a destructor")
class ExitsOnRelease(WrongPort):
    """The program ends with its first memory."""

    way = "exits on release"


@seeded_bug("P01-answers", "a wait that nobody ends")
class HangsInAPush(WrongPort):
    """A push is never answered."""

    way = "hangs in a push"


@seeded_bug("P02-one-answer", "a message for debugging on standard output")
class PrintsWhatItCopies(WrongPort):
    """It prints a line before the answer."""

    way = "garbage"


@seeded_bug("P02-one-answer", "a fork, of which both go on")
class AnswersTwice(WrongPort):
    """It answers a call twice."""

    way = "twice"


@seeded_bug("P02-one-answer", "a field with another name")
class ForgetsTheHead(WrongPort):
    """Its answers have no head."""

    way = "no head"


@seeded_bug("P03-fails-when-told", "an error code that nobody looks at")
class SaysThatItSucceeded(WrongPort):
    """An action that failed is reported as one that was done."""

    way = "unfailing"


@seeded_bug("P04-dropped-freed", "a destructor that leaves everything to the caller")
class DropsWithoutFreeing(WrongPort):
    """A memory that is dropped leaks what it owned."""

    way = "drops nothing"
