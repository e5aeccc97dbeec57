"""The oracle: the expected effect of every call, derived from which copies are fresh.

It never reads a transition table.  It knows the copies of one buffer, one for each side, the owner of each, which of
them are fresh, and their bytes; and a `Policy`.  From these follow what must be allocated, filled, copied and freed,
what is fresh afterwards, and whether a call must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from syncedmem.model import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from syncedmem.model.declaration import Call, Fact

    from .policy import Policy, Reason

__all__ = ["Copy", "Does", "Expected", "Oracle", "Wanted"]

Owner = Literal["nobody", "memory", "caller"]
Does = Literal["allocate", "zero", "copy", "adopt", "free"]


class Wanted(NamedTuple):
    """An expected step of a call.

    Attributes
    ----------
    does : {"allocate", "zero", "copy", "adopt", "free"}
    side : str
        Where memory is allocated, zeroed, adopted or freed; for a copy, its destination.
    source : str
        Of a copy: where the bytes come from.
    queued : bool
        Whether the copy may happen after the call has returned.
    pinned : bool
        Whether what is allocated or freed is page-locked, or otherwise of the second kind.
    """

    does: Does
    side: str
    source: str = ""
    queued: bool = False
    pinned: bool = False

    @property
    def operation(self) -> str:
        """What an allocator sees: a queued copy is a push."""
        return "push" if self.queued else self.does


class Copy(NamedTuple):
    """One of the copies.

    Attributes
    ----------
    owner : {"nobody", "memory", "caller"}
        If nobody is the owner, there is no memory.
    fresh : bool
    content : object
        The bytes, or what stands for them; None if nothing is promised.
    pinned : bool
        Whether the memory was of the second kind when it was last allocated.
    """

    owner: Owner = "nobody"
    fresh: bool = False
    content: Any = None
    pinned: bool = False


class Expected(NamedTuple):
    """The expected effect of one call.

    Attributes
    ----------
    refused : str
        Why the call must be refused, by the policy's reasons; empty if it must not.
    steps : tuple of Wanted
        In their order.
    after : Oracle
        The same state if the call is refused.
    """

    refused: Reason | Literal[""]
    steps: tuple[Wanted, ...]
    after: Oracle

    @property
    def calls(self) -> tuple[Wanted, ...]:
        """The steps that are calls of an allocator: none for zero bytes."""
        return tuple(step for step in self.steps if step.does != "adopt") if self.after.size else ()


@dataclass(frozen=True, slots=True, repr=False)
class Oracle:
    """The state of a memory, and the effect of each call on it; `new` makes one.

    Attributes
    ----------
    policy : Policy
    size : int
        In bytes.
    zeros : object
        The content of memory that was filled with zeros; None for that many bytes, made when they are wanted.
    copies : mapping of str to Copy
        By side.
    released : bool
    """

    policy: Policy
    size: int
    zeros: Any
    copies: Mapping[str, Copy]
    released: bool = False

    @classmethod
    def new(cls, policy: Policy, size: int, zeros: Any = None) -> Oracle:
        """A new memory; `zeros` stands for its zeros if contents are not bytes."""
        copies = {side: Copy("nobody" if side in policy.lazy else "memory") for side in policy.sides}
        born = cls(policy, size, zeros, copies)
        held = {
            side: copy._replace(fresh=side in policy.born_fresh, content=born._blank(side))
            for side, copy in copies.items()
            if side in policy.born_fresh or copy.owner == "memory"
        }
        return replace(born, copies={**copies, **held})

    def __repr__(self) -> str:
        copies = ", ".join(f"{side} {name.owner}{' fresh' if name.fresh else ''}" for side, name in self.copies.items())
        return f"<Oracle: {self.size} bytes, {copies}{', released' if self.released else ''}>"

    @property
    def fresh(self) -> frozenset[str]:
        """The sides that have the newest bytes."""
        return frozenset(side for side, copy in self.copies.items() if copy.fresh)

    @property
    def made(self) -> tuple[Wanted, ...]:
        """What making a memory does: it allocates the sides that are there from the beginning."""
        there = (side for side in self.policy.sides if side not in self.policy.lazy | self.policy.absent)
        steps = (
            step
            for side in there
            for step in (Wanted("allocate", side), Wanted("zero", side))
            if step.does == "allocate" or self._blank(side) is not None
        )
        return tuple(steps) if self.size else ()

    @property
    def head(self) -> str:
        """The name of the head; empty, because an oracle knows only what it says to be fresh."""
        return ""

    def defines(self, call: Call) -> bool:
        """Whether it is known what a call does."""
        return call.does != ""

    def copy(self, side: str) -> Copy:
        """The copy on one side."""
        return self.copies[side]

    def has(self, side: str) -> bool:
        """Whether this build has a side."""
        return side not in self.policy.absent

    def holds(self, fact: Fact) -> bool | None:
        """Whether a fact is true, by its meaning; None if the meaning is not about what an oracle knows."""
        copy = self.copies.get(fact.side)
        match fact.means if copy else "":
            case "pointer":
                return copy is not None and copy.owner != "nobody"
            case "owned":
                return copy is not None and copy.owner == "memory"
            case "pinned":
                return copy is not None and copy.pinned
            case _:
                return None

    # --- calls

    def expect(  # noqa: PLR0911 -- one for each meaning
        self, call: Call, settings: Mapping[str, str], content: Any = None
    ) -> Expected:
        """The effect of a call.

        Parameters
        ----------
        call : Call
        settings : mapping of str to str
            Their values.
        content : object
            Of an adoption: what is in the buffer; None for no buffer.

        Raises
        ------
        InvalidArgumentError
            If the call means nothing that an oracle knows.
        """
        match call.does:
            case "read" | "prefetch":
                return self.read(call.side, settings)
            case "write":
                return self.write(call.side, settings)
            case "overwrite":
                return self.overwrite(call.side, settings)
            case "adopt":
                return self.adopt(call.side, content)
            case "push" | "pull":
                return self.push(call.side, call.source, settings)
            case "evict":
                return self.evict(call.side, settings)
            case "release":
                return self.release()
            case _:
                raise InvalidArgumentError("call", call.name, "one that means something to an oracle")

    def why(self, call: Call, settings: Mapping[str, str], content: Any = None) -> str:
        """What the machine calls the reason for which a call is refused; our own word if the policy does not say."""
        reason = self.expect(call, settings, content).refused
        return self.policy.refusals.get(reason, reason)

    def read(self, side: str, settings: Mapping[str, str]) -> Expected:
        """Read a side."""
        if reason := self._refuses(side):
            return self._refused(reason)
        if self.copies[side].fresh:
            return Expected("", (), self)
        if not self.fresh:
            return self._touched(side, settings)
        steps, after = self._brought(side, self._source(side), settings)
        return Expected("", steps, after.told(side))

    def write(self, side: str, settings: Mapping[str, str]) -> Expected:
        """Get a side for writing; the other copies become stale."""
        refused, steps, after = self.read(side, settings)
        return Expected(refused, steps, after if refused else after.only(side))

    def overwrite(self, side: str, settings: Mapping[str, str]) -> Expected:
        """Get a side whose bytes are all going to be written: nothing is copied to it."""
        if reason := self._refuses(side):
            return self._refused(reason)
        steps, after = self.allocated(side, settings)
        return Expected("", steps, after.changed(side, content=None, fresh=True).only(side))

    def adopt(self, side: str, content: Any) -> Expected:
        """Adopt a buffer with this content; None is no buffer."""
        if reason := self._refuses(side) or ("null" if content is None else ""):
            return self._refused(reason)
        here = self.copies[side]
        steps = [Wanted("free", side, pinned=here.pinned)] if here.owner == "memory" else []
        after = self.changed(side, owner="caller", content=content, fresh=True)
        return Expected("", (*steps, Wanted("adopt", side)), after.only(side))

    def push(self, side: str, source: str, settings: Mapping[str, str]) -> Expected:
        """Queue a copy from one side to another; both count as fresh at once."""
        reason = self._refuses(side) or self._refuses(source)
        pushable = self.copies[source].fresh and not (self.policy.push_needs_stale and self.copies[side].fresh)
        if reason or not pushable:
            return self._refused(reason or "push")
        return Expected("", *self._brought(side, source, settings, queued=True))

    def evict(self, side: str, settings: Mapping[str, str]) -> Expected:
        """Forget a side; if it is the only fresh one, its bytes go home first."""
        if reason := self._refuses(side):
            return self._refused(reason)
        alone = self.fresh == frozenset((side,))
        if alone and not self.policy.home:
            raise InvalidArgumentError("home", "", f"a side to which the bytes of an evicted {side} go")
        steps, after = self._brought(self.policy.home, side, settings) if alone else ((), self)
        here = after.copies[side]
        if not self.policy.evict_frees or here.owner != "memory":
            return Expected("", steps, after.made_stale(side))
        freed = Wanted("free", side, pinned=here.pinned)
        return Expected("", (*steps, freed), replace(after, copies={**after.copies, side: Copy()}))

    def release(self) -> Expected:
        """Release everything; a second release has nothing to do."""
        owned = ((side, copy) for side, copy in self.copies.items() if copy.owner == "memory")
        steps = tuple(Wanted("free", side, pinned=copy.pinned) for side, copy in owned)
        return Expected("", steps, replace(self, copies=dict.fromkeys(self.copies, Copy()), released=True))

    # --- what happens outside calls

    def written(self, side: str, content: Any) -> Self:
        """The state after a side was written through a view."""
        return self.changed(side, content=content)

    def made_stale(self, side: str) -> Oracle:
        """The state after one copy became stale."""
        return self.changed(side, fresh=False)

    def freed(self, side: str) -> Oracle:
        """The state after a release that freed one side and stopped."""
        return replace(self, copies={**self.copies, side: Copy()}, released=True)

    # --- steps of the calls above

    def _refuses(self, side: str) -> Reason | Literal[""]:
        return "released" if self.released else "absent" if side in self.policy.absent else ""

    def _refused(self, reason: Reason) -> Expected:
        return Expected(reason, (), self)

    def _touched(self, side: str, settings: Mapping[str, str]) -> Expected:
        """The first call for a side, when no side is fresh."""
        if self.policy.first_touch == "refused":
            return self._refused("untouched")
        steps, after = self.allocated(side, settings)
        if self.policy.first_touch == "zero":
            if not any(step.does == "zero" for step in steps):
                steps = (*steps, Wanted("zero", side))
            after = after.changed(side, content=self._zeroed())
        elif not steps:
            after = after.changed(side, content=None)
        return Expected("", steps, after.changed(side, fresh=True))

    def _zeroed(self) -> Any:
        return bytes(self.size) if self.zeros is None else self.zeros

    def _blank(self, side: str) -> Any:
        """What a side holds that was there from the beginning, before anything was written; None for any bytes."""
        filled = side in self.policy.zeroed or (side in self.policy.born_fresh and self.policy.first_touch == "zero")
        return self._zeroed() if filled else None

    def allocated(self, side: str, settings: Mapping[str, str]) -> tuple[tuple[Wanted, ...], Oracle]:
        """The state in which there is memory on a side."""
        if self.copies[side].owner != "nobody":
            return (), self
        setting, value = self.policy.pinned.get(side, ("", ""))
        pinned = setting != "" and settings[setting] == value
        zeroed = side in self.policy.zeroed
        after = self.changed(side, owner="memory", pinned=pinned, content=self._zeroed() if zeroed else None)
        filled = (Wanted("zero", side),) if zeroed else ()
        return (Wanted("allocate", side, pinned=pinned), *filled), after

    def _brought(
        self, side: str, source: str, settings: Mapping[str, str], *, queued: bool = False
    ) -> tuple[tuple[Wanted, ...], Oracle]:
        """The state in which a stale side is fresh, and so is all that lies between."""
        steps: list[Wanted] = []
        after = self
        for stop in self.policy.route(source, side):
            if not after.copies[stop].fresh:
                allocated, after = after.allocated(stop, settings)
                steps += [*allocated, Wanted("copy", stop, source, queued)]
                after = after.changed(stop, fresh=True, content=after.copies[source].content)
            source = stop
        return tuple(steps), after

    def _source(self, side: str) -> str:
        """The fresh side from which it is shortest to a stale one."""
        fresh = (side for side in self.policy.sides if self.copies[side].fresh)
        return min(fresh, key=lambda source: len(self.policy.route(source, side)))

    def told(self, side: str) -> Oracle:
        """The state after what the heads cannot say is forgotten; they say the most that includes a side."""
        fresh = self.fresh
        if not self.policy.says or fresh in self.policy.says:
            return self
        kept = max((sides for sides in self.policy.says if side in sides and sides <= fresh), key=len)
        return self._keeping(kept)

    def only(self, side: str) -> Oracle:
        """The state in which only one copy is fresh."""
        return self._keeping(frozenset((side,)))

    def _keeping(self, fresh: frozenset[str]) -> Oracle:
        """The state in which at most these sides are fresh."""
        stale: Iterator[str] = (name for name, copy in self.copies.items() if copy.fresh and name not in fresh)
        changed = {side: self.copies[side]._replace(fresh=False) for side in stale}
        return replace(self, copies={**self.copies, **changed}) if changed else self

    def changed(self, side: str, **changes: Any) -> Self:
        """The state with other attributes of one copy."""
        return replace(self, copies={**self.copies, side: self.copies[side]._replace(**changes)})
