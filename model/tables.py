"""The machine as two Markdown tables: head by call, and configuration by call."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .editions import head_machine
from .exploration import inputs, matrix
from .head import Action, Call, SyncedHead, Transition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .exploration import Entry

__all__ = ["markdown_matrix", "markdown_table"]

# H for host, D for device; E, as in a configuration, for an external pointer, which no allocator gets to see.
_CODES: Mapping[Action, str] = MappingProxyType(
    {
        Action.ALLOCATE_CPU: "HA",
        Action.ZERO_CPU: "HZ",
        Action.COPY_TO_CPU: "d2h",
        Action.ADOPT_CPU: "HE",
        Action.FREE_CPU: "HF",
        Action.ALLOCATE_GPU: "DA",
        Action.ZERO_GPU: "DZ",
        Action.COPY_TO_GPU: "h2d",
        Action.COPY_TO_GPU_ASYNC: "h2d*",
        Action.ADOPT_GPU: "DE",
        Action.FREE_GPU: "DF",
    }
)


def markdown_table(edition: str = "caffe") -> str:
    """The head x call table in Markdown: what each call does in each head, and the head it leads to.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.

    Returns
    -------
    str
        A row per call and a column per head, ending in a newline.  Rows that differ by guards only are
        lines of one cell; refusals are in bold, and the destructor leads to no head.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    machine = head_machine(edition)
    cells: dict[tuple[Call, SyncedHead], list[str]] = {}
    for row in machine.declaration.rows:
        for head in row.source:
            cells.setdefault((row.call, head), []).append(_variant(row))
    heads = machine.edition.heads
    header = ["call", *(head.name for head in heads)]
    lines = ([call.value, *("<br>".join(cells[call, head]) for head in heads)] for call in machine.calls)
    return _markdown(header, lines)


def _variant(row: Transition) -> str:
    guards = [guard.value for guard in row.conditions] + [f"!{guard.value}" for guard in row.unless]
    asked = f"`[{', '.join(guards)}]` " if guards else ""
    if row.refusal is not None:
        return f"{asked}**{row.refusal.value}**"
    steps = ", ".join(action.value for action in row.actions) or "nothing"
    return f"{asked}{steps} → {row.dest.name if row.dest else 'the end'}"


def markdown_matrix(edition: str = "caffe") -> str:
    """The configuration x call matrix in Markdown, with a legend of its codes.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.

    Returns
    -------
    str
        A row per reachable configuration and a column per call, NULL data included, ending in a newline.
        An entry is the actions in order and the configuration afterwards, or a refusal in bold.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    calls = inputs(edition, null=True, mode=False)
    found = matrix(edition)
    used = {action for row in found.values() for entry in row.values() for action in entry.actions}
    legend = ", ".join(f"`{code}` {action.value}" for action, code in _CODES.items() if action in used)
    rows = ([f"`{before}`", *(_entry(row[call]) for call in calls)] for before, row in found.items())
    return f"{_markdown(['configuration', *map(str, calls)], rows)}\n{legend}.\n"


def _entry(entry: Entry) -> str:
    if entry.refusal is not None:
        return f"**{entry.refusal.value}**"
    # In code spans, because the asterisk of a code would otherwise start emphasis.
    codes = f"`{' '.join(_CODES[action] for action in entry.actions)}` " if entry.actions else ""
    return f"{codes}→ `{entry.after}`"


def _markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (header, ["---"] * len(header), *rows))
