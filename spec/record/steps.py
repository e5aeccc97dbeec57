"""Steps: everything that is done to memories, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..engine.contents import pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CANARY", "OWN", "UNSUITABLE", "Buffer", "Case", "Does", "How", "Step", "content"]

CANARY = 0xEE
"""What is around the memory's bytes in a longer buffer of the caller, where nobody may write."""
OWN = "own"
"""The name of a buffer that is the memory's own block."""

Does = Literal["call", "new", "set", "look", "wait", "write", "drop", "forget", "queue"]
"""A call of the machine; and what happens outside of calls: a memory is made, a setting is changed, a memory is looked
at, every push is waited for, the owner of a buffer writes into it, a memory is dropped.  Only objects of Python show
the rest: the owner of a buffer forgets it; work that reads a device side is queued on the current stream."""
How = Literal["", "half", "interrupt", "other"]
"""How an action fails: at once, after half of its work, or with an interrupt.  ``other`` counts the calls of an
allocator that do nothing to memory, such as looking for overlaps, and nobody else knows how many there are."""

UNSUITABLE: Mapping[str, str] = {
    **dict.fromkeys(("read-only", "frozen view"), "frozen"),
    **dict.fromkeys(("spread", "backwards", "columns"), "spread"),
    **dict.fromkeys(("text", "object", "number", "host", "page-locked", "elsewhere"), "kind"),
}
"""The forms of objects that must not be adopted, each with the reason."""


def content(number: int, size: int) -> bytes:
    """The bytes of a content: zeros for 0, and the pattern of any other number."""
    return pattern(number, size) if number else bytes(size)


class Buffer(NamedTuple):
    """What is handed in to be adopted: a buffer of the caller, or a part of the memory's own block.

    Attributes
    ----------
    name : str
        A buffer that was handed in before is the same one; ``own`` is the memory's own block.
    side : str
        Where the buffer is; it can be adopted only there.
    content : int or None
        The content that it gets before; None leaves what it has.
    longer : int
        How many bytes it has beyond those of the memory, or lacks if negative.
    offset : int
        Where it begins in the own block, or in a longer object.
    form : str
        What kind of object it is; empty for the usual one.
    """

    name: str
    side: str
    content: int | None = None
    longer: int = 0
    offset: int = 0
    form: str = ""


class Step(NamedTuple):
    """Something that is done.

    Attributes
    ----------
    does : str
        One of `Does`.
    memory : int
        Its number in the case.
    name : str
        Of the call, or of the setting.
    argument : Buffer or None
        What is handed in; None is a null pointer.  Or the buffer into which its owner writes.
    write : int or None
        The content that is written through the view which the call returns, or by the owner of a buffer.
    fail : int
        The number of the action that fails, from 1; 0 if none does.
    how : {"", "half", "interrupt", "other"}
    stream : int or str
        Of a push; a word stands for an object that is no stream of the device.
    value : str
        Of a setting.
    size : int
        Of a new memory, in bytes; something else must be refused.
    quiet : bool
        Whether nobody looks afterwards: only the answer itself is seen.
    elsewhere : bool
        Whether another device is current.
    checks : bool
        Whether a new memory must refuse every call while another device is current.
    """

    does: Does
    memory: int = 0
    name: str = ""
    argument: Buffer | None = None
    write: int | None = None
    fail: int = 0
    how: How = ""
    stream: int | str = 0
    value: str = ""
    size: Any = 0
    quiet: bool = False
    elsewhere: bool = False
    checks: bool = False

    @property
    def spelled(self) -> str:
        """What is done, as a message names it."""
        return self.name if self.does == "call" else _SPELLED.get(self.does, self.does)


_SPELLED = {"new": "making a memory", "look": "looking", "wait": "waiting", "write": "writing into a buffer"}

Case = tuple[Step, ...]
