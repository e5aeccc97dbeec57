"""The actions that a port reports, in the kit's log: allocator calls are made again, and fail where they have to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syncedmem.model.interface import MemcpyKind

from ..engine.call_log import CallLog, InjectedFailure, RecordingAllocator, StrayFree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .process import Port
    from .protocol import ActionMeaning

__all__ = ["Actions", "RemotePointer", "RemoteStream"]

_ACTIONS_FROM, _FAILURES_FROM = "L2", "L3"
_KINDS = {
    ("gpu", "cpu"): MemcpyKind.CUDA2CPU,
    ("cpu", "gpu"): MemcpyKind.CPU2CUDA,
    ("gpu", "gpu"): MemcpyKind.CUDA2CUDA,
}
"""The directions of copies that tell the sides; those of other sides are known by their pointers."""


class RemotePointer:
    """A block of memory in the port, or the pointer to an adopted buffer there.

    Attributes
    ----------
    number : int or None
        The port's number of the block.
    """

    number: int | None = None


@dataclass(frozen=True)
class RemoteStream:
    """A stream of the port, by its number."""

    number: int

    def __str__(self) -> str:
        return f"stream {self.number}" if self.number else "the default stream"


class Actions:
    """Puts the actions of one memory, or of all blobs of a driver, into the log of the kit.

    Parameters
    ----------
    recorders : mapping of str to RecordingAllocator
        The kit's recording allocators, by side; None for a side that the port does not have.
    size : int or None
        The size of the memory, which an action need not have; None for blobs, whose actions say everything.

    Attributes
    ----------
    port : Port
    log : CallLog
    """

    def __init__(self, recorders: Mapping[str, RecordingAllocator | None], size: int | None = None) -> None:
        known = [recorder for recorder in recorders.values() if recorder is not None]
        self._allocators: list[Any] = [recorder.inner for recorder in known]
        self.port: Port = self._allocators[0].port
        self.log: CallLog = known[0].log
        self._size = size
        self._recorders: dict[tuple[str, bool], RecordingAllocator] = {}
        for side, recorder in recorders.items():
            usual = recorder or RecordingAllocator(self._allocators[0], self.log, side)
            self._recorders[side, False] = usual
            self._recorders[side, True] = RecordingAllocator(usual.inner, self.log, side, pinned=True)
        facts = self.port.protocol.machine.facts.values()
        self._pinned = {it.side: it.name for it in facts if it.means == "pinned"}
        self._blocks: dict[str, list[RemotePointer]] = {side: [] for side in recorders}
        self._adopted: dict[str, tuple[str, RemotePointer]] = {}
        self._stream: Any = None

    def failure(self) -> dict[str, Any]:
        """The fields of a call that say which of its actions has to fail, if the kit wants one to fail."""
        moves = self.log.moves
        if not moves.left or self.port.level < _FAILURES_FROM:
            return {}
        return {"fail": moves.left, **({"partial": True} if moves.partial else {})}

    def adopt(self, side: str, name: str) -> None:
        """Note that the memory has adopted a buffer; in a port no adoption can be told to fail."""
        self._adopted[side] = name, self._of_caller(side)

    def take(self, answer: dict[str, Any], stream: object = None) -> None:
        """Make the allocator calls of an answer's actions again.

        Parameters
        ----------
        answer : dict
        stream : object
            The stream of a push, which is that of later ones too; a port need not say on which one a copy is.

        Raises
        ------
        Violation
            If an action was told to fail, and did not.
        """
        self._stream = stream or self._stream
        for listed in answer["actions"] if self.port.level >= _ACTIONS_FROM else ():
            action: dict[str, Any] = {"action": listed} if isinstance(listed, str) else listed
            meaning = self.port.protocol.actions[action["action"]]
            if meaning.does == "wait":
                for allocator in self._allocators:
                    allocator.waited(action.get("stream"))  # a port that does not say which one is taken to mean all
            elif action.get("failed"):
                with suppress(InjectedFailure):
                    self.log.moves.count(action["action"])
            elif meaning.does not in ("", "adopt"):
                self._repeat(meaning, action, answer)

    def _repeat(self, meaning: ActionMeaning, action: dict[str, Any], answer: dict[str, Any]) -> None:
        side = meaning.side
        try:
            if meaning.does == "copy":
                self._copy(meaning, action)
            elif meaning.does == "zero":
                self._recorders[side, False].memset_zero(self._pointer(side), self._field(action, "size"))
            elif meaning.does == "allocate":
                self._allocate(side, action, answer)
            else:
                self._free(side, action)
        except InjectedFailure as error:
            sentence = f"{action['action']} was told to fail, and the port did it: {action}"
            raise self.port.violation("P03-fails-when-told", sentence) from error
        except StrayFree:
            pass  # it is in the log

    def _copy(self, meaning: ActionMeaning, action: dict[str, Any]) -> None:
        source, dest = meaning.source, meaning.side
        kind = _KINDS.get((source, dest), MemcpyKind.CPU2CPU)
        stream = self._stream if meaning.queued else None
        if stream is not None and "stream" in action:
            stream = RemoteStream(action["stream"])
        size = self._field(action, "size")
        self._recorders[dest, False].memcpy(self._pointer(source), self._pointer(dest), size, kind, stream)

    def _allocate(self, side: str, action: dict[str, Any], answer: dict[str, Any]) -> None:
        pinned = action.get("pinned", answer.get(self._pinned.get(side, ""), False))
        pointer = self._recorders[side, pinned].allocate(self._field(action, "size"))
        pointer.number = self._field(action, "block")
        self._blocks[side].append(pointer)

    def _free(self, side: str, action: dict[str, Any]) -> None:
        pointer = self._freed(side, action)
        live = self.log.live.get(id(pointer))
        pinned = action.get("pinned", live is not None and live[1].pinned)
        self._recorders[side, pinned].release(pointer)
        self._blocks[side].remove(pointer)

    def _freed(self, side: str, action: dict[str, Any]) -> RemotePointer:
        """What a free is about; a new pointer, which is not allocated, if it is about nothing that is known."""
        blocks, (name, adopted) = self._blocks[side], self._adopted.get(side, ("", RemotePointer()))
        if "buffer" in action:
            return adopted if action["buffer"] == name else self._of_caller(side)
        if "block" in action:
            numbered = [it for it in blocks if it.number is not None and it.number == action["block"]]
            return numbered[0] if numbered else RemotePointer()
        self._field(action, "block")
        return blocks[-1] if blocks else adopted

    def _of_caller(self, side: str) -> RemotePointer:
        """A pointer to a buffer of the caller, in the log."""
        pointer = RemotePointer()
        self.log.adopt(side, pointer)
        return pointer

    def _pointer(self, side: str) -> RemotePointer | None:
        """What is on a side of the memory now; of blobs nobody asks."""
        if self._size is None:
            return None
        blocks, adopted = self._blocks[side], self._adopted.get(side)
        return blocks[-1] if blocks else adopted[1] if adopted else None

    def _field(self, action: dict[str, Any], field: str) -> Any:
        """A field of an action; an action of a blob must have it."""
        if field not in action and self._size is None:
            raise self.port.violation("P02-one-answer", f"{action} is an action of a blob without {field!r}")
        return action.get(field, self._size if field == "size" else None)
