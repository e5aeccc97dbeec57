"""The state diagram in PlantUML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..drawing import Detail, drawing
from ..head import Call

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..drawing import Line

__all__ = ["plantuml"]


def plantuml(edition: str = "caffe", *, calls: Collection[Call] = (), detail: Detail = Detail.HEADS) -> str:
    """Draw the machine for PlantUML; parameters and errors are those of `drawing`.

    Returns
    -------
    str
        From ``@startuml`` to ``@enduml``, ending in a newline.
    """
    drawn = drawing(edition, calls=calls, detail=detail)
    aliases = {node.name: f"state{number}" for number, node in enumerate(drawn.nodes)}
    first = aliases[drawn.nodes[0].name]
    lines = ["@startuml", f"title {drawn.title}", "hide empty description"]
    lines += [f'state "{name}" as {alias}' for name, alias in aliases.items()]
    lines.append(f"[*] --> {first}")
    for edge in drawn.edges:
        label = "\\n".join(map(_label, edge.lines))
        lines.append(f"{aliases[edge.source]} --> {aliases[edge.dest]} : {label}")
    ends = {head for note in drawn.notes if note.final for head in note.heads}
    lines += [f"{aliases[node.name]} --> [*] : {Call.RELEASE.value}" for node in drawn.nodes if node.head in ends]
    if drawn.notes:
        lines += [f"note right of {first}", *(f"  {note.text}" for note in drawn.notes), "end note"]
    return "\n".join([*lines, "@enduml"]) + "\n"


def _label(line: Line) -> str:
    return "\\n".join([line.call, *(f"  {step}" for step in line.steps)])
