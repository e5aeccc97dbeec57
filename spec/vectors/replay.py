"""Runs vectors on memories, and judges by the vectors alone: neither the model nor the oracle is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.violation import Violation
from ..kit.trial import comparison_of, performer_of
from ..record.compare import Judge
from ..record.observation import NOTHING, Observation
from ..record.steps import OWN, Buffer, Step
from ..requirements import REQUIREMENTS
from .operations import due_of, step_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.subject import RemoteProgram, Subject

__all__ = ["Difference", "left_out", "replay"]

_AROUND = 5
"""How many bytes a buffer of the caller has behind those of the memory, where nobody may write."""


class Difference(NamedTuple):
    """A difference between a memory and a vector.

    Attributes
    ----------
    step : int
        Counted from 0.
    call : str
    requirement : str
        The requirement that it breaks.
    message : str
    """

    step: int
    call: str
    requirement: str
    message: str

    def __str__(self) -> str:
        return f"step {self.step}, {self.call}: {self.requirement}: {self.message}"


def replay(subject: Subject, vector: dict[str, Any]) -> Difference | None:
    """Run a vector against new memories, until something is wrong.

    Parameters
    ----------
    subject : Subject
        Without a device for vectors of ``cpu_only``, with a device for others.
    vector : dict
        The data of one line in a file of vectors.

    Returns
    -------
    Difference or None
        The first difference; None if there is none.
    """
    performer = performer_of(subject)
    judge = Judge(REQUIREMENTS, level=subject.level, excused=lambda _: False)  # every difference counts
    comparison = comparison_of(subject, judge, performer, safe=False)
    performer.begin()
    settings = {setting.name: setting.initial for setting in subject.machine.settings.values()}
    steps = _Steps(subject, vector)
    for number, step, due in steps.told():
        word = vector["steps"][number]["call"] if step.does != "new" else "new"
        try:
            difference = comparison.after(step, due, performer.perform(step, settings, due.sides, due.buffers))
        except Violation as violation:
            return Difference(number, word, violation.requirement, violation.message)
        if difference is not None:
            return Difference(number, word, *difference)
        if step.does == "set":
            settings[step.name] = step.value
    return None


class _Steps:
    """The steps of a vector, each with its number there and what must be seen."""

    def __init__(self, subject: Subject, vector: dict[str, Any]) -> None:
        self._machine = subject.machine
        self._vector = vector
        self._sizes: list[int] = vector["sizes"]
        self._lent: list[dict[str, Buffer]] = [{} for _ in self._sizes]

    def told(self) -> Iterator[tuple[int, Step, Observation]]:
        """The steps; after a push there is one more that waits, because only then the vector says what is there."""
        for memory, size in enumerate(self._sizes):
            yield 0, Step("new", memory, size=size), Observation(refused="", size=size)
        for number, done in enumerate(self._vector["steps"]):
            step = self._with_room(step_of(self._machine, done))
            if step.does == "set":
                yield number, step, NOTHING
                continue
            lent = self._adopted(step, done)
            due = due_of(self._machine, done, self._sizes[step.memory], lent)
            call = self._machine.calls.get(step.name)
            if call is None or not call.queues:
                yield number, step, due
                continue
            yield number, step._replace(quiet=True), Observation(due.refused, due.actions, size=due.size)
            yield number, Step("wait", step.memory), due

    def _with_room(self, step: Step) -> Step:
        """A step whose buffer has more bytes than the memory, if that has any."""
        if step.argument is None or step.argument.name == OWN or not self._sizes[step.memory]:
            return step
        return step._replace(argument=step.argument._replace(longer=_AROUND))

    def _adopted(self, step: Step, done: dict[str, Any]) -> dict[str, Buffer]:
        """What a memory has adopted after a step."""
        call, lent = self._machine.calls.get(step.name), self._lent[step.memory]
        if call is None or done.get("refusal") or "fail" in done:
            return lent
        if call.ends:
            lent = {}
        elif call.does == "adopt" and step.argument is not None:
            lent = {**lent, call.side: step.argument}
        self._lent[step.memory] = lent
        return lent


def left_out(subject: Subject, vector: dict[str, Any]) -> str:
    """Why a vector is left out: a subject does not show what it is about; empty if it can be judged by it.

    A program may be of another edition, fail on request only from L3 on, and have a largest size.
    """
    if subject.program is None:
        return ""
    if vector["edition"] != subject.machine.name:
        return f"they are of the machine {vector['edition']}, and the port is of {subject.machine.name}"
    return _beyond(subject, subject.program, vector)


def _beyond(subject: Subject, program: RemoteProgram, vector: dict[str, Any]) -> str:
    """What of a vector of its edition a program cannot show."""
    if max(vector["sizes"]) > subject.largest:
        return f"they have memories of more than {subject.largest} bytes, the largest size of the port"
    steps = vector["steps"]
    if subject.level < _FAILURES_FROM and any("fail" in step for step in steps):
        return f"their actions fail on request: a port does so from {_FAILURES_FROM} on, and this is {subject.level}"
    own = (step["argument"] for step in steps if isinstance(step.get("argument"), dict))
    if "own_buffer" not in program.offers and any("own" in argument for argument in own):
        return "they adopt the memory's own pointer, and the port does not answer the request own_buffer"
    return ""


_FAILURES_FROM = "L3"
"""The level from which on a port fails on request."""
