"""The state diagram and a trace as plain text, for terminals and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caffe import DEFAULT
from ..diagrams.drawing import Detail, drawing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ..diagrams.drawing import Drawing
    from ..diagrams.trace import Trace
    from ..opening import AnyCall, AnyMachine

__all__ = ["text_diagram"]


def text_diagram(
    edition: AnyMachine = DEFAULT,
    *,
    calls: Collection[AnyCall] = (),
    detail: Detail = Detail.HEADS,
    trace: Trace | None = None,
) -> str:
    """Draw the machine as text: each state with its calls, and where they lead.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    trace : Trace, optional
        Its steps come last.
    """
    drawn = drawing(edition, calls=calls, detail=detail)
    lines = [drawn.title, "", *_states(drawn)]
    lines += [*(note.text for note in drawn.notes), *drawn.abbreviations]
    if trace is not None:
        lines += ["", *trace.lines(detail)]
    return "\n".join(lines).rstrip() + "\n"


def _states(drawn: Drawing) -> Iterator[str]:
    """A paragraph for each state; the columns are as wide as their longest text."""
    rows = {
        node.name: [
            (line.call, "" if edge.dest == node.name else f"-> {edge.dest}", "; ".join(line.steps))
            for edge in drawn.edges
            if edge.source == node.name
            for line in edge.lines
        ]
        for node in drawn.nodes
    }
    every = [row for some in rows.values() for row in some]
    widths = [max((len(row[column]) for row in every), default=0) for column in (0, 1)]
    for k, (name, some) in enumerate(rows.items()):
        yield f"{name}{' (at first)' if k == 0 else ''}"
        for call, dest, steps in some:
            yield f"  {call:{widths[0]}}  {dest:{widths[1]}}  {steps}".rstrip()
        yield ""
