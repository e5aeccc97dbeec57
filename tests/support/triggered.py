"""What `transitions` itself decides: a call is triggered on the machine that it built."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncedmem.model.moves import Input, State, Stepper

__all__ = ["triggered"]


def triggered(stepper: Stepper, state: State, entry: Input) -> tuple[tuple[str, ...], str, str] | None:
    """The actions, the refusal and the next head; None if no row is enabled."""
    choice = _Choice(state.head, state.facts | entry.holds)
    if not stepper.library.events[str(entry.call)].trigger(choice):
        return None
    (refusal,) = choice.steps if {*choice.steps} & stepper.machine.refusals.keys() else ("",)
    return () if refusal else tuple(choice.steps), refusal, choice.head


class _Choice:
    """The model of `transitions` for one call: it has every condition, and records the steps."""

    def __init__(self, head: str, holds: frozenset[str]) -> None:
        self.head = head
        self.steps: list[str] = []
        self._holds = holds

    def __getattr__(self, name: str) -> object:
        kind, word = name[0], name[1:]
        if kind not in "?!":
            raise AttributeError(name)
        return word in self._holds if kind == "?" else partial(self.steps.append, word)
