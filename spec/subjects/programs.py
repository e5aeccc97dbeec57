"""Memories that a program has: steps become requests, and answers become what is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.actions import UNSAID, Action
from ..engine.subject import Subject
from ..record.ledger import Ledger
from ..record.observation import NOTHING, Observation
from ..record.steps import CANARY, OWN, content

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from syncedmem.model import Call

    from ..engine.subject import RemoteProgram
    from ..engine.violation import Violation
    from ..record.steps import Buffer, Step

__all__ = ["ProgramMemories", "actions_told", "check_failure"]


_NOT_RELEASED = "; its release failed before it had freed anything, so the memory is as before, and not released"
"""Why a memory must be shown after a release that failed."""


class _Asked(NamedTuple):
    """A memory in the port: its number there, its size in bytes, and its ledger."""

    number: int
    size: int
    ledger: Ledger


class ProgramMemories:
    """The memories of a port, and the buffers and streams of their caller."""

    def __init__(self, port: RemoteProgram) -> None:
        self._program: RemoteProgram = port
        self._flags = port.protocol.attributes - {"size"}
        self._forget()

    def _forget(self) -> None:
        self._memories: dict[int, _Asked] = {}
        self._over: set[int] = set()
        self._begun: set[int] = set()  # memories of which a release has freed something, and then failed
        self._names: dict[str, str] = {}
        self._streams: dict[int, int | str] = {}
        self._queued = False  # whether pushes may still have to happen, at a level that does not say when they do

    def begin(self) -> None:
        """Let a new case begin."""
        self._forget()
        self._program.mark()

    @property
    def defers(self) -> bool:
        """Whether a push happens only when somebody waits for it."""
        return bool(self._program.level >= "L4" and self._program.hello.get("defers"))

    # --- steps

    def program(self) -> tuple[str, ...]:
        """The requests of this case."""
        return self._program.requests()

    def violation(self, requirement: str, message: str) -> Violation:
        """A violation, with the requests that led to it."""
        return self._program.violation(requirement, message)

    def perform(
        self, step: Step, settings: Mapping[str, str], sides: Collection[str], buffers: Collection[str]
    ) -> Observation:
        """Do a step; see `syncedmem.spec.subjects.objects.ObjectMemories.perform`."""
        del sides  # a port shows them all
        return self._do(step, settings, buffers).at(self._program.level)

    def _do(self, step: Step, settings: Mapping[str, str], buffers: Collection[str]) -> Observation:
        if step.does == "set":
            return NOTHING
        if step.does == "new":
            return self._new(step)
        if step.does == "call":
            return self._call(step, settings, buffers)
        memory = self._memories[step.memory]
        if step.does == "drop":
            return self._acted(memory, self._program.ask("drop", memory=memory.number))
        self._do_outside(memory, step)
        if step.quiet or step.memory in self._over | self._begun:
            return NOTHING
        return self._shown(memory, self._state(memory), buffers)

    def _do_outside(self, remote: _Asked, step: Step) -> None:
        """Do what is no call: wait for every push, or write into a buffer of the caller; a look does nothing."""
        if step.does == "wait":
            self._wait()
        elif step.does == "write" and step.argument is not None and self._program.level >= "L1":
            bytes_ = content(step.write or 0, remote.size)
            self._program.ask("write_buffer", buffer=self._names[step.argument.name], bytes=bytes_.hex())

    def _wait(self) -> None:
        self._program.ask("synchronize")
        self._queued = False
        for other in self._memories.values():
            other.ledger.land()

    def _new(self, step: Step) -> Observation:
        ledger = Ledger(step.size, defers=self.defers)
        remote = self._memories[step.memory] = _Asked(self._program.next_id(), step.size, ledger)
        answer = self._program.ask("new", memory=remote.number, size=step.size)
        return self._shown(remote, self._whole(answer), (), self._acted(remote, answer))

    def _call(self, step: Step, settings: Mapping[str, str], buffers: Collection[str]) -> Observation:
        remote, call = self._memories[step.memory], self._program.protocol.machine.calls[step.name]
        fields: dict[str, Any] = {"memory": remote.number, **settings}
        name = "" if step.argument is None else self._handed_in(remote, step.argument)
        if call.does == "adopt":
            fields["buffer"] = name or None
        if call.queues:
            fields["stream"] = self._stream(step.stream)
        if step.fail:
            fields |= {"fail": step.fail, **({"partial": True} if step.how == "half" else {})}
        answer = self._program.ask(call.name, **fields)
        acted = self._acted(remote, answer, step)
        if step.memory in self._over:
            return acted
        if answer.get("refused"):
            if call.ends and any(action.does == "free" and not action.failed for action in acted.actions or ()):
                self._begun.add(step.memory)
            return self._after_refusal(remote, step, answer, buffers, acted)
        if call.does == "adopt" and step.argument is not None:
            remote.ledger.adopt(call.side, name)
        if call.ends:
            self._over.add(step.memory)
            return acted
        if call.queues and "L1" <= self._program.level < "L4":  # below L4 nobody says when a push happens
            self._queued = True
            acted = acted._replace(flying=((step.stream, call.source, call.side),))
        return self._shown(remote, self._written(remote, call, step, answer), () if step.quiet else buffers, acted)

    def _after_refusal(
        self, remote: _Asked, step: Step, answer: dict[str, Any], buffers: Collection[str], acted: Observation
    ) -> Observation:
        """What is seen of a memory after a call that was refused; the answer need not say it.

        A memory of which a release has freed something is released, and need not be shown any more.
        """
        if "head" not in answer:
            if step.quiet or step.memory in self._begun:
                return acted
            ends = self._program.protocol.machine.calls[step.name].ends
            answer = {**answer, **self._state(remote, _NOT_RELEASED if ends else "")}
        return self._shown(remote, answer, () if step.quiet else buffers, acted)

    def _written(self, remote: _Asked, call: Call, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        """What is seen after the view that a call returned was written."""
        view = answer.get("view")
        if not call.writes or step.write is None or view is None or self._program.level < "L1":
            return self._whole(answer)
        bytes_ = content(step.write, remote.size).hex()
        after = self._program.ask("write_view", memory=remote.number, side=call.side, bytes=bytes_)
        return {**self._whole(after), "view": view}

    def _state(self, remote: _Asked, because: str = "") -> dict[str, Any]:
        return self._whole(self._program.ask("state", memory=remote.number), because)

    def _whole(self, answer: dict[str, Any], because: str = "") -> dict[str, Any]:
        """An answer that says the head; because of what it must, if that is not clear."""
        if "head" not in answer:
            raise self._program.violation("P02-one-answer", f"the last answer about a memory has no 'head'{because}")
        return answer

    # --- arguments

    def _handed_in(self, remote: _Asked, buffer: Buffer) -> str:
        """The port's name of a buffer, which is made if there is none, or filled again."""
        if buffer.name == OWN:
            self._own(remote, buffer)
            return OWN
        known = buffer.name in self._names
        if not known:
            self._program.buffers += 1
            self._names[buffer.name] = f"{Subject.keyword(buffer.side)}{self._program.buffers}"
        name = self._names[buffer.name]
        if not known or buffer.content is not None:
            whole = content(buffer.content or 0, max(remote.size + min(buffer.longer, 0), 0))
            bytes_ = (whole + bytes([CANARY]) * buffer.longer).hex()
            if known:
                self._program.ask("write_buffer", buffer=name, bytes=bytes_)
            else:
                self._program.ask("buffer", buffer=name, side=buffer.side, bytes=bytes_)
        return name

    def _own(self, remote: _Asked, buffer: Buffer) -> None:
        part = {"offset": buffer.offset} if buffer.offset else {}
        answer = self._program.ask("own_buffer", memory=remote.number, side=buffer.side, buffer=OWN, **part)
        if "refused" in answer:
            message = f"own_buffer was refused, and the memory has a block on {buffer.side}: {answer['refused']}"
            raise self._program.violation("P02-one-answer", message)

    def _stream(self, number: int | str) -> int:
        if number not in self._streams.values():
            self._program.streams += 1
            self._streams[self._program.streams] = number
        return next(there for there, here in self._streams.items() if here == number)

    # --- what was seen

    def _acted(self, remote: _Asked, answer: dict[str, Any], step: Step | None = None) -> Observation:
        """What was done to blocks, and whether it was refused."""
        refused = answer.get("refused") or ""
        if self._program.level < "L2":
            return Observation(refused=refused)
        actions = tuple(self._actions(answer, step))
        if step is not None and step.fail and self._program.level >= "L3":
            check_failure(self._program, actions, step.fail)
        wrong = remote.ledger.take(actions)
        for wait in (action for action in actions if action.does == "wait"):
            for other in self._memories.values():  # a stream may have the pushes of others too
                if other is not remote:
                    other.ledger.land(wait.stream)
        return Observation(
            refused=refused, actions=actions, wrong=wrong, live=remote.ledger.live, flying=remote.ledger.flying
        )

    def _actions(self, answer: dict[str, Any], step: Step | None) -> Iterator[Action]:
        """The actions of an answer, on streams as the case numbers them."""
        for action in actions_told(self._program.protocol, answer):
            stream = action.stream
            if stream is not None:
                stream = self._streams.get(stream, stream)
            elif action.does == "push" and step is not None:
                stream = step.stream
            yield action._replace(stream=stream)

    def _shown(
        self, remote: _Asked, answer: dict[str, Any], buffers: Collection[str], acted: Observation = NOTHING
    ) -> Observation:
        machine, view = self._program.protocol.machine, answer.get("view")
        if self._queued and not acted.flying:
            self._wait()
            now = self._state(remote)
            answer = {**answer, **{side: now.get(side) for side in machine.sides}}
        sides = {side: bytes.fromhex(answer[side]) for side in machine.sides if answer.get(side) is not None}
        reads = self._program.level >= "L1"  # below, that is no request
        read = {name: self._read(name) for name in buffers if reads and name in self._names}
        return Observation(
            refused=acted.refused,
            actions=acted.actions,
            view=None if view is None else bytes.fromhex(view),
            viewed=view is not None,
            head=answer.get("head"),
            size=answer.get("size"),
            flags={name: answer[name] for name in self._flags if answer.get(name) is not None},
            sides=sides,
            buffers=read,
            live=remote.ledger.live,
            flying=acted.flying or remote.ledger.flying,
            wrong=acted.wrong,
        )

    def _read(self, name: str) -> bytes:
        return bytes.fromhex(self._program.ask("read_buffer", buffer=self._names[name])["bytes"])


