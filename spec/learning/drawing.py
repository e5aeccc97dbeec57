"""The learned machine of heads as a `Machine` that `syncedmem diagram` could draw: ✗ marks what is not as declared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from syncedmem.model import Call, Machine, Row
from syncedmem.model.diagrams.diagram import painted
from syncedmem.model.diagrams.drawing import Detail, drawing_of
from syncedmem.model.exports.graphviz import dot_of
from syncedmem.model.exports.mermaid import mermaid_of

from .answers import has_died

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .answers import Answer
    from .report import LearnReport

__all__ = ["drawings", "machine_of"]


def drawings(report: LearnReport) -> dict[str, str]:
    """The learned machine by the endings of file names."""
    if not report.learned.machine[0]:
        return {}
    drawn = drawing_of(machine_of(report))
    return {"svg": painted(drawn, Detail.HEADS), "mmd": mermaid_of(drawn), "dot": dot_of(drawn)}


def machine_of(report: LearnReport) -> Machine:
    """The learned machine, without what the heads do not decide; each input is a call."""
    declared = report.machine
    rows: dict[Row, None] = {}
    calls: dict[str, Call] = {}
    for head, call, dest, answer in _taken(report):
        calls[call.name] = call
        about = dict(answer)
        if has_died(answer) or about["the call"] == "refused":
            rows[Row(call, head, refused=about.get("the port", "and nothing happens"))] = None
            continue
        did = [name.partition(" ")[0] for name in about.get("actions", "").split(", ")]
        adopted = [
            it.name for it in declared.actions.values() if it.does == call.does == "adopt" and it.side == call.side
        ]
        actions = [name for name in (*did, *adopted) if name in declared.actions]
        rows[Row(call, head, None if call.ends else dest, do=actions)] = None
    named = {head: None for row in rows for head in (*row.source, *([] if row.dest is None else [row.dest]))}
    return Machine(
        report.name,
        rows,
        title=f"Learned: {report.name}, beside {report.machine.name}; ✗ is not as declared",
        sides=declared.sides,
        heads=[*declared.heads.values(), *(head for head in named if head not in declared.heads)],
        calls=calls.values(),
        actions=declared.actions.values(),
        settings=declared.settings.values(),
    )


def _taken(report: LearnReport) -> Iterator[tuple[str, Call, str, Answer]]:
    """The transitions of the learned machine between heads; a change of mode moves no head."""
    machine, known = report.learned.machine, report.comparison.heads
    heads = {0: report.machine.initial.name}
    waiting = [0]
    for state in waiting:
        for entry, (answer, after) in machine[state].items():
            if not (entry.ends or has_died(answer)) and after not in heads:
                heads[after] = dict(answer).get("head", known.get(after, heads[state]))
                waiting.append(after)
            if entry.call is not None:
                mark = "✗ " * ((state, entry) in report.comparison.wrong)
                call = replace(entry.call, name=f"{mark}{entry}", takes="")
                yield heads[state], call, heads.get(after, ""), answer
