"""Observations: what is seen after a step, or what must be; both have the same form."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..requirements import REQUIREMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..engine.actions import Action, Allocated
    from .steps import Buffer

__all__ = ["NOTHING", "Observation"]

_NONE: Mapping[str, Any] = MappingProxyType({})


class Observation(NamedTuple):
    """What is seen after a step, or must be; what is None or missing was not seen, or is not promised.

    Contents are bytes if they were seen, and numbers if they are expected (`syncedmem.spec.record.steps.content`).

    Attributes
    ----------
    refused : str or None
        Why the call was refused or failed; empty if it was not.
    actions : tuple of Action or None
    view : bytes, int or None
        What the returned view shows.
    viewed : bool or None
        Whether the call returned a view.
    head : str or None
    size : int or None
        In bytes.
    flags : mapping of str to bool
    sides : mapping of str to bytes or int
        What is on each side, read without a call.
    buffers : mapping of str to bytes or int
        What is in the adopted buffers; all of it, if it was seen.
    live : mapping of object to Allocated, or None
        The blocks of the memory; if expected, their names mean nothing.
    flying : tuple of (object, str, str) or None
        The pushes that have still to happen: stream, source and destination.
    older : mapping of str to bytes
        Only seen: what an earlier view for reading shows now, by side.
    gone, held : frozenset of str
        Only seen: the buffers that their owner has forgotten and that are no longer there; those that something still
        holds.
    blown : bool or None
        Only seen: whether the action that was told to fail was reached.
    wrong : tuple of (str, str)
        Only seen: the requirements that were broken whatever is expected, such as a free of what is not allocated, each
        with a sentence.
    owners : mapping of str to str
        Only expected: who owns each side, ``memory``, ``caller`` or ``nobody``.
    lent : mapping of str to Buffer
        Only expected: the adopted buffer of each side.
    """

    refused: str | None = None
    actions: tuple[Action, ...] | None = None
    view: Any = None
    viewed: bool | None = None
    head: str | None = None
    size: int | None = None
    flags: Mapping[str, bool] = _NONE
    sides: Mapping[str, Any] = _NONE
    buffers: Mapping[str, Any] = _NONE
    live: Mapping[Any, Allocated] | None = None
    flying: tuple[tuple[Any, str, str], ...] | None = None
    older: Mapping[str, bytes] = _NONE
    gone: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    blown: bool | None = None
    wrong: tuple[tuple[str, str], ...] = ()
    owners: Mapping[str, str] = _NONE
    lent: Mapping[str, Buffer] = _NONE

    def at(self, level: str) -> Observation:
        """What of it a level shows."""
        if level >= "L4":
            return self
        wrong = tuple(pair for pair in self.wrong if REQUIREMENTS[pair[0]].level <= level)
        seen = self._replace(wrong=wrong, older={}, gone=frozenset(), held=frozenset())
        if level < "L2":
            seen = seen._replace(actions=None, live=None)
        return seen if level >= "L1" else seen._replace(view=None, viewed=None, sides={}, buffers={})


NOTHING = Observation()
"""What is seen if nothing is."""
