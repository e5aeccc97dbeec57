"""Wrong waits: for another stream than the one that the memory's own push is on, or at the wrong time."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..registry import seeded_bug
from .handmade import HandmadeMemory

_TURNS = count()
_PUSHED = WeakValueDictionary[int, "Neighbour"]()
"""The memories that have pushed, the one that did so last at the end."""
_EVENTS = WeakKeyDictionary[Any, Any]()
"""For each stream the event after its first push."""


class Neighbour(HandmadeMemory):
    """A right memory that also knows the pushes of others, as a manager of all memories does."""

    turn = -1

    def push(self, pointer: Any, stream: Any) -> None:
        super().push(pointer, stream)
        _PUSHED.pop(self.turn, None)
        self.turn = next(_TURNS)
        _PUSHED[self.turn] = self

    def flights(self) -> list[Any]:
        """The pushes in flight, the last one at the end."""
        return [flight for memory in _PUSHED.values() if (flight := memory.flight) is not None and not flight.done]

    def others(self) -> list[Any]:
        """The pushes in flight of other memories."""
        return [flight for flight in self.flights() if flight is not self.flight]

    def mistake(self, flights: list[Any], which: int) -> None:
        """Take one of some pushes for the memory's own, if there is any."""
        if self.flight is not None and flights:
            self.flight = flights[which]


@seeded_bug("R42-in-flight-not-freed", "a port in Go that waits for the stream of another memory before it frees")
class FreesAfterAnotherPush(Neighbour):
    """Release waits for the push of another memory."""

    def close(self) -> None:
        self.mistake(self.others(), -1)
        super().close()


@seeded_bug("R42-in-flight-not-freed", "one variable for the last stream, in a manager of all memories")
class AdoptsAfterTheLastPush(Neighbour):
    """set_cpu_data waits for the stream that was used last, whoever used it."""

    def set_cpu_data(self, data: Any) -> None:
        self.mistake(self.flights(), -1)
        super().set_cpu_data(data)


@seeded_bug("R42-in-flight-not-freed", "one queue of events for all memories, of which the oldest is taken")
class AdoptsAfterTheFirstPush(Neighbour):
    """set_gpu_data waits for the oldest push, whoever made it."""

    def set_gpu_data(self, data: Any) -> None:
        self.mistake(self.flights(), 0)
        super().set_gpu_data(data)


@seeded_bug("R42-in-flight-not-freed", "a finaliser that has lost its stream")
class FinaliserWaitsForAnotherPush(Neighbour):
    """A dropped memory waits for the push of another one."""

    def __del__(self) -> None:
        with suppress(Exception):
            self.mistake(self.others(), -1)
        super().__del__()


@seeded_bug("R42-in-flight-not-freed", "cudaStreamSynchronize(0), with streams that do not block")
class FreesAfterTheDefaultStream(HandmadeMemory):
    """Release waits for the default stream."""

    def close(self) -> None:
        if self.flight is not None:
            self.flight = self.device.record(self.device.current_stream())
        super().close()


@seeded_bug("R42-in-flight-not-freed", "cudaEventRecord before cudaMemcpyAsync")
class FreesAfterAnEarlyEvent(HandmadeMemory):
    """Release waits for what was on the stream before the push."""

    early: Any = None

    def push(self, pointer: Any, stream: Any) -> None:
        self.early = self.device.record(stream)
        super().push(pointer, stream)

    def close(self) -> None:
        if self.flight is not None:
            self.flight = self.early
        super().close()


@seeded_bug("R42-in-flight-not-freed", "a free that is put off, and a wait that is not")
class WaitsAfterTheFree(HandmadeMemory):
    """Release frees, and then waits for the push."""

    def close(self) -> None:
        flight, self.flight = self.flight, None
        super().close()
        if flight is not None:
            flight.synchronize()


@seeded_bug("R41-in-flight-not-written", "one variable for the last stream, in a manager of all memories")
class WritesAfterTheLastPush(Neighbour):
    """mutable_cpu_data waits for the stream that was used last, whoever used it."""

    def mutable_cpu_data(self) -> Any:
        self.mistake(self.flights(), -1)
        return super().mutable_cpu_data()


@seeded_bug("R42-in-flight-not-freed", "one list of what is in flight, and a wait that empties it")
class ForgetsThePushesOfOthers(Neighbour):
    """A release that has waited for its own push takes those of all others for done."""

    def close(self) -> None:
        super().close()
        for memory in _PUSHED.values():
            memory.flight = None


@seeded_bug("R41-in-flight-not-written", "a table of events by stream, which keeps the first")
class KeepsTheFirstEventOfAStream(HandmadeMemory):
    """A push on a stream that had one before is waited for with the event of the first."""

    def take_off(self, stream: Any) -> Any:
        return _EVENTS.setdefault(stream, super().take_off(stream))


@seeded_bug("R43-in-flight-read", "cudaStreamWaitEvent on the event of another memory")
class ReadsAfterAnotherPush(Neighbour):
    """gpu_data is ordered after the push of another memory."""

    def follow(self) -> None:
        own = self.flight
        self.mistake(self.others(), -1)
        super().follow()
        self.flight = own
