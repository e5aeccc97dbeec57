"""Sequences of calls that lead to each configuration, for tests of the explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncedmem.model import Mode, inputs
from syncedmem.model.compiled import dispatch
from syncedmem.model.exploration import explore

if TYPE_CHECKING:
    from syncedmem.model import Configuration
    from syncedmem.model.machine import AnyEdition


def words_of(edition: AnyEdition) -> dict[Configuration, list[str]]:
    """Return, for each configuration, a sequence of calls to the state that stands for it in the matrix."""
    found = explore(dispatch(edition), inputs(edition, null=True, mode=False), Mode.GPU)
    words: dict[Any, list[str]] = {found.start: []}
    for state, row in found.steps.items():
        for entry, step in row.items():
            words.setdefault(step.after, [*words[state], str(entry)])
    chosen: dict[Configuration, list[str]] = {}
    for state in found.steps:
        chosen.setdefault(state.configuration, words[state])
    return chosen
