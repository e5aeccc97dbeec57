"""Seeded bugs of ports that are programs.

`main` is the program: it starts a right port, passes requests on to it, and answers as the port does, but for the bug.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from .registry import PORT_BUGS, seeded_bug

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PORT_BUGS", "answers", "main"]

Answer = dict[str, Any]


class RightPort:
    """Changes nothing."""

    def said(self, op: str, answer: Answer) -> str:
        """What the port writes in place of an answer."""
        del op
        return f"{json.dumps(answer)}\n"


@seeded_bug("P01-answers", "a CHECK that fails ends the process (H4)")
class AbortsInACopy(RightPort):
    """A call that copies to the device ends the program."""

    def said(self, op: str, answer: Answer) -> str:
        if "copy_to_gpu" in str(answer.get("actions")):
            os.abort()
        return super().said(op, answer)


@seeded_bug("P01-answers", "exit in a destructor")
class ExitsOnRelease(RightPort):
    """The program ends with its first memory."""

    def said(self, op: str, answer: Answer) -> str:
        if op == "release":
            os._exit(0)
        return super().said(op, answer)


@seeded_bug("P01-answers", "a wait that nobody ends")
class HangsInAPush(RightPort):
    """A push is never answered."""

    def said(self, op: str, answer: Answer) -> str:
        if op == "async_gpu_push":
            time.sleep(1 << 20)
        return super().said(op, answer)


@seeded_bug("P02-one-answer", "a message for debugging on standard output")
class PrintsWhatItCopies(RightPort):
    """It prints a line before the answer."""

    def said(self, op: str, answer: Answer) -> str:
        printed = "copied\n" if "copy_to" in str(answer.get("actions")) else ""
        return printed + super().said(op, answer)


@seeded_bug("P02-one-answer", "a fork, of which both go on")
class AnswersTwice(RightPort):
    """It answers a call twice."""

    def said(self, op: str, answer: Answer) -> str:
        return super().said(op, answer) * (2 if op == "cpu_data" else 1)


@seeded_bug("P02-one-answer", "a field with another name")
class ForgetsTheHead(RightPort):
    """Its answers have no head."""

    def said(self, op: str, answer: Answer) -> str:
        return super().said(op, {name: it for name, it in answer.items() if name != "head"})


@seeded_bug("P03-fails-when-told", "an error code that nobody looks at")
class SaysThatItSucceeded(RightPort):
    """An action that failed is reported as one that was done."""

    def said(self, op: str, answer: Answer) -> str:
        for action in answer.get("actions", ()):
            if isinstance(action, dict):
                action["failed"] = False
        return super().said(op, answer)


@seeded_bug("P04-dropped-freed", "a destructor that leaves everything to the caller")
class DropsWithoutFreeing(RightPort):
    """A memory that is dropped leaks what it owned."""

    def said(self, op: str, answer: Answer) -> str:
        return super().said(op, {**answer, "actions": []} if op == "drop" else answer)


def answers(bug: RightPort, command: Iterable[str], requests: Iterable[str]) -> Iterable[str]:
    """What a port with a bug answers to requests.

    Parameters
    ----------
    bug : RightPort
    command : iterable of str
        The right port and its arguments.
    requests : iterable of str
        Lines.
    """
    with subprocess.Popen([*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as port:
        there: Any = port
        for line in requests:
            there.stdin.write(line)
            there.stdin.flush()
            yield bug.said(json.loads(line)["op"], json.loads(there.stdout.readline()))


def main(arguments: list[str]) -> None:
    """Answer the requests of standard input; the arguments are the name of a bug, and the command of a right port."""
    name, *command = arguments
    for text in answers(PORT_BUGS[name].make(), command, sys.stdin):
        sys.stdout.write(text)
        sys.stdout.flush()