def actions_told(protocol: Any, answer: dict[str, Any]) -> Iterator[Action]:
    """The actions of an answer, on streams as the program numbers them."""
    pinning = {fact.side: fact.name for fact in protocol.machine.facts.values() if fact.means == "pinned"}
    for listed in answer["actions"]:
        data: dict[str, Any] = {"action": listed} if isinstance(listed, str) else listed
        meaning = protocol.actions[data["action"]]
        if meaning.does in ("", "adopt"):
            continue
        pinned, does = data.get("pinned"), meaning.does
        if pinned is None and does == "allocate":
            pinned = bool(answer.get(pinning.get(meaning.side, ""), False))
        if does == "copy":
            does = "clone" if meaning.source == meaning.side else "push" if meaning.queued else does
        stream = data.get("stream") if does in ("push", "wait") else None
        yield Action(
            does, meaning.side, meaning.source, data.get("size"), pinned, stream,
            data.get("block", UNSAID), data.get("buffer", ""), bool(data.get("failed")),
        )  # fmt: skip


def check_failure(program: RemoteProgram, actions: Iterable[Action], number: int) -> None:
    """Refuse an action that was told to fail, and did not."""
    counted = [action for action in actions if action.does != "wait"]
    if number <= len(counted) and not (action := counted[number - 1]).failed:
        sentence = f"action {number}, {action.does} {action.side}, was told to fail, and the port did it"
        raise program.violation("P03-fails-when-told", sentence)
