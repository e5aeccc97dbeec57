"""The state diagram and a trace as plain text, for terminals and logs, and a trace for the tools of TLA+ and Quint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..caffe import DEFAULT
from ..diagrams.drawing import Detail, drawing
from ..diagrams.trace import trace_of
from ..opening import machine_of
from ..suites import tour

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ..declaration import Machine
    from ..diagrams.drawing import Drawing
    from ..diagrams.trace import Trace
    from ..opening import AnyCall, AnyMachine
    from ..stepper import State

__all__ = ["itf", "text_diagram"]


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

    Raises
    ------
    DeclarationError
        If there is no such edition, or if the machine is unsound.
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


def itf(edition: AnyMachine = DEFAULT, *, trace: Trace | None = None) -> str:
    """A trace in the Informal Trace Format of Apalache, TLC and Quint, with the variables of the format ``tla``.

    Parameters
    ----------
    edition : str or Machine
        The machine, if there is no trace.
    trace : Trace, optional
        If there is none, it is the longest sequence of the `tour`.

    Returns
    -------
    str
        JSON: the states before the first call and after each one.  ``mbt::actionTaken`` is the call that led to a
        state, and ``refused`` says why nothing happened; both are empty in the first.

    Raises
    ------
    DeclarationError
        If there is no such edition, or if the machine is unsound.
    """
    if trace is None:
        whole = machine_of(edition)
        longest = max((list(map(str, it)) for it in tour(whole)), key=len)
        trace = trace_of(longest, edition=whole)
    machine = trace.machine
    states = [_state(machine, trace.steps[0].before, "", "")]
    states += [_state(machine, step.after, str(step.asked), step.refusal) for step in trace.steps]
    data = {
        "#meta": {"format": "ITF", "description": f"{machine.title}. Made by syncedmem diagram."},
        "vars": [*states[0]],
        "states": [{"#meta": {"index": index}, **state} for index, state in enumerate(states)],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _state(machine: Machine, state: State, taken: str, refused: str) -> dict[str, Any]:
    settings = dict(zip(machine.settings, state.settings, strict=True))
    facts = {fact: fact in state.facts for fact in machine.facts}
    return {"head": state.head, **settings, **facts, "refused": refused, "mbt::actionTaken": taken}
