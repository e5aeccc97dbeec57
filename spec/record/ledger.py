"""The ledger of one memory: its blocks and its pushes in flight, by the actions that were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.actions import UNSAID, Allocated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..engine.actions import Action

__all__ = ["Ledger"]

_STRAY, _EXTERNAL, _OTHER_KIND = "R28-freed-once", "R18-external-not-freed", "R25-pinned-frozen"
_EARLY = "R42-in-flight-not-freed"


class _Flight(NamedTuple):
    """A push that has still to happen: its stream, its sides, and what is there."""

    stream: Any
    source: str
    side: str
    ends: tuple[Any, Any]


class Ledger:
    """The blocks of a memory, and its pushes.

    Parameters
    ----------
    size : int
        That of the memory, which an action need not say.
    defers : bool
        Whether a push happens only when somebody waits.
    """

    def __init__(self, size: int, *, defers: bool) -> None:
        self._size = size
        self._defers = defers
        self._blocks: dict[Any, Allocated] = {}
        self._lent: dict[str, str] = {}
        self._flights: list[_Flight] = []
        self._count = 0

    @property
    def live(self) -> Mapping[Any, Allocated]:
        """The blocks that are allocated, by their numbers."""
        return dict(self._blocks)

    @property
    def flying(self) -> tuple[tuple[Any, str, str], ...]:
        """The pushes that have still to happen: stream, source and destination."""
        return tuple((flight.stream, flight.source, flight.side) for flight in self._flights)

    def adopt(self, side: str, name: str) -> None:
        """Note that a side is now a buffer of the caller."""
        self._lent[side] = name

    def land(self, stream: Any = None) -> None:
        """Note that the pushes of a stream have happened, or all."""
        self._flights = [flight for flight in self._flights if stream not in (None, flight.stream)]

    def take(self, actions: Iterable[Action]) -> tuple[tuple[str, str], ...]:
        """Follow actions; return what is wrong whatever is expected: requirements, each with a sentence."""
        wrong: list[tuple[str, str]] = []
        for action in actions:
            if action.does == "wait":
                self.land(action.stream)
            elif action.failed:
                continue
            elif action.does == "allocate":
                self._allocate(action)
            elif action.does == "push" and self._defers and self._sized(action):
                self._flights.append(
                    _Flight(action.stream, action.source, action.side, (self._at(action.source), self._at(action.side)))
                )
            elif action.does == "free":
                wrong += self._free(action)
        return tuple(wrong)

    def _sized(self, action: Action) -> int:
        return self._size if action.size is None else action.size

    def _allocate(self, action: Action) -> None:
        self._count += 1
        name = ("unnamed", self._count) if action.block in (None, UNSAID) else action.block
        self._blocks[name] = Allocated(action.side, self._sized(action), bool(action.pinned))

    def _at(self, side: str) -> Any:
        """What is on a side: its last block, or what was adopted there."""
        blocks = [name for name, block in self._blocks.items() if block.side == side]
        return blocks[-1] if blocks else self._lent.get(side)

    def _free(self, action: Action) -> list[tuple[str, str]]:
        freed = action.block if action.block != UNSAID else self._at(action.side)
        if action.buffer or (action.block == UNSAID and freed is not None and freed == self._lent.get(action.side)):
            return [(_EXTERNAL, "the port was asked to free external memory")]
        known = self._blocks.get(freed)
        if known is None or known.side != action.side:
            return [(_STRAY, "the port was asked to free memory that is not allocated")]
        if action.pinned not in (None, known.pinned):
            kinds = ("pageable", "page-locked")
            wrong = f"the port was asked to free {kinds[known.pinned]} memory as {kinds[not known.pinned]}"
            return [(_OTHER_KIND, wrong)]
        del self._blocks[freed]
        early = any(freed in flight.ends for flight in self._flights)
        return [(_EARLY, "the port freed memory while a push still used it")] if early else []
