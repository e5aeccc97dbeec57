"""The state diagram as SVG, with a legend below.

``plan`` decides where things are, and ``drawing`` what the texts say; this module paints.  The font is monospace.
``textLength`` gives every substitute font the same width, so labels fit the boxes that were laid out for them.

The drawing has no ``id`` and no marker, and its class names have a prefix, so any number of drawings can be inlined
into one page.  It has a fixed size; a page with less room sets ``max-width: 100%; height: auto``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caffe import DEFAULT
from ..errors import InvalidExportError
from .drawing import Detail, Direction, Kind, drawing, kind_of
from .inscription import BULLETS, FINAL, REFUSED, Inscriber, Item, tip_at
from .layout import MARGIN, width_of
from .palette import COLOURS, Theme, palette_of
from .plan import plan_of
from .svg import SvgWriter, framed

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..moves import Move, State
    from ..opening import AnyCall, AnyMachine
    from .arrangement import Arrangement
    from .drawing import Drawing
    from .trace import Trace

__all__ = ["diagram_svg", "painted"]

_MARKS = "✓ covered, ✗ not covered"
_BULLET = 38
"""The room for a bullet of the legend, and before the next one."""


def diagram_svg(  # noqa: PLR0913 -- what a drawing can show
    edition: AnyMachine = DEFAULT,
    *,
    calls: Collection[AnyCall] = (),
    detail: Detail = Detail.HEADS,
    covered: Collection[str] | None = None,
    trace: Trace | None = None,
    theme: Theme = Theme.AUTO,
    direction: Direction = Direction.DOWN,
    at: str = "",
) -> str:
    """Draw the machine as SVG that can be inlined into a page.

    Parameters
    ----------
    edition : str or Machine
        A name from ``EDITIONS``, or any machine.
    calls : collection of str or Call
        Draw only these calls; if empty, all calls.
    detail : Detail
    covered : collection of str, optional
        Identifiers of transitions, as `Row.identifier` gives them for the machine's rows.  If given,
        every line has a tick, or a cross if one of its transitions is missing; other identifiers are ignored.
    trace : Trace, optional
        If given, the calls of the trace are numbered, and everything else is faint.  Below the drawing are the steps
        of the trace, with the bytes that they copy, instead of the refusals.
    theme : Theme
        ``AUTO`` is light, or dark if the reader's system is set to dark.
    direction : Direction
        Where the drawing leads; to the right it is always in layers.
    at : str
        The name of a state, as it is drawn.  It gets a thick border, and the title of the drawing names it.

    Returns
    -------
    str
        An ``svg`` element with its size in pixels, and a newline at the end.  The same arguments give the same bytes.

    Raises
    ------
    InvalidExportError
        If coverage is requested for configurations, or if there is no such state.
    DeclarationError
        If there is no such edition.
    """
    if covered is not None and detail is Detail.CONFIGURATIONS:
        raise InvalidExportError("coverage is shown for heads and guards, not for configurations")
    drawn = drawing(edition, calls=calls, detail=detail)
    if at:
        names = [node.name for node in drawn.nodes]
        if at not in names:
            raise InvalidExportError.unknown("state", at, names)
        drawn = drawn._replace(title=f"{drawn.title}, at {at}")
    return painted(drawn, detail, covered=covered, trace=trace, theme=theme, direction=direction, at=at)


def painted(  # noqa: PLR0913 -- as `diagram_svg`
    drawn: Drawing,
    detail: Detail,
    *,
    covered: Collection[str] | None = None,
    trace: Trace | None = None,
    theme: Theme = Theme.AUTO,
    direction: Direction = Direction.DOWN,
    at: str = "",
) -> str:
    """Any drawing with this detail as SVG; see `diagram_svg`."""
    laid = plan_of(drawn, detail, trace.room if trace else 0, direction)
    inscriber = Inscriber(SvgWriter(palette_of(theme)), laid.drawn, covered, trace, at)
    body = [_entry(laid, inscriber.writer), *map(inscriber.box, laid.boxes)]
    body += [inscriber.arrow(arrow) for arrow in laid.arrows]
    below = _below(laid.drawn, detail, inscriber)
    last = [*laid.abbreviations[-1:], *([] if covered is None else [_MARKS])]
    texts = [*laid.abbreviations[:-1], *([", ".join(last)] if last else [])]
    widths = [0, *(item.width for item in below), *(width_of(text, "step") for text in texts)]
    widths.append(sum(_BULLET + width_of(kind.said(laid.drawn.machine), "call") for kind in laid.kinds))
    width = max(max(widths) + 2 * MARGIN, laid.size[0])
    legend, height = _legend(laid, texts, below, width, inscriber)
    about = f"The states {', '.join(box.name for box in laid.boxes)}, and the calls that lead from one to another."
    return framed("\n".join([*body, *legend]), (width, height), laid.drawn.title, about, theme)


def _entry(laid: Arrangement, writer: SvgWriter) -> str:
    """The dot before the state in which the machine starts."""
    (x, y), (wide, high) = laid.boxes[0].centre, laid.boxes[0].half
    if laid.direction is Direction.RIGHT:
        start, end, ahead = (14, y), (x - wide, y), (1, 0)
    else:
        start, end, ahead = (x, 14), (x, y - high), (0, 1)
    way = writer.path(f"M{start[0]} {start[1]}L{end[0]} {end[1]}", "ink", look="start")
    dot = f"M{start[0]} {start[1] - 5}A5 5 0 1 1 {start[0] - 0.1:g} {start[1] - 5}Z"
    return way + writer.path(tip_at(end, ahead, Kind.NONE), "ink") + writer.path(dot, "ink", fill="ink")


def _below(drawn: Drawing, detail: Detail, inscriber: Inscriber) -> list[Item]:
    """The steps of the trace, each with the mark of its copy; without a trace the notes, the destructor first."""
    if (trace := inscriber.trace) is not None:
        lines = trace.lines(detail)
        items = [_step(inscriber, step, text) for step, text in zip(trace.steps, lines, strict=False)]
        return [*items, *(Item([("note", sums)], "", "ink") for sums in lines[len(items) :])]
    return [
        Item([("note", note.text)], FINAL if note.final else REFUSED, "ink", inscriber.covers(note.identifiers))
        for note in sorted(drawn.notes, key=lambda note: not note.final)
    ]


def _step(inscriber: Inscriber, step: Move[State], text: str) -> Item:
    if step.refusal or step.input.ends:
        return Item([("note", text)], REFUSED if step.refusal else FINAL, "ink")
    kind = kind_of(inscriber.drawn.machine, [step])
    return Item([("note", text)], inscriber.bullet(kind), COLOURS[kind])


def _legend(
    laid: Arrangement, texts: list[str], below: list[Item], width: int, inscriber: Inscriber
) -> tuple[list[str], int]:
    """The meaning of bullets and abbreviations, and below that the notes or the trace; also the height of all."""
    writer, y = inscriber.writer, laid.size[1]
    if not (laid.kinds or texts or below):
        return [], y - 12
    parts = [writer.path(f"M{MARGIN} {y}H{width - MARGIN}", "ink", width=1, look="rule", more=' opacity="0.35"')]
    x = MARGIN
    for kind in laid.kinds:
        meaning = kind.said(laid.drawn.machine)
        parts.append(inscriber.item((x, y + 12), Item([("call", meaning)], BULLETS[kind], COLOURS[kind])))
        x += _BULLET + width_of(meaning, "call")
    y += 46 if laid.kinds else 24
    for text in texts:
        parts.append(writer.text((MARGIN, y), text, "step"))
        y += 20
    y -= 10
    for item in below:
        parts.append(inscriber.item((MARGIN, y), item))
        y += 20
    return parts, y + 10
