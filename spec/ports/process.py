"""A port as a process: one request, one answer, and a violation if it dies, hangs or answers something else."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from syncedmem import interrupts
from syncedmem.model import EDITIONS, FileFormatError, Machine
from syncedmem.model.caffe import DEFAULT
from syncedmem.model.files import parsed_json

from ..engine.supervisor import Command, Death, Limits
from ..engine.tail import Tail
from ..engine.violation import Violation
from .protocol import CAFFE, LARGEST, VERSION, PortError, Protocol, protocol_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syncedmem.model.opening import AnyMachine

__all__ = ["Port"]

_NO_LIMITS = Limits()
_LONGEST_ANSWER = 1 << 26
_SHOWN = 200
_SHORTEST, _TIMES = 0.5, 20
"""After a hang, in seconds: the shortest wait, and how many times the slowest answer."""


class Port:
    """A program that speaks the protocol of ports; it is started when it is asked, and again after it was ended.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments.
    name : str
        What the user calls it; if empty, the name of the program.
    level : str
        The highest level that it is asked for.
    edition : str or Machine
        The edition that it is asked for, or the machine in whose words; empty for its own edition.
    limits : Limits
        For each answer, and for its memory.

    Attributes
    ----------
    hello : dict
        Its answer to the first request.
    level : str
        The level at which its answers are checked.
    hung : bool
        Whether it once did not answer in time.  From then on it is waited for only as long as its answers have shown
        to be worth it.
    protocol : Protocol
    streams, buffers : int
        The number of streams and of buffers of the caller that its process has been told of.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        name: str = "",
        level: str = "L4",
        edition: AnyMachine = "",
        limits: Limits = _NO_LIMITS,
    ) -> None:
        self._name = name or arguments[0]
        self.arguments: tuple[str, ...] = tuple(arguments)
        self.level = level
        self.hello: dict[str, Any] = {}
        self.hung: bool = False
        self._slowest = 0.0
        self._patience = ""
        self.streams: int = 0
        self.buffers: int = 0
        self.machine: Machine | None = (
            edition if isinstance(edition, Machine) and edition not in EDITIONS.values() else None
        )
        self.protocol: Protocol = CAFFE if self.machine is None else protocol_of(self.machine)
        self._edition = edition.name if isinstance(edition, Machine) else edition
        self._limits = replace(limits, answer=_LONGEST_ANSWER)
        self._command: Command | None = None
        self._errors: Tail | None = None
        self._process = ExitStack()
        self._lines: list[str] = []
        self._mark = 0

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises
        ------
        Violation
            If the program does not answer, or not as the protocol wants it; it is ended.
        PortError
            If the program does not start, or does not say hello.
        """
        interrupts.check()
        command = self._command or self._start()
        try:
            return self._exchange(command, op, fields)
        except Violation:
            self.renew()
            raise

    @property
    def largest(self) -> int:
        """The largest size that a memory may have."""
        size: int = self.hello.get("largest", LARGEST)
        return size

    @property
    def offers(self) -> frozenset[str]:
        """The optional requests that the port answers, and ``streams`` if its actions say their stream."""
        offers: list[str] = self.hello.get("offers", [])
        return frozenset((*offers, *(name for name in ("streams", "blobs") if self.hello.get(name))))

    @property
    def edition(self) -> str:
        """The edition that the port is."""
        edition: str = self.hello.get("edition", DEFAULT.name)
        return edition

    def next_id(self) -> int:
        """The number of the next request, in a process that is started if there is none."""
        if self._command is None:
            self._start()
        return len(self._lines) + 1

    def mark(self) -> None:
        """Let the program of findings begin here."""
        self._mark = len(self._lines)

    def requests(self, *, whole: bool = False) -> tuple[str, ...]:
        """The requests since the mark, after the first; or all requests since the start of the process."""
        return tuple(self._lines if whole else self._lines[:1] + self._lines[max(self._mark, 1) :])

    def renew(self) -> None:
        """End the process; the next request starts a new one, whose requests are not added to those of this one."""
        self._command = None
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.renew()

    def _start(self) -> Command:
        """Start the process, and have it say hello."""
        self._lines, self._mark, self.streams, self.buffers = [], 0, 0, 0
        errors = self._errors = self._process.enter_context(Tail())
        try:
            command = Command(self.arguments, limits=self._limits, errors=errors.end, group=True)
        except OSError as error:
            self.renew()
            raise PortError(f"{self.arguments[0]}: {error.strerror}") from error
        self._command = self._process.enter_context(command)
        errors.begin()
        options = {"edition": self._edition} if self._edition else {}
        try:
            self.hello = self._exchange(command, "hello", {"version": VERSION, "level": self.level, **options})
        except Violation as violation:
            self.renew()
            raise PortError(f"{self._name} does not say hello: {violation.message}") from violation
        version = self.hello.get("version", VERSION)
        if "refused" in self.hello or version != VERSION:
            self.renew()
            other = f"{self._name} speaks version {version} of the protocol, not {VERSION}"
            raise PortError(self.hello.get("refused", other))
        return command

    def _exchange(self, command: Command, op: str, fields: dict[str, Any]) -> dict[str, Any]:
        number = len(self._lines) + 1
        line = json.dumps({"id": number, "op": op, **fields})
        self._lines.append(line)
        began = time.monotonic()
        reply = command.ask(line)
        if isinstance(reply, Death):
            reply = self._noted(reply)
            raise self.violation("P01-answers", f"{op}: the program {reply.how}{self._last_words()}")
        self._slowest = max(self._slowest, time.monotonic() - began)
        try:
            answer: Any = parsed_json("the answer", reply)
        except FileFormatError as error:
            sentence = f"{op} was answered with {_short(reply)}, and {error.reason}"
            raise self.violation("P02-one-answer", sentence) from None
        fields = cast("dict[str, Any]", answer if type(answer) is dict else {})
        identity = fields.get("id", number)
        if type(identity) is int and 0 < identity < number:
            raise self.violation("P02-one-answer", f"{op}: an earlier request, {identity}, was answered twice")
        if identity != number:
            raise self.violation("P02-one-answer", f"{op}: the answer has id {identity!r}, expected {number}")
        if sentence := self.protocol.wrong(self.protocol.requests[op].answer, answer, self.level):
            raise self.violation("P02-one-answer", f"{op} was answered with {_short(reply)}: {sentence}")
        return {name: value for name, value in fields.items() if name != "refused" or value is not None}

    def _noted(self, death: Death) -> Death:
        """A death; after the first hang others take little time, because a program is shortened by many of them."""
        if death.kind != "hang" or self._limits.seconds is None:
            return death
        if not self.hung:
            self.hung, self._patience = True, death.detail
            short = max(_SHORTEST, _TIMES * self._slowest)
            self._limits = replace(self._limits, seconds=min(self._limits.seconds, short))
        return replace(death, detail=self._patience)

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation with the requests that led to it."""
        return Violation(requirement, message, self.requests())

    def _last_words(self) -> str:
        """The first and the last line of its standard error, as the rest of a sentence: which says why, differs."""
        lines = self._errors.text().strip().splitlines() if self._errors else []
        words = dict.fromkeys(_short(line.strip()) for line in lines[:1] + lines[-1:])
        return f"; its last words: {' ... '.join(words)}" if words else ""


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
