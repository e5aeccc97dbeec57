"""The state diagram in Graphviz's DOT, and as SVG or PNG by Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..drawing import Detail, Kind, drawing
from ..errors import MissingProgramError
from ..head import SyncedHead

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..drawing import Drawing, Edge, Line
    from ..head import Call
    from .trace import Trace

__all__ = ["dot", "laid_out"]

# The colours of the diamond, by Okabe and Ito; arrowheads say the same without colour.
_LOOKS: Mapping[Kind, tuple[str, str]] = MappingProxyType(
    {
        Kind.GPU: ("#0072b2", "normal"),
        Kind.CPU: ("#d55e00", "onormal"),
        Kind.NONE: ("#59636e", "vee"),
        Kind.ADOPT: ("#009e73", "odiamond"),
    }
)
_INK, _SOFT, _FAINT = "#1f2328", "#59636e", "#c9ced4"
_RANKS: Mapping[SyncedHead, str] = MappingProxyType({SyncedHead.UNINITIALIZED: "source", SyncedHead.SYNCED: "sink"})


def dot(
    edition: str = "caffe",
    *,
    calls: Collection[Call] = (),
    detail: Detail = Detail.HEADS,
    trace: Trace | None = None,
) -> str:
    """Draw the machine in DOT.

    Parameters
    ----------
    edition : str
        A name from ``EDITIONS``.
    calls : collection of Call
        Draw these only; without any, all of them.
    detail : Detail
    trace : Trace, optional
        Number the edges that it takes, and make the others faint.

    Returns
    -------
    str
        A ``digraph``, ending in a newline: the same bytes for the same arguments.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    drawn = drawing(edition, calls=calls, detail=detail)
    lines = [
        "digraph SyncedMemory {",
        f"  label={_quoted(_caption(drawn, trace))}; labelloc=b; labeljust=l;",
        f'  graph [fontname="Helvetica", fontsize=11, fontcolor="{_INK}", nodesep=0.9, ranksep=1.1, bgcolor=white];',
        f'  node [shape=box, style="rounded,filled", fillcolor="#f3f5f7", color="{_INK}", fontname="Courier-Bold"];',
        f'  edge [fontname="Courier", fontsize=10, color="{_SOFT}"];',
        f'  start [shape=circle, label="", width=0.12, fixedsize=true, style=filled, fillcolor="{_INK}"];',
        f"  start -> {_quoted(drawn.nodes[0].name)};",
    ]
    lines += [f"  {_quoted(node.name)};" for node in drawn.nodes]
    for head in SyncedHead:
        names = "; ".join(_quoted(node.name) for node in drawn.nodes if node.head is head)
        if names and detail is Detail.CONFIGURATIONS:
            lines.append(f"  subgraph cluster_{head.name} {{ label={head.name}; color={_quoted(_FAINT)}; {names}; }}")
        elif names and head in _RANKS:
            lines.append(f"  {{ rank={_RANKS[head]}; {names}; }}")
    if detail is not Detail.CONFIGURATIONS:
        sides = [node.name for node in drawn.nodes if node.head not in _RANKS]
        lines.append(f"  {{ rank=same; {'; '.join(map(_quoted, sides))}; }}")
    lines += [_edge(edge, trace) for edge in drawn.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _caption(drawn: Drawing, trace: Trace | None) -> str:
    said = [note.text for note in drawn.notes] if trace is None else list(trace.lines())
    return "\n".join([drawn.title, *said]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l") + '"'


def _edge(edge: Edge, trace: Trace | None) -> str:
    colour, tip = _LOOKS[edge.kind]
    numbers = [number for line in edge.lines for number in _numbers(line, trace)]
    if trace is not None and not numbers:
        colour = _FAINT
    width = "3" if numbers else "1.5" if edge.kind in (Kind.GPU, Kind.CPU) else "1"
    rows = "".join(_row(line, trace) for line in edge.lines)
    label = f'<<table border="0" cellspacing="0" cellpadding="1">{rows}</table>>'
    looks = f'color="{colour}", arrowhead={tip}, penwidth={width}'
    return f"  {_quoted(edge.source)} -> {_quoted(edge.dest)} [{looks}, label={label}];"


def _numbers(line: Line, trace: Trace | None) -> list[int]:
    return [] if trace is None else trace.numbers_of(line.identifiers)


def _row(line: Line, trace: Trace | None) -> str:
    numbers = _numbers(line, trace)
    faint = trace is not None and not numbers
    colour = _FAINT if faint else _INK
    mark = f"<b>{', '.join(map(str, numbers))}</b>: " if numbers else ""
    texts = [f'<font color="{colour}">{mark}{escape(line.call)}</font>']
    texts += [f'<font color="{_FAINT if faint else _SOFT}" point-size="9">{escape(step)}</font>' for step in line.steps]
    return "".join(f'<tr><td align="left">{text}</td></tr>' for text in texts)


def laid_out(text: str, kind: str) -> bytes:
    """What Graphviz makes of some DOT.

    Parameters
    ----------
    text : str
        DOT.
    kind : str
        ``svg`` or ``png``; the latter has 150 dots per inch.

    Raises
    ------
    MissingProgramError
        If there is no ``dot``.
    subprocess.CalledProcessError
        If it is not DOT.
    """
    program = shutil.which("dot")
    if program is None:
        raise MissingProgramError(f"a picture as {kind} by Graphviz", "dot", "graphviz")
    command = [program, f"-T{kind}", *(["-Gdpi=150"] if kind == "png" else [])]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout  # noqa: S603 -- found on PATH
