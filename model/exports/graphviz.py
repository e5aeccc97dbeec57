"""The state diagram in Graphviz's DOT, and as SVG or PNG by Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..drawing import Detail, Kind, drawing
from ..errors import MissingProgramError
from ..head import SyncedHead
from ..layout import HALF_HEIGHT, HALF_WIDTH, block_at, frame_of, width_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..drawing import Drawing, Edge, Line
    from ..head import Call
    from ..layout import Frame, Point
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
        f'  graph [fontname="Helvetica", fontsize=11, fontcolor="{_INK}", bgcolor=white];',
        f'  node [shape=box, style="rounded,filled", fillcolor="#f3f5f7", color="{_INK}", fontname="Courier-Bold"];',
        f'  edge [fontname="Courier", fontsize=10, color="{_SOFT}"];',
        f'  start [shape=circle, label="", width=0.14, fixedsize=true, style=filled, fillcolor="{_INK}"];',
    ]
    body = _ranked(drawn, trace) if detail is Detail.CONFIGURATIONS else _placed(drawn, frame_of(detail), trace)
    return "\n".join([*lines, *body, "}"]) + "\n"


def _ranked(drawn: Drawing, trace: Trace | None) -> Iterable[str]:
    """Nodes in a box per head; Graphviz finds the places."""
    yield "  rankdir=LR; nodesep=0.5; ranksep=1.2;"
    for head in SyncedHead:
        names = "; ".join(_quoted(node.name) for node in drawn.nodes if node.head is head)
        if names:
            yield f"  subgraph cluster_{head.name} {{ label={head.name}; color={_quoted(_FAINT)}; {names}; }}"
    yield f"  start -> {_quoted(drawn.nodes[0].name)};"
    for edge in drawn.edges:
        label = f"label={_label(edge, trace)}"
        yield f"  {_quoted(edge.source)} -> {_quoted(edge.dest)} [{_looks(edge, trace)}, {label}];"


def _placed(drawn: Drawing, frame: Frame, trace: Trace | None) -> Iterable[str]:
    """Nodes, ways and labels where the diamond has them, so that nothing is left to Graphviz: its layout is nop2."""
    yield "  layout=nop2;"
    size = f"width={2 * HALF_WIDTH / 72:.3f}, height={2 * HALF_HEIGHT / 72:.3f}, fixedsize=true, fontsize=12"
    for node in drawn.nodes:
        yield f'  {_quoted(node.name)} [pos="{_at(frame.places[node.head])}", {size}];'
    first, (x, y) = drawn.nodes[0].name, frame.places[drawn.nodes[0].head]
    yield f'  start [pos="{_at((x, 14))}"];'
    yield f'  start -> {_quoted(first)} [pos="{_spline([(x, 19), (x, y - HALF_HEIGHT)])}", arrowhead=vee];'
    for number, edge in enumerate(drawn.edges):
        points, anchor = frame.route(SyncedHead[edge.source], SyncedHead[edge.dest])
        texts = [text for line in edge.lines for text in _texts(line, trace)]
        width, height = max(width_of(text, "call") for text, *_ in texts) + 12, _LINE * len(texts) + 4
        left, top = block_at(anchor, width, height)
        way = f"{_looks(edge, trace)}, pos={_quoted(_spline(points))}"
        yield f"  {_quoted(edge.source)} -> {_quoted(edge.dest)} [{way}];"
        place = _at((left + width // 2, top + height // 2))
        box = f'shape=plain, style="", fontname="Courier", pos="{place}"'
        yield f"  label{number} [{box}, label={_label(edge, trace, width)}];"


_LINE = 14


def _at(point: Point) -> str:
    """A point as Graphviz has it, where heights grow upwards."""
    return f"{point[0]},{-point[1]}"


def _spline(points: list[Point]) -> str:
    """A polyline as Bézier curves, up to the base of the arrowhead."""
    *_, (x, y), (tip_x, tip_y) = points
    base = (tip_x - 9 * ((tip_x > x) - (tip_x < x)), tip_y - 9 * ((tip_y > y) - (tip_y < y)))
    way = [*points[:-1], base]
    curves = [_at(way[0])]
    for start, end in pairwise(way):
        # Control points on the ends make a straight stretch.
        curves += [_at(start), _at(end), _at(end)]
    return f"e,{_at((tip_x, tip_y))} {' '.join(curves)}"


def _caption(drawn: Drawing, trace: Trace | None) -> str:
    said = [note.text for note in drawn.notes] if trace is None else list(trace.lines())
    return "\n".join([drawn.title, *said]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l") + '"'


def _looks(edge: Edge, trace: Trace | None) -> str:
    colour, tip = _LOOKS[edge.kind]
    taken = any(_numbers(line, trace) for line in edge.lines)
    if trace is not None and not taken:
        colour = _FAINT
    width = "3" if taken else "1.5" if edge.kind in (Kind.GPU, Kind.CPU) else "1"
    return f'color="{colour}", arrowhead={tip}, penwidth={width}'


def _numbers(line: Line, trace: Trace | None) -> list[int]:
    return [] if trace is None else trace.numbers_of(line.identifiers)


def _texts(line: Line, trace: Trace | None) -> list[tuple[str, str, int]]:
    """The call and its steps, with colour and size."""
    numbers = _numbers(line, trace)
    faint = trace is not None and not numbers
    call = f"{','.join(map(str, numbers))}: {line.call}" if numbers else line.call
    colour = _FAINT if faint else _INK if trace is None else _LOOKS[line.kind][0]
    return [(call, colour, 11), *((step, _FAINT if faint else _SOFT, 10) for step in line.steps)]


def _label(edge: Edge, trace: Trace | None, width: int = 0) -> str:
    rows = "".join(
        f'<tr><td align="left"><font color="{colour}" point-size="{size}">{escape(text)}</font></td></tr>'
        for line in edge.lines
        for text, colour, size in _texts(line, trace)
    )
    return f'<<table border="0" cellspacing="0" cellpadding="0" width="{width}">{rows}</table>>'


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
